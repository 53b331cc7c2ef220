"""What a corpus score hides: where a system is good and bad, by length of the source and sentence by sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from seq2seq.evaluation import References, SentenceScore, Subset, score_subset

EDGES = (0, 6, 11, 16, 21, 31, 41)  # source words at which a bucket begins
_NO_LIMIT = 10**9


@dataclass(frozen=True)
class Bucket:
    """The sentences of similar length, and what each system scores on them."""

    label: str
    count: int
    scores: list[Subset]


def by_length(sources: Sequence[str], references: References, systems: Sequence[Sequence[str]]) -> list[Bucket]:
    """Scores by the number of source words, one for each system; buckets without sentences are left out."""
    lengths = [len(source.split()) for source in sources]
    buckets = []
    for first, after in pairwise([*EDGES, _NO_LIMIT]):
        rows = [row for row, length in enumerate(lengths) if first <= length < after]
        if rows:
            refs = [references[row] for row in rows]
            scores = [score_subset([hypotheses[row] for row in rows], refs) for hypotheses in systems]
            buckets.append(Bucket(_label(first, after), len(rows), scores))
    return buckets


def _label(first: int, after: int) -> str:
    if after == _NO_LIMIT:
        return f"{first} and more"
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
