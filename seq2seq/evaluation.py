"""Scores by sacrebleu, each with its signature: of a corpus, of a sentence, and of one system against another."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU, BLEUScore
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest, Result

from seq2seq.errors import UserError

NAMES = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"}
RESAMPLES = 1000  # for a confidence interval, as sacrebleu's command takes
References = Sequence[Sequence[str]]  # one or more per sentence


@dataclass(frozen=True)
class Interval:
    """95 % confidence by bootstrap resampling: mean +- margin."""

    mean: float
    margin: float


@dataclass(frozen=True)
class Scores:
    """BLEU and chrF2 (higher is better) and TER (lower is better), 0 to 100, with sacrebleu's signatures."""

    bleu: float
    chrf: float
    ter: float
    signatures: dict[str, str]
    confidence: dict[str, Interval] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """One line a metric: signature = score, as sacrebleu prints it."""
        return [f"{label}|{self.signatures[name]} = {self.shown(name)}" for name, label in NAMES.items()]

    def shown(self, name: str, width: int = 0) -> str:
        """One score with the digits and the interval that sacrebleu prints."""
        value = f"{getattr(self, name):{width}.1f}"
        interval = self.confidence.get(name)
        return value if interval is None else f"{value} (μ = {interval.mean:.1f} ± {interval.margin:.1f})"


def _metrics() -> dict[str, Metric]:
    return {"bleu": BLEU(), "chrf": CHRF(), "ter": TER()}


def _streams(references: References) -> Any:  # sacrebleu takes None, its annotation does not
    """References per sentence -> sacrebleu's reference streams; a sentence with fewer references has None."""
    width = max(map(len, references), default=0)
    return [[refs[i] if i < len(refs) else None for refs in references] for i in range(width)]


def score(hypotheses: Sequence[str], references: References, confidence: bool = False) -> Scores:
    """Score hypotheses, one a sentence, against each sentence's one or more references.

    With `confidence` each score comes with its interval, as by `sacrebleu --confidence`.
    """
    check(hypotheses, references)
    values, signatures, intervals = {}, {}, {}
    for name, metric in _metrics().items():
        resamples = RESAMPLES if confidence else 1
        found = metric.corpus_score(list(hypotheses), _streams(references), n_bootstrap=resamples)
        values[name] = found.score
        signatures[name] = metric.get_signature().format()
        if confidence:
            intervals[name] = Interval(float(found._mean), float(found._ci))  # of numpy
    return Scores(**values, signatures=signatures, confidence=intervals)


@dataclass(frozen=True)
class MosesScore:
    """BLEU by the protocol of the papers on Multi30k, and what it was computed by."""

    bleu: float
    signature: str


def moses_bleu(hypotheses: Sequence[str], references: References, language: str) -> MosesScore:
    """BLEU of lower-cased text with Moses' punctuation and tokens: not comparable with BLEU of text as it is.

    The scripts of Multi30k (Elliott et al. 2016), task1-tokenize: lower case, normalize-punctuation, tokenizer.
    """
    import sacremoses
    from sacremoses.corpus import NonbreakingPrefixes

    check(hypotheses, references)
    known = sorted(NonbreakingPrefixes().available_langs.values())
    if language not in known:
        raise UserError(f"Moses has no tokens for language {language!r}: it knows {', '.join(known)}")
    normaliser, tokenizer = sacremoses.MosesPunctNormalizer(language), sacremoses.MosesTokenizer(language)

    def tokens(text: str) -> str:
        return str(tokenizer.tokenize(normaliser.normalize(text.lower()), return_str=True))

    metric = BLEU(tokenize="none", force=True)
    streams = _streams([[tokens(text) for text in texts] for texts in references])
    found = metric.corpus_score([tokens(text) for text in hypotheses], streams)
    moses = f"moses:{language}+lowercase+sacremoses-{sacremoses.__version__}"
    return MosesScore(found.score, f"{metric.get_signature().format()}|{moses}")


def check(hypotheses: Sequence[str], references: References) -> None:
    """Refuse what cannot be scored."""
    if len(hypotheses) != len(references):
        raise UserError(f"{len(hypotheses)} hypotheses but {len(references)} references: they must be line-parallel")
    if not hypotheses:
        raise UserError("there is nothing to score: no hypothesis")
    missing = next((number for number, refs in enumerate(references, 1) if not refs), None)
    if missing is not None:
        raise UserError(f"sentence {missing} has no reference")


def bleu_settings() -> str:
    """The part of BLEU's signature that does not depend on a test set."""
    metric = BLEU()
    metric.num_refs = 1  # a signature wants a number; it is dropped again
    parts = metric.get_signature().format().split("|")
    return "|".join(part for part in parts if not part.startswith("nrefs:"))


# Parts of a corpus.


@dataclass(frozen=True)
class SentenceScore:
    """BLEU (over the n-grams that a short sentence has) and chrF2 of one sentence, as `sacrebleu --sentence-level`."""

    bleu: float
    chrf: float


def sentence_scores(hypotheses: Sequence[str], references: References) -> list[SentenceScore]:
    """Scores of every sentence by itself. They do not average to the corpus score."""
    check(hypotheses, references)
    bleu, chrf = BLEU(effective_order=True), CHRF()
    return [
        SentenceScore(bleu.sentence_score(hypothesis, refs).score, chrf.sentence_score(hypothesis, refs).score)
        for hypothesis, refs in zip(hypotheses, references, strict=True)
    ]


@dataclass(frozen=True)
class Subset:
    """BLEU and chrF2 of some sentences of a corpus, and tokens of the translations per token of the references."""

    bleu: float
    chrf: float
    length_ratio: float


def score_subset(hypotheses: Sequence[str], references: References) -> Subset:
    """What the parts of a corpus are compared by; TER, which is slow, is left out."""
    check(hypotheses, references)
    streams = _streams(references)
    bleu: BLEUScore = BLEU().corpus_score(list(hypotheses), streams)
    return Subset(bleu.score, CHRF().corpus_score(list(hypotheses), streams).score, bleu.ratio)


# One system against another.


@dataclass(frozen=True)
class Significance:
    """How often chance alone makes a difference as large as the one that was found."""

    p_value: float
    signature: str


@dataclass(frozen=True)
class Comparison:
    """A metric of two systems on the same sentences, and two tests of their difference."""

    metric: str
    baseline: float
    score: float
    bootstrap: Significance
    randomisation: Significance


def compare(
    baseline: Sequence[str], hypotheses: Sequence[str], references: References, samples: int = 0, trials: int = 0
) -> list[Comparison]:
    """Paired tests of the three metrics, as `sacrebleu --paired-bs` and `sacrebleu --paired-ar`.

    Paired bootstrap resampling (Koehn 2004) with `samples`, approximate randomisation (Riezler and Maxwell 2005) with
    `trials`; 0 is sacrebleu's default, 1,000 and 10,000.
    """
    check(baseline, references)
    check(hypotheses, references)
    bootstrap = _paired_test("bs", baseline, hypotheses, references, samples)
    randomisation = _paired_test("ar", baseline, hypotheses, references, trials)
    return [
        Comparison(name, before, after, significance, randomisation[name][2])
        for name, (before, after, significance) in bootstrap.items()
    ]


def _paired_test(
    kind: str, baseline: Sequence[str], hypotheses: Sequence[str], references: References, samples: int
) -> dict[str, tuple[float, float, Significance]]:
    """By metric: the baseline's score, the system's score, and the test of their difference."""
    systems: list[tuple[str, Sequence[str]]] = [("baseline", list(baseline)), ("system", list(hypotheses))]
    test = PairedTest(systems, _metrics(), _streams(references), test_type=kind, n_samples=samples)
    signatures, results = test()
    found = {}
    for name, signature in signatures.items():
        before, after = results[name]
        assert isinstance(before, Result) and isinstance(after, Result) and after.p_value is not None  # noqa: PT018
        found[name] = (before.score, after.score, Significance(after.p_value, signature.format()))
    return found


def signatures(scores: Scores, comparisons: Sequence[Comparison]) -> list[str]:
    """The signatures of all numbers, each once, with the name of its metric before it."""
    lines = [f"{NAMES[key]}|{signature}" for key, signature in scores.signatures.items()]
    for comparison in comparisons:
        tests = (comparison.bootstrap, comparison.randomisation)
        lines += [f"{comparison.metric}|{test.signature}" for test in tests]
    return list(dict.fromkeys(lines))
