"""`seq2seq serve` as a process: an unmodified client, a stop that loses nothing, a worker that dies."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest
from libretranslatepy import LibreTranslateAPI

from seq2seq import Translator
from seq2seq.cli import main

TEXT = "The old man is reading a book."


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def serving(*options: str, **variables: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server that is ready, and its address; it is killed if it has not ended when all tests of it should have."""
    port = free_port()
    command = [sys.executable, "-m", "seq2seq", "serve", "--port", str(port), *options]
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | variables) as process:
        watchdog = threading.Timer(300, process.kill)
        watchdog.start()
        try:
            while process.poll() is None and not is_ready(url):
                time.sleep(0.1)
            yield url, process
        finally:
            watchdog.cancel()
            process.terminate()
            process.wait(30)


def is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=10).status_code == 200
    except httpx.TransportError:
        return False


def translate(url: str, text: str) -> httpx.Response:
    return httpx.post(f"{url}/translate", json={"q": text, "source": "en", "target": "fr"}, timeout=60)


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    with serving() as one:
        yield one


def test_a_client_from_pypi_is_served(server, translator: Translator):
    client = LibreTranslateAPI(server[0])
    assert client.translate(TEXT, "en", "fr") == translator.translate(TEXT, attention=False).text
    assert client.detect("Où est la gare ?")[0]["language"] == "fr"
    assert [one["code"] for one in client.languages()] == ["en", "fr"]


def test_one_process_shows_the_demo_and_its_documentation(server):
    assert "gradio" in httpx.get(server[0]).text
    assert httpx.get(f"{server[0]}/docs").status_code == 200
    assert httpx.get(f"{server[0]}/translate").json() == {"error": "Method Not Allowed"}
    upload = httpx.post(f"{server[0]}/gradio_api/upload", files={"files": ("a.txt", b"x")})
    assert (upload.status_code, upload.json()) == (403, {"error": "this service takes no files"})
    asked = {"Origin": "https://example.org", "Host": "translate.example.com"}
    assert "access-control-allow-origin" not in httpx.get(f"{server[0]}/config", headers=asked).headers


def test_the_service_answers_at_once_while_the_model_works(server):
    text = " ".join(f"Number {n} is the house of my brother." for n in range(300))
    with ThreadPoolExecutor(1) as pool, httpx.Client(base_url=server[0]) as client:
        work = pool.submit(translate, server[0], text)
        seconds = []
        while not work.done():
            started = time.perf_counter()
            assert client.get("/livez").status_code == 200
            seconds.append(time.perf_counter() - started)
            time.sleep(0.02)
        assert work.result().status_code == 200
    assert len(seconds) > 5
    assert sorted(seconds)[len(seconds) // 2] < 0.05, sorted(seconds)
    assert max(seconds) < 1, sorted(seconds)


def waiting(url: str) -> float:
    """Sentences in the queue."""
    found = re.search(r"^seq2seq_queue_sentences (\S+)", httpx.get(f"{url}/metrics").text, re.MULTILINE)
    return float(found[1])


def test_a_client_that_leaves_frees_its_place(server):
    url, port = server[0], int(server[0].rpartition(":")[2])
    text = " ".join(f"Number {n} is the house of my sister." for n in range(700))
    body = json.dumps({"q": text, "source": "en", "target": "fr"})
    headers = f"Host: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(f"POST /translate HTTP/1.1\r\n{headers}{body}".encode())
        while waiting(url) < 300:
            time.sleep(0.01)
    end = time.perf_counter() + 10
    while waiting(url) > 48 and time.perf_counter() < end:  # but for the batch that is being searched
        time.sleep(0.01)
    assert waiting(url) <= 48
    assert translate(url, TEXT).status_code == 200


def test_a_server_that_is_asked_to_stop_finishes_what_it_has_begun():
    text = " ".join(f"Number {n} is the house of my brother." for n in range(100))
    with serving() as (url, process), ThreadPoolExecutor(1) as pool:
        asked = {"text": text, "stream": True}
        heartbeat = httpx.stream("GET", f"{url}/gradio_api/heartbeat/a-session")  # as every open page has one
        streamed = httpx.stream("POST", f"{url}/v1/translate", json=asked, timeout=60)
        with heartbeat, streamed as answer:
            work = pool.submit(translate, url, text)
            lines = answer.iter_lines()
            next(lines)
            while waiting(url) < 110 and not work.done():  # both have been taken
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            events = [line for line in lines if line.startswith("event: ")]
            assert work.result().status_code == 200
        assert work.result().json()["translatedText"].count("frère") > 60
        assert events[-1] == "event: end"
        assert events.count("event: sentence") >= 99
        assert process.wait(30) == 0
        assert process.stderr.read().strip().splitlines() == [f"serving at {url} (Ctrl+C ends it)"]
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{url}/livez")


def children(parent: int) -> list[int]:
    found = subprocess.run(
        ["ps", "-ww", "-o", "pid=", "-o", "args=", "--ppid", str(parent)], capture_output=True, text=True, check=True
    )
    return [int(line.split()[0]) for line in found.stdout.splitlines() if "spawn_main" in line]


@pytest.mark.skipif(sys.platform != "linux", reason="ps of Linux")
def test_a_worker_that_dies_is_replaced_and_no_key_is_told():
    with serving("--workers", "2", SEQ2SEQ_API_KEYS="secretkey another-key") as (url, process):
        assert "<title>seq2seq</title>" in httpx.get(url).text
        assert translate(url, TEXT).status_code == 403
        body = {"q": TEXT, "source": "en", "target": "fr", "api_key": "secretkey"}
        before = children(process.pid)
        assert len(before) == 2
        os.kill(before[0], signal.SIGKILL)
        deadline = time.time() + 60
        while len(set(children(process.pid)) - set(before)) == 0 and time.time() < deadline:
            time.sleep(0.1)
        while not is_ready(url) and time.time() < deadline:
            time.sleep(0.1)
        assert httpx.post(f"{url}/translate", json=body, timeout=60).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert "secretkey" not in process.stderr.read()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workers", "0"], "--workers 0 is not 1 or more"),
        (["--port", "99999"], "port 99999 on 127.0.0.1 cannot be used"),
        (["--model", "en-fr", "--model", "en-fr"], "two models translate en-fr: name one for each direction"),
        (["--config", "keys.toml"], "keys.toml: api_keys: Input should be a valid list"),
        (["--config", "origin.toml"], "origin.toml: allow_origins.0 = 'example.org': String should match pattern"),
        (["--config", "terms.toml", "--workers", "2"], "glossary missing.tsv does not exist"),
        (["--config", "short.toml"], "short.toml: api_keys.0: String should have at least 8 characters"),
        (["--config", "missing.toml"], "--config missing.toml does not exist"),
    ],
)
def test_a_mistake_is_told_in_one_line_without_a_key(capsys, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "keys.toml").write_text('api_keys = "a-secret-key"', encoding="utf-8")
    (tmp_path / "short.toml").write_text('api_keys = ["secret"]', encoding="utf-8")
    (tmp_path / "origin.toml").write_text('allow_origins = ["example.org"]', encoding="utf-8")
    (tmp_path / "terms.toml").write_text('glossary = "missing.tsv"', encoding="utf-8")
    assert main(["serve", *options]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert "secret" not in error
