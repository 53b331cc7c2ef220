"""What the routers are given: the desk, the gate, and care for clients that leave."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel
from starlette.requests import Request

from seq2seq.service.bodies import Body, FileBody, read_body, read_file
from seq2seq.service.desk import Desk
from seq2seq.service.guard import Gate
from seq2seq.service.metrics import Metrics
from seq2seq.service.refusal import Refusal
from seq2seq.service.shelf import Shelf

Result = TypeVar("Result")
LOOK_EVERY = 0.2  # seconds between two looks whether a client is still there


@dataclass(frozen=True)
class Doors:
    """What every door shares."""

    desk: Desk
    gate: Gate
    metrics: Metrics
    shelf: Shelf | None = None  # for files, where they are taken

    async def admitted(self, request: Request, kind: type[Body]) -> Body:
        """The body of a request that may pass."""
        body = await read_body(request, kind, self.desk.config.body_seconds)
        self.gate.admit(request, body.api_key)
        return body

    async def admitted_file(self, request: Request) -> tuple[FileBody, str, str]:
        """A request with a file that may pass: what it asks, the file's text and the ending of its name."""
        body, content, ending = await read_file(request, self.desk.config.body_seconds)
        self.gate.admit(request, body.api_key)
        return body, content, ending

    async def while_there(self, request: Request, work: Awaitable[Result]) -> Result:
        """What the work returns; if the client leaves before, the work is given up and its place is free."""
        task = asyncio.ensure_future(work)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # looked at, whoever awaits it
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=LOOK_EVERY)
                if not task.done() and await request.is_disconnected():
                    raise Refusal(499, "the client has left")
            return task.result()
        finally:
            task.cancel()


def documented(kind: type[BaseModel], answer: Any) -> dict[str, Any]:
    """The request body of a door that takes JSON or a form, and an answer of it, for OpenAPI."""
    schema = kind.model_json_schema()
    content = ("application/json", "application/x-www-form-urlencoded")
    return _operation({one: {"schema": schema} for one in content}, answer)


def documented_file(answer: Any) -> dict[str, Any]:
    """The same of the door that takes a file."""
    schema = FileBody.model_json_schema()
    schema["properties"]["file"] = {"type": "string", "format": "binary", "description": "a .txt or .html file"}
    schema["required"] = [*schema.get("required", []), "file"]
    return _operation({"multipart/form-data": {"schema": schema}}, answer)


def _operation(content: dict[str, Any], answer: Any) -> dict[str, Any]:
    refused = {"application/json": {"example": {"error": "one line that names the value and the rule"}}}
    return {
        "requestBody": {"required": True, "content": content},
        "responses": {
            "200": {"content": {"application/json": {"example": answer}}},
            "4XX": {"description": "refused: docs/service.md says what for", "content": refused},
            "5XX": {"description": "503: no room, see Retry-After; 504: not done in time", "content": refused},
        },
    }
