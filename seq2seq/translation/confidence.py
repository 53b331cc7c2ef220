"""How sure to be of a translation: logistic combinations of evidence, their weights stored with the model.

Three rules, each a sum of weights times numbers (see `evidence`) put through the logistic function: is the sentence
right, has a source word been left out (omission), has a target word no source (invention).
"""

import string
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from seq2seq.errors import UserError
from seq2seq.folder import ConfidenceRule, bundled
from seq2seq.translation.alignment import Words
from seq2seq.translation.engine import Engine, open_engine
from seq2seq.translation.evidence import Array, Evidence, Features, Pair, gather_evidence
from seq2seq.translation.protect import find_items, survives
from seq2seq.translation.result import Confidence, SentenceTranslation

CONSTANT = "constant"  # the weight that is there whatever the evidence
DOUBT = 0.5  # probability from which a word is shown as left out or made up
CALM = -50.0  # logit of what is beyond suspicion
DIGITS = 4
LEAST_WORST = -10.0  # logit of the worst word, where there is none that is suspect at all


class Suspicion(NamedTuple):
    """Logits of the two rules on words."""

    omitted: Array  # (I,)
    invented: Array  # (J,)


class Judge:
    """A model, one of the other direction if the rule asks for one, and the rule."""

    def __init__(self, engine: Engine, rule: ConfidenceRule) -> None:
        self.engine, self.rule = engine, rule
        self.reverse = open_reverse(engine, rule.reverse)
        self.judge_pairs([Pair([engine.tokenizer.eos_id], [engine.tokenizer.eos_id])])  # weights that name no evidence

    def judge_pairs(self, pairs: Sequence[Pair]) -> list[Confidence]:
        """How sure to be of pairs as they are, and of the words that their pieces make up."""
        found = gather_evidence(self.engine, self.reverse, pairs)
        return [self._confidence(one, suspect(self.rule, one)) for one in found]

    def judge(self, sentences: Sequence[SentenceTranslation]) -> list[Confidence]:
        """How sure to be of each sentence and of its words, as they are in `source_words` and `target_words`.

        Words that the glossary or `protect` has seen to are beyond suspicion.
        """
        pairs = [Pair(one.source_ids, one.target_ids) for one in sentences]
        maps = [one.attention for one in sentences]
        found = gather_evidence(self.engine, self.reverse, pairs, maps)
        return [self._of_sentence(*each) for each in zip(sentences, found, strict=True)]

    def _of_sentence(self, sentence: SentenceTranslation, evidence: Evidence) -> Confidence:
        # Words as they are shown, with stand-ins put back, may be others than those that the model read.
        suspicion = suspect(self.rule, evidence)
        shown = Suspicion(
            _spread(suspicion.omitted, evidence.source.pieces, sentence.source_pieces),
            _spread(suspicion.invented, evidence.target.pieces, sentence.target_pieces),
        )
        seen_to = {word.casefold() for word in _seen_to(sentence)}
        for logits, words in zip(shown, (sentence.source_words, sentence.target_words), strict=True):
            logits[[word.casefold() in seen_to for word in words]] = CALM
        return self._confidence(evidence, shown)

    def _confidence(self, evidence: Evidence, suspicion: Suspicion) -> Confidence:
        right = weigh(self.rule.right, about_sentence(evidence, suspicion))
        return Confidence(
            round(float(logistic(right)), DIGITS),
            logistic(suspicion.omitted).round(DIGITS).tolist(),
            logistic(suspicion.invented).round(DIGITS).tolist(),
        )


def open_reverse(engine: Engine, name: str | None) -> Engine | None:
    """The model of the other direction that a rule names, a bundled one first; refused if it translates otherwise."""
    if name is None:
        return None
    reverse = open_engine(bundled(name) or name, "torch")
    if (reverse.info.target, reverse.info.source) != (engine.info.source, engine.info.target):
        raise UserError(f"model {name!r} translates from {reverse.info.source} to {reverse.info.target}: no way back")
    return reverse


def suspect(rule: ConfidenceRule, evidence: Evidence) -> Suspicion:
    """What the rules on words say; a word that no piece belongs to, and any without a rule, is beyond suspicion."""
    return Suspicion(
        _of_words(rule.omitted, evidence.of_source, evidence.source),
        _of_words(rule.invented, evidence.of_target, evidence.target),
    )


def _of_words(weights: Mapping[str, float], evidence: Features, words: Words) -> Array:
    known = np.array([bool(pieces) for pieces in words.pieces], dtype=bool)
    return np.where(known, weigh(weights, evidence), CALM) if weights else np.full(len(known), CALM)


def about_sentence(evidence: Evidence, suspicion: Suspicion) -> dict[str, float]:
    """Evidence on the sentence, and the worst that is said of its words."""
    return {
        **evidence.of_sentence,
        "worst_omission": float(suspicion.omitted.max(initial=LEAST_WORST)),
        "worst_invention": float(suspicion.invented.max(initial=LEAST_WORST)),
    }


def weigh(weights: Mapping[str, float], evidence: "Features | Mapping[str, float]") -> Array:
    """Logits: the constant and the weighted sum of what the weights name."""
    missing = weights.keys() - evidence.keys() - {CONSTANT}
    if missing:
        raise UserError(f"confidence: config.json has a weight for {min(missing)!r}, not one of {', '.join(evidence)}")
    total = sum(weight * np.asarray(evidence[name]) for name, weight in weights.items() if name != CONSTANT)
    return np.asarray(total + weights.get(CONSTANT, 0.0), dtype=float)


def logistic(logits: Array) -> Array:
    """Logits to probabilities."""
    found: Array = 1 / (1 + np.exp(-np.clip(logits, CALM, -CALM)))
    return found


def _spread(logits: Array, read: Sequence[Sequence[int]], shown: Sequence[Sequence[int]]) -> Array:
    """Logits of the words that were read -> of the words that are shown, each by its first piece."""
    owner = {piece: word for word, pieces in enumerate(read) for piece in pieces}
    return np.array([logits[owner[pieces[0]]] if pieces and pieces[0] in owner else CALM for pieces in shown])


def _seen_to(sentence: SentenceTranslation) -> Iterator[str]:
    """Words of terms that were kept, and of items that survived."""
    for term in sentence.terms:
        if term.kept:
            yield from (*term.source.split(), *term.target.split())
    for item in find_items(sentence.source):
        if survives(item.text, sentence.text):
            yield from (word for part in item.text.split() for word in (part, part.strip(string.punctuation)))
