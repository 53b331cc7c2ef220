"""Requests of many callers gathered into batches for one model. Knows no HTTP.

A request is a text cut into sentences, and its sentences wait by themselves: a long text neither fills a batch alone
nor waits as one block, and sentences of a like length are searched together. What comes out for a sentence does not
depend on the batch that it was in.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from seq2seq.translation.plan import Plan
from seq2seq.translation.result import SentenceTranslation
from seq2seq.translation.translator import Search, Translator

GATHER = 0.004  # seconds that an idle model waits for company before it takes the first sentence
BATCH_SENTENCES = 48
BATCH_CHARACTERS = 4_000  # of all sentences of a batch; one longer sentence is a batch of its own
QUEUE_SENTENCES = 2_000
CANDIDATES = 4  # batches' worth of sentences among which those of a like length are chosen
LIKE = 16  # characters by which sentences differ and still count as of one length
RATE = 0.2  # weight of the newest batch in the mean of sentences a second


class OverloadedError(Exception):
    """There is no room in the queue; the sentences that wait are done in about `retry_after` seconds."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"the queue is full; it is done in about {retry_after:.0f} s")
        self.retry_after = retry_after


@dataclass(eq=False)
class Waiting:
    """What a caller waits for: sentences that are not begun, and a future for each of all."""

    search: Search
    futures: dict[str, "asyncio.Future[SentenceTranslation]"]
    left: dict[str, None] = field(default_factory=dict)  # in order


class Batcher:
    """One model and its queue. To be used from one event loop; the model runs in a thread beside it."""

    def __init__(
        self,
        translator: Translator,
        gather: float = GATHER,
        batch_sentences: int = BATCH_SENTENCES,
        queue_sentences: int = QUEUE_SENTENCES,
    ) -> None:
        self.translator = translator
        self.on_batch: Callable[[Sequence[SentenceTranslation]], None] = lambda found: None  # called after each batch
        self._gather, self._batch_sentences, self._queue_sentences = gather, batch_sentences, queue_sentences
        self._queue: deque[Waiting] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._worker: asyncio.Task[None] | None = None
        self._handing_out: set[asyncio.Task[None]] = set()
        self._in_flight = 0
        self._rate = 20.0  # sentences a second, to begin with
        self.last_success = -math.inf  # by time.monotonic(), when a batch was done

    @property
    def waiting(self) -> int:
        """Sentences that are queued or being searched."""
        return sum(len(request.left) for request in self._queue) + self._in_flight

    def check_room(self, sentences: int = 1) -> None:
        """OverloadedError if so many more find no room."""
        waiting = self.waiting
        if waiting and waiting + sentences > self._queue_sentences:
            raise OverloadedError(retry_after=max(1.0, waiting / self._rate))

    async def translate(self, sentences: Sequence[str], search: Search) -> dict[str, SentenceTranslation]:
        """Sentences of plans; OverloadedError if they find no room. A cancelled caller leaves the queue."""
        with self._queued(sentences, search) as futures:
            return {sentence: await future for sentence, future in futures.items()}

    async def stream(self, plan: Plan, search: Search) -> AsyncGenerator[str | SentenceTranslation]:
        """The parts of a translation in the order of the text, each as soon as it and all before it are there."""
        with self._queued(plan.sentences, search) as futures:
            for part in plan.parts:
                if part.translatable:
                    yield await futures[part.text]
                else:
                    yield part.text

    def close(self) -> None:
        """Stop; what is being searched is finished, what waits is not begun."""
        if self._worker is not None:
            self._worker.cancel()
        self._thread.shutdown(wait=True)

    @contextmanager
    def _queued(
        self, sentences: Sequence[str], search: Search
    ) -> Iterator[dict[str, "asyncio.Future[SentenceTranslation]"]]:
        """A place in the queue for as long as the caller stays."""
        self.check_room(len(sentences))
        loop = asyncio.get_running_loop()
        futures = {sentence: loop.create_future() for sentence in sentences}
        request = Waiting(search, futures, dict.fromkeys(sentences))
        if sentences:
            self._queue.append(request)
            self._wake()
        try:
            yield futures
        finally:
            request.left.clear()
            for future in futures.values():
                if not future.cancel() and not future.cancelled():
                    future.exception()  # looked at, or asyncio complains that nobody did

    def _wake(self) -> None:
        if self._worker is None or self._worker.done():
            self._worker = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        """Batch after batch until nothing waits."""
        await asyncio.sleep(self._gather)
        while batch := self._next_batch():
            await self._run(batch)

    def _next_batch(self) -> list[tuple[Waiting, str]]:
        """Sentences of a like length, among them that which has waited longest, all to be searched in its way."""
        self._queue = deque(request for request in self._queue if request.left)
        if not self._queue:
            return []
        oldest = self._queue[0]
        candidates = list(islice(self._in_turn(oldest.search), CANDIDATES * self._batch_sentences))
        length = len(candidates[0][1])
        alike = sorted(candidates[1:], key=lambda one: abs(len(one[1]) - length) // LIKE)  # stable: else in turn
        batch = candidates[:1]
        for request, sentence in alike[: self._batch_sentences - 1]:
            length += len(sentence)
            if length > BATCH_CHARACTERS:
                break
            batch.append((request, sentence))
        for request, sentence in batch:
            del request.left[sentence]
        served = {id(request) for request, _ in batch}
        self._queue = deque(sorted(self._queue, key=lambda request: id(request) in served))  # they wait at the back
        return batch

    def _in_turn(self, search: Search) -> Iterator[tuple[Waiting, str]]:
        """A sentence of each who waits and searches in this way, again and again: the order that is fair."""
        turn = deque((request, iter(request.left)) for request in self._queue if request.search == search)
        while turn:
            request, sentences = turn.popleft()
            if (sentence := next(sentences, None)) is not None:
                yield request, sentence
                turn.append((request, sentences))

    async def _run(self, batch: Sequence[tuple[Waiting, str]]) -> None:
        """Search a batch in the thread and hand out what it found, or why it found nothing."""
        sentences = list(dict.fromkeys(sentence for _, sentence in batch))
        self._in_flight = len(sentences)
        started = time.perf_counter()
        loop = asyncio.get_running_loop()
        try:
            work = partial(self.translator.translate_sentences, sentences, batch[0][0].search)
            found = dict(zip(sentences, await loop.run_in_executor(self._thread, work), strict=True))
        except Exception as error:
            for request, sentence in batch:
                if not request.futures[sentence].done():
                    request.futures[sentence].set_exception(error)
            return
        finally:
            self._in_flight = 0
        self.last_success = time.monotonic()
        with suppress(Exception):
            self.on_batch(list(found.values()))
        self._rate += RATE * (len(sentences) / (time.perf_counter() - started) - self._rate)
        handing_out = asyncio.create_task(self._hand_out(batch, found))
        self._handing_out.add(handing_out)
        handing_out.add_done_callback(self._handing_out.discard)

    async def _hand_out(self, batch: Sequence[tuple[Waiting, str]], found: Mapping[str, SentenceTranslation]) -> None:
        """One sentence after the other, beside the next batch: in between the loop sees to whoever else asks."""
        for request, sentence in batch:
            if not request.futures[sentence].done():
                request.futures[sentence].set_result(found[sentence])
                await asyncio.sleep(0)
