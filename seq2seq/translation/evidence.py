"""What likelihood and attention say about a translation: a number a word or a sentence each, to be weighed.

Shapes: S source pieces (`</s>` included), T target pieces, I source words, J target words.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seq2seq.translation.alignment import Words, find_words, given_words, merge_pieces, read_choice, word_attention

if TYPE_CHECKING:
    from seq2seq.translation.alignment import Array as Attention
    from seq2seq.translation.engine import Engine

Array = NDArray[np.float64]
Features = Mapping[str, Array]  # by name, one number a word each
LEAST = -12.0  # nats; below, a word is as improbable as can be
LONG = 10  # letters; beyond, a word is as long as can be
DRAWN_ON = 0.2  # attention in all that a source word gets from a translation, below which nothing draws on it
AFTER = 2  # words: one that comes again so soon after itself is a repetition


class Pair(NamedTuple):
    """A sentence and a translation of it as token ids, `</s>` last."""

    source: Sequence[int]
    target: Sequence[int]


@dataclass(frozen=True)
class Evidence:
    """What is known about one pair, by words and by the sentence as a whole."""

    source: Words
    target: Words
    of_source: Features  # (I,) each
    of_target: Features  # (J,) each
    of_sentence: Mapping[str, float]


class _Reading(NamedTuple):
    """A pair after a forced pass of one model: which pieces make up each word, how probable and how attended."""

    source: Words
    target: Words
    likelihood: Array  # (T,) log-probability of each target piece, nats
    attention: Array  # (T, S) of the layer and head that align best, read where they do
    taught: bool  # whether they look at `</s>` for a word without a source


def gather_evidence(
    engine: "Engine", reverse: "Engine | None", pairs: Sequence[Pair], maps: "Sequence[Attention] | None" = None
) -> list[Evidence]:
    """Forced passes over all pairs by the model, and back again by one of the other direction if there is one.

    `maps` is the model's own cross-attention of the pairs, where it is known already.
    """
    there = list(_read(engine, pairs, [_words(engine, pair) for pair in pairs], maps))
    back: Sequence[_Reading | None] = [None] * len(pairs)
    if reverse is not None:
        turned = [_turn(engine, reverse, pair) for pair in pairs]
        back = list(_read(reverse, [pair for pair, _, _ in turned], [words for _, *words in turned]))
    return [_weigh_up(one, other) for one, other in zip(there, back, strict=True)]


def _words(engine: "Engine", pair: Pair) -> list[Words]:
    return [merge_pieces(engine.tokenizer.pieces(list(ids[:-1]))) for ids in pair]


def _turn(engine: "Engine", reverse: "Engine", pair: Pair) -> tuple[Pair, Words, Words]:
    """The pair for the model of the other direction: its own pieces, and the same words made up of them."""
    texts = [engine.tokenizer.decode(list(ids[:-1])) for ids in pair]
    found = []
    for text, words in zip(texts, _words(engine, pair), strict=True):
        ids = reverse.tokenizer.encode(text)
        spans = find_words(text, words.words)
        found.append((ids, given_words(words.words, spans, reverse.tokenizer.pieces(ids))))
    (source, source_words), (target, target_words) = found
    end = reverse.tokenizer.eos_id
    return Pair([*target, end], [*source, end]), target_words, source_words


def _read(
    engine: "Engine",
    pairs: Sequence[Pair],
    words: Sequence[Sequence[Words]],
    maps: "Sequence[Attention] | None" = None,
) -> Iterator[_Reading]:
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    best = engine.info.aligning
    likelihoods = engine.likelihood(sources, targets)
    maps = engine.attention(sources, targets) if maps is None else maps
    for (source, target), likelihood, weights in zip(words, likelihoods, maps, strict=True):
        attention = read_choice(weights, best.layer, best.head, best.step).astype(float)
        yield _Reading(source, target, likelihood.astype(float), attention, best.taught)


def _weigh_up(there: _Reading, back: _Reading | None) -> Evidence:
    drawn, on_words = _drawn(there)
    of_source = _form(there.source.words) | {
        "coverage": np.minimum(on_words.sum(axis=0), 1.0),
        "most_attention": on_words.max(axis=0, initial=0.0),
    }
    of_target = _form(there.target.words) | {
        "log_probability": _by_word(there.likelihood, there.target),
        "most_attention": on_words.max(axis=1, initial=0.0),
        "attention_on_end": 1 - drawn.sum(axis=1),
        "repeated": _repeated(there.target.words),
    }
    of_sentence = {
        "mean_log_probability": float(there.likelihood.mean()),
        "least_log_probability": _least(of_target["log_probability"]),
        "uncovered": _share(of_source["coverage"] < DRAWN_ON, of_source["letters"]),
        "repetitions": float(of_target["repeated"].sum()),
        "shorter": float(np.log(_letters(there.source) / _letters(there.target))),
    }
    if back is not None:
        drawn, on_words = _drawn(back)
        of_source["reverse_log_probability"] = _by_word(back.likelihood, back.target)
        of_source["reverse_attention_on_end"] = 1 - drawn.sum(axis=1)
        of_target["reverse_coverage"] = np.minimum(on_words.sum(axis=0), 1.0)
        of_sentence["reverse_mean_log_probability"] = float(back.likelihood.mean())
        of_sentence["reverse_least_log_probability"] = _least(of_source["reverse_log_probability"])
        of_sentence["reverse_uncovered"] = _share(of_target["reverse_coverage"] < DRAWN_ON, of_target["letters"])
    return Evidence(there.source, there.target, of_source, of_target, of_sentence)


def _drawn(reading: _Reading) -> tuple[Array, Array]:
    """(J, I) attention between words; and the same with `</s>` left out and the rest made to sum to 1.

    What a taught head gives `</s>` it means, so there the rest stays as it is.
    """
    drawn: Array = word_attention(reading.attention, reading.source, reading.target)  # type: ignore[arg-type,assignment]
    return drawn, drawn if reading.taught else drawn / np.maximum(drawn.sum(axis=1, keepdims=True), 1e-6)


def _by_word(likelihood: Array, words: Words) -> Array:
    """(J,) sums over the pieces of each word, no less than LEAST."""
    return np.array([max(likelihood[pieces].sum(), LEAST) for pieces in words.pieces], dtype=float)


def _form(words: Sequence[str]) -> dict[str, Array]:
    letters = np.array([min(sum(map(str.isalnum, word)), LONG) for word in words], dtype=float)
    return {"letters": letters, "is_mark": (letters == 0).astype(float)}


def _repeated(words: Sequence[str]) -> Array:
    """1 for a word that stands one or two words before, too."""
    folded = [word.casefold() for word in words]
    again = [
        any(map(str.isalnum, word)) and word in folded[max(0, place - AFTER) : place]
        for place, word in enumerate(folded)
    ]
    return np.array(again, dtype=float)


def _least(values: Array) -> float:
    return float(values.min(initial=0.0))


def _share(marked: NDArray[np.bool_], letters: Array) -> float:
    """Share of the words of four letters or more that are marked."""
    counted = letters >= 4
    return float((marked & counted).sum() / max(counted.sum(), 1))


def _letters(words: Words) -> int:
    return 1 + sum(map(len, words.words))
