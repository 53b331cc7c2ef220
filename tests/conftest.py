"""Fixtures that several test modules share."""

import os
import socket
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import settings

from seq2seq import Translator

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
