"""What the routers are given: the desk, the gate, and care for clients that leave."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel
from starlette.requests import Request

from seq2seq.service.desk import Desk
from seq2seq.service.guard import Gate
from seq2seq.service.metrics import Metrics
from seq2seq.service.refusal import Refusal

Result = TypeVar("Result")
LOOK_EVERY = 0.2  # seconds between two looks whether a client is still there


@dataclass(frozen=True)
class Doors:
    """What every door shares."""

    desk: Desk
    gate: Gate
    metrics: Metrics

    async def while_there(self, request: Request, work: Coroutine[Any, Any, Result]) -> Result:
        """What the work returns; if the client leaves before, the work is given up and its place is free."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=LOOK_EVERY)
                if not task.done() and await request.is_disconnected():
                    raise Refusal(499, "the client has left")
            return task.result()
        finally:
            task.cancel()


def documented(kind: type[BaseModel]) -> dict[str, Any]:
    """The request body of a door that takes JSON or a form, for OpenAPI."""
    schema = kind.model_json_schema()
    content = ("application/json", "application/x-www-form-urlencoded")
    return {"requestBody": {"required": True, "content": {one: {"schema": schema} for one in content}}}
