"""The API of LibreTranslate, which clients exist for."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, JSONResponse

from seq2seq.service.bodies import DetectBody, TranslateBody
from seq2seq.service.desk import Desk
from seq2seq.service.detection import detect, language_name
from seq2seq.service.doors import Doors, documented, documented_file
from seq2seq.service.refusal import Refusal, invalid
from seq2seq.service.shelf import KINDS
from seq2seq.translation.result import Translation
from seq2seq.translation.tokens import text_of
from seq2seq.translation.translator import FORMATS

Told = tuple[str, list[str]]  # a translation and its alternatives


def libretranslate(doors: Doors) -> APIRouter:
    """Its routes."""
    router = APIRouter(tags=["LibreTranslate"])
    _add_texts(router, doors)
    _add_files(router, doors)
    _add_facts(router, doors)
    return router


def _add_texts(router: APIRouter, doors: Doors) -> None:
    desk = doors.desk

    @router.post("/translate", openapi_extra=documented(TranslateBody, {"translatedText": "Bonjour !"}))
    async def translate(request: Request) -> JSONResponse:
        """Translate a text, or several."""
        body = await doors.admitted(request, TranslateBody)
        texts = [body.q] if isinstance(body.q, str) else body.q
        desk.check_texts(texts)
        if body.format not in FORMATS:
            raise invalid(f"format {body.format!r} is not one of {', '.join(FORMATS)}")
        return JSONResponse(_answer(body, *await _translated(doors, request, body, texts)))

    @router.post("/detect", openapi_extra=documented(DetectBody, [{"confidence": 99.8, "language": "fr"}]))
    async def detect_language(request: Request) -> list[dict[str, Any]]:
        """The likeliest languages of a text, of those that are translated."""
        body = await doors.admitted(request, DetectBody)
        desk.check_texts([body.q])
        found = await asyncio.to_thread(detect, body.q, desk.languages)
        return [{"confidence": share, "language": code} for code, share in found or [(desk.languages[0], 0.0)]]


def _add_files(router: APIRouter, doors: Doors) -> None:
    @router.post(
        "/translate_file",
        openapi_extra=documented_file({"translatedFileUrl": "http://127.0.0.1:8000/download_file/0a1b.txt"}),
    )
    async def translate_file(request: Request) -> dict[str, str]:
        """Translate a text file or a page; the answer says where the translation is fetched, for some minutes."""
        shelf = doors.shelf
        if shelf is None:
            raise Refusal(403, "this service takes no files")
        body, content, ending = await doors.admitted_file(request)
        await asyncio.to_thread(shelf.check_room)
        doors.desk.check_texts([content])
        asked = TranslateBody(q=content, source=body.source, target=body.target, format=KINDS[ending])
        ((text, _),), _ = await _translated(doors, request, asked, [content])
        name = await asyncio.to_thread(shelf.put, text, ending)
        return {"translatedFileUrl": str(request.url_for("download_file", name=name))}

    @router.get("/download_file/{name}", response_model=None)
    async def download_file(name: str) -> FileResponse:
        """A translated file."""
        if doors.shelf is None:
            raise Refusal(403, "this service takes no files")
        path = await asyncio.to_thread(doors.shelf.find, name)
        name, headers = f"translated{path.suffix}", {"Cache-Control": "no-store"}
        return FileResponse(path, media_type="application/octet-stream", filename=name, headers=headers)


def _add_facts(router: APIRouter, doors: Doors) -> None:
    """What the service tells of itself."""
    desk = doors.desk

    @router.get("/languages")
    async def languages() -> list[dict[str, Any]]:
        """The languages, and into which each is translated."""
        return [
            {"code": code, "name": language_name(code), "targets": [code, *desk.targets(code)]}
            for code in desk.languages
        ]

    @router.get("/health")
    async def health() -> dict[str, str]:
        """Whether the service is there."""
        return {"status": "ok"}

    @router.get("/frontend/settings")
    async def settings() -> dict[str, Any]:
        """What a page needs to know."""
        source, target = next(iter(desk.batchers))
        config = desk.config
        return {
            "apiKeys": bool(config.api_keys),
            "charLimit": config.max_characters,
            "filesTranslation": doors.shelf is not None,
            "frontendTimeout": 500,
            "keyRequired": bool(config.api_keys),
            "language": {
                "source": {"code": source, "name": language_name(source)},
                "target": {"code": target, "name": language_name(target)},
            },
            "suggestions": False,
            "supportedFilesFormat": list(KINDS) if doors.shelf else [],
        }


async def _translated(
    doors: Doors, request: Request, body: TranslateBody, texts: list[str]
) -> tuple[list[Told], list[dict[str, Any]]]:
    """Translations, and the languages where they were to be detected, while the client is there."""
    known = doors.desk.known
    body = body.model_copy(update={"source": known(body.source), "target": known(body.target)})
    found = await asyncio.to_thread(_detected, doors.desk, body, texts) if body.source == "auto" else []
    sources = [each["language"] for each in found] or [body.source] * len(texts)
    return await doors.while_there(request, _translate(doors, body, texts, sources)), found


def _detected(desk: Desk, body: TranslateBody, texts: Sequence[str]) -> list[dict[str, Any]]:
    """The likeliest language of each text: one that is translated into the target, or the target itself."""
    target = body.target
    possible = [code for code in desk.languages if code == target or target in desk.targets(code)] or desk.sources
    answers = []
    for text in texts:
        found = detect(text_of(text) if body.format == "html" else text, possible)
        code, share = found[0] if found else (possible[0], 0.0)
        answers.append({"confidence": share, "language": code})
    return answers


async def _translate(doors: Doors, body: TranslateBody, texts: list[str], sources: list[str]) -> list[Told]:
    """Each text from its own language; a text in the target language stays as it is."""
    desk = doors.desk
    end = desk.deadline()
    results: dict[int, Told] = {}
    for source in dict.fromkeys(sources):
        rows = [row for row, own in enumerate(sources) if own == source]
        if source == body.target and source in desk.languages:
            results |= {row: (texts[row], []) for row in rows}
            continue
        batcher = desk.batcher(source, body.target)
        search = desk.search(batcher, None, body.alternatives + 1, attention=False, format=body.format)
        told = partial(_told, count=body.alternatives)
        done = await desk.translate(batcher, [texts[row] for row in rows], search, told, body.format, end)
        results |= dict(zip(rows, done, strict=True))
    return [results[row] for row in range(len(texts))]


def _told(result: Translation, count: int) -> Told:
    """The translation, and further ones if they are asked."""
    return result.text, [option.text for option in result.best(count + 1)[1:]] if count else []


def _answer(body: TranslateBody, results: list[Told], found: list[dict[str, Any]]) -> dict[str, Any]:
    """One object; lists in it if a list was asked."""
    answer: dict[str, list[Any]] = {"translatedText": [text for text, _ in results]}
    if body.alternatives:
        answer["alternatives"] = [alternatives for _, alternatives in results]
    if found:
        answer["detectedLanguage"] = found
    return {name: values[0] for name, values in answer.items()} if isinstance(body.q, str) else dict(answer)
