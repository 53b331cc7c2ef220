"""What all doors of the service share: its models, what may be asked of them, and the way to their queues."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from seq2seq.errors import UserError
from seq2seq.service.batcher import Batcher, OverloadedError
from seq2seq.service.refusal import Refusal, invalid, later, too_much
from seq2seq.service.settings import ServiceConfig
from seq2seq.translation.markup import MarkupPlan
from seq2seq.translation.plan import Plan
from seq2seq.translation.result import SentenceTranslation, Translation
from seq2seq.translation.translator import Search, Translator

PROBE = "The sun is shining."


class Desk:
    """One queue for each direction of translation."""

    def __init__(self, translators: Sequence[Translator], config: ServiceConfig) -> None:
        self.config = config
        self.batchers = {
            (one.info.source, one.info.target): Batcher(
                one, config.gather, config.batch_sentences, config.queue_sentences
            )
            for one in translators
        }

    def targets(self, source: str) -> list[str]:
        """The languages into which one is translated."""
        return [target for known, target in self.batchers if known == source]

    @property
    def sources(self) -> list[str]:
        """The languages from which is translated."""
        return list(dict.fromkeys(source for source, _ in self.batchers))

    @property
    def languages(self) -> list[str]:
        """All languages, those from which is translated first."""
        return list(dict.fromkeys([*self.sources, *(target for _, target in self.batchers)]))

    def batcher(self, source: str, target: str) -> Batcher:
        """The queue of a direction."""
        if source not in self.sources:
            raise invalid(f"source {source!r} is not one of {', '.join(self.sources)}")
        if (source, target) not in self.batchers:
            raise invalid(f"target {target!r} is not one of {', '.join(self.targets(source))} from {source}")
        return self.batchers[source, target]

    def check_texts(self, texts: Sequence[str]) -> None:
        """Refuse more than the limits allow."""
        config = self.config
        if len(texts) > config.max_texts:
            raise too_much("texts of a request", len(texts), config.max_texts)
        characters = sum(map(len, texts))
        if characters > config.max_characters:
            raise too_much("characters of a request", characters, config.max_characters)

    def search(
        self, batcher: Batcher, beam_size: int | None, n_best: int, attention: bool, format: str = "text"
    ) -> Search:
        """Checked settings; a beam that is too small for so many translations is widened."""
        config = self.config
        if beam_size is not None and beam_size > config.max_beam:
            raise too_much("beam_size", beam_size, config.max_beam)
        if n_best - 1 > config.max_alternatives:
            raise too_much("alternatives", n_best - 1, config.max_alternatives)
        beam = max(beam_size or batcher.translator.info.decode.beam_size, n_best)
        try:
            return batcher.translator.search(beam, n_best, format=format, attention=attention)
        except UserError as error:
            raise invalid(str(error)) from None

    async def plan(self, batcher: Batcher, texts: Sequence[str], format: str = "text") -> list[Plan | MarkupPlan]:
        """Texts cut into sentences, off the event loop."""
        plans = await asyncio.to_thread(lambda: [batcher.translator.plan(text, format) for text in texts])
        sentences = sum(len(plan.sentences) for plan in plans)
        if sentences > self.config.max_sentences:
            raise too_much("sentences of a request", sentences, self.config.max_sentences)
        return plans

    async def translate(
        self, batcher: Batcher, texts: Sequence[str], search: Search, format: str = "text"
    ) -> list[Translation]:
        """Translations of all texts, within the deadline."""
        async with self._within_the_deadline():
            plans = await self.plan(batcher, texts, format)
            sentences = dict.fromkeys(sentence for plan in plans for sentence in plan.sentences)
            translated = await batcher.translate(list(sentences), search)
            return [plan.assemble(translated) for plan in plans]

    async def stream(self, batcher: Batcher, plan: Plan, search: Search) -> AsyncIterator[str | SentenceTranslation]:
        """Parts of a translation as they are done, within the deadline."""
        async with self._within_the_deadline():
            async for part in batcher.stream(plan, search):
                yield part

    @asynccontextmanager
    async def _within_the_deadline(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self.config.deadline):
                yield
        except TimeoutError:
            raise Refusal(504, f"not done within {self.config.deadline:g} s: send less text at once") from None
        except OverloadedError as full:
            raise later(503, "the service is busy", full.retry_after) from None

    async def ready(self) -> bool:
        """Whether every model translates a sentence."""
        for batcher in self.batchers.values():
            search = batcher.translator.search(1, attention=False)
            (done,) = await self.translate(batcher, [PROBE], search)
            if not done.text.strip():
                return False
        return True

    def close(self) -> None:
        """Stop the models."""
        for batcher in self.batchers.values():
            batcher.close()
