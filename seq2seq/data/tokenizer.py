"""Subwords by SentencePiece: one joint vocabulary, case and French spacing kept, nothing ever unknown."""

import io
import math
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from random import Random

import sentencepiece

from seq2seq.config import TokenizerConfig
from seq2seq.data.lines import writable
from seq2seq.errors import UserError

PAD, UNK, BOS, EOS = 0, 1, 2, 3
MOST_SENTENCES = 1_000_000  # to learn pieces from: SentencePiece holds them all in memory
CUTS, SHARPNESS = 16, 0.2  # of a sampled text: two of three texts are cut otherwise, and are a tenth longer
SPACE = "▁"  # SentencePiece's sign for a space before a piece


class Tokenizer:
    """Text to pieces and back. Unknown characters become UTF-8 byte pieces (Kudo and Richardson 2018)."""

    pad_id, unk_id, bos_id, eos_id = PAD, UNK, BOS, EOS

    def __init__(self, model: bytes) -> None:
        self.model = model
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
        except RuntimeError:
            raise UserError("the tokenizer is not a SentencePiece model") from None

    @classmethod
    def train(cls, sentences: Iterable[str], config: TokenizerConfig) -> "Tokenizer":
        """Learn the pieces. The text is taken as it is: no normalisation, so no-break spaces stay themselves.

        Of more than `MOST_SENTENCES` it learns from some, evenly spaced, so that memory stays bounded.
        """
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.Train(
                sentence_iterator=map(writable, thin_out(sentences, MOST_SENTENCES)),
                model_writer=model,
                vocab_size=config.vocab_size,
                model_type=config.kind,
                character_coverage=config.character_coverage,
                byte_fallback=True,
                split_digits=True,
                normalization_rule_name="identity",
                pad_id=PAD,
                unk_id=UNK,
                bos_id=BOS,
                eos_id=EOS,
                num_threads=1,
                minloglevel=2,
            )
        except (RuntimeError, OSError) as error:
            reason = str(error).replace("\n", " ").rpartition("] ")[2] or "no text to learn from"
            reason = reason.replace(
                "character_coverage with --character_coverage option", "tokenizer.character_coverage"
            )
            raise UserError(f"tokenizer.vocab_size = {config.vocab_size}: {reason}") from None
        return cls(model.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Read a `tokenizer.model` file."""
        try:
            return cls(Path(path).read_bytes())
        except OSError:
            raise UserError(f"tokenizer {path} is missing or cannot be read") from None
        except UserError:
            raise UserError(f"{path} is not a SentencePiece model") from None

    def __len__(self) -> int:
        return int(self._processor.GetPieceSize())

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, without `<s>` and `</s>`."""
        return list(self._processor.EncodeAsIds(writable(text)))

    def encode_all(self, texts: list[str]) -> list[list[int]]:
        """Token ids of many texts."""
        return [list(ids) for ids in self._processor.Encode(list(map(writable, texts)))]

    def sample_all(self, texts: list[str], rng: Random) -> list[list[int]]:
        """Token ids of many texts, each cut into pieces by chance: probable cuts often, improbable ones seldom.

        One of the `CUTS` most probable, by their probabilities to the power of `SHARPNESS` (Kudo 2018, section 3.2).
        For unigram pieces alone: BPE has no second-best cut.
        """
        try:
            found = self._processor.NBestEncodeAsIds(list(map(writable, texts)), CUTS)
        except RuntimeError:
            raise UserError("variation.sampled_pieces needs a unigram tokenizer, and this one is of BPE") from None
        return [self._draw(cuts, rng) for cuts in found]

    def _draw(self, cuts: list[list[int]], rng: Random) -> list[int]:
        """One of several cuts of a text."""
        logits = [SHARPNESS * sum(map(self._scores.__getitem__, ids)) for ids in cuts]
        return list(rng.choices(cuts, [math.exp(logit - max(logits)) for logit in logits])[0])

    @cached_property
    def _scores(self) -> list[float]:
        """Log-probability of every piece."""
        return [self._processor.GetScore(index) for index in range(len(self))]

    def decode(self, ids: Iterable[int]) -> str:
        """Text of token ids; special ids are left out, bytes that are no UTF-8 become U+FFFD."""
        return str(self._processor.DecodeIds([index for index in ids if index > EOS]))

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """The written form of each id, as `▁bank`, `s`, `<0xE2>` or `</s>`."""
        return [str(self._processor.IdToPiece(index)) for index in ids]


def thin_out(sentences: Iterable[str], most: int) -> Iterator[str]:
    """All sentences if they are at most `most`; else every third, ninth ... one, as many as that allows.

    An odd step, because the two languages take turns and both must be learned from.
    """
    kept: list[str] = []
    step = 1
    for number, sentence in enumerate(sentences):
        if number % step == 0:
            kept.append(sentence)
            if len(kept) > most:
                kept, step = kept[::3], step * 3
    return iter(kept)
