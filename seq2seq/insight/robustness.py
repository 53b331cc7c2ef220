"""How much of its quality a translator keeps when people type as they do, not as a corpus is written."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from seq2seq.data.variation import MARK, mistyped, with_other_quotes
from seq2seq.evaluation import References, score_subset

Typing = Callable[[str, Random], str]  # a sentence as it is written -> as it is typed
Translate = Callable[[Sequence[str]], list[str]]

TYPINGS: dict[str, Typing] = {
    "lower case, no final mark": lambda text, rng: MARK.sub("", text).lower(),
    "capitals": lambda text, rng: text.upper(),
    "other quotes": lambda text, rng: with_other_quotes(text),
    "one typing error": mistyped,
}


@dataclass(frozen=True)
class Kept:
    """BLEU of sentences typed in one way, on bare text, and its share of that of the sentences as written."""

    typing: str
    bleu: float
    share: float


def bare(text: str) -> str:
    """Lower case, without the mark that ends a sentence and the space before it: what no typing can change."""
    return MARK.sub("", text).lower()


def robustness(
    translate: Translate, sources: Sequence[str], references: References, hypotheses: Sequence[str]
) -> list[Kept]:
    """BLEU (13a) of the same sentences typed in each way, hypotheses and references bare.

    `hypotheses` are the translations of the sources as they are written.
    """
    expected = [[bare(text) for text in texts] for texts in references]

    def bleu(texts: Sequence[str]) -> float:
        return score_subset([bare(text) for text in texts], expected).bleu

    whole = bleu(hypotheses)
    scores = {"as written": whole}
    for name, typed in TYPINGS.items():
        rng = Random(name)
        scores[name] = bleu(translate([typed(source, rng) for source in sources]))
    return [Kept(name, score, score / whole if whole else 0.0) for name, score in scores.items()]
