"""`seq2seq evaluate`: a test set, translated and scored."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seq2seq.config import DataConfig
    from seq2seq.insight.breakdown import Bucket
    from seq2seq.insight.robustness import Kept
    from seq2seq.translation.result import Translation
    from seq2seq.translation.translator import Translator

from seq2seq import __version__
from seq2seq.commands.common import (
    CHUNK,
    OutputPath,
    check_parent,
    declare,
    engine_option,
    model_option,
    open_translator,
    read_split,
    search_options,
    write_file,
    write_lines,
)
from seq2seq.commands.score import (
    MOSES,
    Measured,
    Output,
    measure,
    read,
    read_baseline,
    read_references,
    score_options,
    show,
)
from seq2seq.errors import UserError


@dataclass(frozen=True)
class Test:
    """Sentences to translate, each with its references, and where they come from in words."""

    name: str
    sources: list[str]
    references: list[tuple[str, ...]]
    data: "DataConfig | None" = None  # of a corpus that has a training split, too


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
    parser.add_argument("--output", action=OutputPath, metavar="FILE", help="write the translations, one a line")
    parser.add_argument(
        "--report",
        action=OutputPath,
        metavar="FILE.html",
        help="write a page of scores, sentences and attention; --confidence",
    )
    parser.add_argument("--moses", action="store_true", help=MOSES)
    parser.add_argument(
        "--breakdown", action="store_true", help="also scores by length and, of a --dataset, by rarity of the words"
    )
    parser.add_argument(
        "--robustness", action="store_true", help="also BLEU of the same sentences in lower case, in capitals, mistyped"
    )
    score_options(parser, "FILE|M", "translations of, or a model for, a baseline: two paired tests against it")


def evaluate(options: argparse.Namespace) -> None:
    """`seq2seq evaluate`."""
    from seq2seq import evaluation
    from seq2seq.translation.translator import Translator

    for option, path in (("--output", options.output), ("--report", options.report)):
        if path is not None:
            check_parent(path, option)
    test = _test(options)
    evaluation.check(test.sources, test.references)
    translator = open_translator(options)
    baseline = _baseline(options.baseline, test, translator, options.engine, options.precision)
    seen = _words_seen(test) if options.breakdown else {}
    more = f" and {len(options.ensemble)} more" if options.ensemble else ""
    more += f", reranked by {options.rerank}" if options.rerank else ""
    output = _translate_all(translator, (options.model or "en-fr, bundled") + more, test, options)
    if isinstance(baseline, Translator):
        baseline = _translate_all(baseline, options.baseline, test, options)
    if options.output:
        write_lines(iter(output.hypotheses), options.output)
    moses = translator.info.target if options.moses else None
    confidence = options.confidence or options.report is not None
    measured = measure(output, baseline, test.references, confidence, moses)
    if options.breakdown:
        measured = replace(measured, breakdown=_breakdown(test, [each for each in (output, baseline) if each], seen))
    if options.robustness:
        measured = replace(measured, robustness=_robustness(translator, test, output, options))
    show(measured, options.json)
    if options.report:
        page = _report(test, measured, translator, options)
        write_file([page.encode("utf-8", "replace")], options.report)


# What goes in.


def _test(options: argparse.Namespace) -> Test:
    if bool(options.dataset) == bool(options.source):
        raise UserError("give either --dataset, or --source with --reference")
    if options.source:
        if not options.reference:
            raise UserError("--source needs at least one --reference")
        sources, references = read(options.source), read_references(options.reference)
        if len(sources) != len(references):
            files = f"--source {options.source} has {len(sources)} lines, --reference {options.reference[0]}"
            raise UserError(f"{files} has {len(references)}: they must be line-parallel")
        return Test(options.source.name, sources, references)
    if options.reference:
        raise UserError("--reference goes with --source; a --dataset has its own references")
    return _dataset(options)


def _dataset(options: argparse.Namespace) -> Test:
    from seq2seq.folder import find_model, load_info

    examples, config = read_split(options.dataset, options.split, load_info(find_model(options.model)))
    sources, references = [example.source for example in examples], [example.references for example in examples]
    return Test(f"{options.dataset}, {options.split}", sources, references, config)


def _baseline(
    name: str | None, test: Test, translator: "Translator", engine: str, precision: str | None
) -> "Translator | Output | None":
    """A baseline that can be compared with: what does not fit is refused before anything is translated."""
    from seq2seq.translation.translator import Translator

    if name is None:
        return None
    if Path(name).is_file():
        return read_baseline(name, len(test.sources))
    try:
        rival = Translator.from_pretrained(name, engine, precision)
    except UserError as error:
        raise UserError(f"--baseline {name!r} is no file, and not a model either: {error}") from None
    ours, theirs = ((info.source, info.target) for info in (translator.info, rival.info))
    if ours != theirs:
        raise UserError(f"--baseline {name!r} translates {'-'.join(theirs)}, the model {'-'.join(ours)}")
    return rival


def _translate_all(translator: "Translator", name: str, test: Test, options: argparse.Namespace) -> Output:
    translations = _translate(translator, test.sources, options)
    return Output(name, [result.text for result in translations], translations)


def _translate(translator: "Translator", sources: Sequence[str], options: argparse.Namespace) -> "list[Translation]":
    from tqdm import tqdm

    translations: list[Translation] = []
    for start in tqdm(range(0, len(sources), CHUNK), unit="batch", disable=not sys.stderr.isatty()):
        translations += translator.translate(
            sources[start : start + CHUNK],
            beam_size=options.beam_size,
            length_penalty=options.length_penalty,
            attention=False,
        )
    return translations


def _words_seen(test: Test) -> Mapping[str, int]:
    """How often each word stands in the training sources; empty where there are none."""
    from seq2seq.data.corpus import load_split
    from seq2seq.insight.breakdown import count_words

    return {} if test.data is None else count_words(pair.source for pair in load_split(test.data, "train"))


def _breakdown(test: Test, outputs: Sequence[Output], seen: Mapping[str, int]) -> "dict[str, list[Bucket]]":
    from seq2seq.insight.breakdown import by_length, by_rarity

    systems = [output.hypotheses for output in outputs]
    found = {"words of the source": by_length(test.sources, test.references, systems)}
    if seen:
        rarity = "how often training saw the rarest word of the source"
        found[rarity] = by_rarity(test.sources, test.references, systems, seen)
    return found


def _robustness(translator: "Translator", test: Test, output: Output, options: argparse.Namespace) -> "list[Kept]":
    from seq2seq.insight.robustness import robustness

    def translate(sources: Sequence[str]) -> list[str]:
        return [result.text for result in _translate(translator, sources, options)]

    return robustness(translate, test.sources, test.references, output.hypotheses)


def _report(test: Test, measured: Measured, translator: "Translator", options: argparse.Namespace) -> str:
    """The page of `--report`."""
    from seq2seq import evaluation
    from seq2seq.insight.report import Evaluation, System, report_page

    output, baseline, rival = measured.output, measured.baseline, None
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
    shown = Evaluation(
        title=f"Evaluation of {output.name} ({languages}) on {test.name}",
        sources=test.sources,
        references=test.references,
        system=System(output.name, output.hypotheses, measured.scores, output.truncated),
        baseline=rival,
        comparisons=measured.comparisons,
        facts=facts,
    )
    return report_page(shown, translator, output.translations or [])
