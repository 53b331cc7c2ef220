"""HTML in and out: text goes to the model without its tags, and they go round the words that translate theirs.

A page is cut into runs: text and the inline tags in it, between tags that begin a line of their own. What is in no run
stays as it is, to the character.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape, unescape
from html.parser import HTMLParser
from typing import NamedTuple

from seq2seq.translation.plan import Plan
from seq2seq.translation.result import SentenceTranslation, Translation
from seq2seq.translation.sentences import has_words
from seq2seq.translation.tags import Element, tagged

_INLINE = """a abbr acronym b bdi bdo big cite del dfn em font i ins label mark q s small span strike strong sub sup
    time tt u var"""
_OPAQUE = "code head iframe kbd math noscript object samp script style svg template textarea"
_VOID = "area base br col embed hr img input link meta param source track wbr"
INLINE, OPAQUE, VOID = (frozenset(names.split()) for names in (_INLINE, _OPAQUE, _VOID))
SPOKEN = ("title", "alt", "placeholder", "aria-label")  # attributes that people read
_EDGES = re.compile(r"(\s*).*?(\s*)", re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n\f]+")
_ATTRIBUTE = re.compile(rf"""(?<=\s)({"|".join(SPOKEN)})(\s*=\s*)("[^"]*"|'[^']*')""", re.IGNORECASE)
_UNTRANSLATED = re.compile(
    r"""\stranslate\s*=\s*["']?no\b|\sclass\s*=\s*("[^"]*\bnotranslate\b|'[^']*\bnotranslate\b)"""
)


class Token(NamedTuple):
    """A stretch of the source: text, an opening or closing tag, or another thing (a void element, a comment)."""

    kind: str
    name: str  # of the element
    raw: str


@dataclass
class Run:
    """Text with inline elements, in the order of their opening tags; their offsets count characters of `text`."""

    text: str = ""
    elements: list[Element] = field(default_factory=list)
    raw: str = ""  # the same as it stands in the source


class Tag(NamedTuple):
    """A tag outside of runs."""

    raw: str


def read_tokens(source: str) -> list[Token]:
    """The source as tokens; put together they are the source again."""
    return list(_merged(_Reader(source).tokens))


class _Reader(HTMLParser):
    """Notes where each token begins."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=False)
        self.tokens: list[Token] = []
        self._source, self._at = source, 0
        self._lines = [0, *(match.end() for match in re.finditer("\n", source))]
        self._open = ("text", "")
        for kind in ("data", "entityref", "charref"):
            setattr(self, f"handle_{kind}", partial(self._begin, "text"))
        for kind in ("handle_comment", "handle_decl", "handle_pi", "unknown_decl"):
            setattr(self, kind, partial(self._begin, "other"))
        self.feed(source)
        self.close()
        self._end(len(source))

    def _begin(self, kind: str, _: str = "", name: str = "") -> None:
        line, column = self.getpos()
        self._end(self._lines[line - 1] + column)
        self._open = (kind, name)

    def _end(self, place: int) -> None:
        if place > self._at:
            self.tokens.append(Token(*self._open, self._source[self._at : place]))
            self._at = place

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._begin("other" if tag in VOID else "open", name=tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self._begin("other", name=tag)

    def handle_endtag(self, tag: str) -> None:
        self._begin("close", name=tag)


def _merged(tokens: Iterable[Token]) -> Iterator[Token]:
    """Texts that follow each other as one."""
    waiting = ""
    for token in tokens:
        if token.kind == "text":
            waiting += token.raw
            continue
        if waiting:
            yield Token("text", "", waiting)
            waiting = ""
        yield token
    if waiting:
        yield Token("text", "", waiting)


def cut(source: str) -> "list[str | Tag | Run]":
    """The source as runs, tags between them, and what stays as it is."""
    parts: list[str | Tag | Run] = []
    run, hidden = Run(), ""  # hidden: the element that is not looked into, while inside one
    depth = 0
    for token in read_tokens(source):
        if hidden:
            depth += (token.name == hidden) * {"open": 1, "close": -1}.get(token.kind, 0)
            parts.append(token.raw)
            hidden = hidden if depth else ""
        elif token.kind == "open" and (token.name in OPAQUE or _UNTRANSLATED.search(token.raw)):
            run = _finish(run, parts)
            parts.append(Tag(token.raw))
            hidden, depth = token.name, 1
        elif token.kind == "text":
            _add_text(run, token.raw)
        elif token.name in INLINE and token.kind in ("open", "close"):
            _add_tag(run, token)
        else:
            run = _finish(run, parts)
            parts.append(Tag(token.raw))
    _finish(run, parts)
    return parts


def _add_text(run: Run, raw: str) -> None:
    text = _SPACE.sub(" ", unescape(raw))
    run.text += text[1:] if run.text.endswith(" ") and text.startswith(" ") else text
    run.raw += raw


def _add_tag(run: Run, token: Token) -> None:
    """An opening tag, or a closing one for the newest element of that name that is open."""
    run.raw += token.raw
    if token.kind == "open":
        run.elements.append(Element(token.raw, start=len(run.text), end=-1))
        return
    for element in reversed(run.elements):
        if element.end < 0 and re.match(rf"<{token.name}\b", element.opening, re.IGNORECASE):
            element.closing, element.end = token.raw, len(run.text)
            return
    run.elements.append(Element("", token.raw, len(run.text), len(run.text)))


def _finish(run: Run, parts: list[str | Tag | Run]) -> Run:
    """Add a run that has ended; returns the next."""
    for element in run.elements:
        if element.end < 0:
            element.end = len(run.text)
    if run.raw:
        parts.append(run if has_words(run.text) else run.raw)
    return Run()


@dataclass(frozen=True)
class MarkupPlan:
    """A page whose texts are planned; it stands where a Plan does."""

    text: str
    parts: "list[str | Tag | Run]"
    plans: dict[str, Plan]  # of each run's text, and of each attribute that people read

    @property
    def sentences(self) -> list[str]:
        """What the model is to translate, each once, in order."""
        return list(dict.fromkeys(sentence for plan in self.plans.values() for sentence in plan.sentences))

    def assemble(self, translated: Mapping[str, SentenceTranslation]) -> Translation:
        """The page again, with translations in the place of its sentences."""
        html = "".join(self._written(part, translated) for part in self.parts)
        runs = (self.plans[part.text] for part in self.parts if isinstance(part, Run))
        results = [part for plan in runs for part in plan.assemble(translated).parts]
        return Translation(source=self.text, parts=results, markup=html)

    def _written(self, part: "str | Tag | Run", translated: Mapping[str, SentenceTranslation]) -> str:
        def spoken(tag: str) -> str:
            return _ATTRIBUTE.sub(lambda match: self._attribute(match, translated), tag)

        if isinstance(part, str):
            return part
        if isinstance(part, Tag):
            return spoken(part.raw)
        elements = [replace(element, opening=spoken(element.opening)) for element in part.elements]
        body = tagged(elements, self.plans[part.text].parts, translated)
        return _around(part.raw, body)

    def _attribute(self, match: re.Match[str], translated: Mapping[str, SentenceTranslation]) -> str:
        value = match[3][1:-1]
        text = self.plans[unescape(value)].assemble(translated).text if unescape(value) in self.plans else value
        return f"{match[1]}{match[2]}{match[3][0]}{escape(text)}{match[3][0]}"


def plan_markup(source: str, plan: Callable[[str], Plan]) -> MarkupPlan:
    """A page cut into texts, each planned by `plan`."""
    parts = cut(source)
    plans: dict[str, Plan] = {}
    for part in parts:
        tags = [part.raw] if isinstance(part, Tag) else []
        if isinstance(part, Run):
            plans.setdefault(part.text, plan(part.text))
            tags = [element.opening for element in part.elements]
        for match in (match for tag in tags for match in _ATTRIBUTE.finditer(tag)):
            plans.setdefault(unescape(match[3][1:-1]), plan(unescape(match[3][1:-1])))
    return MarkupPlan(source, parts, plans)


def _around(raw: str, body: str) -> str:
    """The white space in which a run stands, with its line ends."""
    lead, trail = _EDGES.fullmatch(raw).groups()  # type: ignore[union-attr]  # it fits anything
    return (lead or "") + body.strip(" ") + (trail or "")
