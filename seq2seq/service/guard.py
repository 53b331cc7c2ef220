"""Before a request reaches a door: its size, its key, its number a minute; after it: headers that bind the browser."""

import hmac
import logging
import time
from collections import deque
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seq2seq.service.refusal import Refusal, later
from seq2seq.service.settings import ServiceConfig

log = logging.getLogger("seq2seq.service")
MINUTE = 60.0
WRONG_KEYS = 20  # that an address may try in a minute
CALLERS = 10_000  # whose newest requests are remembered
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Answer:
    """Sends an answer on, and knows whether it has begun, after which there can be no other."""

    def __init__(self, send: Send) -> None:
        self._send, self.begun = send, False

    async def __call__(self, message: Message) -> None:
        """Send a part of it."""
        self.begun = True
        await self._send(message)


class BodyLimit:
    """Refuses bodies over a limit, also those that do not say their length, and compressed ones."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self.app, self.limit = app, limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through while its body stays under the limit."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if headers.get("content-encoding", "identity") != "identity":
            await _refuse(415, "send the body without Content-Encoding", scope, receive, send)
            return
        declared = headers.get("content-length", "0")
        if declared.isdecimal() and int(declared) > self.limit:
            await self._too_large(scope, receive, send)
            return
        await self._watched(scope, receive, send)

    async def _watched(self, scope: Scope, receive: Receive, send: Send) -> None:
        seen, answer = 0, Answer(send)

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self.limit:
                raise _BodyError
            return message

        try:
            await self.app(scope, counted, answer)
        except _BodyError:
            if not answer.begun:
                await self._too_large(scope, receive, send)

    async def _too_large(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _refuse(413, self._message(), scope, receive, send)

    def _message(self) -> str:
        return f"bytes of a request: over the limit of {self.limit:,}"


class _BodyError(BaseException):
    """A body is over the limit; no handler of the application is to answer that."""


class Failures:
    """Answers what nothing else has caught, and notes its place: never its message, which may hold what was sent."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        answer = Answer(send)
        try:
            await self.app(scope, receive, answer)
        except Exception as error:
            if scope["type"] != "http":
                raise
            message = fault_noted(error)
            if not answer.begun:
                await _refuse(500, message, scope, receive, send)


def fault_noted(error: Exception) -> str:
    """Log a failure by its kind and place; returns what a client is told of it."""
    log.error("%s at %s", type(error).__name__, _place(error))
    return "the service failed; the fault is noted"


def _place(error: Exception) -> str:
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place else "an unknown place"


async def _refuse(status: int, message: str, scope: Scope, receive: Receive, send: Send) -> None:
    await JSONResponse({"error": message}, status)(scope, receive, send)


class SecurityHeaders:
    """Adds the headers to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass an answer on with them."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, with_headers)


class Gate:
    """Keys and the number of requests a minute, in this process."""

    def __init__(self, config: ServiceConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self.config, self._clock = config, clock
        self._newest: dict[str, deque[float]] = {}

    def admit(self, request: Request, key: str | None) -> None:
        """Refuse a request without a key where one is needed, and one too many."""
        key = key or _bearer(request)
        address = request.client.host if request.client else "unknown"
        keyed = bool(self.config.api_keys and key)
        if self.config.requests_per_minute and not keyed:
            self._count(f"address {address}", self.config.requests_per_minute, "requests")
        if self.config.api_keys:
            self._check_key(key, f"wrong from {address}")
        if self.config.requests_per_minute and keyed:
            self._count(f"key {key}", self.config.requests_per_minute, "requests")

    def _check_key(self, key: str | None, caller: str) -> None:
        """Refuse a wrong key, and after too many of them also a right one, so that nothing is learned."""
        if not key:
            raise Refusal(403, "api_key is missing")
        times = self._newest.get(caller, deque())
        if (len(times) >= WRONG_KEYS and times[0] > self._clock() - MINUTE) or not self._is_known(key):
            self._count(caller, WRONG_KEYS, "wrong keys")
            raise Refusal(403, "a valid api_key is needed")

    def _is_known(self, given_key: str | None) -> bool:
        """Compared with every key in constant time."""
        given = (given_key or "").encode("utf-8", "surrogatepass")
        known = [hmac.compare_digest(given, key.encode()) for key in self.config.api_keys]
        return any(known)

    def _count(self, caller: str, limit: int, what: str) -> None:
        now = self._clock()
        times = self._newest.pop(caller, deque())
        while times and times[0] <= now - MINUTE:
            times.popleft()
        self._newest[caller] = times  # the newest callers are the last ones
        if len(self._newest) > CALLERS:
            del self._newest[next(iter(self._newest))]
        if len(times) >= limit:
            raise later(429, f"more than {limit} {what} a minute", times[0] + MINUTE - now)
        times.append(now)


def _bearer(request: Request) -> str | None:
    """The key of an `Authorization: Bearer` header."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None
