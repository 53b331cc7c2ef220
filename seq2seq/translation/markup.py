"""HTML in and out: text goes to the model without its tags, and they go round the words that translate theirs.

A page is cut into runs: text and the inline tags in it, between tags that begin a line of their own. What is in no run
stays as it is, to the character.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape, unescape
from typing import NamedTuple

from seq2seq.errors import UserError
from seq2seq.translation.plan import Plan
from seq2seq.translation.result import SentenceTranslation, Translation
from seq2seq.translation.sentences import has_words, tidy
from seq2seq.translation.tags import Element, tagged
from seq2seq.translation.tokens import Attribute, Token, attributes, read_tokens

_INLINE = """a abbr acronym b bdi bdo big cite del dfn em font i ins label mark q s small span strike strong sub sup
    time tt u var"""
INLINE = frozenset(_INLINE.split())
POINTS = frozenset(("img", "wbr", ""))  # what takes a place in a line; "" is a comment
NOTES = frozenset(("sub", "sup"))
ATOMS = frozenset(("code", "kbd", "samp"))  # kept as they are, as words of a sentence
_TERMS, _OPTIONS = ("dt", "dd"), ("option", "optgroup")
_CELLS, _ROWS = ("td", "th", "tr", "tbody", "tfoot"), ("tr", "tbody", "tfoot")
LIKE = {"dt": _TERMS, "dd": _TERMS, "td": _CELLS, "th": _CELLS, "tr": _ROWS, "option": _OPTIONS}  # what ends each
OPAQUE = frozenset(["iframe", "math", "noscript", "object", "pre", "script", "style", "svg", "template", "textarea"])
SPOKEN = ("title", "alt", "placeholder", "aria-label")  # attributes that people read
MOST_NESTED = 100  # elements inside each other


class Tag(NamedTuple):
    """A tag outside of runs."""

    raw: str


@dataclass
class Run:
    """Text with inline elements, in the order of their opening tags; their offsets count characters of `text`."""

    text: str = ""
    elements: list[Element] = field(default_factory=list)
    atoms: dict[str, str] = field(default_factory=dict)  # placeholders in the text, and what they stand for
    tokens: list[str | Tag] = field(default_factory=list)  # the same as it stands in the source
    open: list[int] = field(default_factory=list)  # elements that are not closed yet
    next_atom: int = 0  # the number of the next placeholder

    @property
    def raw(self) -> str:
        """The run as it stands in the source."""
        return "".join(token if isinstance(token, str) else token.raw for token in self.tokens)


Part = str | Tag | Run


def cut(source: str) -> list[Part]:
    """The source as runs, tags between them, and what stays as it is."""
    tokens = read_tokens(source)
    ends = _ends(tokens)
    parts: list[Part] = []
    run, index = Run(), 0
    while index < len(tokens):
        token = tokens[index]
        end = index
        if token.kind == "open" and (_is_kept(token) or _is_note(tokens, index)):
            end = ends[index] if index in ends else _omitted_end(tokens, ends, index)
        raw = "".join(each.raw for each in tokens[index : end + 1])
        if end > index and not _is_note(tokens, index) and (token.name in ATOMS or token.name in INLINE):
            _add_atom(run, raw)
        elif end > index and token.name in NOTES:
            _add_point(run, Token("void", token.name, raw))
        elif end > index:
            run = _finish(run, parts)
            parts.append(raw)
        elif token.kind == "text":
            _add_text(run, token.raw)
        elif token.kind in ("open", "close") and token.name in INLINE:
            _add_tag(run, token)
        elif token.name in POINTS and (token.kind == "void" or token.raw.startswith("<!--")):
            _add_point(run, token)
        else:
            run = _finish(run, parts)
            parts.append(token.raw if token.kind == "other" else Tag(token.raw))
        index = end + 1
    _finish(run, parts)
    return parts


def _ends(tokens: Sequence[Token]) -> dict[int, int]:
    """Opening tags and the closing tags that belong to them, by number."""
    found: dict[int, int] = {}
    open_tags: dict[str, list[int]] = {}
    for index, token in enumerate(tokens):
        if token.kind == "open":
            open_tags.setdefault(token.name, []).append(index)
        elif token.kind == "close" and open_tags.get(token.name):
            found[open_tags[token.name].pop()] = index
    return found


def _omitted_end(tokens: Sequence[Token], ends: Mapping[int, int], start: int) -> int:
    """Where an element ends that has no closing tag: before the next of its like, or with what it is in.

    Only what says that it is not to be translated is followed so far: HTML leaves out the end of `li`, `p`, `td`...
    """
    if not _says_no(tokens[start].raw):
        return start
    name, index = tokens[start].name, start + 1
    while index < len(tokens):
        token = tokens[index]
        if token.kind == "close" or (token.kind == "open" and _ends_before(name, token.name)):
            break
        index = ends.get(index, index) + 1 if token.kind == "open" else index + 1
    return index - 1


def _ends_before(name: str, other: str) -> bool:
    """Whether an element whose closing tag is left out ends where another begins."""
    if name == "p":
        return other not in INLINE and other not in POINTS
    return other in LIKE.get(name, (name,))


def _is_kept(token: Token) -> bool:
    """Whether an element is not to be looked into."""
    if token.name in OPAQUE or token.name in ATOMS:
        return True
    return _says_no(token.raw)


def _is_note(tokens: Sequence[Token], index: int) -> bool:
    """Whether a token opens a mark such as <sup>1</sup>, alone in its element, behind a word."""
    note = tokens[index : index + 3]
    kinds = [token.kind for token in note]
    if kinds != ["open", "text", "close"] or note[0].name not in NOTES or note[2].name != note[0].name:
        return False
    after = tokens[index + 3].raw[:1] if index + 3 < len(tokens) and tokens[index + 3].kind == "text" else ""
    return not has_words(note[1].raw) and not after.isalnum()


def _says_no(tag: str) -> bool:
    values = {each.name: each.value for each in attributes(tag)}
    return values.get("translate", "").lower() == "no" or "notranslate" in values.get("class", "").split()


def _add_text(run: Run, raw: str) -> None:
    """Text as the model reads it, with one space where there is white space."""
    run.tokens.append(raw)
    text = unescape(raw)
    inner = tidy(text)
    lead, trail = text[:1].isspace(), text[-1:].isspace()
    words = " " * lead + inner + " " * (trail and bool(inner))
    run.text += words[1:] if run.text.endswith(" ") and words.startswith(" ") else words


def _add_tag(run: Run, token: Token) -> None:
    """An opening tag, or a closing one for the newest element of that name that is open."""
    run.tokens.append(Tag(token.raw))
    place = len(run.text)
    parent = run.open[-1] if run.open else None
    if token.kind == "open":
        depth = 1 if parent is None else run.elements[parent].depth + 1
        if depth > MOST_NESTED:
            raise UserError(f"more than {MOST_NESTED} tags stand inside each other")
        run.elements.append(Element(token.name, token.raw, start=place, end=-1, parent=parent, depth=depth))
        run.open.append(len(run.elements) - 1)
        return
    for number in reversed(run.open):
        if run.elements[number].name == token.name:
            run.elements[number].closing, run.elements[number].end = token.raw, place
            run.open.remove(number)
            return
    run.elements.append(Element(token.name, "", token.raw, place, place, parent))


def _add_point(run: Run, token: Token) -> None:
    run.tokens.append(Tag(token.raw) if token.name else token.raw)
    place = len(run.text)
    parent = run.open[-1] if run.open else None
    glued = token.name in NOTES and run.text[-1:].isalnum()
    run.elements.append(Element(token.name, token.raw, "", place, place, parent, glued=glued))


def _add_atom(run: Run, raw: str) -> None:
    """What is kept as it is stands in the text as a placeholder, which survives."""
    run.tokens.append(raw)
    while f"{{{run.next_atom}}}" in run.text:
        run.next_atom += 1
    placeholder = f"{{{run.next_atom}}}"
    run.next_atom += 1
    run.atoms[placeholder] = raw
    run.text += placeholder


def _finish(run: Run, parts: list[Part]) -> Run:
    """Add a run that has ended, or its tokens where it has no words; returns the next."""
    for number in run.open:
        run.elements[number].end = len(run.text)
    bare = run.text
    for placeholder in run.atoms:
        bare = bare.replace(placeholder, "")
    parts += [run] if has_words(bare) else run.tokens
    return Run()


@dataclass(frozen=True)
class MarkupPlan:
    """A page whose texts are planned; it stands where a Plan does."""

    text: str
    parts: list[Part]
    texts: list[str]  # of every run, and of every attribute that people read
    plans: dict[str, Plan]  # of each of them

    @property
    def sentences(self) -> list[str]:
        """What the model is to translate, each once, in order."""
        return list(dict.fromkeys(sentence for plan in self.plans.values() for sentence in plan.sentences))

    @property
    def size(self) -> int:
        """How many parts are translated, equal ones counted each."""
        sizes = {text: plan.size for text, plan in self.plans.items()}
        return sum(sizes[text] for text in self.texts)

    def assemble(self, translated: Mapping[str, SentenceTranslation]) -> Translation:
        """The page again, with translations in the place of its sentences."""
        html = "".join(self._written(part, translated) for part in self.parts)
        runs = (self.plans[part.text] for part in self.parts if isinstance(part, Run))
        results = [part for plan in runs for part in plan.assemble(translated).parts]
        return Translation(source=self.text, parts=results, markup=html)

    def _written(self, part: Part, translated: Mapping[str, SentenceTranslation]) -> str:
        if isinstance(part, str):
            return part
        if isinstance(part, Tag):
            return self._spoken(part.raw, translated)
        elements = [replace(each, opening=self._spoken(each.opening, translated)) for each in part.elements]
        body = tagged(elements, part.atoms, self.plans[part.text].parts, translated)
        raw = part.raw
        lead, trail = raw[: len(raw) - len(raw.lstrip())], raw[len(raw.rstrip()) :]
        return lead + body.strip(" ") + trail

    def _spoken(self, tag: str, translated: Mapping[str, SentenceTranslation]) -> str:
        """A tag with its attributes translated."""
        for each in reversed(_spoken_attributes(tag)):
            text = self.plans[each.value].assemble(translated).text
            quote = "" if tag[each.start - 1] in "\"'" else '"'
            tag = tag[: each.start] + quote + escape(text) + quote + tag[each.end :]
        return tag


def _spoken_attributes(tag: str) -> list[Attribute]:
    """Attributes of a tag that are to be translated."""
    if not any(name in tag.lower() for name in SPOKEN) or _says_no(tag):
        return []
    return [each for each in attributes(tag) if each.name in SPOKEN and has_words(each.value)]


def plan_markup(source: str, plan: Callable[[str], Plan]) -> MarkupPlan:
    """A page cut into texts, each planned by `plan`."""
    parts = cut(source)
    texts: list[str] = []
    for part in parts:
        tags = [part.raw] if isinstance(part, Tag) else []
        if isinstance(part, Run):
            texts.append(part.text)
            tags = [element.opening for element in part.elements]
        texts += [each.value for tag in tags for each in _spoken_attributes(tag)]
    return MarkupPlan(source, parts, texts, {text: plan(text) for text in dict.fromkeys(texts)})
