"""What a corpus score hides: where a system is good and bad, by length, by rarity, and sentence by sentence."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from seq2seq.evaluation import References, SentenceScore, Subset, score_subset

EDGES = (0, 6, 11, 16, 21, 31, 41)  # source words at which a bucket begins
RARITIES = (0, 1, 3, 10, 30, 100)  # times that the rarest source word was seen in training
_NO_LIMIT = 10**9


@dataclass(frozen=True)
class Bucket:
    """Sentences that are alike, and what each system scores on them."""

    label: str
    count: int
    scores: list[Subset]


def by_length(sources: Sequence[str], references: References, systems: Sequence[Sequence[str]]) -> list[Bucket]:
    """Scores by the number of source words, one for each system; buckets without sentences are left out."""
    return _buckets([len(source.split()) for source in sources], EDGES, references, systems)


def by_rarity(
    sources: Sequence[str], references: References, systems: Sequence[Sequence[str]], seen: Mapping[str, int]
) -> list[Bucket]:
    """Scores by how often the rarest word of the source was seen in training, as `count_words` has counted."""
    rarest = [min((seen.get(word, 0) for word in words_of(source)), default=_NO_LIMIT - 1) for source in sources]
    return _buckets(rarest, RARITIES, references, systems)


def count_words(texts: Iterable[str]) -> Counter[str]:
    """How often each word stands in some texts, whatever its case."""
    return Counter(word for text in texts for word in words_of(text))


def words_of(text: str) -> list[str]:
    """Words in lower case, without punctuation."""
    return re.findall(r"\w+", text.casefold())


def _buckets(
    values: Sequence[int], edges: Sequence[int], references: References, systems: Sequence[Sequence[str]]
) -> list[Bucket]:
    """Sentences by a number of theirs; a bucket begins at each edge."""
    buckets = []
    for first, after in pairwise([*edges, _NO_LIMIT]):
        rows = [row for row, value in enumerate(values) if first <= value < after]
        if rows:
            refs = [references[row] for row in rows]
            scores = [score_subset([hypotheses[row] for row in rows], refs) for hypotheses in systems]
            buckets.append(Bucket(_label(first, after), len(rows), scores))
    return buckets


def _label(first: int, after: int) -> str:
    if after == _NO_LIMIT:
        return f"{first} and more"
    if after == first + 1:
        return str(first)
    return f"{first}–{after - 1}" if first else f"up to {after - 1}"


def exact_matches(hypotheses: Sequence[str], references: References) -> int:
    """Translations that equal one of their references, character by character."""
    return sum(hypothesis in refs for hypothesis, refs in zip(hypotheses, references, strict=True))


def worst(scores: Sequence[SentenceScore], lengths: Sequence[int], count: int) -> list[int]:
    """Indices of the sentences with the lowest chrF; among equals the longer, which have more to show, first."""
    return sorted(range(len(scores)), key=lambda row: (scores[row].chrf, -lengths[row]))[:count]


def best(scores: Sequence[SentenceScore], lengths: Sequence[int], count: int) -> list[int]:
    """Indices of the sentences with the highest chrF; among equals the longer first."""
    return sorted(range(len(scores)), key=lambda row: (-scores[row].chrf, -lengths[row]))[:count]


def gains(before: Sequence[SentenceScore], after: Sequence[SentenceScore], count: int) -> list[int]:
    """Indices of the sentences whose chrF rose, those first where it rose most."""
    rise = {row: new.chrf - old.chrf for row, (old, new) in enumerate(zip(before, after, strict=True))}
    return sorted((row for row in rise if rise[row] > 0), key=lambda row: -rise[row])[:count]
