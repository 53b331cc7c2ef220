"""What a service allows; every limit has a name that its refusal tells."""

from typing import Annotated

from pydantic import Field, StringConstraints

from seq2seq.config import Section

Origin = Annotated[str, StringConstraints(pattern=r"^(\*|https?://[^/\s]+)$")]
Key = Annotated[str, StringConstraints(min_length=8, max_length=200)]


class ServiceConfig(Section):
    """Limits, keys and manners of a service. The defaults are for one machine and people who are not known."""

    max_body: int = Field(2_000_000, ge=1_000, description="bytes of a request")
    max_characters: int = Field(50_000, ge=1, description="characters of all texts of a request")
    max_texts: int = Field(500, ge=1, description="texts of a request")
    max_sentences: int = Field(1_500, ge=1, description="sentences of a request")
    max_beam: int = Field(10, ge=1, le=64, description="beam size")
    max_alternatives: int = Field(5, ge=0, description="further translations of a text")
    max_maps: int = Field(20, ge=1, description="texts whose attention is asked in one request")
    deadline: float = Field(60.0, gt=0, description="seconds until a request is given up")
    queue_sentences: int = Field(2_000, ge=1, description="sentences that wait or are searched at once")
    batch_sentences: int = Field(48, ge=1, description="sentences that are searched together")
    gather: float = Field(0.004, ge=0, description="seconds that an idle model waits for company")
    api_keys: list[Key] = Field(
        [], repr=False, description="keys (8 characters or more) of which a request must bring one; none: open"
    )
    body_seconds: float = Field(15.0, gt=0, description="seconds within which a request's body has arrived")
    requests_per_minute: int = Field(0, ge=0, description="of a key, or of an address without one; 0: no limit")
    allow_origins: list[Origin] = Field(
        [], description="web pages of other origins that may ask, as https://example.org"
    )
    glossary: str | dict[str, str] = Field(
        "", description='file of words and how they are translated; of one direction among several: { en-fr = "FILE" }'
    )
    files: bool = Field(False, description="whether files are taken for translation")
