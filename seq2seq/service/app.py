"""The application: doors, limits, readiness, metrics."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi_offline import FastAPIOffline
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from seq2seq import __version__
from seq2seq.service.desk import Desk
from seq2seq.service.doors import Doors
from seq2seq.service.guard import BodyLimit, Failures, Gate, SecurityHeaders
from seq2seq.service.libretranslate import libretranslate
from seq2seq.service.metrics import Metrics, Timed
from seq2seq.service.refusal import Refusal
from seq2seq.service.settings import ServiceConfig
from seq2seq.service.shelf import Shelf
from seq2seq.service.v1 import v1
from seq2seq.translation.translator import Translator


def create_app(
    translators: Sequence[Translator],
    config: ServiceConfig | None = None,
    plain_page: bool = True,
    folder: Path | None = None,
) -> FastAPI:
    """The service over some models, one for each direction; with a page at / unless another is mounted there.

    `folder`, the service's own, is where translated files lie for some minutes; without it no files are taken.
    """
    config = config or ServiceConfig()
    desk = Desk(translators, config)
    metrics = Metrics(desk.batchers.values())
    doors = Doors(desk, Gate(config), metrics, Shelf(folder) if folder else None)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        desk.close()

    app = FastAPIOffline(title="seq2seq", version=__version__, redoc_url=None, lifespan=lifespan)
    app.include_router(libretranslate(doors))
    app.include_router(v1(doors))
    _add_probes(app, doors)
    _add_handlers(app)
    _refuse_other_methods(app)
    _refuse_uploads(app)
    if plain_page:
        _add_plain_page(app)
    app.add_middleware(BodyLimit, limit=config.max_body)
    app.add_middleware(Failures)
    app.add_middleware(  # also for no origin: without it the demo, where it is mounted, would let in all
        CORSMiddleware,
        allow_origins=config.allow_origins,
        allow_methods=["GET", "POST"],
        allow_headers=["Authorization", "Content-Type"],
    )
    app.add_middleware(SecurityHeaders)
    app.add_middleware(Timed, metrics=metrics)
    return app


def _add_probes(app: FastAPI, doors: Doors) -> None:
    @app.head("/livez", include_in_schema=False)
    @app.get("/livez", tags=["probes"])
    async def livez() -> dict[str, str]:
        """The process answers."""
        return {"status": "ok"}

    @app.head("/readyz", include_in_schema=False)
    @app.get("/readyz", tags=["probes"])
    async def readyz() -> JSONResponse:
        """Every model has just translated a sentence."""
        try:
            ready = await doors.desk.ready()
        except Exception:
            ready = False
        return JSONResponse({"status": "ok" if ready else "not ready"}, 200 if ready else 503)

    @app.get("/metrics", tags=["probes"])
    async def metrics() -> Response:
        """Numbers for Prometheus."""
        return Response(generate_latest(doors.metrics.registry), media_type=CONTENT_TYPE_LATEST)


def _refuse_other_methods(app: FastAPI) -> None:
    """The wrong method at a door is told as everything else is, also where a page is mounted behind the doors."""

    async def refuse(request: Request) -> JSONResponse:
        raise Refusal(405, "Method Not Allowed")

    for path, operations in app.openapi()["paths"].items():
        others = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} - set(map(str.upper, operations))
        app.add_api_route(path, refuse, methods=sorted(others), include_in_schema=False)


def _refuse_uploads(app: FastAPI) -> None:
    """The demo takes no files, though Gradio, where it is mounted, would keep any."""

    @app.post("/gradio_api/upload", include_in_schema=False)
    async def upload() -> JSONResponse:
        raise Refusal(403, "this service takes no files")


def _add_plain_page(app: FastAPI) -> None:
    """A page without sessions, which any process may answer."""
    files = {"/": ("page.html", "text/html"), "/page.js": ("page.js", "text/javascript")}

    @app.get("/", include_in_schema=False)
    @app.get("/page.js", include_in_schema=False)
    async def page(request: Request) -> FileResponse:
        name, kind = files[request.url.path]
        return FileResponse(Path(__file__).with_name(name), media_type=kind)


def _add_handlers(app: FastAPI) -> None:
    """Every refusal and every failure as `{"error": ...}`, without a word of the inside or of the text."""

    @app.exception_handler(Refusal)
    async def refused(request: Request, error: Refusal) -> JSONResponse:
        return JSONResponse({"error": error.message}, error.status, error.headers)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    async def misfit(request: Request, error: RequestValidationError) -> JSONResponse:
        return JSONResponse({"error": "the request is not as the door takes it"}, 400)
