"""Requests gathered into batches: everybody's own answer, in fair turns, with a bounded queue."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Sequence
from typing import TypeVar

import pytest

from seq2seq.service.batcher import Batcher, OverloadedError
from seq2seq.translation.plan import Plan
from seq2seq.translation.result import Alternative, SentenceTranslation
from seq2seq.translation.sentences import Piece
from seq2seq.translation.translator import Search

GREEDY, WIDE = Search(1, 1, 1.0, attention=False), Search(5, 1, 1.0, attention=False)
Result = TypeVar("Result")


def translation_of(sentence: str) -> SentenceTranslation:
    text = sentence.upper()
    return SentenceTranslation(sentence, text, 0.0, [], [], [Alternative(text, 0.0)], False, (), ())


class Model:
    """Writes sentences in capitals, once it is let go, and remembers the batches."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.free = threading.Event()
        self.free.set()
        self.threads: set[int] = set()

    def translate_sentences(self, sentences: Sequence[str], search: Search) -> list[SentenceTranslation]:
        assert self.free.wait(10)
        self.threads.add(threading.get_ident())
        self.batches.append(list(sentences))
        if "bad" in sentences:
            raise RuntimeError("the model fell over")
        return [translation_of(sentence) for sentence in sentences]


def plan(*sentences: str) -> Plan:
    parts = [part for sentence in sentences for part in (Piece(sentence, True), Piece(" ", False))]
    return Plan(" ".join(sentences), parts[:-1])


def run(work: Awaitable[Result]) -> Result:
    async def within() -> Result:
        return await asyncio.wait_for(work, 20)

    return asyncio.run(within())


@pytest.fixture
def model() -> Model:
    return Model()


def batcher(model: Model, **options) -> Batcher:
    return Batcher(model, **options)  # type: ignore[arg-type]


def names(*sentences: str) -> list[str]:
    return list(dict.fromkeys(sentences))


def texts(results: Sequence[dict[str, SentenceTranslation]]) -> list[str]:
    return [written(found) for found in results]


def written(found: dict[str, SentenceTranslation]) -> str:
    """Translations of a caller, in its order."""
    assert all(translation.source == sentence for sentence, translation in found.items())
    return " ".join(translation.text for translation in found.values())


def test_many_callers_share_batches_and_each_gets_its_own_answer(model):
    async def work() -> list[str]:
        one = batcher(model, batch_sentences=8)
        asked = [names(f"a{number}", f"b{number}") for number in range(20)]
        return texts(await asyncio.gather(*(one.translate(each, GREEDY) for each in asked)))

    assert run(work()) == [f"A{number} B{number}" for number in range(20)]
    assert [len(batch) for batch in model.batches] == [8] * 5
    assert len(model.threads) == 1
    assert threading.get_ident() not in model.threads


def test_between_two_answers_of_a_batch_the_loop_sees_to_others(model):
    async def work() -> set[int]:
        one, answered, seen = batcher(model, batch_sentences=8), 0, set()

        async def caller(number: int) -> None:
            nonlocal answered
            await one.translate([f"s{number}"], GREEDY)
            answered += 1

        async def other() -> None:
            while answered < 8:
                seen.add(answered)
                await asyncio.sleep(0)

        await asyncio.gather(other(), *map(caller, range(8)))
        return seen

    assert run(work()) == set(range(8))
    assert len(model.batches) == 1


def test_a_text_without_sentences_waits_for_nothing(model):
    async def work() -> str:
        return written(await batcher(model).translate([], GREEDY))

    assert run(work()) == ""
    assert model.batches == []


def test_a_long_text_lets_short_ones_through(model):
    async def work() -> list[str]:
        one, done = batcher(model, batch_sentences=4), []

        async def caller(name: str, *sentences: str) -> None:
            await one.translate(names(*sentences), GREEDY)
            done.append(name)

        await asyncio.gather(caller("long", *(f"s{number}" for number in range(40))), caller("short", "x", "y"))
        return done

    assert run(work()) == ["short", "long"]
    assert {"x", "y"} <= set(model.batches[0])


def test_equal_sentences_are_searched_once_a_batch(model):
    async def work() -> list[str]:
        one = batcher(model)
        return texts(await asyncio.gather(*(one.translate(names("same", "same"), GREEDY) for _ in range(3))))

    assert run(work()) == ["SAME"] * 3
    assert model.batches == [["same"]]


def test_other_settings_are_another_batch(model):
    async def work() -> None:
        one = batcher(model)
        both = one.translate(names("a"), GREEDY), one.translate(names("b"), WIDE), one.translate(names("c"), GREEDY)
        await asyncio.gather(*both)

    run(work())
    assert model.batches == [["a", "c"], ["b"]]


def test_a_full_queue_refuses_at_once_says_how_long_and_recovers(model):
    async def work() -> None:
        one = batcher(model, queue_sentences=3)
        model.free.clear()
        first = asyncio.create_task(one.translate(names("a", "b", "c"), GREEDY))
        await asyncio.sleep(0.05)
        started = time.perf_counter()
        with pytest.raises(OverloadedError) as refused:
            await one.translate(names("d"), GREEDY)
        assert time.perf_counter() - started < 0.05
        assert refused.value.retry_after >= 1
        model.free.set()
        assert written(await first) == "A B C"
        assert written(await one.translate(names("d"), GREEDY)) == "D"
        assert one.waiting == 0

    run(work())


def test_a_text_longer_than_the_queue_is_taken_when_nothing_waits(model):
    async def work() -> str:
        return written(await batcher(model, queue_sentences=2).translate(names("a", "b", "c"), GREEDY))

    assert run(work()) == "A B C"


def test_a_caller_that_leaves_frees_its_place(model):
    async def work() -> None:
        one = batcher(model, batch_sentences=1, queue_sentences=10)
        model.free.clear()
        stays = asyncio.create_task(one.translate(names("a"), GREEDY))
        await asyncio.sleep(0.05)
        leaves = asyncio.create_task(one.translate(names("b", "c", "d"), GREEDY))
        await asyncio.sleep(0.05)
        assert one.waiting == 4
        leaves.cancel()
        await asyncio.sleep(0)
        assert one.waiting == 1
        model.free.set()
        assert written(await stays) == "A"
        with pytest.raises(asyncio.CancelledError):
            await leaves

    run(work())
    assert model.batches == [["a"]]


def test_the_parts_of_a_text_are_streamed_in_order_as_they_are_done(model):
    async def work() -> list[str]:
        one = batcher(model, batch_sentences=1)
        found = []
        async for part in one.stream(plan(*"abcdefgha"), GREEDY):
            found.append((part if isinstance(part, str) else part.text, len(model.batches)))
        return found

    found = run(work())
    assert "".join(text for text, _ in found) == "A B C D E F G H A"
    assert found[0][1] < 4  # long before the last of eight


def test_a_stream_that_is_left_frees_its_place(model):
    async def work() -> int:
        one = batcher(model, batch_sentences=1)
        stream = one.stream(plan("a", "b", "c", "d"), GREEDY)
        await anext(stream)
        await stream.aclose()
        await asyncio.sleep(0.05)
        return one.waiting

    assert run(work()) == 0
    assert len(model.batches) < 4


def test_a_failure_of_the_model_is_told_to_those_in_the_batch_alone(model, caplog):
    async def work() -> str:
        one = batcher(model, batch_sentences=2)
        with pytest.raises(RuntimeError, match="fell over"):
            await one.translate(names("bad", "worse", "worst"), GREEDY)
        return written(await one.translate(names("good"), GREEDY))

    assert run(work()) == "GOOD"
    assert caplog.text == ""


def test_the_loop_stays_free_while_the_model_works(model):
    async def work() -> float:
        one = batcher(model)
        model.free.clear()
        task = asyncio.create_task(one.translate(names("a"), GREEDY))
        await asyncio.sleep(0.02)
        started = time.perf_counter()
        await asyncio.sleep(0)
        passed = time.perf_counter() - started
        model.free.set()
        await task
        return passed

    assert run(work()) < 0.05


def test_closing_finishes_what_is_being_searched(model):
    async def work() -> None:
        one = batcher(model)
        model.free.clear()
        task = asyncio.create_task(one.translate(names("a"), GREEDY))
        await asyncio.sleep(0.02)
        model.free.set()
        one.close()
        task.cancel()

    run(work())
    assert model.batches == [["a"]]
