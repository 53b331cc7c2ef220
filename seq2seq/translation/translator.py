"""Text to Translation: the one door that command line, service, demo and evaluation share."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, overload

from seq2seq import hub
from seq2seq.errors import UserError
from seq2seq.folder import FILES
from seq2seq.translation.engine import Engine, Hypothesis, open_engine
from seq2seq.translation.glossary import MOST_IN_A_SENTENCE, Glossary, stands_in
from seq2seq.translation.markup import MarkupPlan, plan_markup
from seq2seq.translation.plan import Plan
from seq2seq.translation.protect import translate_protected
from seq2seq.translation.result import Alternative, SentenceTranslation, Term, Translation
from seq2seq.translation.sentences import Piece, is_capitals, split_text, tidy, trim, without_capitals

if TYPE_CHECKING:
    from seq2seq.checkpoint import LoadedModel
    from seq2seq.model import Transformer
    from seq2seq.translation.alignment import Array
    from seq2seq.translation.confidence import Judge
    from seq2seq.translation.terms import TermWriter


FORMATS = ("text", "html")
NO_RULE = "confidence: this model has no rule for it; docs/confidence.md tells how to make one"
Terms = Mapping[str, str] | Glossary | None  # a glossary as a caller gives it


class Search(NamedTuple):
    """How sentences are searched for; the same for all that are translated together."""

    beam_size: int
    n_best: int
    length_penalty: float
    attention: bool  # with the forced pass that attention and alignment need
    glossary: Glossary | None = None
    confidence: bool = False  # with forced passes of this model and of the other direction's


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
        rerank: str | Path | None = None,
    ) -> "Translator":
        """The bundled model; or a bundled name, a model folder, or a hub id "owner/name", "owner/name@revision".

        engine "torch", or the faster "ctranslate2" (docs/ctranslate2.md); precision of its products float32, or with
        torch bfloat16, with ctranslate2 int8. `ensemble`, with torch alone, names more models with the same
        tokenizer: the mean of all their probabilities decides; attention is the first one's. `rerank` names a model
        of the other direction ("fr-en"): the order of the translations in a beam is its choice, too.
        """
        return cls(open_engine(name, engine, precision, ensemble, rerank))

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
        glossary: Terms = ...,
        confidence: bool = ...,
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
        glossary: Terms = ...,
        confidence: bool = ...,
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
        glossary: Terms = None,
        confidence: bool = False,
    ) -> Translation | list[Translation]:
        """Translate a text, or a list of texts in one go: same length, same order.

        beam_size 1 is greedy; beam_size and length_penalty default to the model's own; n_best at most beam_size.
        attention=False skips the extra pass that attention and alignment need. glossary {"bank": "rive"}: terms, and
        their translations as they are to stand in the text. confidence=True says how sure to be of every sentence
        and word, if the model has a rule for it.
        """
        several = isinstance(text, Iterable) and not isinstance(text, str | bytes)
        texts: list[str] = list(text) if several else [text]  # type: ignore[list-item]
        search = self.search(beam_size, n_best, length_penalty, format, attention, glossary, confidence)
        plans = [self.plan(item, format) for item in texts]
        needed = list(dict.fromkeys(sentence for plan in plans for sentence in plan.sentences))
        translated = dict(zip(needed, self.translate_sentences(needed, search), strict=True))
        results = [plan.assemble(translated) for plan in plans]
        return results[0] if isinstance(text, str) else results

    def search(
        self,
        beam_size: int | None = None,
        n_best: int = 1,
        length_penalty: float | None = None,
        format: str = "text",
        attention: bool = True,
        glossary: Terms = None,
        confidence: bool = False,
    ) -> Search:
        """The settings of a call, checked, with the model's own where none are given."""
        beam = self.info.decode.beam_size if beam_size is None else beam_size
        alpha = self.info.decode.length_penalty if length_penalty is None else length_penalty
        self._check(beam, n_best, alpha, format)
        if confidence and self.why_unsure:
            raise UserError(self.why_unsure)
        # Tags are placed by word links.
        return Search(beam, n_best, alpha, attention or format == "html", Glossary.of(glossary), confidence)

    def plan(self, text: str, format: str = "text") -> Plan | MarkupPlan:
        """Cut a text into sentences that fit the model, and what lies between them."""
        if not isinstance(text, str):
            raise UserError(f"text {text!r} is a {type(text).__name__}, not a string")
        return plan_markup(text, self._plan) if format == "html" else self._plan(text)

    def _plan(self, text: str) -> Plan:
        pieces = self._fit(split_text(_without_surrogates(text)))
        parts = [Piece(tidy(piece.text), True) if piece.translatable else piece for piece in pieces]
        return Plan(text, parts)

    def _check(self, beam_size: int, n_best: int, alpha: float, format: str) -> None:
        if format not in FORMATS:
            raise UserError(f"format {format!r} is not one of {', '.join(FORMATS)}")
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

    def translate_sentences(self, sentences: Sequence[str], search: Search) -> list[SentenceTranslation]:
        """Translate sentences of plans, and see that what must survive does."""
        with_links = partial(self._translate, search=search._replace(attention=True))
        plainly = with_links if search.confidence else partial(self._translate, search=search)
        found = translate_protected(sentences, plainly, with_links)
        if search.confidence:
            judged = self.judge.judge(found)
            found = [replace(one, confidence=sure) for one, sure in zip(found, judged, strict=True)]
        return found if search.attention else [replace(one, weights=None) for one in found]

    def _translate(self, sentences: Sequence[str], search: Search) -> list[SentenceTranslation]:
        """Capitals throughout, which models rarely see, are taken off and put back."""
        read = [without_capitals(sentence) if is_capitals(sentence) else sentence for sentence in sentences]
        sources = [[*ids, self.tokenizer.eos_id] for ids in self.tokenizer.encode_all(read)]
        found = self._hypotheses(sentences, sources, search)
        targets = [hypotheses[0].tokens for hypotheses in found]
        maps: Sequence[Array | None] = [None] * len(found)
        if search.attention:
            maps = self.engine.attention(sources, targets)
        return [
            self._sentence(sentence, source, hypotheses, search, weights)
            for sentence, source, hypotheses, weights in zip(sentences, sources, found, maps, strict=True)
        ]

    def _hypotheses(self, sentences: Sequence[str], sources: list[list[int]], search: Search) -> list[list[Hypothesis]]:
        """Of every sentence; where terms of the glossary stand in it, those that contain their translations."""
        found = self.engine.search(sources, search.beam_size, search.length_penalty)
        wide = max(search.beam_size, self.info.decode.beam_size)  # greedily, the rest of a sentence would suffer
        for row, sentence in enumerate(sentences if search.glossary else ()):
            terms = search.glossary.wanted(sentence)[:MOST_IN_A_SENTENCE] if search.glossary else []
            if terms:
                found[row] = self._writer.write(sources[row], found[row], terms, wide, search.length_penalty)
        return found

    @cached_property
    def judge(self) -> "Judge":
        """What says how sure to be of a translation."""
        from seq2seq.translation.confidence import Judge

        if self.info.confidence is None:
            raise UserError(NO_RULE)
        return Judge(self.engine, self.info.confidence)

    @cached_property
    def why_unsure(self) -> str | None:
        """Why it cannot say how sure to be of a translation; None if it can. Loads what it needs for that."""
        try:
            _ = self.judge
        except UserError as error:
            return str(error)
        return None

    @cached_property
    def _writer(self) -> "TermWriter":
        from seq2seq.translation.terms import TermWriter

        return TermWriter(self.engine)

    def _sentence(
        self, sentence: str, source: list[int], hypotheses: list[Hypothesis], search: Search, weights: "Array | None"
    ) -> SentenceTranslation:
        best, loud = hypotheses[0], is_capitals(sentence)
        options: dict[str, Alternative] = {}  # the same words, whatever their spaces, count once, at the better score
        for hypothesis in hypotheses:
            text = self.tokenizer.decode(hypothesis.tokens)
            text = text.upper() if loud else text
            options.setdefault(" ".join(text.split()), Alternative(text, hypothesis.score))
        text = next(iter(options.values())).text
        wanted = search.glossary.wanted(sentence) if search.glossary else []
        return SentenceTranslation(
            source=sentence,
            text=text,
            score=best.score,
            source_tokens=self.tokenizer.pieces(source),
            target_tokens=self.tokenizer.pieces(best.tokens),
            alternatives=list(options.values())[: search.n_best],
            truncated=best.truncated,
            source_ids=tuple(source),
            target_ids=best.tokens,
            aligning=self.info.aligning,
            weights=weights,
            terms=tuple(Term(term, to, stands_in(to, text)) for term, to in wanted),
        )


def _in_torch(loaded: "LoadedModel") -> Engine:
    from seq2seq.translation.torch_engine import TorchEngine

    return TorchEngine(loaded)


def _without_surrogates(text: str) -> str:
    """Half a surrogate pair, which no encoding can hold, becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
