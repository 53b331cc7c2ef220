"""Clients at once: what is counted, and that another's answer would be noticed."""

import asyncio
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path

import httpx
import pytest

from seq2seq.benchmark import load
from seq2seq.benchmark.load import TITLES, Load, alone, row, run_load, set_near_ties_apart, texts
from seq2seq.benchmark.watch import Seen, watched

SCRIPT = Path(__file__).parents[1] / "scripts/loadtest.py"
SENTENCES = [f"Sentence number {n}." for n in range(60)]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[httpx.Request], httpx.Response]], None]:
    """Put a function in the place of a service."""
    real = httpx.AsyncClient

    def put(handler):
        transport = httpx.MockTransport(handler)
        monkeypatch.setattr(load.httpx, "AsyncClient", lambda **options: real(transport=transport, **options))

    return put


def upper(request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, json={"translatedText": json.loads(request.content)["q"].upper()})


def test_texts_are_mostly_short_and_the_same_for_a_seed():
    made = list(islice(texts(SENTENCES, 3), 1000))
    assert made == list(islice(texts(SENTENCES, 3), 1000))
    lengths = [len(text) for text in made]
    assert 520 < lengths.count(1) < 680
    assert 10 < sum(length >= 20 for length in lengths) < 60


def test_every_answer_is_counted_and_compared(service):
    service(upper)
    expected = asyncio.run(alone("http://service", SENTENCES, ("en", "fr")))
    found = asyncio.run(run_load("http://service", SENTENCES, 4, 30, expected=expected, answers=50))
    assert 50 <= len(found.latencies) < 54
    assert found.sentences >= 50
    assert (found.wrong, found.failed, found.refused) == ([], 0, 0)


def test_an_answer_of_another_is_noticed(service):
    service(lambda request: httpx.Response(200, json={"translatedText": "SENTENCE NUMBER 1."}))
    expected = {sentence: sentence.upper() for sentence in SENTENCES}
    found = asyncio.run(run_load("http://service", SENTENCES, 2, 30, expected=expected, answers=40))
    assert len(found.wrong) >= 35
    text, right, wrong = found.wrong[0]
    assert (text.upper(), wrong) == (right, "SENTENCE NUMBER 1.")


@pytest.mark.parametrize(
    ("found", "wrong", "near_ties"),
    [("UN. DEUX.", 0, 1), ("UN. DEUX!", 0, 1), ("UN. TROIS.", 1, 0), ("UN.", 1, 0), ("DEUX. UN.", 1, 0)],
)
def test_a_translation_that_is_as_probable_is_no_wrong_answer(service, found, wrong, near_ties):
    first = {"score": -0.2, "alternatives": [{"text": "UN.", "score": -0.2}, {"text": "DEUX.", "score": -0.9}]}
    options = [("DEUX.", -0.5), ("DEUX!", -0.50005), ("TROIS.", -0.51)]
    second = {"score": -0.5, "alternatives": [{"text": text, "score": score} for text, score in options]}
    service(lambda request: httpx.Response(200, json={"sentences": [first, second]}))
    load = Load(1, wrong=[("one. two.", "UN. DEUX.", found)])
    asyncio.run(set_near_ties_apart("http://service", load))
    assert (len(load.wrong), load.near_ties) == (wrong, near_ties)


def test_refusals_and_failures_are_no_answers(service):
    statuses = iter([200, 503, 500] + [200] * 100)

    def handler(request: httpx.Request) -> httpx.Response:
        status = next(statuses)
        headers = {"retry-after": "0"} if status == 503 else {}
        return httpx.Response(status, json={"translatedText": ""}, headers=headers)

    service(handler)
    found = asyncio.run(run_load("http://service", SENTENCES, 1, 30, answers=5))
    assert (len(found.latencies), found.refused, found.failed) == (5, 1, 1)


def test_percentiles_are_of_the_answers():
    found = Load(1, seconds=10, latencies=[n / 100 for n in range(1, 101)], sentences=50)
    assert found.percentile(50) == pytest.approx(0.505)
    assert found.percentile(99) == pytest.approx(0.99, abs=0.01)
    assert found.rate == 5
    assert Load(1).percentile(50) == 0


def test_a_row_counts_what_the_watch_saw_as_well():
    cells = dict(zip(TITLES, row(Load(4, failed=1), Seen([0.002, 0.003, 0.08], [2**20, 3 * 2**20], 2)), strict=True))
    assert (cells["clients"], cells["failed"]) == ("4", "3")
    assert (cells["/livez ms, median"], cells["slowest"], cells["memory MB"]) == ("3", "80", "3")
    assert row(Load(1), Seen())[-3:] == ["0", "0", ""]


class _Slow(BaseHTTPRequestHandler):
    """Lives, but says so after a tenth of a second, and the second time it does not."""

    asked = 0

    def do_GET(self) -> None:
        """Called for each request."""
        lives = self.path != "/livez"
        if not lives:
            time.sleep(0.1)
            type(self).asked += 1
            lives = self.asked != 2
        text = b"process_resident_memory_bytes 1.5e+08\n"
        self.send_response(200 if lives else 500)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing."""


def test_a_watch_sees_how_long_a_service_takes_to_say_that_it_lives():
    with ThreadingHTTPServer(("127.0.0.1", 0), _Slow) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with watched(f"http://127.0.0.1:{server.server_port}") as seen:
            time.sleep(1.5)
        server.shutdown()
    assert len(seen.livez) >= 3
    assert all(0.1 <= seconds < 1 for seconds in seen.livez)
    assert seen.failed == 1
    assert set(seen.memory) == {1.5e8}


def test_a_watch_on_nothing_counts_failures():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        with watched(f"http://127.0.0.1:{taken.getsockname()[1]}") as seen:
            time.sleep(0.6)
    assert seen.failed == len(seen.livez) > 0
    assert seen.memory == []


@pytest.mark.slow
def test_the_script_starts_a_service_loads_it_and_checks_every_answer(tmp_path):
    file = tmp_path / "load.json"
    options = ["--clients", "1,8", "--seconds", "5", "--check", "--json", str(file), "--set", "batch_sentences=16"]
    command = [sys.executable, str(SCRIPT), *options, "--", "--engine", "ctranslate2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200)
    one, eight = json.loads(file.read_text(encoding="utf-8"))
    assert len(one["latencies"]) > 5
    assert len(eight["latencies"]) > len(one["latencies"])
    assert one["failed"] == eight["failed"] == 0
    assert len(eight["wrong"]) <= 1  # a near-tie, at most
    assert done.stdout.count("| ") > 10
    assert "8 clients:" in done.stdout


@pytest.mark.slow
def test_overload_is_shed_and_nothing_that_was_accepted_is_lost(tmp_path):
    file = tmp_path / "load.json"
    options = ["--clients", "64,1", "--seconds", "10", "--json", str(file), "--set", "queue_sentences=40"]
    subprocess.run([sys.executable, str(SCRIPT), *options], capture_output=True, text=True, check=True, timeout=200)
    many, one = json.loads(file.read_text(encoding="utf-8"))
    assert many["refused"] > 20
    assert len(many["latencies"]) > 50
    assert many["failed"] == 0
    assert (one["refused"], one["failed"]) == (0, 0)  # it recovers
