"""Our own API: scores, n best, word alignment, attention, and long texts sentence by sentence."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from sse_starlette import EventSourceResponse
from sse_starlette.sse import AppStatus, SendTimeoutError
from starlette.types import Receive, Scope, Send

from seq2seq.service.batcher import Batcher
from seq2seq.service.bodies import AttentionBody, V1Body
from seq2seq.service.doors import Doors, documented
from seq2seq.service.guard import fault_noted
from seq2seq.service.refusal import Refusal, invalid, too_much
from seq2seq.translation.result import SentenceTranslation, Translation
from seq2seq.translation.translator import Search

TRANSLATION = {
    "translation": "Bonjour !",
    "truncated": False,
    "sentences": [
        {
            "source": "Good morning!",
            "translation": "Bonjour !",
            "score": -0.21,
            "truncated": False,
            "alternatives": [{"text": "Bonjour !", "score": -0.21}],
            "source_words": ["Good", "morning", "!"],
            "target_words": ["Bonjour", "!"],
            "alignment": [{"source": 1, "target": 0, "weight": 0.7}, {"source": 2, "target": 1, "weight": 0.6}],
            "glossary": [],
            "confidence": {"right": 0.98, "omitted": [0.01, 0.02, 0.0], "invented": [0.02, 0.0]},
        }
    ],
}
ATTENTION = {
    "translation": "Non.",
    "layers": 1,
    "heads": 1,
    "source_tokens": ["▁No", ".", "</s>"],
    "target_tokens": ["▁Non", ".", "</s>"],
    "weights": [[[[0.8, 0.1, 0.1], [0.1, 0.7, 0.2], [0.1, 0.2, 0.7]]]],
}
Event = dict[str, str]
Body = TypeVar("Body", bound=AttentionBody)
AppStatus.enable_automatic_graceful_drain = False  # a stream that has begun is finished when the server stops


def v1(doors: Doors) -> APIRouter:
    """Its routes."""
    router, desk = APIRouter(prefix="/v1", tags=["seq2seq"]), doors.desk

    async def asked(request: Request, kind: type[Body]) -> tuple[Body, list[str], Batcher]:
        body = await doors.admitted(request, kind)
        texts = [body.text] if isinstance(body.text, str) else body.text
        desk.check_texts(texts)
        return body, texts, desk.batcher(body.source, body.target)

    @router.post("/translate", openapi_extra=documented(V1Body, TRANSLATION), response_model=None)
    async def translate(request: Request) -> Response:
        """Translate, with scores, alternatives and word links of every sentence."""
        body, texts, batcher = await asked(request, V1Body)
        if body.n_best - 1 > desk.config.max_alternatives:
            raise too_much("n_best", body.n_best, desk.config.max_alternatives + 1)
        if body.confidence:
            await asyncio.to_thread(lambda: batcher.translator.why_unsure)  # another model may have to be loaded
        search = desk.search(
            batcher,
            body.beam_size,
            body.n_best,
            attention=True,
            format=body.format,
            glossary=body.glossary,
            confidence=body.confidence,
        )
        if body.stream:
            if not isinstance(body.text, str) or body.format != "text":
                raise invalid("stream takes one text, no list and no page")
            events = _events(doors, batcher, body.text, search)
            first = await doors.while_there(request, anext(events))  # a refusal still has a status of its own
            return _Stream(_with_first(first, events), send_timeout=desk.config.deadline)
        work = desk.translate(batcher, texts, search, _translation, body.format)
        answers = await doors.while_there(request, work)
        return await asyncio.to_thread(JSONResponse, answers[0] if isinstance(body.text, str) else answers)

    @router.post("/attention", openapi_extra=documented(AttentionBody, ATTENTION))
    async def attention(request: Request) -> JSONResponse:
        """Cross-attention of every layer and head, of texts of one sentence."""
        body, texts, batcher = await asked(request, AttentionBody)
        search = desk.search(batcher, body.beam_size, 1, attention=True, glossary=body.glossary)
        answers = await doors.while_there(request, desk.attention(batcher, texts, search, _attention))
        return await asyncio.to_thread(JSONResponse, answers[0] if isinstance(body.text, str) else answers)

    return router


def _translation(result: Translation) -> dict[str, Any]:
    return {
        "translation": result.text,
        "truncated": result.truncated,
        "sentences": [_sentence(sentence) for sentence in result.sentences],
    }


def _sentence(sentence: SentenceTranslation) -> dict[str, Any]:
    return {
        "source": sentence.source,
        "translation": sentence.text,
        "score": round(sentence.score, 6),
        "truncated": sentence.truncated,
        "alternatives": [{"text": option.text, "score": round(option.score, 6)} for option in sentence.alternatives],
        "source_words": sentence.source_words,
        "target_words": sentence.target_words,
        "alignment": [
            {"source": link.source, "target": link.target, "weight": round(link.weight, 6)}
            for link in sentence.alignment
        ],
        "glossary": [term._asdict() for term in sentence.terms],
        "confidence": sentence.confidence and sentence.confidence._asdict(),
    }


def _attention(result: Translation) -> dict[str, Any]:
    (sentence,) = result.sentences
    layers, heads = sentence.attention.shape[:2]
    return {
        "translation": result.text,
        "layers": layers,
        "heads": heads,
        "source_tokens": sentence.source_tokens,
        "target_tokens": sentence.target_tokens,
        "weights": sentence.attention.round(6).tolist(),
    }


class _Stream(EventSourceResponse):
    """Events for as long as somebody reads them: who has not taken one within `send_timeout` counts as gone."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them."""
        with suppress(SendTimeoutError):
            await super().__call__(scope, receive, send)


async def _events(doors: Doors, batcher: Batcher, text: str, search: Search) -> AsyncGenerator[Event]:
    """An event a part of the text; then the end."""
    async with aclosing(doors.desk.stream(batcher, text, search)) as parts:
        async for part in parts:
            if isinstance(part, str):
                yield {"event": "text", "data": json.dumps({"text": part})}
            else:
                yield {"event": "sentence", "data": json.dumps(await asyncio.to_thread(_sentence, part))}
    yield {"event": "end", "data": "{}"}


async def _with_first(first: Event, others: AsyncGenerator[Event]) -> AsyncGenerator[Event]:
    """Events, and instead of the end why there is none."""
    async with aclosing(others):
        yield first
        try:
            async for event in others:
                yield event
        except Exception as error:
            message = error.message if isinstance(error, Refusal) else fault_noted(error)
            yield {"event": "error", "data": json.dumps({"error": message})}
