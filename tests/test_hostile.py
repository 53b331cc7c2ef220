"""Bodies that mean harm, and whatever the service's own description allows: no failure, no waiting, no growth."""

import gzip
import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import schemathesis
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error

from seq2seq import Translator
from seq2seq.service.app import create_app
from seq2seq.service.settings import ServiceConfig

DOORS = ("/translate", "/detect", "/v1/translate", "/v1/attention", "/translate_file")
KINDS = (
    "application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "multipart/form-data",
    "multipart/form-data; boundary=x; charset=punycode",
    "multipart/form-data; boundary=x; charset=utf-7",
    "application/json; charset=utf-16",
    "text/plain",
    "\xe9",
    "",
)
WORDS = (
    "hello",
    "é",
    "日本",
    "\u202e",
    "😀",
    "<b>",
    "</b>",
    "{name}",
    "%s",
    "€5",
    "\x00",
    "\\ud800",
    "\n",
    "  ",
    "&lt;",
)
VALUES = (None, True, -1, 0, 10**40, 1e308, "", "x", [], ["a", None], {}, {"a": {}}, "en", "fr", "auto", "html")
NAMES = ("q", "text", "source", "target", "format", "alternatives", "beam_size", "n_best", "stream", "api_key", "zz")
# A form that is cut short leaves a small file in memory to the garbage collector, which closes it.
cut_short = pytest.mark.filterwarnings("ignore:.*SpooledTemporaryFile")
LIMITS = ServiceConfig(max_characters=2_000, max_sentences=50, max_beam=4, files=True)


@pytest.fixture(scope="module")
def app(translator: Translator, tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    return create_app([translator], LIMITS, folder=tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def random_bytes(chance: random.Random) -> bytes:
    return chance.randbytes(chance.randrange(200))


def odd_json(chance: random.Random) -> bytes:
    body = {chance.choice(NAMES): chance.choice(VALUES) for _ in range(chance.randrange(8))}
    for name in ("q", "text"):
        if chance.random() < 0.7:
            body[name] = "".join(chance.choices(WORDS, k=chance.randrange(12)))
    body |= {"source": "en", "target": "fr"} if chance.random() < 0.7 else {}
    return (
        json.dumps(body, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass").replace(b"\\\\u", b"\\u")
    )


def deep_json(chance: random.Random) -> bytes:
    depth = chance.choice((10, 1_000, 100_000))
    return b'{"q":' + b"[" * depth + b"]" * depth + b',"source":"en","target":"fr"}'


def broken_json(chance: random.Random) -> bytes:
    body = bytearray(odd_json(chance))
    for _ in range(chance.randrange(1, 4)):
        body.insert(chance.randrange(len(body)), chance.randrange(256))
    return bytes(body)


def large_number(chance: random.Random) -> bytes:
    number = chance.choice((b"9" * 5_000, b"1e999", b"-1e-999", b"NaN", b"0x10", b"1_000"))
    return b'{"q":"a","source":"en","target":"fr","alternatives":' + number + b"}"


def form(chance: random.Random) -> bytes:
    return b"&".join(
        chance.choice(NAMES).encode()
        + b"="
        + chance.choice((b"%ff", b"%00", b"a", b"%ud800", b"+", chance.randbytes(3)))
        for _ in range(chance.randrange(10))
    )


def parts(chance: random.Random) -> bytes:
    head = chance.choice(
        (b'form-data; name="file"; filename="../a.txt"', b'form-data; name="q"', b"attachment", b"\xff")
    )
    body = chance.choice((b"text", b"\xff\xfe", b"", b"\x00" * 50))
    end = chance.choice((b"--x--", b"--x", b"", b"\r\n--x--\r\n"))
    return b"--x\r\nContent-Disposition: " + head + b"\r\n\r\n" + body + b"\r\n" + end


def zipped(chance: random.Random) -> bytes:
    return gzip.compress(b"0" * 10**6)


MAKERS: tuple[Callable[[random.Random], bytes], ...] = (
    random_bytes, odd_json, odd_json, odd_json, deep_json, broken_json, large_number, form, parts, zipped,
)  # fmt: skip


def attack(client: TestClient, count: int, seed: int) -> list[float]:
    """Send so many bodies; how long each took."""
    chance, seconds = random.Random(seed), []
    for _ in range(count):
        door, maker = chance.choice(DOORS), chance.choice(MAKERS)
        body = maker(chance)
        headers = {"content-type": chance.choice(KINDS)}
        if maker is zipped or chance.random() < 0.02:
            headers["content-encoding"] = chance.choice(("gzip", "br", "identity"))
        started = time.perf_counter()
        answer = client.post(
            door, content=body, headers=[(k.encode(), v.encode("latin-1")) for k, v in headers.items()]
        )
        seconds.append(time.perf_counter() - started)
        assert answer.status_code < 500, (door, headers, body[:300])
        assert answer.status_code == 200 or set(answer.json()) == {"error"}, (door, headers, body[:300])
    return seconds


def resident() -> int:
    """Bytes of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


@cut_short
def test_hostile_bodies_are_answered(client):
    assert max(attack(client, 400, seed=1)) < 10


@cut_short
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read in /proc")
def test_ten_thousand_hostile_bodies_leave_nothing_behind(client):
    attack(client, 1_000, seed=2)
    before = resident()
    assert max(attack(client, 10_000, seed=3)) < 10
    assert resident() - before < 100 * 2**20


def test_whatever_the_description_allows_is_answered(app):
    assert _try_the_description(app, 8) >= 10


@pytest.mark.slow
def test_much_of_what_the_description_allows_is_answered(app):
    assert _try_the_description(app, 500) >= 10


def _try_the_description(app: FastAPI, examples: int) -> int:
    """Send so many requests of every kind that is described; how many kinds there are."""
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    operations = [result.ok() for result in schema.get_all_operations()]
    for operation in operations:

        @settings(max_examples=examples, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
        @given(operation.as_strategy())
        def try_it(case: schemathesis.Case) -> None:
            case.call_and_validate(checks=[not_a_server_error])

        try_it()
    return len(operations)
