"""Word links of a corpus's training pairs, made by models of both directions: what `train.links` teaches a head."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from tqdm import tqdm

from seq2seq import storage
from seq2seq.config import DataConfig
from seq2seq.data.corpus import load_corpus
from seq2seq.data.mixture import Mixture
from seq2seq.data.splits import Pair
from seq2seq.errors import UserError
from seq2seq.training.metrics import say
from seq2seq.translation.aligner import choose_by_agreement, force_texts, turn
from seq2seq.translation.engine import Engine, open_engine
from seq2seq.translation.link_sets import SYMMETRISE, LinkSet, write_links

CHUNK = 256  # pairs that are forced together
JUDGED = 1000  # pairs, at most, on which the attention that is read is chosen


def link(data: DataConfig, model: str, reverse: str, output: Path, rule: str) -> int:
    """Write `source TAB target TAB links` for every distinct training pair of a corpus; returns how many.

    Which layer and step of each model are read is decided by their agreement; both directions are joined by `rule`.
    """
    engines = open_engine(model, "torch"), open_engine(reverse, "torch")
    directions = (data.source, data.target), (data.target, data.source)
    for engine, name, languages in zip(engines, (model, reverse), directions, strict=True):
        found = engine.info.source, engine.info.target
        if found != languages:
            raise UserError(f"{name} translates {'-'.join(found)} where the data needs {'-'.join(languages)}")
    corpus = load_corpus(data)
    texts = (pair.without_tabs() for pair in Mixture(corpus.split.train, corpus.extra))
    pairs = list(dict.fromkeys(texts))
    lines = ("\t".join((*pair, write_links(links))) + "\n" for pair, links in _linked(engines, pairs, rule))
    storage.write_file(output, (line.encode() for line in lines))
    return len(pairs)


def _linked(engines: tuple[Engine, Engine], pairs: Sequence[Pair], rule: str) -> Iterator[tuple[Pair, LinkSet]]:
    forward, backward = engines
    judged = pairs[:: -(-len(pairs) // JUDGED)]
    chosen = choose_by_agreement(
        list(force_texts(forward, judged)), list(force_texts(backward, [pair[::-1] for pair in judged]))
    )
    for choice, direction in zip(chosen, ("forward", "reverse"), strict=True):
        say(f"{direction} model: {choice.said()}")
    for start in tqdm(range(0, len(pairs), CHUNK), unit="part"):
        chunk = pairs[start : start + CHUNK]
        there = (one.links(chosen[0]) for one in force_texts(forward, chunk))
        back = (turn(one.links(chosen[1])) for one in force_texts(backward, [pair[::-1] for pair in chunk]))
        for pair, *both in zip(chunk, there, back, strict=True):
            yield pair, SYMMETRISE[rule](*both)
