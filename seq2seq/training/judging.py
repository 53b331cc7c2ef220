"""Fitting a rule of confidence, and measuring what each piece of evidence is worth.

On translations that have been damaged, where it is known which word is to blame, and on translations that a person has
graded.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from seq2seq.folder import ConfidenceRule
from seq2seq.training.damage import KINDS, WHOLE, Case
from seq2seq.training.logistic import Labels, Sample, auroc, auroc_error, fit_on_both
from seq2seq.translation.confidence import about_sentence, logistic, suspect, weigh
from seq2seq.translation.engine import Engine
from seq2seq.translation.evidence import Array, Evidence, Pair, gather_evidence

# Of which a high number speaks for the translation; of all others a low one.
GOOD_IF_HIGH = ("log_probability", "coverage", "most_attention", "is_mark")
UNCOVERED = "uncovered"


@dataclass(frozen=True)
class Judged:
    """Cases, what is known of each, and whether each is right."""

    cases: Sequence[Case]
    evidence: Sequence[Evidence]
    right: Labels

    def part(self, keep: Callable[[Case], bool]) -> "Judged":
        """Some of the cases."""
        rows = [row for row, case in enumerate(self.cases) if keep(case)]
        return Judged([self.cases[row] for row in rows], [self.evidence[row] for row in rows], self.right[rows])


def judge_cases(engine: Engine, reverse: Engine | None, cases: Sequence[Case], right: Iterable[bool]) -> Judged:
    """Gather the evidence on every case."""
    end = engine.tokenizer.eos_id
    pairs = [
        case.pair or Pair(*([*engine.tokenizer.encode(text), end] for text in (case.source, case.target)))
        for case in cases
    ]
    return Judged(cases, gather_evidence(engine, reverse, pairs), np.array(list(right), dtype=bool))


def fit_rule(damaged: Judged, graded: Judged, reverse: str | None) -> ConfidenceRule:
    """A rule from damaged and whole translations, and from natural ones that have been graded."""
    both = damaged, graded
    words = ConfidenceRule(
        reverse=reverse,
        right={},
        omitted=fit_on_both(*map(_source_words, both)),
        invented=fit_on_both(*map(_target_words, both)),
    )
    right = fit_on_both(*(Sample(_sentences(words, each), each.right) for each in both))
    return words.model_copy(update={"right": right})


@dataclass(frozen=True)
class Worth:
    """AUROC of a piece of evidence, or of all together, on damage and on graded translations (with standard error)."""

    name: str
    damaged: float
    graded: float
    error: float


def worth(rule: ConfidenceRule, damaged: Judged, graded: Judged) -> dict[str, list[Worth]]:
    """Of every piece of evidence alone and of the rule: at finding wrong sentences and words to blame."""
    both = damaged, graded
    return {
        "wrong sentences": _worth([Sample(_sentences(rule, each), ~each.right) for each in both], rule.right, -1),
        "omitted source words": _worth(list(map(_source_words, both)), rule.omitted, 1),
        "invented target words": _worth(list(map(_target_words, both)), rule.invented, 1),
    }


def _worth(samples: Sequence[Sample], weights: Mapping[str, float], sign: int) -> list[Worth]:
    found = []
    for name in samples[0].table:
        way = -1 if name.endswith(GOOD_IF_HIGH) and not name.endswith(UNCOVERED) else 1
        found.append(_both(name, [way * sample.table[name] for sample in samples], samples))
    return [*found, _both("together", [sign * weigh(weights, sample.table) for sample in samples], samples)]


def _both(name: str, scores: Sequence[Array], samples: Sequence[Sample]) -> Worth:
    damaged, graded = (auroc(score, sample.positive) for score, sample in zip(scores, samples, strict=True))
    return Worth(name, damaged, graded, auroc_error(graded, samples[1].positive))


def worth_by_kind(rule: ConfidenceRule, damaged: Judged) -> dict[str, float]:
    """AUROC of the rule on sentences for each kind of damage against whole translations."""
    found = {}
    for kind in KINDS:
        part = damaged.part(lambda case, kind=kind: case.kind in (kind, WHOLE))  # type: ignore[misc]
        found[kind] = auroc(-weigh(rule.right, _sentences(rule, part)), ~part.right)
    return found


@dataclass(frozen=True)
class Reliability:
    """Of cases whose probability lies between two bounds: its mean, the share of which it is true, how many."""

    said: float
    true: float
    count: int


def reliability(rule: ConfidenceRule, graded: Judged, bounds: Sequence[float]) -> dict[str, list[Reliability]]:
    """Whether what is said to be so likely is so often true, on graded translations."""
    sources, targets = _source_words(graded), _target_words(graded)
    samples = {
        "right": (rule.right, Sample(_sentences(rule, graded), graded.right)),
        "omitted": (rule.omitted, sources),
        "invented": (rule.invented, targets),
    }
    return {
        name: _reliability(logistic(weigh(weights, sample.table)), sample.positive, bounds)
        for name, (weights, sample) in samples.items()
    }


def _reliability(said: Array, true: Labels, bounds: Sequence[float]) -> list[Reliability]:
    which = np.digitize(said, bounds)
    chosen = [which == number for number in range(len(bounds) + 1)]
    return [
        Reliability(float(said[one].mean()), float(true[one].mean()), int(one.sum())) for one in chosen if one.any()
    ]


def _sentences(rule: ConfidenceRule, judged: Judged) -> dict[str, Array]:
    rows = [about_sentence(one, suspect(rule, one)) for one in judged.evidence]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _source_words(judged: Judged) -> Sample:
    """The source words of cases whose words to blame are known."""
    known = judged.part(lambda case: case.named)
    marks = [_marked(case.omitted, one.source.words) for case, one in zip(known.cases, known.evidence, strict=True)]
    return Sample(_joined([one.of_source for one in known.evidence]), np.concatenate(marks))


def _target_words(judged: Judged) -> Sample:
    """The target words of cases whose words to blame are known."""
    known = judged.part(lambda case: case.named)
    marks = [_marked(case.invented, one.target.words) for case, one in zip(known.cases, known.evidence, strict=True)]
    return Sample(_joined([one.of_target for one in known.evidence]), np.concatenate(marks))


def _joined(tables: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def _marked(places: Iterable[int], words: Sequence[str]) -> Labels:
    marked = np.zeros(len(words), dtype=bool)
    marked[list(places)] = True
    return marked
