"""Frequent words of a model's vocabulary, as points to hold others against."""

from collections.abc import Sequence

import torch
from torch import Tensor

from seq2seq.data.tokenizer import Tokenizer
from seq2seq.model import Transformer
from seq2seq.translation.alignment import SPACE

LEAST_LETTERS = 3


def frequent_words(tokenizer: Tokenizer, most: int) -> tuple[list[int], list[str]]:
    """Ids and words of the first pieces that are whole words of letters, the most frequent first.

    SentencePiece sorts its pieces by frequency. Words of all languages of the model are among them.
    """
    pieces = tokenizer.pieces(range(len(tokenizer)))
    chosen = [index for index, piece in enumerate(pieces) if _is_word(piece)][:most]
    return chosen, [pieces[index].removeprefix(SPACE) for index in chosen]


def _is_word(piece: str) -> bool:
    word = piece.removeprefix(SPACE)
    return piece.startswith(SPACE) and len(word) >= LEAST_LETTERS and word.isalpha()


def nearest(
    wanted: Tensor, states: Tensor, words: Sequence[str], most: int, without: str = ""
) -> list[tuple[str, float]]:
    """The words whose states (N, D) point most nearly where `wanted` (D,) does, with the cosine."""
    cosines = torch.cosine_similarity(states, wanted[None], dim=-1)
    order = [
        index for index in cosines.argsort(descending=True).tolist() if words[index].casefold() != without.casefold()
    ]
    return [(words[index], float(cosines[index])) for index in order[:most]]


@torch.inference_mode()
def encoded_alone(model: Transformer, tokens: Sequence[int], eos_id: int) -> Tensor:
    """What the encoder makes of each word as a sentence of its own: (N, D), at the word's position."""
    src = torch.tensor([[token, eos_id] for token in tokens], dtype=torch.long, device=model.embedding.weight.device)
    return model.encode(src)[:, 0]
