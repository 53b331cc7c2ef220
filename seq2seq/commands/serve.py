"""`seq2seq serve`: the HTTP service."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2seq.commands.common import declare

if TYPE_CHECKING:
    from seq2seq.service.server import Served


def add_serve(commands: Any) -> None:
    """Declare `seq2seq serve`."""
    parser = declare(
        commands,
        "serve",
        serve,
        "answer over HTTP: LibreTranslate's API, our own, and the page",
        "seq2seq serve --port 8000\n  curl -d q='Good morning!' -d source=en -d target=fr http://127.0.0.1:8000/translate",
    )
    service_options(parser)
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes (default: 1)")


def service_options(parser: argparse.ArgumentParser) -> None:
    """What is served, and where: --model, --engine, --precision, --config, --host and --port."""
    parser.add_argument(
        "--model",
        action="append",
        metavar="M",
        help="model folder, bundled name or hub id (default: en-fr, bundled); again for another direction",
    )
    parser.add_argument("--engine", default="torch", metavar="E", help="torch (default) or ctranslate2, the faster")
    parser.add_argument(
        "--precision", metavar="P", help="float32 (default), bfloat16 with torch, int8 with ctranslate2"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    parser.add_argument("--port", type=int, default=8000, help="port (default: 8000)")
    parser.add_argument(
        "--config", type=Path, metavar="FILE.toml", help="limits, keys and origins: docs/service.md names them all"
    )


def read_served(options: argparse.Namespace) -> "Served":
    """What these options ask to be served."""
    from seq2seq.service.server import Served, load_config

    return Served(
        models=options.model or [None],
        engine=options.engine,
        precision=options.precision,
        config=load_config(options.config),
    )


def serve(options: argparse.Namespace) -> None:
    """`seq2seq serve`."""
    from seq2seq.demo import mount
    from seq2seq.service.server import run

    served = read_served(options)
    # The demo knows no keys and no limits, and keeps its sessions in one process.
    alone = options.workers == 1 and not (served.config.api_keys or served.config.requests_per_minute)
    served = served.model_copy(update={"plain_page": not alone})
    run(served, options.host, options.port, options.workers, mount if alone else None)
