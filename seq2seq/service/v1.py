"""Our own API: scores, n best, word alignment, attention, and long texts sentence by sentence."""

import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from sse_starlette import EventSourceResponse

from seq2seq.service.batcher import Batcher
from seq2seq.service.bodies import V1Body, read_body
from seq2seq.service.doors import Doors, documented
from seq2seq.service.refusal import Refusal, invalid
from seq2seq.translation.plan import Plan
from seq2seq.translation.result import SentenceTranslation, Translation
from seq2seq.translation.translator import Search


def v1(doors: Doors) -> APIRouter:
    """Its routes."""
    router, desk = APIRouter(prefix="/v1", tags=["seq2seq"]), doors.desk

    async def asked(request: Request) -> tuple[V1Body, list[str], Batcher]:
        body = await read_body(request, V1Body)
        doors.gate.admit(request, body.api_key)
        texts = [body.text] if isinstance(body.text, str) else body.text
        desk.check_texts(texts)
        return body, texts, desk.batcher(body.source, body.target)

    @router.post("/translate", openapi_extra=documented(V1Body), response_model=None)
    async def translate(request: Request) -> Response:
        """Translate, with scores, alternatives and word links of every sentence."""
        body, texts, batcher = await asked(request)
        search = desk.search(batcher, body.beam_size, body.n_best, attention=True)
        if body.stream:
            if not isinstance(body.text, str):
                raise invalid("stream takes one text, not a list")
            return EventSourceResponse(_events(doors, batcher, body.text, search))
        results = await doors.while_there(request, desk.translate(batcher, texts, search))
        answers = [_translation(result) for result in results]
        return JSONResponse(answers[0] if isinstance(body.text, str) else answers)

    @router.post("/attention", openapi_extra=documented(V1Body))
    async def attention(request: Request) -> JSONResponse:
        """Cross-attention of every layer and head, of a text of one sentence."""
        body, texts, batcher = await asked(request)
        search = desk.search(batcher, body.beam_size, 1, attention=True)
        results = await doors.while_there(request, desk.translate(batcher, texts, search))
        answers = [_attention(result) for result in results]
        return JSONResponse(answers[0] if isinstance(body.text, str) else answers)

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
        "alternatives": [
            {"translation": option.text, "score": round(option.score, 6)} for option in sentence.alternatives
        ],
        "source_words": sentence.source_words,
        "target_words": sentence.target_words,
        "alignment": [
            {"source": link.source, "target": link.target, "weight": round(link.weight, 6)}
            for link in sentence.alignment
        ],
    }


def _attention(result: Translation) -> dict[str, Any]:
    if len(result.sentences) != 1:
        raise invalid(f"attention is of one sentence, the text has {len(result.sentences)} to translate")
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


async def _events(doors: Doors, batcher: Batcher, text: str, search: Search) -> AsyncIterator[dict[str, str]]:
    """An event a part of the text; then the end, or why there is none."""
    try:
        (plan,) = await doors.desk.plan(batcher, [text])
        assert isinstance(plan, Plan)  # of plain text
        async for part in doors.desk.stream(batcher, plan, search):
            if isinstance(part, str):
                yield {"event": "text", "data": json.dumps({"text": part})}
            else:
                yield {"event": "sentence", "data": json.dumps(_sentence(part))}
        yield {"event": "end", "data": "{}"}
    except Refusal as refusal:
        yield {"event": "error", "data": json.dumps({"error": refusal.message})}
