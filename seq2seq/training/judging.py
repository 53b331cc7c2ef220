"""Fitting a rule of confidence, and measuring what each piece of evidence is worth.

The rules on words are fitted on translations that have been damaged, where it is known which word is to blame. That on
sentences is fitted on those and on translations graded by hand, and set so that its probabilities hold for the latter.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from seq2seq.folder import ConfidenceRule
from seq2seq.training.damage import Case
from seq2seq.training.logistic import Labels, auroc, fit_logistic
from seq2seq.translation.confidence import CONSTANT, about_sentence, logistic, suspect, weigh
from seq2seq.translation.engine import Engine
from seq2seq.translation.evidence import Array, Evidence, Pair, gather_evidence

SOURCE_EVIDENCE = (
    "reverse_log_probability",
    "reverse_attention_on_end",
    "coverage",
    "most_attention",
    "letters",
    "is_mark",
)
TARGET_EVIDENCE = (
    "log_probability",
    "most_attention",
    "attention_on_end",
    "reverse_coverage",
    "repeated",
    "letters",
    "is_mark",
)


@dataclass(frozen=True)
class Judged:
    """Cases, what is known of each, and whether each is right."""

    evidence: Sequence[Evidence]
    right: Labels
    cases: Sequence[Case]


def judge_cases(engine: Engine, reverse: Engine | None, cases: Sequence[Case], right: Iterable[bool]) -> Judged:
    """Gather the evidence on texts as they are."""
    end = engine.tokenizer.eos_id
    pairs = [
        Pair([*engine.tokenizer.encode(case.source), end], [*engine.tokenizer.encode(case.target), end])
        for case in cases
    ]
    return Judged(gather_evidence(engine, reverse, pairs), np.array(list(right), dtype=bool), cases)


def fit_rule(damaged: Judged, graded: Judged, reverse: str | None) -> ConfidenceRule:
    """A rule from damaged and whole translations, and from natural ones that have been graded."""
    known = damaged.evidence[0]
    omitted = fit_logistic(_source_table(damaged.evidence, _known(SOURCE_EVIDENCE, known.of_source)), _omitted(damaged))
    invented = fit_logistic(
        _target_table(damaged.evidence, _known(TARGET_EVIDENCE, known.of_target)), _invented(damaged)
    )
    words = ConfidenceRule(reverse=reverse, right={}, omitted=omitted, invented=invented)
    tables = [_sentence_table(words, each) for each in (damaged, graded)]
    table = {name: np.concatenate([each[name] for each in tables]) for name in tables[0]}
    labels = np.concatenate([damaged.right, graded.right])
    sizes = len(damaged.right), len(graded.right)
    importance = np.repeat([1.0, sizes[0] / sizes[1]], sizes)  # either kind counts for half
    right = fit_logistic(table, labels, importance)
    return words.model_copy(update={"right": _calibrated(right, tables[1], graded.right)})


def _calibrated(right: dict[str, float], table: Mapping[str, Array], labels: Labels) -> dict[str, float]:
    """The same order of sentences, with probabilities that hold on graded ones (Platt 1999)."""
    fitted = fit_logistic({"logit": weigh(right, table)}, labels)
    scale, shift = fitted["logit"], fitted[CONSTANT]
    scaled = {name: round(scale * weight, 5) for name, weight in right.items()}
    return scaled | {CONSTANT: round(scaled[CONSTANT] + shift, 5)}


@dataclass(frozen=True)
class Worth:
    """AUROC of one piece of evidence, or of a rule, on damage and on natural translations (None: not measured)."""

    name: str
    damaged: float
    graded: float | None = None


def worth(rule: ConfidenceRule, damaged: Judged, graded: Judged) -> dict[str, list[Worth]]:
    """Of every piece of evidence alone and of the rule, for sentences and for words; the better direction of each."""
    both = [(_sentence_table(rule, each), ~each.right) for each in (damaged, graded)]
    names = both[0][0]
    alone = [Worth(name, *(_either_way(table[name], wrong) for table, wrong in both)) for name in names]
    together = Worth("together", *(auroc(-weigh(rule.right, table), wrong) for table, wrong in both))
    known = damaged.evidence[0]
    sources, targets = (
        _source_table(damaged.evidence, tuple(known.of_source)),
        _target_table(damaged.evidence, tuple(known.of_target)),
    )
    return {
        "sentences": [*alone, together],
        "omitted source words": _words_worth(sources, rule.omitted, _omitted(damaged)),
        "invented target words": _words_worth(targets, rule.invented, _invented(damaged)),
    }


def reliability(rule: ConfidenceRule, graded: Judged, bins: Sequence[float]) -> list[tuple[float, float, int]]:
    """Of sentences whose probability of being right lies between two bounds: its mean, the share right, how many."""
    found = logistic(weigh(rule.right, _sentence_table(rule, graded)))
    which = np.digitize(found, bins)
    chosen = [which == number for number in range(len(bins) + 1)]
    return [(float(found[one].mean()), float(graded.right[one].mean()), int(one.sum())) for one in chosen if one.any()]


def _words_worth(table: Mapping[str, Array], weights: Mapping[str, float], positive: Labels) -> list[Worth]:
    alone = [Worth(name, _either_way(values, positive)) for name, values in table.items()]
    return [*alone, Worth("together", auroc(weigh(weights, table), positive))]


def _either_way(scores: Array, positive: Labels) -> float:
    found = auroc(scores, positive)
    return max(found, 1 - found)


def _known(names: Sequence[str], evidence: Mapping[str, Array]) -> tuple[str, ...]:
    return tuple(name for name in names if name in evidence)


def _source_table(evidence: Sequence[Evidence], names: Sequence[str]) -> dict[str, Array]:
    return {name: np.concatenate([one.of_source[name] for one in evidence]) for name in names}


def _target_table(evidence: Sequence[Evidence], names: Sequence[str]) -> dict[str, Array]:
    return {name: np.concatenate([one.of_target[name] for one in evidence]) for name in names}


def _sentence_table(rule: ConfidenceRule, judged: Judged) -> dict[str, Array]:
    rows = [about_sentence(one, suspect(rule, one)) for one in judged.evidence]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _omitted(judged: Judged) -> Labels:
    return np.concatenate(
        [_marked(case.omitted, len(one.source.words)) for case, one in zip(judged.cases, judged.evidence, strict=True)]
    )


def _invented(judged: Judged) -> Labels:
    return np.concatenate(
        [_marked(case.invented, len(one.target.words)) for case, one in zip(judged.cases, judged.evidence, strict=True)]
    )


def _marked(places: Iterable[int], count: int) -> Labels:
    marked = np.zeros(count, dtype=bool)
    marked[[place for place in places if place < count]] = True
    return marked
