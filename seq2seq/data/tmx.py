"""TMX, the exchange format of translation memories, as a stream of pairs (https://www.gala-global.org/tmx-14b)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lxml import etree

from seq2seq.data.lines import one_line, opened
from seq2seq.errors import UserError

XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
NATIVE = {"bpt", "ept", "it", "ph", "ut"}  # elements whose own text is formatting code of another program
NAMED = 12  # languages that an error lists at most


def read_tmx(path: Path, source: str, target: str) -> Iterator[tuple[str, str]]:
    """Every segment in one language with every segment in the other, unit by unit.

    Nothing outside the file is read, and no entity is expanded but those of XML itself.
    """
    languages: set[str] = set()
    matched = False
    with opened(path) as stream:
        try:
            units = etree.iterparse(
                stream, tag="{*}tu", resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False
            )
            for _, unit in units:
                segments = list(_segments(unit, str(path)))
                languages |= {language for language, _ in segments[:NAMED]} if len(languages) < NAMED else set()
                rights = [text for language, text in segments if speaks(language, target)]
                lefts = [text for language, text in segments if speaks(language, source)]
                matched = matched or bool(lefts and rights)
                yield from ((left, right) for left in lefts for right in rights)
                _forget(unit)
        except etree.XMLSyntaxError as error:
            reason = " ".join((error.msg or "it is empty").split()).rpartition(", line ")
            raise UserError(
                f"{path}, line {error.lineno or 1}: not well-formed XML: {reason[0] or reason[2]}"
            ) from None
    if not matched:
        found = ", ".join(sorted(languages)) or "none"
        raise UserError(f"{path} has no unit with both {source} and {target}; its languages are: {found}")


def speaks(language: str, wanted: str) -> bool:
    """Whether a language tag is the wanted one or a regional form of it: `en` is met by EN, en-US and en_GB."""
    tag, code = (text.casefold().replace("_", "-") for text in (language, wanted))
    return tag == code or tag.startswith(code + "-")


def _segments(unit: Any, name: str) -> Iterator[tuple[str, str]]:
    """Language and text of each variant of a unit."""
    for variant in unit.iterfind("{*}tuv"):
        language = variant.get(XML_LANG) or variant.get("lang") or ""
        for segment in variant.iterfind("{*}seg"):
            yield language.strip(), one_line("".join(_texts(segment, name)))


def _texts(element: Any, name: str, native: bool = False) -> Iterator[str]:
    """The text of a segment without native codes; `sub`, text inside a code, belongs to it."""
    if not native:
        yield element.text or ""
    for child in element:
        if child.tag is etree.Entity:
            raise UserError(f"{name}, line {child.sourceline}: the entity {child.text} is not expanded; write its text")
        if isinstance(child.tag, str):  # neither a comment nor a processing instruction
            yield from _texts(child, name, native=etree.QName(child).localname in NATIVE)
        if not native:
            yield child.tail or ""


def _forget(unit: Any) -> None:
    """Free a unit that has been read, and what stands before it, so that memory does not grow with the file."""
    unit.clear(keep_tail=False)
    while unit.getprevious() is not None:
        del unit.getparent()[0]
