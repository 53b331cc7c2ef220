"""One sentence and its translation in, the attention of every layer and head out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from seq2seq.data.splits import Pair
from seq2seq.errors import UserError
from seq2seq.folder import AlignmentChoice
from seq2seq.insight.scene import Kind, labels_of, stage
from seq2seq.translation import alignment
from seq2seq.translation.result import SentenceTranslation
from seq2seq.translation.translator import Translator


@dataclass(frozen=True)
class Inspection:
    """Weights of the three attentions of a forced pass, (layers, heads, queries, keys), with the pieces they join.

    The decoder reads `<s>` and the translation without its last token; query t predicts target_tokens[t].
    """

    sentence: SentenceTranslation
    cross: NDArray[np.float32]
    encoder: NDArray[np.float32]
    decoder: NDArray[np.float32]

    def view(self, name: str) -> tuple[NDArray[np.float32], list[str], list[str]]:
        """Weights of one attention with the labels of its queries (rows) and keys (columns)."""
        weights = {"cross": self.cross, "encoder": self.encoder, "decoder": self.decoder}
        if name not in weights:
            raise UserError(f"view {name!r} is not one of {', '.join(weights)}")
        rows, columns = labels_of(self.sentence, cast(Kind, name))
        return weights[name], rows, columns


def inspect(translator: Translator, text: str, beam_size: int | None = None) -> Inspection:
    """Translate a text of one sentence and lay open the forced pass over its translation."""
    scene = stage(translator, text, beam_size)
    encoder, decoder, cross = (
        torch.stack([layer.A[0] for layer in layers]).cpu().numpy()
        for layers in (scene.trace.encoder, scene.trace.decoder, scene.trace.cross)
    )
    return Inspection(scene.sentence, cross=cross, encoder=encoder, decoder=decoder)


def aligning_layer(translator: Translator, pairs: Sequence[Pair]) -> AlignmentChoice:
    """The decoder layer whose mean-head cross-attention aligns best on given pairs, found without gold links."""
    tokenizer = translator.tokenizer
    sources, targets = (
        [[*ids, tokenizer.eos_id] for ids in tokenizer.encode_all([pair[side] for pair in pairs])] for side in (0, 1)
    )
    found = []
    for source, target, weights in zip(sources, targets, translator.engine.attention(sources, targets), strict=True):
        src, tgt = (alignment.merge_pieces(tokenizer.pieces(ids[:-1])) for ids in (source, target))
        found.append([alignment.word_links(layer.mean(axis=0), src, tgt, "output") for layer in weights])
    return AlignmentChoice(layer=alignment.choose_layer(found))
