"""Static against contextual: one word in two sentences (section 1 of the chapter).

Its embedding is the same in both. What the encoder makes of it is not: layer by layer the two states part.
"""

from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from seq2seq.errors import UserError
from seq2seq.insight.panels import Lines, Panel, Prose, Table
from seq2seq.insight.scene import Scene
from seq2seq.insight.vocabulary import encoded_alone, frequent_words, nearest
from seq2seq.translation.alignment import merge_pieces

WORDS, NEIGHBOURS = 1500, 8
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
    before: list[tuple[str, float]]  # nearest words of its embedding
    after: tuple[list[tuple[str, float]], list[tuple[str, float]]]  # of what the encoder made of it, in each sentence


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
        before=nearest(embeddings[0], model.embedding.weight[tokens], words, NEIGHBOURS, word),
        after=(
            nearest(states[0][-1], alone, words, NEIGHBOURS, word),
            nearest(states[1][-1], alone, words, NEIGHBOURS, word),
        ),
    )


def panels(found: Contexts) -> list[Panel]:
    """Both translations, the cosines, and the neighbours before and after."""
    sides = zip(found.texts, found.translations, found.became, strict=True)
    rows: list[list[str | int | float]] = [
        [text, translation, " ".join(words) or "–"] for text, translation, words in sides
    ]
    named = [[f"{word} {cosine:.2f}" for word, cosine in near] for near in (found.before, *found.after)]
    neighbours: list[list[str | int | float]] = [list(row) for row in zip(*named, strict=True)]
    same = "the same" if abs(found.cosines[0] - 1) < 1e-5 else "not quite the same, as it is written in two ways"
    return [
        Prose(
            f"Whatever the sentence, the embedding of “{found.word}” is {same}. "
            "Each layer of the encoder mixes in what stands around it, and the two states part."
        ),
        Table(f"“{found.word}” in two sentences", ["sentence", "translation", f"“{found.word}” became"], rows),
        Table(
            "Cosine between its two states (1: they point the same way)",
            ["after", "cosine"],
            [[stage, round(cosine, 4)] for stage, cosine in zip(found.stages, found.cosines, strict=True)],
        ),
        Lines(
            "The two states part layer by layer",
            "step (0 is the embedding)",
            "cosine",
            [float(step) for step in range(len(found.cosines))],
            {f"“{found.word}” in one sentence and in the other": found.cosines},
        ),
        Table(
            f"Nearest of {WORDS:,} frequent words, by cosine: before among embeddings, after among words that are "
            "encoded alone",
            ["before, in both", "after, in the first", "after, in the second"],
            neighbours,
        ),
    ]


def _places(scene: Scene, word: str) -> tuple[int, list[int]]:
    """Which word of the source it is, and its pieces."""
    words = merge_pieces(scene.sentence.source_tokens[:-1])
    found = (n for n, one in enumerate(words.words) if one.casefold() == word.casefold())
    for place in islice(found, 1):
        return place, words.pieces[place]
    raise UserError(f"{word!r} is not a word of {scene.sentence.source!r}")


def _states(scene: Scene, pieces: list[int]) -> list[Tensor]:
    """The word's states (D,): H = X + P, after each block, and the encoder's output."""
    stages = [*scene.trace.encoder_states, scene.trace.memory]
    return [stage[0, pieces].mean(dim=0) for stage in stages]


def _became(scene: Scene, place: int) -> list[str]:
    links = scene.sentence.alignment
    return [scene.sentence.target_words[link.target] for link in links if link.source == place]


def _cosine(a: Tensor, b: Tensor) -> float:
    return float(torch.cosine_similarity(a, b, dim=0))
