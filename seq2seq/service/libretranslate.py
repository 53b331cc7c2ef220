"""The API of LibreTranslate, which clients exist for."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from seq2seq.service.bodies import DetectBody, TranslateBody, query_key, read_body
from seq2seq.service.desk import Desk
from seq2seq.service.detection import detect, language_name
from seq2seq.service.doors import Doors, documented
from seq2seq.translation.result import Translation


def libretranslate(doors: Doors) -> APIRouter:
    """Its routes."""
    router, desk = APIRouter(tags=["LibreTranslate"]), doors.desk

    @router.post("/translate", openapi_extra=documented(TranslateBody))
    async def translate(request: Request) -> JSONResponse:
        """Translate a text, or several."""
        body = await read_body(request, TranslateBody)
        doors.gate.admit(request, body.api_key)
        texts = [body.q] if isinstance(body.q, str) else body.q
        desk.check_texts(texts)
        found = [_detected(desk, text, body.target) for text in texts] if body.source == "auto" else []
        sources = [each["language"] for each in found] or [body.source] * len(texts)
        results = await doors.while_there(request, _translate(doors, body, texts, sources))
        return JSONResponse(_answer(body, results, found))

    @router.get("/languages")
    async def languages(request: Request) -> list[dict[str, Any]]:
        """The languages, and into which each is translated."""
        return [
            {"code": code, "name": language_name(code), "targets": [code, *desk.targets(code)]}
            for code in desk.languages
        ]

    @router.post("/detect", openapi_extra=documented(DetectBody))
    async def detect_language(request: Request) -> list[dict[str, Any]]:
        """The likeliest languages of a text, of those that are translated."""
        body = await read_body(request, DetectBody)
        doors.gate.admit(request, body.api_key)
        desk.check_texts([body.q])
        return [{"confidence": share, "language": code} for code, share in detect(body.q, desk.languages)]

    @router.get("/health")
    async def health() -> dict[str, str]:
        """Whether the service is there."""
        return {"status": "ok"}

    @router.get("/frontend/settings")
    async def settings(request: Request) -> dict[str, Any]:
        """What a page needs to know."""
        query_key(request)
        source, target = next(iter(desk.batchers))
        config = desk.config
        return {
            "apiKeys": bool(config.api_keys),
            "charLimit": config.max_characters,
            "frontendTimeout": 500,
            "keyRequired": bool(config.api_keys),
            "language": {
                "source": {"code": source, "name": language_name(source)},
                "target": {"code": target, "name": language_name(target)},
            },
            "suggestions": False,
            "supportedFilesFormat": [],
        }

    return router


def _detected(desk: Desk, text: str, target: str) -> dict[str, Any]:
    """The likeliest language of a text: one that is translated into the target, or the target itself."""
    possible = [code for code in desk.languages if code == target or target in desk.targets(code)] or desk.sources
    found = detect(text, possible)
    code, share = found[0] if found else (possible[0], 0.0)
    return {"confidence": share, "language": code}


async def _translate(doors: Doors, body: TranslateBody, texts: list[str], sources: list[str]) -> list[Translation]:
    """Each text from its own language; a text in the target language stays as it is."""
    desk = doors.desk
    results: list[Translation | None] = [None] * len(texts)
    for source in dict.fromkeys(sources):
        rows = [row for row, own in enumerate(sources) if own == source]
        if source == body.target:
            done = [Translation(texts[row], [texts[row]]) for row in rows]
        else:
            batcher = desk.batcher(source, body.target)
            search = desk.search(batcher, None, body.alternatives + 1, attention=False, format=body.format)
            done = await desk.translate(batcher, [texts[row] for row in rows], search, body.format)
        for row, result in zip(rows, done, strict=True):
            results[row] = result
    return [result for result in results if result is not None]


def _alternatives(result: Translation, count: int) -> list[str]:
    """Further translations of a text; of a page there are none, since its tags are placed in the best one alone."""
    return [] if result.markup is not None else [option.text for option in result.best(count + 1)[1:]]


def _answer(body: TranslateBody, results: list[Translation], found: list[dict[str, Any]]) -> dict[str, Any]:
    """One object; lists in it if a list was asked."""
    answer: dict[str, list[Any]] = {"translatedText": [result.text for result in results]}
    if body.alternatives:
        answer["alternatives"] = [_alternatives(result, body.alternatives) for result in results]
    if found:
        answer["detectedLanguage"] = found
    return {name: values[0] for name, values in answer.items()} if isinstance(body.q, str) else dict(answer)
