"""Logistic regression on a few numbers, and how well a number tells two classes apart."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seq2seq.errors import UserError
from seq2seq.translation.confidence import CONSTANT, logistic, weigh
from seq2seq.translation.evidence import Array

PENALTY = 1.0  # on squared weights of evidence that has been brought to variance 1
STEPS = 50  # of Newton's method, at most
FOLDS = 5
Labels = NDArray[np.bool_]


class Sample(NamedTuple):
    """Evidence by name, one number a case, and which cases are positive."""

    table: Mapping[str, Array]
    positive: Labels

    def part(self, chosen: Labels) -> "Sample":
        """Some of the cases."""
        return Sample({name: values[chosen] for name, values in self.table.items()}, self.positive[chosen])


def auroc(scores: NDArray[np.floating], positive: Labels) -> float:
    """Probability that a positive has a higher score than a negative, a tie counted as half; NaN without both."""
    _, which, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (counts.cumsum() - (counts - 1) / 2)[which]
    ups, downs = int(positive.sum()), int((~positive).sum())
    if not ups or not downs:
        return float("nan")
    return float((ranks[positive].sum() - ups * (ups + 1) / 2) / (ups * downs))


def auroc_error(value: float, positive: Labels) -> float:
    """Standard error of an AUROC (Hanley and McNeil 1982)."""
    ups, downs = int(positive.sum()), int((~positive).sum())
    q1, q2 = value / (2 - value), 2 * value**2 / (1 + value)
    spread = value * (1 - value) + (ups - 1) * (q1 - value**2) + (downs - 1) * (q2 - value**2)
    return float(np.sqrt(spread / (ups * downs)))


def fit_logistic(sample: Sample, importance: Array | None = None) -> dict[str, float]:
    """Weights by Newton's method, with a small ridge; a case of importance 2 counts twice. What never varies is left.

    Evidence is brought to variance 1 for the ridge, and the weights are those of the evidence as it was.
    """
    importance = np.ones(len(sample.positive)) if importance is None else importance
    share = importance / importance.sum()
    varying = {name: values for name, values in sample.table.items() if values.std() > 1e-9}
    table = np.stack([np.ones(len(sample.positive)), *varying.values()], axis=1)
    mean = share @ table
    spread = np.sqrt(share @ (table - mean) ** 2)
    mean[0], spread[0] = 0.0, 1.0
    weights = _newton((table - mean) / spread, sample.positive, importance) / spread
    weights[0] -= float(mean[1:] @ weights[1:])
    return {name: float(weight) for name, weight in zip((CONSTANT, *varying), weights, strict=True)}


def _newton(table: Array, positive: Labels, importance: Array) -> Array:
    """(F,) weights of (N, F) evidence, the first column being 1 and its weight free."""
    ridge = PENALTY * np.eye(table.shape[1])
    ridge[0, 0] = 1e-9
    weights = np.zeros(table.shape[1])
    for _ in range(STEPS):
        found = logistic(table @ weights)
        slope = table.T @ (importance * (found - positive)) + ridge @ weights
        curve = (table * (importance * found * (1 - found))[:, None]).T @ table + ridge
        step = np.linalg.solve(curve, slope)
        weights = weights - step
        if np.abs(step).max() < 1e-8:
            break
    return weights


def fit_on_both(artificial: Sample, natural: Sample) -> dict[str, float]:
    """Weights from cases of two kinds, either counting for half, whose probabilities hold on the natural ones.

    For that they are scaled and shifted (Platt 1999) by logits of natural cases that had no part in the fit.
    """
    weights = _fit_on_both(artificial, natural)
    count = len(natural.positive)
    folds = np.arange(count) * FOLDS // max(count, 1)
    logits = np.zeros(count)
    for fold in range(FOLDS):
        held = folds == fold
        without = _fit_on_both(artificial, natural.part(~held))
        logits[held] = weigh(without, natural.part(held).table)
    scaling = fit_logistic(Sample({"logit": logits}, natural.positive))
    scale = scaling.get("logit", 0.0)
    if scale <= 0:
        raise UserError("the evidence does not tell graded translations apart: grade more, and name the words to blame")
    scaled = {name: scale * weight for name, weight in weights.items()}
    scaled[CONSTANT] += scaling[CONSTANT]
    return {name: round(weight, 5) for name, weight in scaled.items()}


def _fit_on_both(artificial: Sample, natural: Sample) -> dict[str, float]:
    sizes = len(artificial.positive), len(natural.positive)
    table = {name: np.concatenate([values, natural.table[name]]) for name, values in artificial.table.items()}
    importance = np.repeat([sizes[1] / sizes[0], 1.0], sizes)
    return fit_logistic(Sample(table, np.concatenate([artificial.positive, natural.positive])), importance)
