"""What comes out of a Translator: a translated text, its sentences, and the attention in each."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from seq2seq.errors import UserError
from seq2seq.folder import AlignmentChoice
from seq2seq.translation import alignment
from seq2seq.translation.alignment import Link, Words, merge_pieces

if TYPE_CHECKING:
    from seq2seq.translation.alignment import Array


def check_number(name: str, value: int | None, count: int) -> int:
    """Refuse what is not the number, from 0, of one of so many."""
    if not isinstance(value, int) or not 0 <= value < count:
        raise UserError(f"{name} {value!r} is not one of 0 to {count - 1}")
    return value


@dataclass(frozen=True)
class Alternative:
    """One of the n best translations of a sentence."""

    text: str
    score: float


class Term(NamedTuple):
    """A term of the glossary that stands in a sentence, and whether its translation does in the sentence's."""

    source: str
    target: str
    kept: bool


class Confidence(NamedTuple):
    """How sure to be of a translated sentence, as probabilities 0 to 1."""

    right: float  # that its meaning is kept
    omitted: list[float]  # of every source word, that it has been left out
    invented: list[float]  # of every target word, that it has no source


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
    terms: tuple[Term, ...] = ()  # of the glossary
    confidence: Confidence | None = field(default=None, repr=False)  # where it was asked for

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

    @property
    def source_pieces(self) -> list[list[int]]:
        """For every source word the places of its pieces."""
        return self._source.pieces

    @property
    def target_pieces(self) -> list[list[int]]:
        """For every target word the places of its pieces."""
        return self._target.pieces

    def piece_attention(self, layer: int | None = None, head: int | None = None) -> "Array":
        """(target tokens, source tokens) of one layer and head; head None is the mean over heads.

        Without a layer, the layer and head that align best by the model's own record.
        """
        if layer is None and head is None:
            layer, head = self.default_choice
        layers, heads = self.attention.shape[:2]
        layer = check_number("layer", layer, layers)
        if head is not None:
            check_number("head", head, heads)
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
        """For every target word the source word that it draws on most, if any, where the model aligns best.

        Words of a term of the glossary are linked with those that it asks for: the model would not have chosen them.
        """
        weights = self.word_attention()
        found = alignment.links(weights, self.source_words, self.target_words, self.aligning.taught)
        terms = [(term.source, term.target) for term in self.terms if term.kept]
        return alignment.with_terms(found, weights, self.source_words, self.target_words, terms)


@dataclass(frozen=True)
class Translation:
    """The translation of a text; lines, blank lines and the spaces between sentences are the source's."""

    source: str
    parts: list["str | SentenceTranslation"]  # in order: what is kept as it is, and what was translated
    markup: str | None = field(default=None, repr=False)  # the whole of it, where the text is HTML

    @property
    def text(self) -> str:
        """The whole translation."""
        if self.markup is not None:
            return self.markup
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
        """The n best translations of the whole text: combinations of alternatives, by the sum of their scores.

        Of a page there is one, since its tags are placed in the best translations alone.
        """
        if self.markup is not None:
            return [Alternative(self.markup, sum(sentence.score for sentence in self.sentences))]
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
    def confidence(self) -> Confidence | None:
        """How sure to be of the only sentence, where it was asked for."""
        return self._only("confidence").confidence

    @property
    def alternatives(self) -> list[Alternative]:
        """The n best translations of the only sentence."""
        return self._only("alternatives").alternatives

    def word_attention(self, layer: int | None = None, head: int | None = None) -> "Array":
        """Word attention of the only sentence."""
        return self._only("word_attention").word_attention(layer, head)
