"""What must come out as it went in: addresses, placeholders, numbers, names with capitals inside.

If the translation of a sentence has lost such an item, the sentence is translated again with a stand-in for each, a
name or a number that every model knows, and the translation is taken in which most items have survived. An item that
is lost all the same is put in where the word before it went.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from seq2seq.translation.alignment import find_words
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
    "phone": r"\+\d{1,3}(?:[ .-]\d{1,4}){2,6}(?!\w)|(?<![\w.])\d{2,4}(?:[ .-]\d{2,4}){2,5}(?![\w-])",
    "sum": r"(?<!\d)\d[\d.,]{0,20}(?:\s?[-<>=+×÷*/]\s?\d[\d.,]{0,20}\b){1,8}(?<=\d)",
    "amount": r"[€$£¥]\s?\d(?:[\d.,]{0,20}\d)?|(?<![\w.])\d(?:[\d.,]{0,20}\d)?\s?[€$£¥%]",
    "number": r"(?<![\w.])\d[\d.,:/-]{0,40}\d(?!\w)",
    "name": r"\b[a-z]{1,40}[A-Z]\w{0,40}|\b(?:Mc|Mac|De|[A-Z][a-z]{1,40})[A-Z][a-z]\w{0,40}",
}
_ITEM = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items()))
_NUMBERS = (r"\d+(?:[.,:/-]\d+)*+", r"\d+(?:[\s.,:/h-]{1,3}\d+)*+")  # as written, without and with spaces
_MAY_BE_WORDS = re.compile(r"\d{1,2}|[1-9]0+")  # twelve, a hundred, a thousand
MARKS = "{}<>[]|\\_"
_NUMERIC = ("phone", "sum", "amount", "number")
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


def times(item: str, translation: str) -> int:
    """How often an item stands in a translation, and not within a longer number."""
    before, after = r"(?<!\d)" * item[0].isdigit(), r"(?!\d)" * item[-1].isdigit()
    return len(re.findall(before + re.escape(item) + after, translation))


def survives(item: str, translation: str) -> bool:
    """Whether an item is in a translation; of numbers the digits, and other signs of theirs, are enough.

    Dates and telephone numbers fall apart without their marks: their digits must stand in the same groups.
    """
    if times(item, translation):
        return True
    if not item[0].isdigit() and item[0] not in "€$£¥+":
        return False
    signs = set(re.findall(r"[€$£¥%<>=+]", item))
    if signs and times(item.replace(" ", ""), translation.replace(" ", "")):
        return True
    groups = re.findall(r"\d+", item)
    found = [re.findall(r"\d+", number) for pattern in _NUMBERS for number in re.findall(pattern, translation)]
    same = groups in found if re.search(r"\d[-/]\d", item) else "".join(groups) in map("".join, found)
    return same and signs <= set(translation)


Translate = Callable[[list[str]], list[SentenceTranslation]]


def translate_protected(
    sentences: Sequence[str], translate: Translate, with_links: Translate
) -> list[SentenceTranslation]:
    """Translations in which items survive; `with_links` is asked where they would not."""
    found = translate(list(sentences))
    items = [_guarded(sentence, one) for sentence, one in zip(sentences, found, strict=True)]
    troubled = [row for row, one in enumerate(found) if items[row] and not _is_whole(items[row], one)]
    if not troubled:
        return found
    texts = dict.fromkeys(variant.text for row in troubled for variant in variants(sentences[row]))
    texts |= dict.fromkeys(sentences[row] for row in troubled)
    tried = dict(zip(texts, with_links(list(texts)), strict=True))
    for row in troubled:
        chosen = best(sentences[row], tried, items[row])
        lost = [item for item in items[row] if not survives(item.text, chosen.text)]
        found[row] = put_in([item for item in lost if not _MAY_BE_WORDS.fullmatch(item.text)], chosen)
    return found


def _guarded(sentence: str, translation: SentenceTranslation) -> list[Item]:
    """The items of a sentence, but for those that the glossary has put another word for."""
    terms = {term.source.casefold() for term in translation.terms if term.kept}
    return [item for item in find_items(sentence) if item.text.casefold() not in terms]


def _is_whole(items: Sequence[Item], translation: SentenceTranslation) -> bool:
    return kept(items, translation.text) == len(items) and not stray(translation.source, translation.text)


def best(sentence: str, tried: Mapping[str, SentenceTranslation], items: Sequence[Item]) -> SentenceTranslation:
    """The translation in which most items survived, with least that is stray; the plain one of equals."""
    found = [tried[sentence]]
    found += [restored(variant, tried[variant.text], sentence) for variant in variants(sentence)]
    return max(found, key=lambda one: kept(items, one.text) - stray(sentence, one.text))  # the first of equals


def stray(sentence: str, translation: str) -> int:
    """How many brackets and bars a translation has that its sentence has not: what a model makes of placeholders."""
    return sum(max(0, translation.count(mark) - sentence.count(mark)) for mark in MARKS)


def kept(items: Sequence[Item], translation: str) -> int:
    """How many items survived; one that stands twice in the source must stand there twice."""
    needed = Counter(item.text for item in items)
    return sum(
        min(count, max(times(text, translation), int(survives(text, translation)))) for text, count in needed.items()
    )


def put_in(lost: Sequence[Item], translation: SentenceTranslation) -> SentenceTranslation:
    """The translation with items where the word before them went, or instead of the number that they became."""
    if not lost:
        return translation
    text = translation.text
    for start, end, item in sorted((_place_of(item, translation) for item in lost), key=lambda place: -place[0]):
        before = " " if text[:start] and not text[:start].endswith(" ") else ""
        after = " " if text[end:] and text[end].isalnum() else ""
        text = text[:start] + before + item + after + text[end:]
    options = [Alternative(text, translation.score), *translation.alternatives[1:]]
    return replace(translation, text=text, alternatives=options)


def _place_of(item: Item, translation: SentenceTranslation) -> tuple[int, int, str]:
    """Where an item belongs in a translation, and what it is to take the place of."""
    sources = find_words(translation.source, translation.source_words)
    targets = find_words(translation.text, translation.target_words)
    linked: dict[int, list[int]] = {}
    for link in translation.alignment:
        linked.setdefault(link.source, []).append(link.target)
    inside = [number for number, (start, end) in enumerate(sources) if item.start <= start < end <= item.end]
    became = sorted({target for number in inside for target in linked.get(number, [])})
    garbled = [
        target
        for target in became
        if any(map(str.isdigit, translation.target_words[target]))
        and translation.target_words[target] not in translation.source
    ]
    if garbled:
        return targets[garbled[0]][0], targets[garbled[0]][1], item.text
    for number in reversed([number for number, (_, end) in enumerate(sources) if end <= item.start]):
        if linked.get(number):
            place = max(targets[target][1] for target in linked[number])
            return place, place, item.text
    return 0, 0, item.text


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
