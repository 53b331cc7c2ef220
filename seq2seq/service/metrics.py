"""Numbers for Prometheus. No text, address or key is in a label."""

import time
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seq2seq.service.batcher import Batcher
from seq2seq.translation.result import SentenceTranslation

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SIZES = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """What is counted in one process."""

    def __init__(self, batchers: Iterable[Batcher]) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.seconds = Histogram(
            "seq2seq_request_seconds", "Time to answer", ["door", "status"], buckets=SECONDS, registry=self.registry
        )
        self.refusals = Counter("seq2seq_refusals", "Requests refused", ["status"], registry=self.registry)
        self.characters = Counter("seq2seq_characters", "Characters translated", registry=self.registry)
        self.tokens = Counter("seq2seq_tokens", "Target tokens written", registry=self.registry)
        self.batch_sentences = Histogram(
            "seq2seq_batch_sentences", "Sentences searched together", buckets=SIZES, registry=self.registry
        )
        batchers = list(batchers)
        self.registry.register(_Queue(batchers))
        for batcher in batchers:
            batcher.on_batch = self.count

    def count(self, found: Sequence[SentenceTranslation]) -> None:
        """Note a batch."""
        self.batch_sentences.observe(len(found))
        self.characters.inc(sum(len(sentence.source) for sentence in found))
        self.tokens.inc(sum(len(sentence.target_tokens) for sentence in found))


class _Queue(Collector):
    """Sentences that wait, asked when somebody looks."""

    def __init__(self, batchers: list[Batcher]) -> None:
        self.batchers = batchers

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The sum over all models."""
        waiting = sum(batcher.waiting for batcher in self.batchers)
        yield GaugeMetricFamily("seq2seq_queue_sentences", "Sentences queued or searched", value=waiting)


class Timed:
    """Times every answer of a door; what is no door is not told apart, so that labels stay few."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Note status and time."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noted)
        finally:
            door = getattr(scope.get("route"), "path", "other")
            self.metrics.seconds.labels(door, str(status)).observe(time.perf_counter() - started)
            if status >= 400:
                self.metrics.refusals.labels(str(status)).inc()
