"""Bodies of requests: JSON, or a form, into what a door takes; faults in one line."""

import asyncio
import logging
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError
from python_multipart.multipart import parse_options_header
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from seq2seq.data.lines import writable
from seq2seq.service.refusal import Refusal, invalid
from seq2seq.service.shelf import KINDS

Body = TypeVar("Body", bound="Asked")
Short = Annotated[str, StringConstraints(max_length=20)]
URLENCODED, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
UNREADABLE = "the form cannot be read: send multipart/form-data in UTF-8"
MOST_FIELDS = 1_000
BOM = b"\xef\xbb\xbf"
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # it would quote what was sent
MOST_TEXTS = 10_000  # beyond which a list is not even looked at; the service's own limit is lower


def _or_default(default: Any) -> BeforeValidator:
    """Null is the same as nothing."""
    return BeforeValidator(lambda value: default if value is None else value)


def _check_texts(value: Any) -> Any:
    """Refuse what is no text and no list of texts in one line, however many of them are wrong."""
    if isinstance(value, list) and len(value) > MOST_TEXTS:
        raise ValueError(f"{len(value):,} texts are over the limit of {MOST_TEXTS:,}")
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("neither a text nor a list of texts")
    return list(map(writable, texts)) if isinstance(value, list) else writable(value)


Texts = Annotated[str | list[str], BeforeValidator(_check_texts)]


class Asked(BaseModel):
    """What every body may bring. LibreTranslate ignores what it does not know."""

    model_config = ConfigDict(extra="ignore", str_strip_whitespace=False, hide_input_in_errors=True)
    api_key: str | None = Field(None, description="needed where the service asks for one", max_length=200)


class TranslateBody(Asked):
    """As LibreTranslate has it."""

    q: Texts = Field(description="text, or texts, to translate", examples=["Good morning!"])
    source: Annotated[Short, _or_default("auto")] = Field("auto", description="language of the text, or auto")
    target: Short = Field(description="language to translate into", examples=["fr"])
    format: Annotated[Short, _or_default("text")] = Field("text", description="text or html")
    alternatives: Annotated[int, _or_default(0)] = Field(0, ge=0, description="how many more translations of each text")


class DetectBody(Asked):
    """As LibreTranslate has it."""

    q: Annotated[str, AfterValidator(writable)] = Field(description="text", examples=["Bonjour !"])


class AttentionBody(Asked):
    """What /v1/attention takes."""

    model_config = ConfigDict(extra="forbid")
    text: Texts = Field(description="text, or texts, to translate", examples=["Good morning!"])
    source: Short = Field("en", description="language of the text")
    target: Short = Field("fr", description="language to translate into")
    beam_size: int | None = Field(None, ge=1, description="hypotheses kept; 1 is greedy")
    glossary: dict[str, str] = Field(
        {}, max_length=100, description="words, and how they are to be translated", examples=[{"bank": "rive"}]
    )


class V1Body(AttentionBody):
    """What /v1/translate takes."""

    format: Short = Field("text", description="text or html")
    n_best: int = Field(1, ge=1, description="translations of each sentence")
    confidence: bool = Field(False, description="say how sure to be of every sentence and word")
    stream: bool = Field(False, description="answer sentence by sentence, as server-sent events")


class FileBody(Asked):
    """As LibreTranslate has it, beside the file."""

    source: Short = Field("auto", description="language of the file, or auto")
    target: Short = Field(description="language to translate into", examples=["fr"])


async def read_body(request: Request, kind: type[Body], seconds: float) -> Body:
    """The body of a request, of either form, beside what its address asks; it must arrive within some seconds."""
    asked: dict[str, Any] = dict(request.query_params)
    body = await _arrived(request, seconds)
    content = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    try:
        if content == URLENCODED:
            return kind.model_validate(asked | await asyncio.to_thread(_urlencoded, body))
        if content == MULTIPART:
            return kind.model_validate(asked | await multipart(request))
        if content.endswith("json"):
            body = body.removeprefix(BOM)
            return await asyncio.to_thread(kind.model_validate_json, body) if body else kind.model_validate(asked)
    except ValidationError as error:
        raise invalid(_first_fault(error)) from None
    raise Refusal(415, f"content type {content[:100]!r} is not application/json or a form")


async def read_file(request: Request, seconds: float) -> tuple[FileBody, str, str]:
    """A form with a file: what is asked, the file's text, and the ending of its name, of which no more is used."""
    await _arrived(request, seconds)
    values = await multipart(request, files=1)
    file = values.pop("file", None)
    if not isinstance(file, tuple):
        raise invalid("file is missing: send it as multipart/form-data")
    try:
        body = FileBody.model_validate(values)
    except ValidationError as error:
        raise invalid(_first_fault(error)) from None
    name, content = file
    ending = PurePosixPath(name).suffix.lower()
    if ending not in KINDS:
        raise invalid(f"a file's name ends in {ending[:10]!r}, not in {' or '.join(KINDS)}")
    try:
        return body, content.decode("utf-8-sig"), ending
    except UnicodeDecodeError:
        raise invalid("the file is not UTF-8") from None


async def _arrived(request: Request, seconds: float) -> bytes:
    """The whole body of a request."""
    try:
        async with asyncio.timeout(seconds):
            return await request.body()
    except TimeoutError:
        raise Refusal(408, f"the body has not arrived within {seconds:g} s") from None
    except ClientDisconnect:
        raise Refusal(499, "the client has left") from None


def _urlencoded(body: bytes) -> dict[str, Any]:
    """Fields of a form; what curl and browsers send unescaped is UTF-8, too."""
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
    except UnicodeDecodeError:
        raise invalid("the form is not UTF-8") from None
    except ValueError:
        raise invalid(f"the form has more than {MOST_FIELDS:,} fields") from None
    return _fields(pairs)


async def multipart(request: Request, files: int = 0) -> dict[str, Any]:
    """Fields of a form in parts, with so many files at most, each as its name and its content."""
    _, parameters = parse_options_header(request.headers.get("content-type", ""))
    if parameters.get(b"charset", b"utf-8").lower() not in (b"utf-8", b"utf8", b"us-ascii"):
        raise invalid(UNREADABLE)  # other codecs may take minutes
    try:
        async with request.form(max_files=files, max_fields=MOST_FIELDS) as form:
            pairs = [
                (name, (value.filename or "", await value.read()) if isinstance(value, UploadFile) else value)
                for name, value in form.multi_items()
            ]
    except HTTPException:
        raise invalid(UNREADABLE) from None
    return _fields(pairs)


def _fields(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """A value for each name, or a list where it has several."""
    values: dict[str, list[Any]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return {name: several if len(several) > 1 else several[0] for name, several in values.items()}


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_input=False, include_url=False)[0]
    name = ".".join(map(str, fault["loc"]))
    name = name[:60] if name.isprintable() else repr(name[:60])
    message = str(fault["msg"]).removeprefix("Value error, ")
    if fault["type"] == "missing":
        return f"{name} is missing"
    if fault["type"] == "extra_forbidden":
        return f"{name[:50]!r} is not a field of this request"
    return f"{name}: {message}" if name else message
