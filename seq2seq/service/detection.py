"""Which language a text is in, among those that the service knows; offline, by py3langid."""

from collections.abc import Sequence
from functools import cache
from typing import Any

LANGUAGE_NAMES = {"en": "English", "fr": "French"}


def language_name(code: str) -> str:
    """The English name of a language, or its code."""
    return LANGUAGE_NAMES.get(code, code)


def detect(text: str, languages: Sequence[str]) -> list[tuple[str, float]]:
    """Languages with confidence in percent, the likeliest first; none for a text without letters."""
    if not any(map(str.isalpha, text)):
        return []
    ranked = _identifier(tuple(languages)).rank(text[:10_000])
    return [(str(code), round(100 * float(share), 1)) for code, share in ranked]


@cache
def _identifier(languages: tuple[str, ...]) -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(list(languages))
    return identifier
