"""What a translator must copy and cannot know: made-up names, numbers, addresses, placeholders.

A corpus has few names and the same ones over and over. Where a word is the same on both sides of a pair, another one
in its place teaches to copy what stands there rather than to know it.
"""

import re
from collections.abc import Callable
from random import Random

from seq2seq.data.splits import Pair

NAME = re.compile(r"(?<![\w'’-])[A-Z][a-z]{2,}(?![\w'’-])")
NUMBER = re.compile(r"(?<![\w.,:'’$€£%-])\d+(?![\w.,:'’$€£%-]\d|[\w$€£%])")
ONSETS = (*"bcdfghjklmnprstvwz", "br", "cl", "dr", "gl", "kr", "pr", "st", "tr")
VOWELS = (*"aeiou", "ai", "ea", "ou")
CODAS = ["", "", "l", "n", "r", "s", "nd", "rt", "ck", "x"]
FIELDS = ("name", "user", "count", "place", "title", "total")


def with_stand_in(pair: Pair, rng: Random) -> Pair:
    """A pair with something else for a name or a number that stands once on each side; as it is if there is none."""
    for pattern, invent in ((NAME, invented_name), (NUMBER, invented_number)):
        source, target = pattern.findall(pair.source), pattern.findall(pair.target)
        shared = [word for word in source if source.count(word) == target.count(word) == 1]
        # A capital that begins both sentences says little: "Table" may be a word that two languages share.
        shared = [word for word in shared if not (pair.source.startswith(word) and pair.target.startswith(word))]
        if shared:
            word, other = rng.choice(shared), invent(rng)
            return Pair(*(_replaced(text, pattern, word, other) for text in pair))
    return pair


def _replaced(text: str, pattern: re.Pattern[str], word: str, other: str) -> str:
    match = next(match for match in pattern.finditer(text) if match.group() == word)
    return text[: match.start()] + other + text[match.end() :]


def invented_number(rng: Random) -> str:
    """A whole number of one to seven digits, from 2 up."""
    digits = rng.randint(1, 7)
    return str(max(2, rng.randrange(10 ** (digits - 1), 10**digits)))


def invented_name(rng: Random) -> str:
    """Mostly a name that nobody has; at times what a programme writes in a name's place."""
    kinds: tuple[Callable[[Random], str], ...] = (person, brand, acronym, placeholder, address, mail, handle)
    return rng.choices(kinds, (10, 2, 1, 3, 2, 1, 1))[0](rng)


def person(rng: Random) -> str:
    """One made-up word with a capital, or two."""
    return " ".join(_word(rng, rng.randint(1, 3)).capitalize() for _ in range(rng.choice((1, 1, 1, 2))))


def brand(rng: Random) -> str:
    """A name with capitals inside, as iPhone and McDonald have them."""
    return rng.choice(("i", "e", "Mc", "Mac", "De", _word(rng, 1).capitalize())) + _word(rng, 2).capitalize()


def acronym(rng: Random) -> str:
    """Two to five capitals, perhaps with a number."""
    letters = "".join(rng.choice("BCDFGHJKLMNPRSTVWXZ") for _ in range(rng.randint(2, 5)))
    return letters + rng.choice(("", "", str(rng.randrange(100)), f"-{rng.randrange(100)}"))


def placeholder(rng: Random) -> str:
    """A field of a template."""
    field, number = rng.choice((*FIELDS, _word(rng, 2))), rng.randint(1, 9)
    forms = (f"{{{field}}}", f"{{{{{field}}}}}", f"%({field})s", f"${{{field}}}", f"%{number}$s", f"{{{number}}}")
    return rng.choice((*forms, "%s", "%d", f"[{field}]", f"<{field}>", f"__{field.upper()}__"))


def address(rng: Random) -> str:
    """An address of the web."""
    site = f"{rng.choice(('', 'www.'))}{_word(rng, 2)}.{rng.choice(('org', 'com', 'net', 'fr'))}"
    paths = (
        "",
        "/",
        f"/{_word(rng, 2)}",
        f"/{_word(rng, 1)}/{_word(rng, 2)}.html",
        f"/a?{_word(rng, 1)}=1&c={rng.randrange(50)}",
    )
    return f"{rng.choice(('https', 'http'))}://{site}{rng.choice(paths)}"


def mail(rng: Random) -> str:
    """An address of mail."""
    return f"{rng.choice(('info', 'contact', _word(rng, 2)))}@{_word(rng, 2)}.{rng.choice(('org', 'com', 'fr'))}"


def handle(rng: Random) -> str:
    """A user, a tag, a file."""
    return rng.choice(
        (f"@{_word(rng, 2)}", f"#{_word(rng, 2)}", f"{_word(rng, 2)}.{rng.choice(('pdf', 'txt', 'jpg'))}")
    )


def _word(rng: Random, syllables: int) -> str:
    return "".join(rng.choice(ONSETS) + rng.choice(VOWELS) for _ in range(syllables)) + rng.choice(CODAS)
