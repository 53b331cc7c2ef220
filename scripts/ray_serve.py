"""`python scripts/ray_serve.py --replicas 2`: the service on a Ray cluster, replicas behind one address.

Each replica holds models of its own and is the whole service of `seq2seq serve`, but for the demo; Ray Serve spreads
the requests and replaces a replica that dies. docs/deploy.md says more.
"""

import argparse
import logging
import os
import signal
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from threading import Event
from typing import Any

from seq2seq.commands.serve import read_served, service_options
from seq2seq.errors import UserError, exit_status
from seq2seq.service.server import Served, app_of, load

PROGRAM = NAME = "ray_serve"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the script; returns its exit status, as `seq2seq` has it."""
    return exit_status(PROGRAM, lambda: run(build_parser().parse_args(arguments)), prints_results=False)


def build_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(
        description="Serve with several replicas on Ray.",
        epilog="example:\n  python scripts/ray_serve.py --replicas 2 --port 8000",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    service_options(parser)
    add = parser.add_argument
    add("--replicas", type=int, default=2, metavar="N", help="models that work at once (default: 2)")
    add("--cpus-per-replica", type=int, default=1, metavar="C", help="and so the threads of each (default: 1)")
    add("--address", metavar="A", help="of a cluster to join (default: one of this machine, for this call)")
    return parser


def run(options: argparse.Namespace) -> None:
    """Serve until somebody asks to stop."""
    if find_spec("ray") is None:
        raise UserError('Ray is not installed: pip install ".[ray]"')
    if options.replicas < 1 or options.cpus_per_replica < 1:
        raise UserError("--replicas and --cpus-per-replica are 1 or more")
    served = read_served(options)
    if served.config.files:
        raise UserError("files = true needs a folder that all replicas share; Ray's replicas have none")
    load(served)  # a mistake is told here, once, and not by every replica
    import ray
    from ray import serve

    _start(options, served)
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):  # after Ray, which has handlers of its own
        signal.signal(number, lambda *_: stop.set())
    print(f"serving at http://{options.host}:{options.port} (Ctrl+C ends it)", file=sys.stderr)
    stop.wait()
    if options.address:
        serve.delete(NAME)  # what else runs on that cluster goes on
    else:
        serve.shutdown()
    ray.shutdown()


def _start(options: argparse.Namespace, served: Served) -> None:
    import ray
    from ray import serve

    cpus = options.cpus_per_replica
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would send statistics to its makers
    ray.init(
        address=options.address or "local",
        include_dashboard=False,
        logging_level=logging.ERROR,
        log_to_driver=False,
        num_cpus=None if options.address else options.replicas * cpus + 1,
    )
    serve.start(http_options={"host": options.host, "port": options.port})
    deployment: Any = serve.deployment(
        name="seq2seq",
        num_replicas=options.replicas,
        max_ongoing_requests=1_000,
        ray_actor_options={"num_cpus": cpus, "runtime_env": {"env_vars": {"OMP_NUM_THREADS": str(cpus)}}},
        logging_config={"enable_access_log": False},
    )(serve.ingress(lambda: app_of(served))())
    serve.run(deployment.bind(), name=NAME, route_prefix="/")


if __name__ == "__main__":
    sys.exit(main())
