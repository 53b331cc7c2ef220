"""The process, or processes, around the application: settings, models, uvicorn."""

import os
import socket
import sys
import tomllib
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from seq2seq.config import Section, validate
from seq2seq.errors import UserError
from seq2seq.service.app import create_app
from seq2seq.service.settings import ServiceConfig
from seq2seq.translation.translator import Translator

VARIABLE = "SEQ2SEQ_SERVED"  # by which a worker learns what it serves
KEYS = "SEQ2SEQ_API_KEYS"  # of the environment, so that no key is in a command line; separated by spaces
GRACE = 30  # seconds in which a server that is asked to stop finishes what it has begun


class Served(Section):
    """What a process serves."""

    models: list[str | None]
    engine: str = "torch"
    precision: str | None = None
    page: bool = True  # the Gradio page at /; its sessions live in one process
    config: ServiceConfig = ServiceConfig()


def load_config(path: Path | None) -> ServiceConfig:
    """Limits, keys and origins from a TOML file, and keys from the environment."""
    values = {}
    if path is not None:
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except FileNotFoundError:
            raise UserError(f"--config {path} does not exist") from None
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UserError(f"--config {path} cannot be read: {error}") from None
    keys = os.environ.get(KEYS, "").split()
    return validate(ServiceConfig, values | ({"api_keys": keys} if keys else {}), str(path or "settings"))


def build(served: Served) -> FastAPI:
    """The application with its models loaded."""
    translators = [Translator.from_pretrained(name, served.engine, served.precision) for name in served.models]
    directions = [(one.info.source, one.info.target) for one in translators]
    for direction in directions:
        if directions.count(direction) > 1:
            raise UserError(f"two models translate {'-'.join(direction)}: name one for each direction")
    return create_app(translators, served.config, page=served.page)


def app_of_worker() -> FastAPI:
    """What uvicorn calls in each worker."""
    return build(Served.model_validate_json(os.environ[VARIABLE]))


def run(served: Served, host: str, port: int, workers: int) -> None:
    """Serve until somebody asks to stop."""
    if workers < 1:
        raise UserError(f"--workers {workers} is not 1 or more")
    _check_port(host, port)
    options = {
        "host": host,
        "port": port,
        "access_log": False,  # addresses and paths are nobody's business
        "log_level": "warning",
        "timeout_graceful_shutdown": GRACE,
        "server_header": False,
    }
    print(f"serving at http://{host}:{port} (Ctrl+C ends it)", file=sys.stderr)
    if workers == 1:
        uvicorn.run(build(served), **options)
        return
    build(served)  # a mistake is told here, once, and not by every worker
    os.environ[VARIABLE] = served.model_dump_json()
    uvicorn.run(f"{__name__}:{app_of_worker.__name__}", factory=True, workers=workers, **options)


def _check_port(host: str, port: int) -> None:
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (OSError, OverflowError):
        raise UserError(f"port {port} on {host} cannot be used: it is taken or not allowed; choose another") from None
