"""`seq2seq evaluate` and `seq2seq score`."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seq2seq.evaluation import Comparison, Scores
    from seq2seq.translation.translator import Translation, Translator

from seq2seq import __version__
from seq2seq.commands.common import (
    CHUNK,
    check_parent,
    declare,
    engine_option,
    model_option,
    search_options,
    write_file,
    write_lines,
)
from seq2seq.errors import UserError


@dataclass(frozen=True)
class Test:
    """Sentences to translate, each with its references, and where they come from in words."""

    name: str
    sources: list[str]
    references: list[tuple[str, ...]]


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


def add_evaluate(commands: Any) -> None:
    """Declare `seq2seq evaluate`."""
    parser = declare(
        commands,
        "evaluate",
        evaluate,
        "translate a test set and score it: BLEU, chrF2, TER",
        "seq2seq evaluate --dataset tatoeba --split test --beam-size 5 --report report.html",
    )
    model_option(parser)
    engine_option(parser)
    parser.add_argument(
        "--dataset", metavar="NAME", help="a recipe (my.toml), sample, tatoeba, multi30k or hub:OWNER/NAME"
    )
    parser.add_argument("--split", default="test", help="train, dev, test, or a corpus's further test set")
    parser.add_argument("--source", type=Path, metavar="FILE", help="sentences to translate, one a line")
    parser.add_argument("--reference", type=Path, nargs="+", metavar="FILE", help="one or more reference translations")
    search_options(parser)
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the translations, one a line")
    parser.add_argument(
        "--report", type=Path, metavar="FILE.html", help="write a page of scores, sentences and attention; --confidence"
    )
    _score_options(parser, "FILE|M", "translations of, or a model for, a baseline: two paired tests against it")


def evaluate(options: argparse.Namespace) -> None:
    """`seq2seq evaluate`."""
    from seq2seq import evaluation
    from seq2seq.translation.translator import Translator

    for option, path in (("--output", options.output), ("--report", options.report)):
        if path is not None:
            check_parent(path, option)
    test = _test(options)
    evaluation.check(test.sources, test.references)
    translator = Translator.from_pretrained(options.model, options.engine, options.precision)
    baseline = _baseline(options.baseline, test, translator, options.engine, options.precision)
    output = _translate_all(translator, options.model or "en-fr, bundled", test, options)
    if isinstance(baseline, Translator):
        baseline = _translate_all(baseline, options.baseline, test, options)
    if options.output:
        write_lines(iter(output.hypotheses), options.output)
    scores = evaluation.score(output.hypotheses, test.references, options.confidence or options.report is not None)
    comparisons = evaluation.compare(baseline.hypotheses, output.hypotheses, test.references) if baseline else []
    _print(output, scores, comparisons, baseline, options.json)
    if options.report:
        page = _report(test, output, scores, comparisons, baseline, translator, options)
        write_file([page.encode("utf-8", "replace")], options.report)


# What goes in.


def _test(options: argparse.Namespace) -> Test:
    if bool(options.dataset) == bool(options.source):
        raise UserError("give either --dataset, or --source with --reference")
    if options.source:
        if not options.reference:
            raise UserError("--source needs at least one --reference")
        sources, references = _read(options.source), _references(options.reference)
        if len(sources) != len(references):
            files = f"--source {options.source} has {len(sources)} lines, --reference {options.reference[0]}"
            raise UserError(f"{files} has {len(references)}: they must be line-parallel")
        return Test(options.source.name, sources, references)
    if options.reference:
        raise UserError("--reference goes with --source; a --dataset has its own references")
    return _dataset(options)


def _dataset(options: argparse.Namespace) -> Test:
    from seq2seq.config import DataConfig, load_recipe
    from seq2seq.data.corpus import load_split
    from seq2seq.data.splits import group_references
    from seq2seq.folder import find_model, load_info

    if options.dataset == "files":
        raise UserError("--dataset 'files' names no file: give a recipe (my.toml), or --source and --reference")
    info = load_info(find_model(options.model))
    if options.dataset.endswith(".toml"):
        config = load_recipe(options.dataset).data
        if (config.source, config.target) != (info.source, info.target):
            languages = f"{config.source}-{config.target}, the model {info.source}-{info.target}"
            raise UserError(f"--dataset {options.dataset} is {languages}")
    else:
        config = DataConfig(dataset=options.dataset, source=info.source, target=info.target)
    try:
        examples = group_references(load_split(config, options.split))
    except UserError as error:  # said of a recipe, where `files` is one more kind of data
        raise UserError(str(error).replace("data.dataset = ", "--dataset ").replace(" files,", "")) from None
    if not examples:
        raise UserError(f"--split {options.split!r} of {options.dataset} is empty")
    sources, references = [example.source for example in examples], [example.references for example in examples]
    return Test(f"{options.dataset}, {options.split}", sources, references)


def _read(path: Path) -> list[str]:
    from seq2seq.data.files import read_lines

    return list(read_lines(path))


def _references(paths: Sequence[Path]) -> list[tuple[str, ...]]:
    columns = [_read(path) for path in paths]
    for path, column in zip(paths[1:], columns[1:], strict=True):
        if len(column) != len(columns[0]):
            raise UserError(f"{paths[0]} has {len(columns[0])} lines but {path} has {len(column)}")
    return [tuple(line for line in row if line.strip()) for row in zip(*columns, strict=True)]


def _baseline(
    name: str | None, test: Test, translator: "Translator", engine: str, precision: str | None
) -> "Translator | Output | None":
    """A baseline that can be compared with: what does not fit is refused before anything is translated."""
    from seq2seq.translation.translator import Translator

    if name is None:
        return None
    if Path(name).is_file():
        return _baseline_file(name, len(test.sources))
    try:
        rival = Translator.from_pretrained(name, engine, precision)
    except UserError as error:
        raise UserError(f"--baseline {name!r} is no file, and not a model either: {error}") from None
    ours, theirs = ((info.source, info.target) for info in (translator.info, rival.info))
    if ours != theirs:
        raise UserError(f"--baseline {name!r} translates {'-'.join(theirs)}, the model {'-'.join(ours)}")
    return rival


def _baseline_file(name: str, expected: int) -> Output:
    hypotheses = _read(Path(name))
    if len(hypotheses) != expected:
        raise UserError(f"--baseline {name} has {len(hypotheses)} lines, the test set has {expected} sentences")
    return Output(name, hypotheses)


def _translate_all(translator: "Translator", name: str, test: Test, options: argparse.Namespace) -> Output:
    from tqdm import tqdm

    translations: list[Translation] = []
    for start in tqdm(range(0, len(test.sources), CHUNK), unit="batch", disable=not sys.stderr.isatty()):
        translations += translator.translate(
            test.sources[start : start + CHUNK],
            beam_size=options.beam_size,
            length_penalty=options.length_penalty,
            attention=False,
        )
    return Output(name, [result.text for result in translations], translations)


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
    _score_options(parser, "FILE", "translations of a baseline: two paired tests against it")


def score(options: argparse.Namespace) -> None:
    """`seq2seq score`."""
    from seq2seq import evaluation

    output, references = Output(str(options.hypothesis), _read(options.hypothesis)), _references(options.reference)
    baseline = _baseline_file(options.baseline, len(references)) if options.baseline is not None else None
    scores = evaluation.score(output.hypotheses, references, options.confidence)
    comparisons = evaluation.compare(baseline.hypotheses, output.hypotheses, references) if baseline else []
    _print(output, scores, comparisons, baseline, options.json)


# What comes out.


def _score_options(parser: argparse.ArgumentParser, metavar: str, baseline: str) -> None:
    parser.add_argument("--baseline", metavar=metavar, help=baseline)
    parser.add_argument("--confidence", action="store_true", help="95%% confidence intervals, by bootstrap resampling")
    parser.add_argument("--json", action="store_true", help="scores, signatures and comparison as one JSON object")


def _print(
    output: Output, scores: "Scores", comparisons: "list[Comparison]", baseline: Output | None, as_json: bool
) -> None:
    if as_json:
        values: dict[str, Any] = {"sentences": len(output.hypotheses), **asdict(scores)}
        if not scores.confidence:
            del values["confidence"]
        if comparisons:
            values["comparison"] = [asdict(comparison) for comparison in comparisons]
        print(json.dumps(values, indent=2))
        return
    from seq2seq.evaluation import NAMES, signatures

    for key, name in NAMES.items():
        print(f"{name:5} {scores.shown(key, width=5)}")
    for comparison in comparisons:
        print(_change(comparison))
    for line in signatures(scores, comparisons):
        print(line, file=sys.stderr)
    if baseline is not None and baseline.hypotheses == output.hypotheses:
        print("the translations are the baseline's, word for word", file=sys.stderr)


def _change(comparison: "Comparison") -> str:
    return (
        f"{comparison.metric} {comparison.baseline:.1f} -> {comparison.score:.1f}, "
        f"p = {comparison.bootstrap.p_value:.4f} (paired bootstrap), "
        f"p = {comparison.randomisation.p_value:.4f} (approximate randomisation)"
    )


def _report(
    test: Test,
    output: Output,
    scores: "Scores",
    comparisons: "list[Comparison]",
    baseline: Output | None,
    translator: "Translator",
    options: argparse.Namespace,
) -> str:
    """The page of `--report`."""
    from seq2seq import evaluation
    from seq2seq.insight.report import Evaluation, System, report_page

    rival = None
    if baseline is not None:
        others = evaluation.score(baseline.hypotheses, test.references, confidence=True)
        rival = System(baseline.name, baseline.hypotheses, others, baseline.truncated)
    info, decode = translator.info, translator.info.decode
    languages = f"{info.source}-{info.target}"
    alpha = decode.length_penalty if options.length_penalty is None else options.length_penalty
    facts = {
        "model": f"{output.name} ({languages})",
        "baseline": baseline.name if baseline else "none",
        "test set": f"{test.name}: {len(test.sources):,} sentences",
        "references": ", ".join(map(str, options.reference or [])) or "of the data set",
        "search": f"beam {options.beam_size or decode.beam_size}, length penalty {alpha:g}",
        "engine": options.engine,
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "seq2seq": __version__,
    }
    measured = Evaluation(
        title=f"Evaluation of {output.name} ({languages}) on {test.name}",
        sources=test.sources,
        references=test.references,
        system=System(output.name, output.hypotheses, scores, output.truncated),
        baseline=rival,
        comparisons=comparisons,
        facts=facts,
    )
    return report_page(measured, translator, output.translations or [])
