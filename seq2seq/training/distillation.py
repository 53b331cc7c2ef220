"""Training pairs that models make: one side of a corpus's pairs, and a model's translation of it.

Translated sources are sequence-level distillation (Kim and Rush 2016): what a teacher, mostly an ensemble, says is more
regular than what people say. Translated targets, by a model of the other direction, are back-translations (Sennrich et
al. 2016): the student says what people say, to sources of a model's wording. Both together: Nguyen et al. 2020, "Data
diversification".
"""

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import compress
from pathlib import Path

from tqdm import tqdm

from seq2seq.config import DataConfig
from seq2seq.data.corpus import load_split
from seq2seq.data.facts import normalise
from seq2seq.data.splits import Example, Pair, fingerprint, group_references
from seq2seq.errors import UserError
from seq2seq.evaluation import sentence_scores
from seq2seq.folder import find_model, load_info
from seq2seq.folder import fingerprint as folder_fingerprint
from seq2seq.storage import write_text
from seq2seq.translation.engine import Engine, open_engine
from seq2seq.translation.reranking import look_back
from seq2seq.translation.result import Alternative
from seq2seq.translation.translator import Translator

CHUNK = 2048  # sentences that are translated together, and then are safe on the disk


@dataclass(frozen=True)
class Teaching:
    """How translations are made, and which of them are good enough to learn from."""

    models: Sequence[str]  # several translate together, as an ensemble
    beam_size: int = 5
    n_best: int = 5  # of so many the nearest to a reference is taken
    engine: str = "torch"
    rerank: str | None = None  # a model of the other direction that has a say in the order of a beam
    judge: str | None = (
        None  # a model of the other direction that says how probable a sentence is, given its translation
    )
    least: float | None = None  # of that log-probability, in nats a piece; what has less is left out
    new: bool = False  # leave out what the corpus has already, up to case and punctuation

    def identity(self) -> list[object]:
        """Everything that the translations depend on but the sentences."""
        named = [*self.models, *filter(None, (self.rerank, self.judge))]
        weights = [folder_fingerprint(folder, load_info(folder)) for folder in map(find_model, named)]
        return [weights, asdict(self)]


class Teacher:
    """The models of a teaching, loaded."""

    def __init__(self, teaching: Teaching) -> None:
        self.teaching = teaching
        first, *others = teaching.models
        self.translator = Translator.from_pretrained(first, teaching.engine, ensemble=others, rerank=teaching.rerank)
        info = self.translator.info
        self.languages = (info.source, info.target)
        self._judge = None if teaching.judge is None else self._open_judge(teaching.judge)

    def _open_judge(self, name: str) -> Engine:
        judge = open_engine(name, "torch")
        given, needed = (judge.info.source, judge.info.target), self.languages[::-1]
        if given != needed:
            raise UserError(f"{name} translates {'-'.join(given)}: to judge takes one of {'-'.join(needed)}")
        return judge

    def teach(self, examples: Sequence[Example]) -> list[Pair]:
        """Each sentence with its translation, without those that the judge finds too improbable."""
        pairs = distilled(self.translator, examples, self.teaching.beam_size, self.teaching.n_best)
        if self._judge is None or self.teaching.least is None:
            return pairs
        found = look_back(self._judge, pairs)
        return list(compress(pairs, (likelihood >= self.teaching.least for likelihood in found)))


def distil(data: DataConfig, teaching: Teaching, output: Path) -> int:
    """Write `source TAB target`, one side of it made, for a corpus's distinct training sentences; returns how many.

    A teacher of the corpus's direction translates sources; one of the other direction, targets. Finished parts lie in
    a folder beside the output until all are there, so the same call goes on where it was interrupted.
    """
    teacher = Teacher(teaching)
    backwards = teacher.languages == (data.target, data.source)
    if not backwards and teacher.languages != (data.source, data.target):
        raise UserError(f"the data is {data.source}-{data.target}, the model {'-'.join(teacher.languages)}")
    own = load_split(data, "train")
    examples = group_references(map(_turned, own) if backwards else own)
    folder = output.with_name(f"{output.name}.{_job(own, teaching)}")
    parts = [folder / f"{start:08d}.tsv" for start in range(0, len(examples), CHUNK)]
    for number, part in enumerate(tqdm(parts, unit="part")):
        if not part.exists():
            made = teacher.teach(examples[number * CHUNK : (number + 1) * CHUNK])
            folder.mkdir(parents=True, exist_ok=True)
            write_text(part, "".join(map(_line, map(_turned, made) if backwards else made)))
    lines = [line for part in parts for line in part.read_text(encoding="utf-8").split("\n")[:-1]]
    kept = list(_new(lines, own)) if teaching.new else lines
    write_text(output, "".join(f"{line}\n" for line in kept))
    shutil.rmtree(folder)
    return len(kept)


def _turned(pair: Pair) -> Pair:
    return Pair(pair.target, pair.source)


def _line(pair: Pair) -> str:
    return "\t".join(pair.without_tabs()) + "\n"


def _new(lines: Iterable[str], own: Iterable[Pair]) -> Iterator[str]:
    """The lines whose pair the corpus does not have, up to case, punctuation and spaces."""
    seen = {(normalise(source), normalise(target)) for source, target in own}
    for line in lines:
        source, target = line.split("\t")
        if (normalise(source), normalise(target)) not in seen:
            yield line


def _job(pairs: Iterable[Pair], teaching: Teaching) -> str:
    """What a part depends on, in short."""
    settings = json.dumps([fingerprint(pairs), *teaching.identity()])
    return hashlib.sha256(settings.encode()).hexdigest()[:12]


def distilled(translator: Translator, examples: Sequence[Example], beam_size: int, n_best: int) -> list[Pair]:
    """Each source with that of the teacher's n best translations which is nearest to a reference.

    A translation that the length limit has cut teaches nothing: there the source keeps its first reference.
    """
    sources = [example.source for example in examples]
    results = translator.translate(sources, beam_size=beam_size, n_best=n_best, attention=False)
    return [
        Pair(source, references[0] if result.truncated else nearest(result.best(n_best), references))
        for (source, references), result in zip(examples, results, strict=True)
    ]


def nearest(alternatives: Sequence[Alternative], references: Sequence[str]) -> str:
    """The text with the best chrF2 (Kim and Rush, section 3.3, take BLEU); of equals the model's first choice."""
    texts = [alternative.text for alternative in alternatives]
    if len(texts) == 1:
        return texts[0]
    scores = sentence_scores(texts, [references] * len(texts))
    return max(zip(scores, texts, strict=True), key=lambda item: item[0].chrf)[1]
