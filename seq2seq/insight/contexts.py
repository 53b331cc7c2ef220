"""Static against contextual: one word in two sentences (section 1 of the chapter).

Its embedding is the same in both. What the encoder makes of it is not: layer by layer the two states part.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from seq2seq.errors import UserError
from seq2seq.insight.panels import Cell, Lines, Panel, Prose, Table
from seq2seq.insight.scene import Scene
from seq2seq.insight.vocabulary import encoded_alone, frequent_words, nearest
from seq2seq.translation.alignment import merge_pieces

WORDS, NEIGHBOURS = 1500, 8
Near = list[tuple[str, float]]  # words with their cosines, the nearest first
PAIRS = {  # a word in two sentences that mean two things by it
    "bank": ("She put her money in the bank.", "We sat on the bank of the river."),
    "mole": ("He has a mole on his cheek.", "A mole is digging in the garden."),
    "tower": ("The tower of the church is very old.", "The control tower told the pilot to wait."),
    "charge": ("There is no charge for this service.", "I have to charge my phone."),
}


@dataclass(frozen=True)
class Contexts:
    """A word in two sentences; cosines between its two states, and what lies near each."""

    word: str
    texts: tuple[str, str]
    translations: tuple[str, str]
    became: tuple[list[str], list[str]]  # target words that are linked with it
    stages: list[str]
    cosines: list[float]  # between the two states, a stage each
    others: list[float]  # the yardstick: mean cosine between the word and the other pieces of the other sentence
    words: int  # frequent words among which the nearest are
    before: tuple[Near, Near]  # nearest words of its embedding, in each sentence
    after: tuple[Near, Near]  # of what the encoder made of it


@torch.inference_mode()
def contexts(first: Scene, second: Scene, word: str) -> Contexts:
    """Follow a word through the encoder in two sentences; a word of several pieces is the mean of them."""
    places = [_places(scene, word) for scene in (first, second)]
    ids = [
        [scene.sentence.source_ids[piece] for piece in pieces]
        for scene, (_, pieces) in zip((first, second), places, strict=True)
    ]
    model, tokenizer = first.model, first.translator.tokenizer
    embeddings = [model.embedding.weight[own].mean(dim=0) for own in ids]
    states = [_states(scene, pieces) for scene, (_, pieces) in zip((first, second), places, strict=True)]
    tokens, words = frequent_words(tokenizer, WORDS)
    alone = encoded_alone(model, tokens, tokenizer.eos_id)
    stages = ["embedding", "with position", *(f"layer {n}" for n in range(len(states[0]) - 2)), "encoder output"]
    return Contexts(
        word=word,
        texts=(first.sentence.source, second.sentence.source),
        translations=(first.sentence.text, second.sentence.text),
        became=(_became(first, places[0][0]), _became(second, places[1][0])),
        stages=stages,
        cosines=[_cosine(*embeddings), *(_cosine(a, b) for a, b in zip(*states, strict=True))],
        others=_others(first, second, places[0][1], places[1][1]),
        words=len(words),
        before=_both(nearest(own, model.embedding.weight[tokens], words, NEIGHBOURS, word) for own in embeddings),
        after=_both(nearest(own[-1], alone, words, NEIGHBOURS, word) for own in states),
    )


def _both(pair: Iterable[Near]) -> tuple[Near, Near]:
    first, second = pair
    return first, second


def panels(found: Contexts) -> list[Panel]:
    """Both translations, the cosines, and the neighbours before and after."""
    sides = zip(found.texts, found.translations, found.became, strict=True)
    numbered = enumerate(zip(found.stages, found.cosines, found.others, strict=True))
    cosines: list[list[Cell]] = [
        [step, stage, round(own, 4), round(other, 4)] for step, (stage, own, other) in numbered
    ]
    same = "the same" if found.cosines[0] > 1 - 1e-5 else "not the same here, as it is written in two ways"
    return [
        Prose(
            f"Whatever stands around it, the embedding of “{found.word}” is {same}. The encoder mixes in what stands "
            f"around it: the cosine between its two states is {found.cosines[1]:.2f} before the first layer and "
            f"{found.cosines[-1]:.2f} after the last. As a yardstick: between “{found.word}” and the other pieces of "
            f"the other sentence it is {found.others[1]:.2f} before and {found.others[-1]:.2f} after. "
            f"{_told_apart(found)}"
        ),
        Table(
            f"“{found.word}” in two sentences",
            ["sentence", "translation", f"“{found.word}” became"],
            [[text, translation, " ".join(words) or "–"] for text, translation, words in sides],
        ),
        Table(
            "Cosine between its two states (1: they point the same way)",
            ["step", "after", "between the two", "to other pieces, on the mean"],
            cosines,
        ),
        Lines(
            "The same, step by step",
            "step of the table above",
            "cosine",
            [float(step) for step in range(len(found.cosines))],
            {
                f"“{found.word}” in one sentence and in the other": found.cosines,
                f"“{found.word}” and the other pieces of the other sentence": found.others,
            },
        ),
        *([_neighbours(found)] if found.words else []),
    ]


def _told_apart(found: Contexts) -> str:
    """What the translations say about the two senses."""
    first, second = (" ".join(words) for words in found.became)
    if not first or not second:
        return ""
    if first.casefold() == second.casefold():
        return f"Both became “{first}”: if two things are meant, this model did not tell them apart."
    return f"One became “{first}”, the other “{second}”."


def _others(first: Scene, second: Scene, mine: list[int], yours: list[int]) -> list[float]:
    """A stage each: the mean over the pieces of the other sentence but for the word's own, in both directions."""
    means = []
    for one, other, own, skipped in ((first, second, mine, yours), (second, first, yours, mine)):
        rest = [place for place in range(len(other.sentence.source_ids) - 1) if place not in skipped]
        ids, left = one.sentence.source_ids, [other.sentence.source_ids[place] for place in rest]
        table = one.model.embedding.weight
        pairs = [(table[[ids[place] for place in own]].mean(dim=0), table[left])]
        pairs += [(stage, rows[0, rest]) for stage, rows in zip(_states(one, own), _stages(other), strict=True)]
        means.append(
            [float(torch.cosine_similarity(state[None], rows).mean()) if rest else 0.0 for state, rows in pairs]
        )
    return [sum(both) / 2 for both in zip(*means, strict=True)]


def _neighbours(found: Contexts) -> Table:
    """Nearest words before and after the encoder."""
    columns = {"before, in the first": found.before[0], "before, in the second": found.before[1]}
    if found.before[0] == found.before[1]:
        columns = {"before, in both": found.before[0]}
    columns |= {"after, in the first": found.after[0], "after, in the second": found.after[1]}
    caption = f"Nearest of {found.words:,} frequent words, by cosine"
    return Table(
        f"{caption}: before among embeddings, after among words that are encoded alone",
        list(columns),
        [[f"{word} {cosine:.2f}" for word, cosine in row] for row in zip(*columns.values(), strict=True)],
    )


def _places(scene: Scene, word: str) -> tuple[int, list[int]]:
    """Which word of the source it is, and its pieces."""
    words = merge_pieces(scene.sentence.source_tokens[:-1])
    place = next((n for n, one in enumerate(words.words) if one.casefold() == word.casefold()), None)
    if place is None:
        raise UserError(f"{word!r} is not a word of {scene.sentence.source!r}")
    return place, words.pieces[place]


def _states(scene: Scene, pieces: list[int]) -> list[Tensor]:
    """The word's states (D,): H = X + P, after each block, and the encoder's output."""
    return [stage[0, pieces].mean(dim=0) for stage in _stages(scene)]


def _stages(scene: Scene) -> list[Tensor]:
    """All states of the encoder (1, S, D), from what it is given to what it gives."""
    return [*scene.trace.encoder_states, scene.trace.memory]


def _became(scene: Scene, place: int) -> list[str]:
    links = scene.sentence.alignment
    return [scene.sentence.target_words[link.target] for link in links if link.source == place]


def _cosine(a: Tensor, b: Tensor) -> float:
    return float(torch.cosine_similarity(a, b, dim=0))
