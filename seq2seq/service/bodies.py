"""Bodies of requests: JSON, or a form, into what a door takes; faults in one line."""

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request

from seq2seq.service.refusal import invalid

Body = TypeVar("Body", bound=BaseModel)
Language = Annotated[str, StringConstraints(max_length=20)]
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


class Asked(BaseModel):
    """What every body may bring."""

    model_config = ConfigDict(extra="ignore", str_strip_whitespace=False, hide_input_in_errors=True)
    api_key: str | None = Field(None, description="needed where the service asks for one", max_length=200)


class TranslateBody(Asked):
    """As LibreTranslate has it."""

    q: str | list[str] = Field(description="text, or texts, to translate", examples=["Good morning!"])
    source: Language = Field("auto", description="language of the text, or auto", examples=["en"])
    target: Language = Field(description="language to translate into", examples=["fr"])
    format: str = Field("text", description="text or html")
    alternatives: int = Field(0, ge=0, description="how many more translations of each text")


class DetectBody(Asked):
    """As LibreTranslate has it."""

    q: str = Field(description="text", examples=["Bonjour !"])


class V1Body(Asked):
    """What /v1/translate and /v1/attention take."""

    text: str | list[str] = Field(description="text, or texts, to translate", examples=["Good morning!"])
    source: Language = Field("en", description="language of the text")
    target: Language = Field("fr", description="language to translate into")
    beam_size: int | None = Field(None, ge=1, description="hypotheses kept; 1 is greedy")
    n_best: int = Field(1, ge=1, description="translations of each sentence")
    stream: bool = Field(False, description="answer sentence by sentence, as server-sent events")


async def read_body(request: Request, kind: type[Body]) -> Body:
    """The body of a request, of either form."""
    content = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if content in FORMS:
            form = await request.form(max_files=0, max_fields=1000)
            values: Any = {name: form.getlist(name) if len(form.getlist(name)) > 1 else form[name] for name in form}
            return kind.model_validate(values)
        return kind.model_validate_json(await request.body() or b"{}")
    except ValidationError as error:
        raise invalid(_first_fault(error)) from None
    except HTTPException as error:  # what the form's parser cannot read
        raise invalid(str(error.detail)) from None


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_input=False, include_url=False)[0]
    name = ".".join(str(part) for part in fault["loc"] if part not in ("str", "list[str]"))
    if fault["type"] == "missing":
        return f"{name} is missing"
    return f"{name}: {fault['msg']}" if name else fault["msg"]


def query_key(request: Request) -> str | None:
    """The key that a request without a body brings."""
    return request.query_params.get("api_key")
