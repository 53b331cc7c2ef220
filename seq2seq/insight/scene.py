"""A translation and the forced pass over it, laid open: what every view of the explorer looks at.

Shapes: T queries, S keys, D d_model; a batch of one, whose dimension is dropped.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from seq2seq.errors import UserError
from seq2seq.model import AttentionTrace, ModelTrace, MultiHeadAttention, Transformer
from seq2seq.translation.alignment import SPACE, merge_pieces
from seq2seq.translation.result import SentenceTranslation, Translation, check_number
from seq2seq.translation.translator import Translator

Kind = Literal["encoder", "decoder", "cross"]
KINDS: dict[Kind, str] = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "cross": "cross-attention",
}


class Inputs(NamedTuple):
    """What an attention layer is given."""

    residual: Tensor  # (T, D) the state to which the result is added
    x: Tensor  # (T, D) LN(residual): the queries are made of it
    context: Tensor  # (S, D) keys and values are made of it; self-attention has x here


@dataclass(frozen=True)
class Scene:
    """A sentence, its translation, and every quantity of the forced pass over both."""

    translator: Translator
    sentence: SentenceTranslation
    trace: ModelTrace

    @property
    def model(self) -> Transformer:
        """The weights."""
        return self.translator.engine.model

    def check(self, layer: int, head: int | None, kind: Kind) -> None:
        """Refuse a layer or head that the model does not have."""
        check_number("layer", layer, len(self.attentions(kind)))
        if head is not None:
            check_number("head", head, self.model.config.heads)

    def attentions(self, kind: Kind) -> list[AttentionTrace]:
        """One attention's traces, a layer each."""
        return {"encoder": self.trace.encoder, "decoder": self.trace.decoder, "cross": self.trace.cross}[kind]

    def labels(self, kind: Kind) -> tuple[list[str], list[str]]:
        """Pieces that ask and pieces that answer."""
        return labels_of(self.sentence, kind)

    def module(self, kind: Kind, layer: int) -> MultiHeadAttention:
        """The attention of one layer."""
        return attention_of(self.model, kind, layer)

    def context_norm(self, kind: Kind, layer: int) -> nn.Module:
        """The normalisation after which keys and values are made."""
        if kind == "cross":
            return self.model.encoder_norm
        if kind == "encoder":
            return list(self.model.encoder)[layer].attention_norm
        return list(self.model.decoder)[layer].attention_norm

    @torch.inference_mode()
    def inputs(self, kind: Kind, layer: int) -> Inputs:
        """What the attention of one layer is given."""
        if kind == "encoder":
            residual = self.trace.encoder_states[layer][0]
            x = list(self.model.encoder)[layer].attention_norm(residual)
            return Inputs(residual, x, x)
        block, residual = list(self.model.decoder)[layer], self.trace.decoder_states[layer][0]
        if kind == "decoder":
            x = block.attention_norm(residual)
            return Inputs(residual, x, x)
        residual = residual + block.attention.project(self.trace.decoder[layer].O)[0]
        return Inputs(residual, block.cross_attention_norm(residual), self.trace.memory[0])

    def place(self, word: str | int | None, kind: Kind, *, asked: bool = True) -> int:
        """The piece, of those that ask or of those that answer, that is meant; None: the second, if there is one.

        A number counts from 0; a text is a piece, or a word, of which it means the first piece.
        """
        labels = self.labels(kind)[0 if asked else 1]
        if word is None:
            return min(1, len(labels) - 1)
        if isinstance(word, int) or word.isdecimal():
            return check_number("piece", int(word), len(labels))
        wanted = word.removeprefix(SPACE).casefold().replace("’", "'")
        words = merge_pieces(["" if label in ("<s>", "</s>") else label for label in labels])
        found = [index for index, label in enumerate(labels) if label.removeprefix(SPACE).casefold() == wanted]
        found += [
            own[0] for text, own in zip(words.words, words.pieces, strict=True) if text.casefold() == wanted and own
        ]
        if not found:
            raise UserError(f"{word!r} is none of the pieces {' '.join(labels)}")
        return found[0]


def labels_of(sentence: SentenceTranslation, kind: Kind) -> tuple[list[str], list[str]]:
    """Pieces that ask and pieces that answer. The decoder reads `<s>` and the translation without its last piece.

    In cross-attention a query is named by the piece that it predicts, as everywhere in this project.
    """
    source, target = sentence.source_tokens, sentence.target_tokens
    read = ["<s>", *target[:-1]]
    return {"encoder": (source, source), "decoder": (read, read), "cross": (target, source)}[kind]


def attention_of(model: Transformer, kind: Kind, layer: int) -> MultiHeadAttention:
    """The attention of one layer."""
    if kind == "encoder":
        return list(model.encoder)[layer].attention
    block = list(model.decoder)[layer]
    return block.attention if kind == "decoder" else block.cross_attention


def refuse_more_than_one(result: Translation, longest: int) -> None:
    """One sentence can be laid open, and all of the text must be in it."""
    if not result.sentences:
        raise UserError("there is nothing to translate in this text: type a sentence of words")
    parts = [part if isinstance(part, str) else part.source for part in result.parts]
    parts = [part.strip() for part in parts if any(map(str.isalnum, part))]
    if len(parts) > 1:
        shown = ", ".join(f"“{part[:40]}”" for part in parts[:3]) + ", …" * (len(parts) > 3)
        why = f"ends of sentences, emoji and very long words part a text; over {longest} pieces a sentence is cut"
        raise UserError(f"one sentence can be laid open, this text is read in {len(parts)} parts ({why}): {shown}")


@torch.inference_mode()
def stage(translator: Translator, text: str, beam_size: int | None = None) -> Scene:
    """Translate a text of one sentence and lay open the forced pass over its translation."""
    result = translator.translate(text, beam_size=beam_size)
    refuse_more_than_one(result, translator.info.decode.max_source_tokens)
    sentence = result.sentences[0]
    return Scene(translator, sentence, translator.engine.trace([sentence.source_ids], [sentence.target_ids]))
