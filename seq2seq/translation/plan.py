"""A text before it is translated: what the model is given, and what is kept as it is."""

from collections.abc import Mapping
from typing import NamedTuple

from seq2seq.translation.result import SentenceTranslation, Translation
from seq2seq.translation.sentences import Piece


class Plan(NamedTuple):
    """A text cut into what the model is given and what is kept as it is."""

    text: str
    parts: list[Piece]

    @property
    def sentences(self) -> list[str]:
        """What the model is to translate, each once, in order."""
        return list(dict.fromkeys(part.text for part in self.parts if part.translatable))

    @property
    def size(self) -> int:
        """How many parts are translated, equal ones counted each."""
        return sum(part.translatable for part in self.parts)

    def assemble(self, translated: Mapping[str, SentenceTranslation]) -> Translation:
        """The text again, with translations in the place of its sentences."""
        return Translation(source=self.text, parts=[finished(part, translated) for part in self.parts])


def finished(part: Piece, translated: Mapping[str, SentenceTranslation]) -> str | SentenceTranslation:
    """What comes out for a part of a text."""
    return translated[part.text] if part.translatable else part.text
