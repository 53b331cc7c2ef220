"""How sure to be of a translation: logistic combinations of evidence, their weights stored with the model.

Three rules, each a sum of weights times numbers (see `evidence`) put through the logistic function: is the sentence
right, has a source word been left out (omission), has a target word no source (invention).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from seq2seq.errors import UserError
from seq2seq.folder import ConfidenceRule
from seq2seq.translation.engine import Engine, open_engine
from seq2seq.translation.evidence import Array, Evidence, Pair, gather_evidence
from seq2seq.translation.result import Confidence, SentenceTranslation

CONSTANT = "constant"  # the weight that is there whatever the evidence
DOUBT = 0.5  # probability from which a word is shown as left out or made up


class Suspicion(NamedTuple):
    """Logits of the two rules on words."""

    omitted: Array  # (I,)
    invented: Array  # (J,)


class Judge:
    """A model, one of the other direction if the rule asks for one, and the rule."""

    def __init__(self, engine: Engine, rule: ConfidenceRule) -> None:
        self.engine, self.rule = engine, rule
        self.reverse = open_reverse(engine, rule.reverse)

    def judge(self, sentences: Sequence[SentenceTranslation]) -> list[Confidence]:
        """How sure to be of each sentence and of its words, as they are in `source_words` and `target_words`."""
        pairs = [Pair(one.source_ids, one.target_ids) for one in sentences]
        found = gather_evidence(self.engine, self.reverse, pairs)
        return [self._confidence(*each) for each in zip(sentences, found, strict=True)]

    def _confidence(self, sentence: SentenceTranslation, evidence: Evidence) -> Confidence:
        suspicion = suspect(self.rule, evidence)
        # Words with stand-ins put back may be more than the model read: each goes by its first piece.
        omitted = _spread(suspicion.omitted, evidence.source.pieces, sentence.source_pieces)
        invented = _spread(suspicion.invented, evidence.target.pieces, sentence.target_pieces)
        right = weigh(self.rule.right, about_sentence(evidence, suspicion))
        return Confidence(float(logistic(right)), logistic(omitted).tolist(), logistic(invented).tolist())


def open_reverse(engine: Engine, name: str | None) -> Engine | None:
    """The model of the other direction that a rule names; refused if it translates otherwise."""
    if name is None:
        return None
    reverse = open_engine(name, "torch")
    if (reverse.info.target, reverse.info.source) != (engine.info.source, engine.info.target):
        raise UserError(f"model {name!r} translates from {reverse.info.source} to {reverse.info.target}: no way back")
    return reverse


def suspect(rule: ConfidenceRule, evidence: Evidence) -> Suspicion:
    """What the rules on words say."""
    omitted = np.broadcast_to(weigh(rule.omitted, evidence.of_source), len(evidence.source.words))
    invented = np.broadcast_to(weigh(rule.invented, evidence.of_target), len(evidence.target.words))
    return Suspicion(omitted, invented)


def about_sentence(evidence: Evidence, suspicion: Suspicion) -> dict[str, float]:
    """Evidence on the sentence, and the worst that is said of its words."""
    return {
        **evidence.of_sentence,
        "worst_omission": float(suspicion.omitted.max(initial=-10.0)),
        "worst_invention": float(suspicion.invented.max(initial=-10.0)),
    }


def weigh(weights: Mapping[str, float], evidence: "Mapping[str, Array] | Mapping[str, float]") -> Array:
    """Logits: the constant and the weighted sum of what the weights name."""
    missing = weights.keys() - evidence.keys() - {CONSTANT}
    if missing:
        raise UserError(f"confidence {', '.join(sorted(missing))} of config.json is none of {', '.join(evidence)}")
    total = sum(weight * np.asarray(evidence[name]) for name, weight in weights.items() if name != CONSTANT)
    return np.asarray(total + weights.get(CONSTANT, 0.0), dtype=float)


def logistic(logits: Array) -> Array:
    """Logits to probabilities."""
    found: Array = 1 / (1 + np.exp(-np.clip(logits, -50, 50)))
    return found


def _spread(logits: Array, read: Sequence[Sequence[int]], shown: Sequence[Sequence[int]]) -> Array:
    """Logits of the words that were read -> of the words that are shown, by their first pieces."""
    owner = {piece: word for word, pieces in enumerate(read) for piece in pieces}
    return np.array([logits[owner[pieces[0]]] if pieces and pieces[0] in owner else -50.0 for pieces in shown])
