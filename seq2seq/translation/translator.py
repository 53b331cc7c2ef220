"""Text to Translation: the one door that command line, service, demo and evaluation share."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, overload

from seq2seq import hub
from seq2seq.errors import UserError
from seq2seq.folder import FILES, AlignmentChoice
from seq2seq.translation import alignment
from seq2seq.translation.alignment import Link, Words, merge_pieces
from seq2seq.translation.engine import Engine, Hypothesis, open_engine
from seq2seq.translation.sentences import Piece, is_capitals, split_text, tidy, trim, without_capitals

if TYPE_CHECKING:
    from seq2seq.checkpoint import LoadedModel
    from seq2seq.model import Transformer
    from seq2seq.translation.alignment import Array


@dataclass(frozen=True)
class Alternative:
    """One of the n best translations of a sentence."""

    text: str
    score: float


@dataclass(frozen=True)
class SentenceTranslation:
    """One model call: a sentence, its translation, and the attention between them."""

    source: str
    text: str
    score: float  # log-probability / length ** alpha, `</s>` counted
    source_tokens: list[str]  # pieces, `</s>` last
    target_tokens: list[str]  # pieces, `</s>` last
    alternatives: list[Alternative]  # best first; the first is this translation
    truncated: bool
    source_ids: tuple[int, ...] = field(repr=False)
    target_ids: tuple[int, ...] = field(repr=False)
    aligning: AlignmentChoice = field(default=AlignmentChoice(layer=0), repr=False)
    weights: "Array | None" = field(default=None, repr=False)

    @property
    def attention(self) -> "Array":
        """Cross-attention (layers, heads, target tokens, source tokens) of a forced pass over this translation.

        Row t belongs to the query that predicts target_tokens[t]; the last row predicts `</s>`. Rows sum to 1.
        """
        if self.weights is None:
            raise UserError("this translation carries no attention: translate with attention=True")
        return self.weights

    @cached_property
    def _source(self) -> Words:
        return merge_pieces(self.source_tokens[:-1])

    @cached_property
    def _target(self) -> Words:
        return merge_pieces(self.target_tokens[:-1])

    @property
    def source_words(self) -> list[str]:
        """Words of the source, outer punctuation apart."""
        return self._source.words

    @property
    def target_words(self) -> list[str]:
        """Words of the translation, outer punctuation apart."""
        return self._target.words

    def piece_attention(self, layer: int | None = None, head: int | None = None) -> "Array":
        """(target tokens, source tokens) of one layer and head; head None is the mean over heads.

        Without a layer, the layer and head that align best by the model's own record.
        """
        if layer is None and head is None:
            layer, head = self.default_choice
        layers, heads = self.attention.shape[:2]
        if layer is None or not 0 <= layer < layers:
            raise UserError(f"layer {layer} is not one of 0 to {layers - 1}")
        if head is not None and not 0 <= head < heads:
            raise UserError(f"head {head} is not one of 0 to {heads - 1}")
        heads_of_layer = self.attention[layer]
        chosen: Array = heads_of_layer.mean(axis=0) if head is None else heads_of_layer[head]
        return chosen

    @property
    def default_choice(self) -> tuple[int, int | None]:
        """The layer and head (None: mean over heads) that are read as word links."""
        return self.aligning.layer, self.aligning.head

    def read_attention(self, layer: int | None = None, head: int | None = None) -> "Array":
        """As piece_attention; but the layer and head that align best are read at the step at which they do.

        At the `input` step a piece has the row of the query that has just read it, one later than `attention` has.
        """
        aligning = (layer, head) in ((None, None), self.default_choice)
        return alignment.read_at(self.piece_attention(layer, head), self.aligning.step if aligning else "output")

    def word_attention(self, layer: int | None = None, head: int | None = None) -> "Array":
        """(target words, source words) of read_attention: source pieces summed, target pieces averaged, no `</s>`."""
        return alignment.word_attention(self.read_attention(layer, head), self._source, self._target)

    @property
    def alignment(self) -> list[Link]:
        """For every target word the source word that it draws on most, where the model aligns best."""
        return alignment.links(self.word_attention(), self.source_words, self.target_words)


@dataclass(frozen=True)
class Translation:
    """The translation of a text; lines, blank lines and the spaces between sentences are the source's."""

    source: str
    parts: list["str | SentenceTranslation"]  # in order: what is kept as it is, and what was translated

    @property
    def text(self) -> str:
        """The whole translation."""
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)

    @property
    def sentences(self) -> list[SentenceTranslation]:
        """One per model call; what has nothing to translate has none."""
        return [part for part in self.parts if isinstance(part, SentenceTranslation)]

    @property
    def truncated(self) -> bool:
        """Whether the length limit cut a sentence short."""
        return any(sentence.truncated for sentence in self.sentences)

    def best(self, n: int) -> list[Alternative]:
        """The n best translations of the whole text: combinations of alternatives, by the sum of their scores."""
        combined = [Alternative("", 0.0)]
        for part in self.parts:
            options = [Alternative(part, 0.0)] if isinstance(part, str) else part.alternatives
            pairs = [Alternative(a.text + b.text, a.score + b.score) for a in combined for b in options]
            combined = sorted(pairs, key=lambda alternative: -alternative.score)[:n]
        return combined

    def _only(self, name: str) -> SentenceTranslation:
        if len(self.sentences) != 1:
            count = len(self.sentences)
            raise UserError(f"{name}: the text has {count} translated sentences, not one; look into .sentences")
        return self.sentences[0]

    @property
    def score(self) -> float:
        """Score of the only sentence."""
        return self._only("score").score

    @property
    def source_tokens(self) -> list[str]:
        """Source pieces of the only sentence."""
        return self._only("source_tokens").source_tokens

    @property
    def target_tokens(self) -> list[str]:
        """Target pieces of the only sentence."""
        return self._only("target_tokens").target_tokens

    @property
    def attention(self) -> "Array":
        """Cross-attention of the only sentence."""
        return self._only("attention").attention

    @property
    def source_words(self) -> list[str]:
        """Source words of the only sentence."""
        return self._only("source_words").source_words

    @property
    def target_words(self) -> list[str]:
        """Target words of the only sentence."""
        return self._only("target_words").target_words

    @property
    def alignment(self) -> list[Link]:
        """Word links of the only sentence."""
        return self._only("alignment").alignment

    @property
    def alternatives(self) -> list[Alternative]:
        """The n best translations of the only sentence."""
        return self._only("alternatives").alternatives

    def word_attention(self, layer: int | None = None, head: int | None = None) -> "Array":
        """Word attention of the only sentence."""
        return self._only("word_attention").word_attention(layer, head)


class Translator:
    """A loaded model that translates text of any length."""

    def __init__(self, model: "Engine | LoadedModel") -> None:
        self.engine = model if isinstance(model, Engine) else _in_torch(model)
        self.info, self.tokenizer = self.engine.info, self.engine.tokenizer

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path | None = None,
        engine: str = "torch",
        precision: str | None = None,
        ensemble: Sequence[str | Path] = (),
    ) -> "Translator":
        """The bundled model; or a bundled name, a model folder, or a hub id "owner/name", "owner/name@revision".

        engine "torch", or the faster "ctranslate2" (docs/ctranslate2.md); precision of its products float32, or with
        torch bfloat16, with ctranslate2 int8. `ensemble`, with torch alone, names more models with the same
        tokenizer: the mean of all their probabilities decides; attention is the first one's.
        """
        return cls(open_engine(name, engine, precision, ensemble))

    @property
    def model(self) -> "Transformer":
        """The weights in torch, whatever engine searches."""
        return self.engine.model

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the model as a new model folder."""
        self.engine.save(Path(folder))

    def push_to_hub(
        self, repository: str, *, private: bool = False, token: str | None = None, message: str | None = None
    ) -> str:
        """Upload the model folder to the Hugging Face hub as "owner/name", in one commit; returns its address.

        A repository that is not there is made, `private` or not; the token is HF_TOKEN or that of `hf auth login`.
        """
        return hub.push(self.save_pretrained, FILES, repository, private, token, message)

    @overload
    def translate(  # type: ignore[overload-overlap]  # a str is a Sequence[str], too
        self,
        text: str,
        *,
        beam_size: int | None = ...,
        n_best: int = ...,
        length_penalty: float | None = ...,
        format: str = ...,
        attention: bool = ...,
    ) -> Translation: ...

    @overload
    def translate(
        self,
        text: Sequence[str],
        *,
        beam_size: int | None = ...,
        n_best: int = ...,
        length_penalty: float | None = ...,
        format: str = ...,
        attention: bool = ...,
    ) -> list[Translation]: ...

    def translate(
        self,
        text: str | Sequence[str],
        *,
        beam_size: int | None = None,
        n_best: int = 1,
        length_penalty: float | None = None,
        format: str = "text",
        attention: bool = True,
    ) -> Translation | list[Translation]:
        """Translate a text, or a list of texts in one go: same length, same order.

        beam_size 1 is greedy; beam_size and length_penalty default to the model's own; n_best at most beam_size.
        attention=False skips the extra pass that attention and alignment need.
        """
        several = isinstance(text, Iterable) and not isinstance(text, str | bytes)
        texts: list[str] = list(text) if several else [text]  # type: ignore[list-item]
        for item in texts:
            if not isinstance(item, str):
                raise UserError(f"text {item!r} is a {type(item).__name__}, not a string")
        beam = self.info.decode.beam_size if beam_size is None else beam_size
        alpha = self.info.decode.length_penalty if length_penalty is None else length_penalty
        self._check(beam, n_best, alpha, format)
        split = [split_text(_without_surrogates(item)) for item in texts]
        pieces = [list(self._fit(item)) for item in split]
        needed = dict.fromkeys(tidy(piece.text) for item in pieces for piece in item if piece.translatable)
        translated = dict(zip(needed, self._sentences(list(needed), beam, n_best, alpha, attention), strict=True))
        results = [_assemble(item, parts, translated) for item, parts in zip(texts, pieces, strict=True)]
        return results[0] if isinstance(text, str) else results

    def _check(self, beam_size: int, n_best: int, alpha: float, format: str) -> None:
        if format != "text":
            raise UserError(f"format {format!r} is not one of text")
        for name, value in (("beam_size", beam_size), ("n_best", n_best)):
            if not isinstance(value, int):
                raise UserError(f"{name} {value!r} is not a whole number")
        if not 1 <= beam_size <= 64:
            raise UserError(f"beam_size {beam_size} is not between 1 and 64")
        if not 1 <= n_best <= beam_size:
            raise UserError(f"n_best {n_best} is not between 1 and beam_size = {beam_size}")
        if not (isinstance(alpha, int | float) and 0 <= alpha < math.inf):
            raise UserError(f"length_penalty {alpha!r} is not a number from 0 up")

    def _fit(self, pieces: list[Piece]) -> Iterator[Piece]:
        """Pieces with sentences that are too long for the model cut at a comma, else at a space, else anywhere."""
        for piece in pieces:
            if not piece.translatable:
                yield piece
                continue
            rest = piece.text
            while (end := self._cut_point(rest)) < len(rest):
                yield from trim(rest[:end])
                rest = rest[end:]
            yield from trim(rest)

    def _cut_point(self, sentence: str) -> int:
        """Where the first part that fits ends; the sentence's length if all of it fits."""
        limit = self.info.decode.max_source_tokens - 1

        def fits(end: int) -> bool:
            return len(self.tokenizer.encode(tidy(sentence[:end]))) <= limit

        high = 4 * limit
        while fits(high):  # doubled rather than started at the end, so that a long text is not encoded again and again
            if high >= len(sentence):
                return len(sentence)
            high *= 2
        low, high = 1, min(high, len(sentence)) - 1  # the longest prefix that fits, by bisection
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fits(middle) else (low, middle - 1)
        prefix = sentence[:low]
        for marks in (",;:", " \t"):
            end = max(prefix.rfind(mark) for mark in marks) + 1
            if end > low // 2:
                while end < len(sentence) and sentence[end].isspace():
                    end += 1
                return end
        return low

    def _sentences(
        self, sentences: list[str], beam: int, n_best: int, alpha: float, attention: bool
    ) -> list[SentenceTranslation]:
        """Translate tidy sentences. Capitals throughout, which models rarely see, are taken off and put on again."""
        read = [without_capitals(sentence) if is_capitals(sentence) else sentence for sentence in sentences]
        sources = [[*ids, self.tokenizer.eos_id] for ids in self.tokenizer.encode_all(read)]
        found = self.engine.search(sources, beam, alpha)
        targets = [hypotheses[0].tokens for hypotheses in found]
        maps: Sequence[Array | None] = self.engine.attention(sources, targets) if attention else [None] * len(found)
        return [
            self._sentence(sentence, source, hypotheses, n_best, weights)
            for sentence, source, hypotheses, weights in zip(sentences, sources, found, maps, strict=True)
        ]

    def _sentence(
        self, sentence: str, source: list[int], hypotheses: list[Hypothesis], n_best: int, weights: "Array | None"
    ) -> SentenceTranslation:
        best, loud = hypotheses[0], is_capitals(sentence)
        texts: dict[str, float] = {}  # two segmentations of one text count once, at the better score
        for hypothesis in hypotheses:
            text = self.tokenizer.decode(hypothesis.tokens)
            texts.setdefault(text.upper() if loud else text, hypothesis.score)
        return SentenceTranslation(
            source=sentence,
            text=next(iter(texts)),
            score=best.score,
            source_tokens=self.tokenizer.pieces(source),
            target_tokens=self.tokenizer.pieces(best.tokens),
            alternatives=[Alternative(text, score) for text, score in list(texts.items())[:n_best]],
            truncated=best.truncated,
            source_ids=tuple(source),
            target_ids=best.tokens,
            aligning=self.info.aligning,
            weights=weights,
        )


def _in_torch(loaded: "LoadedModel") -> Engine:
    from seq2seq.translation.torch_engine import TorchEngine

    return TorchEngine(loaded)


def _assemble(text: str, pieces: list[Piece], translated: dict[str, SentenceTranslation]) -> Translation:
    """Put a text together again from its pieces."""
    parts = [translated[tidy(piece.text)] if piece.translatable else piece.text for piece in pieces]
    return Translation(source=text, parts=parts)


def _without_surrogates(text: str) -> str:
    """Half a surrogate pair, which no encoding can hold, becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
