"""The service on Ray: two replicas, one of which dies under load."""

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from test_server import free_port, is_ready, translate

from seq2seq import Translator

SCRIPT = Path(__file__).parents[1] / "scripts/ray_serve.py"
needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")


def replicas(mark: str) -> list[int]:
    """Process ids of the replicas that serve with this mark in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            ours = mark.encode() in (path / "environ").read_bytes()
            if ours and b"ray::ServeReplica:" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue
    return found


@needs_ray
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_replica_dies_under_load_and_every_sentence_is_translated(translator: Translator):
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    sentences = [f"Number {n} is the house of my brother." for n in range(200)]
    mark = f"SEQ2SEQ_TEST_OF_RAY_SERVE={port}"
    command = [sys.executable, str(SCRIPT), "--port", str(port)]
    environment = os.environ | dict([mark.split("=")])
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment) as process:
        watchdog = threading.Timer(300, process.kill)
        watchdog.start()
        try:
            while process.poll() is None and not (is_ready(url) and len(replicas(mark)) == 2):
                time.sleep(0.5)
            victim = replicas(mark)[0]

            def ask(sentence: str) -> str:
                for _ in range(20):  # a request that the dead replica had is asked again
                    answer = translate(url, sentence)
                    if answer.status_code == 200:
                        return str(answer.json()["translatedText"])
                    time.sleep(1)
                raise AssertionError(answer.text)

            with ThreadPoolExecutor(16) as pool:
                work = [pool.submit(ask, sentence) for sentence in sentences]
                while sum(one.done() for one in work) < 40:
                    time.sleep(0.05)
                os.kill(victim, signal.SIGKILL)
                found = [one.result() for one in work]
            expected = [result.text for result in translator.translate(sentences, attention=False)]
            assert sum(a != b for a, b in zip(found, expected, strict=True)) <= 1  # a near-tie, at most
            while len(replicas(mark)) < 2:
                time.sleep(0.5)
            assert victim not in replicas(mark)
            assert httpx.get(f"{url}/livez").status_code == 200
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            watchdog.cancel()
            process.kill()


def test_ray_is_asked_for_where_it_is_missing(monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("ray_serve", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "find_spec", lambda name: None)
    assert script.main([]) == 1
    assert capsys.readouterr().err == 'ray_serve: Ray is not installed: pip install ".[ray]"\n'
