"""HTML as tokens, in one pass: put together they are the source again, whatever it is."""

import re
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple

VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"]
)
RAW = frozenset(["script", "style", "textarea", "title", "xmp"])  # their content is no markup
# Possessive throughout: a tag ends, or the source does.
_TAG = re.compile(r"""<(/?)([a-zA-Z][^\s/>]*+)(?:[^>"']|"[^"]*+"|'[^']*+')*+>""")
_OTHER = re.compile(r"<[!?/]")
_ATTRIBUTE = re.compile(r"""([^\s"'>/=]++)(?:(\s*+=\s*+)("[^"]*+"|'[^']*+'|[^\s"'>]++))?+""")


class Token(NamedTuple):
    """A stretch of the source: text, a tag (open, close, void), or what is neither (a comment, a declaration)."""

    kind: str
    name: str  # of the element, in lower case
    raw: str


class Attribute(NamedTuple):
    """An attribute of a tag; its value without quotes and with its entities resolved, and where that stands."""

    name: str
    value: str
    start: int
    end: int


def read_tokens(source: str) -> list[Token]:
    """The source as tokens, texts that follow each other as one."""
    merged: list[Token] = []
    for token in _tokens(source):
        if merged and token.kind == merged[-1].kind == "text":
            merged[-1] = Token("text", "", merged[-1].raw + token.raw)
        else:
            merged.append(token)
    return merged


def _tokens(source: str) -> Iterator[Token]:
    place = 0
    while place < len(source):
        start = source.find("<", place)
        if start < 0:
            yield Token("text", "", source[place:])
            return
        if start > place:
            yield Token("text", "", source[place:start])
        token = _markup_at(source, start)
        yield token
        place = start + len(token.raw)
        if token.kind == "open" and token.name in RAW:
            end = _end_of_raw(source, place, token.name)
            if end > place:
                yield Token("text" if token.name == "title" else "other", "", source[place:end])
            place = end


def _markup_at(source: str, start: int) -> Token:
    """What begins with the `<` at a place. What does not end reaches to the end of the source."""
    tag = _TAG.match(source, start)
    if tag is not None:
        name = tag[2].lower()
        open_kind = "void" if name in VOID or tag[0].endswith("/>") else "open"
        return Token("close" if tag[1] else open_kind, name, tag[0])
    if re.match(r"</?[a-zA-Z]", source[start : start + 3]):
        return Token("other", "", source[start:])
    if source.startswith("<!--", start):
        end = source.find("-->", start + 4)
        return Token("other", "", source[start : end + 3 if end >= 0 else len(source)])
    if _OTHER.match(source, start):
        end = source.find(">", start)
        return Token("other", "", source[start : end + 1 if end >= 0 else len(source)])
    return Token("text", "", "<")


def _end_of_raw(source: str, place: int, name: str) -> int:
    found = re.compile(rf"</{name}[\s/>]", re.IGNORECASE).search(source, place)
    return found.start() if found else len(source)


def text_of(source: str) -> str:
    """What a page says, without its markup."""
    return unescape(" ".join(token.raw for token in read_tokens(source) if token.kind == "text"))


def attributes(tag: str) -> list[Attribute]:
    """The attributes of a tag, in order; one without a value has none that could be written to."""
    first = re.match(r"<[^\s/>]*+", tag)
    found = []
    for match in _ATTRIBUTE.finditer(tag, first.end() if first else 0):
        value = match[3] or ""
        quoted = value[:1] in ("'", '"')
        start, end = match.start(3) + quoted, match.end(3) - quoted
        found.append(Attribute(match[1].lower(), unescape(tag[start:end]) if value else "", start, end))
    return found
