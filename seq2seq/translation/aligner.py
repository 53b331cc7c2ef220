"""Word links of given sentence pairs: a forced pass of the model over each, and its cross-attention read as links.

Shapes: L layers, H heads, T target pieces, S source pieces (`</s>` included).
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from seq2seq.folder import AlignmentChoice, ModelInfo
from seq2seq.translation import alignment
from seq2seq.translation.alignment import Link, Words
from seq2seq.translation.engine import Engine
from seq2seq.translation.link_sets import LinkSet, turn

if TYPE_CHECKING:
    from seq2seq.translation.alignment import Array

STEPS: tuple[Literal["output", "input"], ...] = ("output", "input")  # at which a target word's row is read
MOST_WORDS = 1000  # of a side that is forced; attention between more takes gigabytes
_NO_SPACE_BEFORE = re.compile(r"[.,)\]}…]+|['’]\w+|-[^\W\d]\w*|n['’]t")
_NO_SPACE_AFTER = re.compile(r"[(\[{]+|([cdjlmnst]|(jus|lors|puis|quoi)?qu)['’]", re.IGNORECASE)


def join_words(words: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Words of a tokenised sentence as running text, and where each stands in it: `l' ami , oui` is `l'ami, oui`.

    Marks that French sets apart (`! ? : ;`) stay apart.
    """
    text = ""
    spans = []
    for number, word in enumerate(words):
        tight = number == 0 or _NO_SPACE_BEFORE.fullmatch(word) or _NO_SPACE_AFTER.fullmatch(words[number - 1])
        text += "" if tight else " "
        spans.append((len(text), len(text) + len(word)))
        text += word
    return text, spans


class Forced(NamedTuple):
    """A pair of tokenised sentences after a forced pass: (L, H, T, S) weights and which pieces make up each word."""

    attention: "Array"
    source: Words
    target: Words

    def word_attention(self, choice: AlignmentChoice) -> "Array":
        """(target words, source words) of one layer and head."""
        weights = alignment.read_choice(self.attention, choice.layer, choice.head, choice.step)
        return alignment.word_attention(weights, self.source, self.target)

    def weighted_links(self, choice: AlignmentChoice) -> list[Link]:
        """What one layer and head say."""
        return alignment.links(self.word_attention(choice), self.source.words, self.target.words, choice.taught)

    def links(self, choice: AlignmentChoice) -> LinkSet:
        """The same as a set."""
        return frozenset((link.source, link.target) for link in self.weighted_links(choice))


def force(engine: Engine, pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> Iterator[Forced]:
    """The forced pass over each pair of tokenised sentences."""
    return _force(engine, *([_given(engine, pair[side]) for pair in pairs] for side in (0, 1)))


def force_texts(engine: Engine, pairs: Sequence[tuple[str, str]], clitics_apart: bool = False) -> Iterator[Forced]:
    """The same of running text, whose words are split at spaces, outer punctuation (and perhaps clitics) apart."""
    return _force(engine, *([_found(engine, pair[side], clitics_apart) for pair in pairs] for side in (0, 1)))


def force_both(
    engines: tuple[Engine, Engine], pairs: Sequence[tuple[str, str]], clitics_apart: bool = False
) -> tuple[list[Forced], list[Forced]]:
    """Running text through a model of each direction; the pairs are those of the first."""
    there = force_texts(engines[0], pairs, clitics_apart)
    back = force_texts(engines[1], [pair[::-1] for pair in pairs], clitics_apart)
    return list(there), list(back)


def choose_by_agreement(
    infos: tuple[ModelInfo, ModelInfo], forward: Sequence[Forced], backward: Sequence[Forced]
) -> tuple[AlignmentChoice, AlignmentChoice]:
    """Layer, head (or mean) and step of each direction whose links agree best over pairs that both were forced through.

    Without gold, as Chen et al. (2020, section 4) choose a layer; single heads may align better than the mean of all.
    """
    ours, theirs = (
        {choice: [one.links(choice) for one in direction] for choice in _choices(info)}
        for info, direction in zip(infos, (forward, backward), strict=True)
    )

    def agreement(pair: tuple[AlignmentChoice, AlignmentChoice]) -> float:
        both = list(zip(ours[pair[0]], theirs[pair[1]], strict=True))
        common = sum(len(links & turn(others)) for links, others in both)
        return 2 * common / max(sum(len(links) + len(others) for links, others in both), 1)

    return max(itertools.product(ours, theirs), key=agreement)


def _choices(info: ModelInfo) -> list[AlignmentChoice]:
    every = itertools.product(range(info.model.decoder_layers), (None, *range(info.model.heads)), STEPS)
    return [info.alignment_at(layer, head, step) for layer, head, step in every]


Side = list[tuple[list[int], Words]]  # token ids without `</s>`, and which of them make up each word


def _force(engine: Engine, sources: Side, targets: Side) -> Iterator[Forced]:
    src, tgt = ([[*ids, engine.tokenizer.eos_id] for ids, _ in side] for side in (sources, targets))
    for weights, (_, source), (_, target) in zip(engine.attention(src, tgt), sources, targets, strict=True):
        yield Forced(weights, source, target)


def _given(engine: Engine, words: Sequence[str]) -> tuple[list[int], Words]:
    text, spans = join_words(words)
    ids = engine.tokenizer.encode(text)
    return ids, alignment.given_words(list(words), spans, engine.tokenizer.pieces(ids))


def _found(engine: Engine, text: str, clitics_apart: bool) -> tuple[list[int], Words]:
    ids = engine.tokenizer.encode(text)
    return ids, alignment.merge_pieces(engine.tokenizer.pieces(ids), clitics_apart)
