"""Logistic regression on a few numbers, and how well a number tells two classes apart."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from seq2seq.translation.confidence import CONSTANT, logistic
from seq2seq.translation.evidence import Array

PENALTY = 1.0  # on squared weights of evidence that has been brought to variance 1
STEPS = 50  # of Newton's method, at most
Labels = NDArray[np.bool_]


def auroc(scores: NDArray[np.floating], positive: Labels) -> float:
    """Probability that a positive has a higher score than a negative, a tie counted as half; NaN without both."""
    _, which, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (counts.cumsum() - (counts - 1) / 2)[which]
    ups, downs = int(positive.sum()), int((~positive).sum())
    if not ups or not downs:
        return float("nan")
    return float((ranks[positive].sum() - ups * (ups + 1) / 2) / (ups * downs))


def fit_logistic(evidence: Mapping[str, Array], positive: Labels, importance: Array | None = None) -> dict[str, float]:
    """Weights of a logistic regression by Newton's method, with a small ridge; what never varies gets none."""
    varying = {name: values for name, values in evidence.items() if values.std() > 1e-9}
    table = np.stack([np.ones(len(positive)), *varying.values()], axis=1)
    mean, spread = table.mean(axis=0), table.std(axis=0)
    mean[0], spread[0] = 0.0, 1.0
    table = (table - mean) / spread
    importance = np.ones(len(positive)) if importance is None else importance
    ridge = PENALTY * np.eye(table.shape[1])
    ridge[0, 0] = 0.0
    weights = np.zeros(table.shape[1])
    for _ in range(STEPS):
        found = logistic(table @ weights)
        slope = table.T @ (importance * (found - positive)) + ridge @ weights
        curve = (table * (importance * found * (1 - found))[:, None]).T @ table + ridge
        step = np.linalg.solve(curve + 1e-9 * np.eye(len(weights)), slope)
        weights = weights - step
        if np.abs(step).max() < 1e-8:
            break
    weights = weights / spread
    weights[0] -= float(mean[1:] @ weights[1:])
    return {name: round(float(weight), 5) for name, weight in zip((CONSTANT, *varying), weights, strict=True)}
