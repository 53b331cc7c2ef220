"""Word links of a corpus's training pairs: what `train.links` teaches a head.

They are made by models of both directions, or by a statistical aligner that learns from these very pairs.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tqdm import tqdm

from seq2seq import storage
from seq2seq.config import DataConfig
from seq2seq.data.corpus import load_corpus
from seq2seq.data.mixture import Mixture
from seq2seq.data.splits import Pair
from seq2seq.errors import UserError
from seq2seq.training.guidance import words_of
from seq2seq.training.metrics import say
from seq2seq.translation.aligner import choose_by_agreement, force_both
from seq2seq.translation.engine import Engine, open_engine
from seq2seq.translation.link_sets import SYMMETRISE, LinkSet, read_links, turn, write_links

CHUNK = 256  # pairs that are forced together
JUDGED = 1000  # pairs, at most, on which the attention that is read is chosen


def link_by_models(data: DataConfig, model: str, reverse: str, output: Path, rule: str) -> int:
    """Write `source TAB target TAB links` for every distinct training pair of a corpus; returns how many.

    Which layer and step of each model are read is decided by their agreement; both directions are joined by `rule`.
    """
    engines = open_engine(model, "torch"), open_engine(reverse, "torch")
    directions = (data.source, data.target), (data.target, data.source)
    for engine, name, languages in zip(engines, (model, reverse), directions, strict=True):
        found = engine.info.source, engine.info.target
        if found != languages:
            raise UserError(f"{name} translates {'-'.join(found)} where the data needs {'-'.join(languages)}")
    pairs = _distinct_pairs(data)
    return _write(output, pairs, _forced(engines, pairs, rule))


def link_by_eflomal(data: DataConfig, output: Path, rule: str) -> int:
    """The same by eflomal (Östling and Tiedemann 2016), which knows nothing but these pairs; words in lower case."""
    try:
        import eflomal  # optional: it is compiled where it is installed
    except ImportError:
        raise UserError("eflomal is not installed: pip install eflomal (it needs a C compiler)") from None
    pairs = _distinct_pairs(data)
    sources, targets = ([" ".join(words_of(pair[side]).words).lower() for pair in pairs] for side in (0, 1))
    with TemporaryDirectory() as folder:
        both = [Path(folder, name) for name in ("forward", "reverse")]
        eflomal.Aligner().align(sources, targets, *map(str, both))
        there, back = (path.read_text(encoding="ascii").splitlines() for path in both)
    links = (SYMMETRISE[rule](read_links(a), read_links(b)) for a, b in zip(there, back, strict=True))
    return _write(output, pairs, links)


def _distinct_pairs(data: DataConfig) -> list[Pair]:
    corpus = load_corpus(data)
    return list(dict.fromkeys(pair.without_tabs() for pair in Mixture(corpus.split.train, corpus.extra)))


def _write(output: Path, pairs: Sequence[Pair], links: Iterator[LinkSet]) -> int:
    rows = ("\t".join((*pair, write_links(found))) + "\n" for pair, found in zip(pairs, links, strict=True))
    storage.write_file(output, (row.encode() for row in rows))
    return len(pairs)


def _forced(engines: tuple[Engine, Engine], pairs: Sequence[Pair], rule: str) -> Iterator[LinkSet]:
    """Links of every pair from a forced pass of each of two models, joined by a rule."""
    judged = force_both(engines, pairs[:: -(-len(pairs) // JUDGED)], clitics_apart=True)
    chosen = choose_by_agreement((engines[0].info, engines[1].info), *judged)
    for choice, direction in zip(chosen, ("forward", "reverse"), strict=True):
        say(f"{direction} model: {choice.said()}")
    for start in tqdm(range(0, len(pairs), CHUNK), unit="part"):
        forced = force_both(engines, pairs[start : start + CHUNK], clitics_apart=True)
        for there, back in zip(*forced, strict=True):
            yield SYMMETRISE[rule](there.links(chosen[0]), turn(back.links(chosen[1])))
