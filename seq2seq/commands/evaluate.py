"""`seq2seq evaluate` and `seq2seq score`."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seq2seq.evaluation import Comparison, Scores
    from seq2seq.translation.translator import Translator

from seq2seq.commands.common import CHUNK, check_parent, declare, model_option, search_options, write_lines
from seq2seq.errors import UserError


def add_evaluate(commands: Any) -> None:
    """Declare `seq2seq evaluate`."""
    parser = declare(
        commands,
        "evaluate",
        evaluate,
        "translate a test set and score it: BLEU, chrF2, TER",
        "seq2seq evaluate --dataset tatoeba --split test --beam-size 5",
    )
    model_option(parser)
    parser.add_argument("--dataset", metavar="NAME", help="sample, tatoeba, multi30k or hub:OWNER/NAME")
    parser.add_argument("--split", default="test", help="train, dev, test, or a corpus's further test set")
    parser.add_argument("--source", type=Path, metavar="FILE", help="sentences to translate, one a line")
    parser.add_argument("--reference", type=Path, nargs="+", metavar="FILE", help="one or more reference translations")
    search_options(parser)
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the translations, one a line")
    _score_options(parser, "FILE|M", "translations of, or a model for, a baseline: paired bootstrap against it")


def evaluate(options: argparse.Namespace) -> None:
    """`seq2seq evaluate`."""
    from seq2seq.translation.translator import Translator

    if options.output:
        check_parent(options.output)
    sources, references = _test_set(options)
    hypotheses = _translate_all(Translator.from_pretrained(options.model), sources, options)
    baseline = None
    if options.baseline is not None and Path(options.baseline).is_file():
        baseline = _read(Path(options.baseline))
    elif options.baseline is not None:
        baseline = _translate_all(Translator.from_pretrained(options.baseline), sources, options)
    if options.output:
        write_lines(iter(hypotheses), options.output)
    _report(hypotheses, references, baseline, options.json)


def _test_set(options: argparse.Namespace) -> tuple[list[str], list[tuple[str, ...]]]:
    if bool(options.dataset) == bool(options.source):
        raise UserError("give either --dataset, or --source with --reference")
    if options.source:
        if not options.reference:
            raise UserError("--source needs at least one --reference")
        return _read(options.source), _references(options.reference)
    if options.reference:
        raise UserError("--reference goes with --source; a --dataset has its own references")
    from seq2seq.checkpoint import find_model, load_info
    from seq2seq.config import DataConfig
    from seq2seq.data.corpus import load_split
    from seq2seq.data.splits import group_references

    info = load_info(find_model(options.model))
    config = DataConfig(dataset=options.dataset, source=info.source, target=info.target)
    examples = group_references(load_split(config, options.split))
    if not examples:
        raise UserError(f"split {options.split!r} of {options.dataset} is empty")
    return [example.source for example in examples], [example.references for example in examples]


def _read(path: Path) -> list[str]:
    from seq2seq.data.files import read_lines

    return list(read_lines(path))


def _references(paths: Sequence[Path]) -> list[tuple[str, ...]]:
    columns = [_read(path) for path in paths]
    for path, column in zip(paths[1:], columns[1:], strict=True):
        if len(column) != len(columns[0]):
            raise UserError(f"{paths[0]} has {len(columns[0])} lines but {path} has {len(column)}")
    return [tuple(line for line in row if line.strip()) for row in zip(*columns, strict=True)]


def _translate_all(translator: "Translator", sources: list[str], options: argparse.Namespace) -> list[str]:
    from tqdm import tqdm

    hypotheses: list[str] = []
    for start in tqdm(range(0, len(sources), CHUNK), unit="batch", disable=not sys.stderr.isatty()):
        results = translator.translate(
            sources[start : start + CHUNK],
            beam_size=options.beam_size,
            length_penalty=options.length_penalty,
            attention=False,
        )
        hypotheses += [result.text for result in results]
    return hypotheses


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
    _score_options(parser, "FILE", "translations of a baseline: paired bootstrap against it")


def score(options: argparse.Namespace) -> None:
    """`seq2seq score`."""
    baseline = _read(Path(options.baseline)) if options.baseline is not None else None
    _report(_read(options.hypothesis), _references(options.reference), baseline, options.json)


def _score_options(parser: argparse.ArgumentParser, metavar: str, baseline: str) -> None:
    parser.add_argument("--baseline", metavar=metavar, help=baseline)
    parser.add_argument("--json", action="store_true", help="scores, signatures and comparison as one JSON object")


def _report(
    hypotheses: list[str], references: list[tuple[str, ...]], baseline: list[str] | None, as_json: bool
) -> None:
    from seq2seq import evaluation

    scores = evaluation.score(hypotheses, references)
    comparisons = evaluation.compare(baseline, hypotheses, references) if baseline is not None else []
    if as_json:
        values: dict[str, Any] = {"sentences": len(hypotheses), **asdict(scores)}
        if comparisons:
            values["comparison"] = [asdict(comparison) for comparison in comparisons]
        print(json.dumps(values, indent=2))
        return
    _print_scores(scores, comparisons)
    if baseline == hypotheses:
        print("the translations are the baseline's, word for word", file=sys.stderr)


def _print_scores(scores: "Scores", comparisons: "list[Comparison]") -> None:
    names = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"}
    for key, name in names.items():
        print(f"{name:5} {getattr(scores, key):5.1f}")
        print(f"{name}|{scores.signatures[key]}", file=sys.stderr)
    for comparison in comparisons:
        change = f"{comparison.baseline:.1f} -> {comparison.score:.1f}"
        print(f"{comparison.metric} {change}, p = {comparison.p_value:.4f} (paired bootstrap)")
