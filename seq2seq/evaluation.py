"""Corpus scores by sacrebleu, each with its signature, and paired significance tests."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest, Result

from seq2seq.errors import UserError


@dataclass(frozen=True)
class Scores:
    """BLEU and chrF2 (higher is better) and TER (lower is better), 0 to 100, with sacrebleu's signatures."""

    bleu: float
    chrf: float
    ter: float
    signatures: dict[str, str]

    def lines(self) -> list[str]:
        """One line a metric: signature = score, as sacrebleu prints it."""
        values = asdict(self)
        names = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"}
        return [f"{label}|{self.signatures[name]} = {values[name]:.1f}" for name, label in names.items()]


def _metrics() -> dict[str, Metric]:
    return {"bleu": BLEU(), "chrf": CHRF(), "ter": TER()}


def _streams(references: Sequence[Sequence[str]]) -> Any:  # sacrebleu takes None, its annotation does not
    """References per sentence -> sacrebleu's reference streams; a sentence with fewer references has None."""
    width = max(map(len, references), default=0)
    return [[refs[i] if i < len(refs) else None for refs in references] for i in range(width)]


def score(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Scores:
    """Score hypotheses, one a sentence, against each sentence's one or more references."""
    check(hypotheses, references)
    values, signatures = {}, {}
    for name, metric in _metrics().items():
        values[name] = metric.corpus_score(list(hypotheses), _streams(references)).score
        signatures[name] = metric.get_signature().format()
    return Scores(**values, signatures=signatures)


def check(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Refuse what cannot be scored."""
    if len(hypotheses) != len(references):
        raise UserError(f"{len(hypotheses)} hypotheses but {len(references)} references: they must be line-parallel")
    if not hypotheses:
        raise UserError("there is nothing to score: no hypothesis")
    missing = next((number for number, refs in enumerate(references, 1) if not refs), None)
    if missing is not None:
        raise UserError(f"sentence {missing} has no reference")


@dataclass(frozen=True)
class Comparison:
    """A metric of two systems on the same sentences, and how likely the difference is chance."""

    metric: str
    baseline: float
    score: float
    p_value: float
    signature: str


def compare(
    baseline: Sequence[str], hypotheses: Sequence[str], references: Sequence[Sequence[str]], samples: int = 1000
) -> list[Comparison]:
    """Paired bootstrap resampling (Koehn 2004) of the three metrics, as `sacrebleu --paired-bs`."""
    check(baseline, references)
    check(hypotheses, references)
    systems: list[tuple[str, Sequence[str]]] = [("baseline", list(baseline)), ("system", list(hypotheses))]
    test = PairedTest(systems, _metrics(), _streams(references), test_type="bs", n_samples=samples)
    signatures, results = test()
    comparisons = []
    for name, signature in signatures.items():
        before, after = results[name]
        if isinstance(before, Result) and isinstance(after, Result) and after.p_value is not None:
            comparisons.append(Comparison(name, before.score, after.score, after.p_value, signature.format()))
    return comparisons
