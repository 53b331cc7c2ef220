"""`seq2seq score`, and what `seq2seq evaluate` shares with it: texts from files, scores to stdout."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seq2seq.evaluation import Comparison, MosesScore, References, Scores
    from seq2seq.insight.breakdown import Bucket
    from seq2seq.insight.robustness import Kept
    from seq2seq.translation.result import Translation

from seq2seq.commands.common import declare
from seq2seq.errors import UserError

MOSES = "also BLEU as papers on Multi30k have it: lower case, Moses' tokens of that language"


@dataclass(frozen=True)
class Output:
    """What a system made of a test set; of translations from a file it is not known how they came about."""

    name: str
    hypotheses: list[str]
    translations: "list[Translation] | None" = None

    @property
    def truncated(self) -> int | None:
        """How many translations the length limit cut short."""
        return None if self.translations is None else sum(result.truncated for result in self.translations)


@dataclass(frozen=True)
class Measured:
    """Scores of an output, by itself and against a baseline's."""

    output: Output
    baseline: Output | None
    scores: "Scores"
    comparisons: "list[Comparison]"
    moses: "MosesScore | None" = None
    robustness: "list[Kept]" = field(default_factory=list)
    breakdown: "dict[str, list[Bucket]]" = field(default_factory=dict)  # by what the sentences are told apart


def add_score(commands: Any) -> None:
    """Declare `seq2seq score`."""
    parser = declare(
        commands,
        "score",
        score,
        "score translations that lie in a file: BLEU, chrF2, TER",
        "seq2seq score --hypothesis output.fr --reference test.fr",
    )
    parser.add_argument("--hypothesis", type=Path, required=True, metavar="FILE", help="translations, one a line")
    parser.add_argument("--reference", type=Path, required=True, nargs="+", metavar="FILE", help="references")
    parser.add_argument("--moses", metavar="LANGUAGE", help=f"{MOSES}, such as fr")
    score_options(parser, "FILE", "translations of a baseline: two paired tests against it")


def score(options: argparse.Namespace) -> None:
    """`seq2seq score`."""
    output, references = Output(str(options.hypothesis), read(options.hypothesis)), read_references(options.reference)
    baseline = read_baseline(options.baseline, len(references)) if options.baseline is not None else None
    show(measure(output, baseline, references, options.confidence, options.moses), options.json)


def measure(
    output: Output, baseline: Output | None, references: "References", confidence: bool, moses: str | None
) -> Measured:
    """The scores of an output, and its comparison with a baseline if there is one; `moses` is a language."""
    from seq2seq import evaluation

    scores = evaluation.score(output.hypotheses, references, confidence)
    comparisons = evaluation.compare(baseline.hypotheses, output.hypotheses, references) if baseline else []
    by_moses = evaluation.moses_bleu(output.hypotheses, references, moses) if moses is not None else None
    return Measured(output, baseline, scores, comparisons, by_moses)


# Texts from files.


def read(path: Path) -> list[str]:
    """The lines of a file."""
    from seq2seq.data.files import read_lines

    return list(read_lines(path))


def read_references(paths: Sequence[Path]) -> list[tuple[str, ...]]:
    """References of every sentence, from line-parallel files; a blank line is none."""
    columns = [read(path) for path in paths]
    for path, column in zip(paths[1:], columns[1:], strict=True):
        if len(column) != len(columns[0]):
            raise UserError(f"{paths[0]} has {len(columns[0])} lines but {path} has {len(column)}")
    return [tuple(line for line in row if line.strip()) for row in zip(*columns, strict=True)]


def read_baseline(name: str, expected: int) -> Output:
    """A baseline's translations, as many as the test set has sentences."""
    hypotheses = read(Path(name))
    if len(hypotheses) != expected:
        raise UserError(f"--baseline {name} has {len(hypotheses)} lines, the test set has {expected} sentences")
    return Output(name, hypotheses)


# Scores to stdout.


def score_options(parser: argparse.ArgumentParser, metavar: str, baseline: str) -> None:
    """--baseline, --confidence, --json."""
    parser.add_argument("--baseline", metavar=metavar, help=baseline)
    parser.add_argument("--confidence", action="store_true", help="95%% confidence intervals, by bootstrap resampling")
    parser.add_argument("--json", action="store_true", help="scores, signatures and comparison as one JSON object")


def show(measured: Measured, as_json: bool) -> None:
    """Scores to stdout, signatures to stderr; or all in one JSON object."""
    output, baseline, scores = measured.output, measured.baseline, measured.scores
    if as_json:
        values: dict[str, Any] = {"sentences": len(output.hypotheses), **asdict(scores)}
        if not scores.confidence:
            del values["confidence"]
        if measured.comparisons:
            values["comparison"] = [asdict(comparison) for comparison in measured.comparisons]
        if measured.moses:
            values["moses"] = asdict(measured.moses)
        if measured.robustness:
            values["robustness"] = [asdict(one) for one in measured.robustness]
        if measured.breakdown:
            values["breakdown"] = {name: list(map(asdict, buckets)) for name, buckets in measured.breakdown.items()}
        print(json.dumps(values, indent=2))
        return
    from seq2seq.evaluation import NAMES, signatures

    for key, name in NAMES.items():
        print(f"{name:5} {scores.shown(key, width=5)}")
    if measured.moses:
        print(f"BLEU  {measured.moses.bleu:5.1f} (Moses tokens, lower case)")
    for comparison in measured.comparisons:
        print(_change(comparison))
    for line in _tables(measured):
        print(line)
    for line in [*signatures(scores, measured.comparisons), *([measured.moses.signature] if measured.moses else [])]:
        print(line, file=sys.stderr)
    if baseline is not None and baseline.hypotheses == output.hypotheses:
        print("the translations are the baseline's, word for word", file=sys.stderr)


def _tables(measured: Measured) -> Iterator[str]:
    if measured.robustness:
        yield "BLEU on lower-cased text without final marks, of the sentences typed in each way:"
    for one in measured.robustness:
        yield f"  {one.typing:26} {one.bleu:5.1f} {one.share:6.1%}"
    for name, buckets in measured.breakdown.items():
        yield f"BLEU and chrF2 by {name}{', then those of the baseline' if measured.baseline else ''}:"
        for bucket in buckets:
            scores = "  ".join(f"{found.bleu:5.1f} {found.chrf:5.1f}" for found in bucket.scores)
            yield f"  {bucket.label:12} {bucket.count:6,} sentences {scores}"


def _change(comparison: "Comparison") -> str:
    return (
        f"{comparison.metric} {comparison.baseline:.1f} -> {comparison.score:.1f}, "
        f"p = {comparison.bootstrap.p_value:.4f} (paired bootstrap), "
        f"p = {comparison.randomisation.p_value:.4f} (approximate randomisation)"
    )
