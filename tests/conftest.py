"""Fixtures that several test modules share."""

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch
from benchmarks import Here
from fastapi.testclient import TestClient
from hypothesis import settings
from small import tiny_recipe, write_corpus
from trainings import UPDATES, small_and_quiet

from seq2seq import Translator
from seq2seq.benchmark import comparisons, rounds
from seq2seq.config import Recipe
from seq2seq.folder import BUNDLED, PRETRAINED
from seq2seq.service.app import create_app
from seq2seq.service.settings import ServiceConfig
from seq2seq.training.loop import train
from seq2seq.translation.conversion import export

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared"

# The same examples in every run, no clock, nothing left on disk.
settings.register_profile("repository", derandomize=True, deadline=None, database=None, max_examples=100)
settings.load_profile("repository")


@pytest.fixture(scope="session")
def translator() -> Translator:
    """The bundled English-French model."""
    return Translator.from_pretrained()


@pytest.fixture(scope="session")
def fast() -> Translator:
    """The same by CTranslate2, converted as it is loaded."""
    return Translator.from_pretrained(engine="ctranslate2")


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as `seq2seq export` writes it."""
    folder = tmp_path_factory.mktemp("exported") / "fast"
    export(PRETRAINED / BUNDLED, folder)
    return folder


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The mirror of the public corpora, where there is one."""
    folder = Path(os.environ.get("SEQ2SEQ_DATA") or SHARED / "data")
    if not (folder / "tatoeba/fra-eng.zip").is_file():
        pytest.skip(f"no Tatoeba in {folder}")
    return folder


@pytest.fixture
def no_net(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Refuse every connection; the list that is returned fills with the attempts."""
    attempts: list[str] = []

    def refuse(*address: object) -> NoReturn:
        attempts.append(repr(address))
        raise OSError("the net is closed")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return attempts


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sixty pairs as files."""
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def recipe(corpus: Path) -> Recipe:
    """A recipe over them that runs in a second."""
    return tiny_recipe(corpus, updates=UPDATES)


@pytest.fixture
def quiet() -> Iterator[None]:
    """Trainings are small and say little."""
    with small_and_quiet():
        yield


@pytest.fixture(scope="session")
def unbroken(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("runs") / "unbroken"
    with small_and_quiet():
        train(recipe, folder)
    return folder


@pytest.fixture
def one_loaded_model(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bundled model is loaded once for all tests; any other name is loaded as ever."""
    load = Translator.from_pretrained

    def from_pretrained(
        name: str | None = None,
        engine: str = "torch",
        precision: str | None = None,
        ensemble: Sequence[str] = (),
        rerank: str | None = None,
    ) -> Translator:
        bundled = (name, engine, precision, *ensemble, rerank) == (None, "torch", None, None)
        return translator if bundled else load(name, engine, precision, ensemble, rerank)

    monkeypatch.setattr(Translator, "from_pretrained", from_pretrained)


@pytest.fixture
def restless(monkeypatch: pytest.MonkeyPatch) -> None:
    """The benchmark does not wait before a turn."""
    monkeypatch.setattr(rounds, "SETTLE", 0)


@pytest.fixture
def here(restless: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The benchmark's workers are in this process: a torch that is imported once."""
    monkeypatch.setattr(comparisons, "Worker", Here)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def client(translator: Translator) -> Iterator[TestClient]:
    """A client of the service over the bundled model."""
    with TestClient(create_app([translator]), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def limited(translator: Translator) -> Iterator[Callable[..., TestClient]]:
    """Makes a client of a service with other settings."""
    open_clients = []

    def make(**settings: Any) -> TestClient:
        client = TestClient(create_app([translator], ServiceConfig(**settings)), raise_server_exceptions=False)
        open_clients.append(client.__enter__())
        return client

    yield make
    for client in open_clients:
        client.__exit__(None, None, None)
