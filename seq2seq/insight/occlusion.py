"""Is attention an explanation? Each source word is left out, and what that does to each target word is held against it.

Leaving a word out (occlusion; Li et al. 2016, "Understanding neural networks through representation erasure") asks the
model itself: if a target word needs a source word, it is less probable without it. Attention only says where it looked.

Shapes: I source words, J target words.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seq2seq.insight.heatmap import HeatMap
from seq2seq.insight.panels import Cell, Panel, Prose, Table
from seq2seq.insight.scene import Scene
from seq2seq.translation.alignment import Words, merge_pieces, word_attention
from seq2seq.translation.engine import Engine
from seq2seq.translation.result import SentenceTranslation

TOGETHER = 64  # sentences whose variants are forced in one go
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Occlusion:
    """What leaving out each source word does to each target word, in nats, with the words."""

    source: list[str]
    target: list[str]
    lost: Array  # (J, I) log-probability of a target word less that without a source word; positive: it was needed


def occlusions(engine: Engine, sentences: Sequence[SentenceTranslation]) -> Iterator[Occlusion]:
    """Leave out each word of each sentence, one at a time, and force the same translation."""
    for start in range(0, len(sentences), TOGETHER):
        yield from _occlusions(engine, sentences[start : start + TOGETHER])


def _occlusions(engine: Engine, sentences: Sequence[SentenceTranslation]) -> Iterator[Occlusion]:
    words = [_words(sentence) for sentence in sentences]
    variants = [
        [sentence.source_ids, *(_without(sentence.source_ids, pieces) for pieces in source.pieces)]
        for sentence, (source, _) in zip(sentences, words, strict=True)
    ]
    targets = [sentence.target_ids for sentence, own in zip(sentences, variants, strict=True) for _ in own]
    found = iter(engine.likelihood([source for own in variants for source in own], targets))
    for (source, target), own in zip(words, variants, strict=True):
        whole, *without = (next(found).astype(np.float64) for _ in own)
        columns = [_by_word(whole - one, target) for one in without]
        lost = np.stack(columns, axis=1) if columns else np.zeros((len(target.words), 0))
        yield Occlusion(source.words, target.words, lost)


def _words(sentence: SentenceTranslation) -> tuple[Words, Words]:
    return merge_pieces(sentence.source_tokens[:-1]), merge_pieces(sentence.target_tokens[:-1])


def _without(ids: Sequence[int], pieces: Sequence[int]) -> list[int]:
    return [token for place, token in enumerate(ids) if place not in pieces]


def _by_word(values: Array, words: Words) -> Array:
    """Sums over the pieces of each word."""
    return np.array([values[pieces].sum() for pieces in words.pieces])


@dataclass(frozen=True)
class Agreement:
    """How well attention goes with occlusion, over target words that have at least two source words to choose from."""

    correlation: float  # mean over target words of Spearman's rank correlation across source words, -1 to 1
    same_word: float  # share of target words whose greatest weight is on the word that they lose most without, 0 to 1
    target_words: int

    @classmethod
    def of(cls, attention: Sequence[NDArray[np.floating]], lost: Sequence[Array]) -> "Agreement":
        """Of attention (J, I) and occlusion (J, I) of some sentences."""
        pairs = [
            (weights, effects)
            for one, other in zip(attention, lost, strict=True)
            for weights, effects in zip(one, other, strict=True)
            if len(weights) > 1 and weights.any()  # a mark that shares the piece of a word has no weights of its own
        ]
        correlations = [spearman(weights, effects) for weights, effects in pairs]
        same = [weights.argmax() == effects.argmax() for weights, effects in pairs]
        if not pairs:
            return cls(0.0, 0.0, 0)
        return cls(float(np.mean(correlations)), float(np.mean(same)), len(pairs))


def spearman(a: NDArray[np.floating], b: NDArray[np.floating]) -> float:
    """Rank correlation of two rows, -1 to 1; 0 where one of them is the same everywhere."""
    ranks = [_ranks(row) - (len(row) - 1) / 2 for row in (a, b)]
    size = float(np.sqrt((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum()))
    return float((ranks[0] * ranks[1]).sum()) / size if size else 0.0


def _ranks(row: NDArray[np.floating]) -> Array:
    """Ranks from 0; equal values share the mean of theirs."""
    _, which, counts = np.unique(row, return_inverse=True, return_counts=True)
    last = counts.cumsum() - 1
    ranks: Array = (last - (counts - 1) / 2)[which]
    return ranks


def all_attentions(sentence: SentenceTranslation) -> dict[str, NDArray[np.float32]]:
    """(J, I) word attention, read where a word is predicted, of every layer and head and of each layer's mean."""
    source, target = _words(sentence)
    layers, heads = sentence.attention.shape[:2]
    found = {}
    for layer in range(layers):
        for head in (None, *range(heads)):
            name = f"layer {layer}, {'mean over heads' if head is None else f'head {head}'}"
            found[name] = word_attention(sentence.piece_attention(layer, head), source, target)
    return found


def agreements(engine: Engine, sentences: Sequence[SentenceTranslation]) -> dict[str, Agreement]:
    """Of every layer and head, over some translations; the last entry is that of the links that are shown."""
    found = [one.lost for one in occlusions(engine, sentences)]
    attentions = [all_attentions(sentence) | {"as shown": sentence.word_attention()} for sentence in sentences]
    return {name: Agreement.of([own[name] for own in attentions], found) for name in attentions[0]}


def panels(scene: Scene) -> list[Panel]:
    """Occlusion beside attention, and how well they go together in this sentence."""
    (found,) = occlusions(scene.translator.engine, [scene.sentence])
    largest = float(found.lost.max(initial=0.0)) or 1.0
    shown = np.clip(found.lost / largest, 0, 1)
    layer, head = scene.sentence.default_choice
    name = f"layer {layer}, {'mean over heads' if head is None else f'head {head}'}"
    losses = zip(found.target, found.lost.round(3).tolist(), strict=True)
    rows: list[list[Cell]] = [[target, *row] for target, row in losses]
    own = Agreement.of([scene.sentence.word_attention()], [found.lost])
    return [
        Prose(
            "Each source word is left out, and the same translation is forced again: a target word that becomes less "
            "probable needed it. Attention says where the decoder looked; this says what it could not do without."
        ),
        HeatMap(scene.sentence.word_attention(), found.target, found.source, f"Attention as shown: {name}"),
        HeatMap(shown, found.target, found.source, f"Occlusion: loss of log-probability, 1 is {largest:.2f} nats"),
        Prose(
            f"Over {own.target_words} target words the mean rank correlation of both is {own.correlation:.2f}, and "
            f"{100 * own.same_word:.0f} % have their greatest weight on the word that they lose most without. "
            "Over the test split: docs/attention.md."
        ),
        Table("Loss of log-probability in nats (negative: more probable without)", ["", *found.source], rows),
    ]
