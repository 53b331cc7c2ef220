"""What all doors of the service share: its models, what may be asked of them, and the way to their queues."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import TypeVar

from seq2seq.errors import UserError
from seq2seq.service.batcher import Batcher, OverloadedError
from seq2seq.service.refusal import Refusal, invalid, later, too_much
from seq2seq.service.settings import ServiceConfig
from seq2seq.translation.glossary import Glossary, read_glossary
from seq2seq.translation.markup import MarkupPlan
from seq2seq.translation.plan import Plan
from seq2seq.translation.result import SentenceTranslation, Translation
from seq2seq.translation.translator import Search, Translator

Result = TypeVar("Result")
PROBE = "The sun is shining."
FRESH = 5.0  # seconds for which a translation that succeeded says that the models are ready


def read_glossaries(config: ServiceConfig, directions: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Glossary]:
    """The glossary of each direction that has one."""
    named, names = config.glossary, ["-".join(direction) for direction in directions]
    if isinstance(named, str):
        if named and len(names) > 1:
            table = ", ".join(f'{name} = "FILE"' for name in names)
            raise UserError(f"glossary {named}: of which direction? As a table: glossary = {{ {table} }}")
        named = dict.fromkeys(names, named) if named else {}
    if unknown := [name for name in named if name not in names]:
        raise UserError(f"glossary: {unknown[0]!r} is not one of the directions {', '.join(names)}")
    read = {name: glossary for name, path in named.items() if (glossary := read_glossary(Path(path)))}
    return {direction: read[name] for direction, name in zip(directions, names, strict=True) if name in read}


def busy(full: OverloadedError) -> Refusal:
    """503: there is no room."""
    return later(503, "the service is busy", full.retry_after)


class Desk:
    """One queue for each direction of translation."""

    def __init__(self, translators: Sequence[Translator], config: ServiceConfig) -> None:
        self.config = config
        self._glossaries = read_glossaries(config, [(one.info.source, one.info.target) for one in translators])
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
        source, target = self.known(source), self.known(target)
        if source not in self.sources:
            raise invalid(f"source {source!r} is not one of {', '.join(self.sources)}")
        if (source, target) not in self.batchers:
            raise invalid(f"target {target!r} is not one of {', '.join(self.targets(source))} from {source}")
        return self.batchers[source, target]

    def known(self, code: str) -> str:
        """A language as it is called here: `EN` and `en-GB` are `en`."""
        return code if code in self.languages else code.lower().partition("-")[0]

    def check_texts(self, texts: Sequence[str]) -> None:
        """Refuse more than the limits allow."""
        config = self.config
        if len(texts) > config.max_texts:
            raise too_much("texts of a request", len(texts), config.max_texts)
        characters = sum(map(len, texts))
        if characters > config.max_characters:
            raise too_much("characters of a request", characters, config.max_characters)

    def search(
        self,
        batcher: Batcher,
        beam_size: int | None,
        n_best: int,
        attention: bool,
        format: str = "text",
        glossary: Mapping[str, str] | None = None,
        confidence: bool = False,
    ) -> Search:
        """Checked settings; a beam that is too small for so many translations is widened."""
        config, info = self.config, batcher.translator.info
        if beam_size is not None and beam_size > config.max_beam:
            raise too_much("beam_size", beam_size, config.max_beam)
        if n_best - 1 > config.max_alternatives:
            raise too_much("alternatives", n_best - 1, config.max_alternatives)
        if n_best > config.max_beam:
            raise too_much("n_best, which needs as wide a beam", n_best, config.max_beam)
        beam = max(beam_size or min(info.decode.beam_size, config.max_beam), n_best)
        terms = self._glossaries.get((info.source, info.target))
        try:
            if own := Glossary.of(glossary or None):
                terms = terms.updated(own) if terms else own
            return batcher.translator.search(
                beam, n_best, format=format, attention=attention, glossary=terms, confidence=confidence
            )
        except UserError as error:
            raise invalid(str(error)) from None

    async def plan(self, batcher: Batcher, texts: Sequence[str], format: str = "text") -> list[Plan | MarkupPlan]:
        """Texts cut into sentences; OverloadedError where even one would find no room."""
        batcher.check_room()
        try:
            plans = await asyncio.to_thread(lambda: [batcher.translator.plan(text, format) for text in texts])
        except UserError as error:
            raise invalid(str(error)) from None
        sentences = sum(plan.size for plan in plans)
        if sentences > self.config.max_sentences:
            raise too_much("sentences of a request", sentences, self.config.max_sentences)
        return plans

    async def translate(
        self,
        batcher: Batcher,
        texts: Sequence[str],
        search: Search,
        told: Callable[[Translation], Result],
        format: str = "text",
        end: float | None = None,
    ) -> list[Result]:
        """What is told of the translations of all texts, within the deadline. Telling, too, is off the event loop."""
        async with self._until(end or self.deadline()):
            return await self._translate(batcher, await self.plan(batcher, texts, format), search, told)

    async def _translate(
        self,
        batcher: Batcher,
        plans: Sequence[Plan | MarkupPlan],
        search: Search,
        told: Callable[[Translation], Result],
    ) -> list[Result]:
        sentences = await asyncio.to_thread(lambda: dict.fromkeys(name for plan in plans for name in plan.sentences))
        translated = await batcher.translate(list(sentences), search)
        return await asyncio.to_thread(lambda: [told(plan.assemble(translated)) for plan in plans])

    async def attention(
        self, batcher: Batcher, texts: Sequence[str], search: Search, told: Callable[[Translation], Result]
    ) -> list[Result]:
        """As translate, of texts of one sentence each, and not of many: a map is large."""
        if len(texts) > self.config.max_maps:
            raise too_much("texts whose attention is asked", len(texts), self.config.max_maps)
        async with self._until(self.deadline()):
            plans = await self.plan(batcher, texts)
            for plan in plans:
                if plan.size != 1:
                    raise invalid(f"attention is of one sentence, the text has {plan.size} to translate")
            return await self._translate(batcher, plans, search, told)

    async def stream(self, batcher: Batcher, text: str, search: Search) -> AsyncGenerator[str | SentenceTranslation]:
        """Parts of a translation as they are done, all within the deadline."""
        end = self.deadline()
        async with self._until(end):
            (plan,) = await self.plan(batcher, [text])
        assert isinstance(plan, Plan)  # of plain text
        async with aclosing(batcher.stream(plan, search)) as parts:
            while True:
                async with self._until(end):  # around each wait: tasks may take turns with a generator
                    part = await anext(parts, None)
                if part is None:
                    return
                yield part

    def deadline(self) -> float:
        """When a request that comes now is given up, by the loop's clock."""
        return asyncio.get_running_loop().time() + self.config.deadline

    @asynccontextmanager
    async def _until(self, end: float) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout_at(end):
                yield
        except TimeoutError:
            raise Refusal(504, f"not done within {self.config.deadline:g} s: send less text at once") from None
        except OverloadedError as full:
            raise busy(full) from None

    async def ready(self) -> bool:
        """Whether every model has just translated, or does so when asked."""
        for batcher in self.batchers.values():
            if time.monotonic() - batcher.last_success < FRESH:
                continue
            search = batcher.translator.search(1, attention=False)
            (text,) = await self.translate(batcher, [PROBE], search, lambda done: done.text)
            if not text.strip():
                return False
        return True

    def close(self) -> None:
        """Stop the models."""
        for batcher in self.batchers.values():
            batcher.close()
