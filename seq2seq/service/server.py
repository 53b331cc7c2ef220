"""The process, or processes, around the application: settings, models, uvicorn."""

import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from seq2seq.config import Section, read_toml, validate
from seq2seq.errors import UserError
from seq2seq.service.app import create_app
from seq2seq.service.desk import read_glossaries
from seq2seq.service.settings import ServiceConfig
from seq2seq.translation.translator import Translator

Mount = Callable[[FastAPI, Translator], Callable[[], None]]  # adds a page; returns what ends its sessions
CONNECTIONS = 1000
VARIABLE = "SEQ2SEQ_SERVED"  # by which a worker learns what it serves
KEYS = "SEQ2SEQ_API_KEYS"  # of the environment, so that no key is in a command line; separated by spaces
GRACE = 5  # seconds beyond the deadline in which a server that is asked to stop finishes what it has begun


class _Server(uvicorn.Server):
    """A server that ends a page's sessions, which have no end of their own, when it is asked to stop."""

    def __init__(self, config: uvicorn.Config, at_exit: Callable[[], None] | None) -> None:
        super().__init__(config)
        self._at_exit = at_exit

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Called when a signal arrives."""
        if self._at_exit:
            self._at_exit()
        super().handle_exit(sig, frame)


class Served(Section):
    """What a process serves."""

    models: list[str | None]
    engine: str = "torch"
    precision: str | None = None
    plain_page: bool = True
    folder: str | None = None  # of translated files, where they are taken
    config: ServiceConfig = ServiceConfig()


def load_config(path: Path | None) -> ServiceConfig:
    """Limits, keys and origins from a TOML file, and keys from the environment."""
    values = {} if path is None else read_toml(path, f"--config {path}")
    keys = os.environ.get(KEYS, "").split()
    config = validate(ServiceConfig, values, str(path or "settings"))
    return validate(ServiceConfig, config.model_dump() | {"api_keys": keys}, KEYS) if keys else config


def load(served: Served) -> list[Translator]:
    """The models, one for each direction; what else the settings name is looked at, too."""
    translators = [Translator.from_pretrained(name, served.engine, served.precision) for name in served.models]
    directions = [(one.info.source, one.info.target) for one in translators]
    for direction in directions:
        if directions.count(direction) > 1:
            raise UserError(f"two models translate {'-'.join(direction)}: name one for each direction")
    read_glossaries(served.config, directions)
    return translators


def build(served: Served, translators: Sequence[Translator]) -> FastAPI:
    """The application over loaded models."""
    return create_app(translators, served.config, served.plain_page, Path(served.folder) if served.folder else None)


def app_of(served: Served) -> FastAPI:
    """The application, its models loaded here."""
    return build(served, load(served))


def app_of_worker() -> FastAPI:
    """What uvicorn calls in each worker."""
    return app_of(Served.model_validate_json(os.environ[VARIABLE]))


def run(served: Served, host: str, port: int, workers: int, mount: Mount | None = None) -> None:
    """Serve until somebody asks to stop; in one process with what `mount` adds at /."""
    if workers < 1:
        raise UserError(f"--workers {workers} is not 1 or more")
    _check_port(host, port)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))  # uvicorn raises the signal again when it is done
    with ExitStack() as stack:
        if served.config.files:
            folder = stack.enter_context(TemporaryDirectory(prefix="seq2seq-"))
            served = served.model_copy(update={"folder": folder})
        translators = load(served)  # a mistake is told here, once, and not by every worker
        print(f"serving at http://{host}:{port} (Ctrl+C ends it)", file=sys.stderr)
        if workers == 1:
            app = build(served, translators)
            at_exit = mount(app, translators[0]) if mount else None
            _Server(uvicorn.Config(app, **_options(served, host, port)), at_exit).run()
            return
        del translators
        os.environ[VARIABLE] = served.model_dump_json()
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))
        factory = f"{__name__}:{app_of_worker.__name__}"
        uvicorn.run(factory, factory=True, workers=workers, **_options(served, host, port))


def _options(served: Served, host: str, port: int) -> dict[str, Any]:
    return {
        "host": host,
        "port": port,
        "access_log": False,  # addresses and paths are nobody's business
        "log_level": "critical",  # failures are noted by the application, without what was sent
        "timeout_graceful_shutdown": round(served.config.deadline) + GRACE,
        "timeout_keep_alive": 5,
        "limit_concurrency": CONNECTIONS,
        "server_header": False,
    }


def _check_port(host: str, port: int) -> None:
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (OSError, OverflowError):
        raise UserError(f"port {port} on {host} cannot be used: it is taken or not allowed; choose another") from None
