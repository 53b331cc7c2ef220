"""Clients that all ask a service at once: how much it does, how long each waits, whether each gets its own answer."""

import asyncio
import random
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any

import httpx

from seq2seq.benchmark.watch import Seen

LENGTHS = ((0.60, 1, 1), (0.25, 2, 4), (0.12, 5, 12), (0.03, 20, 40))  # share of texts, sentences from, to
PATIENCE = 120.0  # seconds that a client waits for an answer
EQUAL = 1e-4  # of scores, nats a piece: what the products of float32 differ by with the batch, and more
N_BEST = 5  # translations of a sentence among which an equal one is looked for
MEGABYTE = 2**20


@dataclass
class Load:
    """What became of the requests of one run."""

    clients: int
    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)  # of requests that were answered, in seconds
    sentences: int = 0
    refused: int = 0  # 503 and 429, with a time to come back
    failed: int = 0  # anything else that is no answer
    wrong: list[tuple[str, str, str]] = field(default_factory=list)  # text, expected, found
    near_ties: int = 0  # answers that are another translation than expected, but one that is as probable

    def percentile(self, percent: int) -> float:
        """Seconds within which so many percent of the answers came."""
        if len(self.latencies) < 2:
            return self.latencies[0] if self.latencies else 0.0
        return quantiles(self.latencies, n=100, method="inclusive")[percent - 1]

    @property
    def rate(self) -> float:
        """Sentences a second."""
        return self.sentences / self.seconds if self.seconds else 0.0


def texts(sentences: Sequence[str], seed: int) -> Iterator[list[str]]:
    """Texts without end, as lists of their sentences: most are short, a few long."""
    chance = random.Random(seed)
    shares = [share for share, _, _ in LENGTHS]
    while True:
        ((_, low, high),) = chance.choices(LENGTHS, shares)
        yield chance.sample(sentences, min(chance.randint(low, high), len(sentences)))


async def ask(client: httpx.AsyncClient, text: str, direction: tuple[str, str]) -> httpx.Response:
    """One request."""
    source, target = direction
    return await client.post("/translate", json={"q": text, "source": source, "target": target})


async def alone(url: str, sentences: Sequence[str], direction: tuple[str, str]) -> dict[str, str]:
    """The translation of each sentence when nothing else is asked."""
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        found = {}
        for sentence in sentences:
            answer = await ask(client, sentence, direction)
            answer.raise_for_status()
            found[sentence] = answer.json()["translatedText"]
    return found


async def run_load(
    url: str,
    sentences: Sequence[str],
    clients: int,
    seconds: float,
    direction: tuple[str, str] = ("en", "fr"),
    expected: Mapping[str, str] | None = None,
    answers: int | None = None,
    seed: int = 1,
) -> Load:
    """So many clients, each with one request at a time, for some seconds or until so many answers.

    With `expected`, each answer is compared with its sentences' translations when they were asked alone.
    """
    load = Load(clients)
    started = time.perf_counter()
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE, limits=limits) as client:
        end = started + seconds

        async def one(number: int) -> None:
            for parts in texts(sentences, seed * 10_000 + number):
                if time.perf_counter() >= end or (answers and len(load.latencies) >= answers):
                    return
                await _ask_and_note(client, parts, direction, expected, load)

        await asyncio.gather(*(one(number) for number in range(clients)))
        load.seconds = time.perf_counter() - started
    return load


async def _ask_and_note(
    client: httpx.AsyncClient,
    parts: list[str],
    direction: tuple[str, str],
    expected: Mapping[str, str] | None,
    load: Load,
) -> None:
    started = time.perf_counter()
    try:
        answer = await ask(client, " ".join(parts), direction)
    except httpx.TransportError:
        load.failed += 1
        return
    if answer.status_code in (429, 503) and "retry-after" in answer.headers:
        load.refused += 1
        await asyncio.sleep(min(1.0, float(answer.headers["retry-after"])))
        return
    if answer.status_code != 200:
        load.failed += 1
        return
    load.latencies.append(time.perf_counter() - started)
    load.sentences += len(parts)
    if expected is not None:
        found = answer.json()["translatedText"]
        if found != " ".join(expected[part] for part in parts):
            load.wrong.append((" ".join(parts), " ".join(expected[part] for part in parts), found))


async def set_near_ties_apart(url: str, load: Load, direction: tuple[str, str] = ("en", "fr")) -> None:
    """Of what is wrong: where two translations are as probable, float32 decides by the batch."""
    source, target = direction
    wrong, load.wrong = load.wrong, []
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        for text, expected, found in wrong:
            asked = {"text": text, "source": source, "target": target, "n_best": N_BEST}
            answer = await client.post("/v1/translate", json=asked)
            if _is_of_equals(answer.raise_for_status().json()["sentences"], found):
                load.near_ties += 1
            else:
                load.wrong.append((text, expected, found))


def _is_of_equals(sentences: Sequence[Mapping[str, Any]], found: str) -> bool:
    """Whether a text consists of a translation of each sentence that is as probable as the best one."""
    options = [
        [one["text"] for one in sentence["alternatives"] if one["score"] >= sentence["score"] - EQUAL]
        for sentence in sentences
    ]
    pattern = " ".join(f"(?:{'|'.join(map(re.escape, texts))})" for texts in options)
    return re.fullmatch(pattern, found) is not None


def row(load: Load, seen: Seen) -> list[str]:
    """A row of the table whose titles are TITLES."""
    waits = [f"{load.percentile(percent):.2f}" for percent in (50, 95, 99)]
    memory = f"{seen.memory[-1] / MEGABYTE:,.0f}" if seen.memory else ""
    livez = [f"{1000 * seconds:.0f}" for seconds in (median(seen.livez or [0.0]), max(seen.livez, default=0.0))]
    counts = [f"{len(load.latencies):,}", f"{load.refused:,}", f"{load.failed + seen.failed:,}"]
    return [str(load.clients), f"{load.rate:.1f}", *waits, *counts, *livez, memory]


TITLES = (
    "clients",
    "sentences/s",
    "p50 s",
    "p95 s",
    "p99 s",
    "answers",
    "refused",
    "failed",
    "/livez ms, median",
    "slowest",
    "memory MB",
)
