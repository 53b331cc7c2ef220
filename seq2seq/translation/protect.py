"""What must come out as it went in: addresses, placeholders, numbers, names with capitals inside.

A sentence that holds such items is also translated with a stand-in for each, a name or a number that every model
knows. If the plain translation has lost an item, the one that has kept most of them is taken instead.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from seq2seq.translation.result import Alternative, SentenceTranslation

NAMES = ("Tom", "Mary", "John", "Boston", "Paris", "Emily")
NUMBERS = ("30", "20", "50", "15", "12", "60")
_ENDINGS = "pdf|txt|jpe?g|png|gif|docx?|xlsx?|csv|zip|html?|py|js"
# Every repetition has a bound, so the time grows with the text's length and not with its square.
_KINDS = {
    "address": r"""(?:https?://|www\.)[^\s<>"']{0,300}[\w/=&#]|[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,5}""",
    "field": r"\{\{\s{0,3}[\w.-]{1,40}\s{0,3}\}\}|\$?\{[\w.-]{0,40}\}|\[\[[^\[\]]{1,40}\]\]"
    r"|__\w{1,40}__|<\w[\w-]{0,40}>",
    "printf": r"%\(\w{1,40}\)[sdif]|%(?:\d{1,2}\$)?[-+0]?\d{0,3}(?:\.\d{1,2})?[sdifuxX@](?!\w)",
    "path": rf"(?:[A-Za-z]:)?(?:[\\/][\w.-]{{0,60}}\w){{2,12}}|(?<!\w)[@#]\w{{1,60}}|\b[\w-]{{1,60}}\.(?:{_ENDINGS})\b",
    "sum": r"(?<!\d)\d[\d.,]{0,20}(?:\s?[-<>=+×÷*/]\s?\d[\d.,]{0,20}\b){1,8}(?<=\d)",
    "amount": r"[€$£¥]\s?\d(?:[\d.,]{0,20}\d)?|(?<![\w.])\d(?:[\d.,]{0,20}\d)?\s?[€$£¥%]",
    "number": r"(?<![\w.])\d[\d.,:/-]{0,40}\d(?!\w)",
    "name": r"\b[a-z]{1,40}[A-Z]\w{0,40}|\b(?:Mc|Mac|De|[A-Z][a-z]{1,40})[A-Z][a-z]\w{0,40}",
}
_ITEM = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items()))
_NUMERIC = ("sum", "amount", "number")
_EITHER = ("field", "printf")  # a placeholder may stand for a name or for a number


class Item(NamedTuple):
    """A stretch of a sentence that must survive."""

    start: int
    end: int
    text: str
    kind: str


class Variant(NamedTuple):
    """A sentence with stand-ins, and the item that each stands for."""

    text: str
    items: dict[str, str]


def find_items(sentence: str) -> list[Item]:
    """What must survive, in order."""
    return [
        Item(match.start(), match.end(), match.group(), match.lastgroup or "") for match in _ITEM.finditer(sentence)
    ]


def variants(sentence: str) -> list[Variant]:
    """The sentence with stand-ins: numbers for numbers; placeholders for numbers, too; names for everything."""
    items = find_items(sentence)
    made = [_with_stand_ins(sentence, items, kinds) for kinds in (_NUMERIC, (*_NUMERIC, *_EITHER), ())] if items else []
    return [variant for number, variant in enumerate(made) if variant and variant not in made[:number]]


def _with_stand_ins(sentence: str, items: Sequence[Item], numeric: Sequence[str]) -> Variant | None:
    """Numbers for items of the kinds that are `numeric`, names for the others; None if there are too many items."""
    names, numbers = ([word for word in words if word not in sentence] for words in (NAMES, NUMBERS))
    text, place, taken = "", 0, {}
    for item in items:
        pool = numbers if item.kind in numeric else names
        if not pool:
            return None
        stand_in = pool.pop(0)
        taken[stand_in] = item.text
        text += sentence[place : item.start] + stand_in
        place = item.end
    return Variant(text + sentence[place:], taken)


def survives(item: str, translation: str) -> bool:
    """Whether an item is in a translation; of numbers the digits, and other signs of theirs, are enough."""
    if item in translation or (item[0].isdigit() and item.replace(" ", "") in translation.replace(" ", "")):
        return True
    if not item[0].isdigit() and item[0] not in "€$£¥":
        return False
    signs = set(re.findall(r"[€$£¥%<>=+]", item))
    digits = re.sub(r"\D", "", item)
    return digits in re.sub(r"[\s.,:/-]", "", translation) and signs <= set(translation)


def best(sentence: str, plain: SentenceTranslation, tried: Mapping[str, SentenceTranslation]) -> SentenceTranslation:
    """The translation in which most items survived; the plain one where it is as good as those with stand-ins."""
    terms = {term.source.casefold() for term in plain.terms}  # what the glossary names is not to survive
    items = [item for item in find_items(sentence) if item.text.casefold() not in terms]
    found = [plain]
    if kept(items, plain.text) < len(items):
        found += [restored(variant, tried[variant.text], sentence) for variant in variants(sentence)]
    return max(found, key=lambda one: kept(items, one.text))  # the first of equals


def kept(items: Sequence[Item], translation: str) -> int:
    """How many items survived; one that stands twice in the source must stand there twice."""
    times = Counter(item.text for item in items)
    return sum(
        min(count, max(translation.count(text), int(survives(text, translation)))) for text, count in times.items()
    )


def restored(variant: Variant, translation: SentenceTranslation, sentence: str) -> SentenceTranslation:
    """The translation of a variant with its items back, but for stand-ins that come more than once."""
    once = [stand_in for stand_in in variant.items if len(_places(stand_in, translation.text)) == 1]
    items = {stand_in: variant.items[stand_in] for stand_in in once}
    options = [Alternative(_put_back(option.text, items), option.score) for option in translation.alternatives]
    return replace(
        translation,
        source=sentence,
        text=_put_back(translation.text, items),
        alternatives=options,
        source_tokens=_tokens(translation.source_tokens, variant.items),
        target_tokens=_tokens(translation.target_tokens, items),
    )


def _places(stand_in: str, text: str) -> list[int]:
    return [match.start() for match in re.finditer(rf"(?<!\w){stand_in}(?!\w)", text)]


def _put_back(text: str, items: Mapping[str, str]) -> str:
    if not items:
        return text
    pattern = rf"(?<!\w)({'|'.join(map(re.escape, items))})(?!\w)"
    return re.sub(pattern, lambda match: items[match[1]], text)


def _tokens(tokens: Sequence[str], items: Mapping[str, str]) -> list[str]:
    """Pieces as they are labelled: the piece that is a stand-in bears its item."""
    labels = {f"▁{stand_in}": f"▁{item}" for stand_in, item in items.items()}
    return [labels.get(token, token) for token in tokens]


def needed(sentences: Sequence[str]) -> Iterator[str]:
    """Sentences and what else is to be translated for their items."""
    for sentence in sentences:
        yield sentence
        yield from (variant.text for variant in variants(sentence))
