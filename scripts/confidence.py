"""How well a model's rule of confidence tells right translations from wrong ones; with --fit, a new rule.

python scripts/confidence.py --model en-fr --reverse fr-en --graded tests/data/confidence/graded.tsv --fit
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from seq2seq.benchmark.tables import markdown
from seq2seq.commands.common import load_examples, model_option
from seq2seq.errors import UserError, exit_status
from seq2seq.folder import CONFIG, find_model, load_info
from seq2seq.storage import write_file
from seq2seq.training.damage import KINDS, Case, Damager, whole
from seq2seq.training.grades import fingerprint, read_grades
from seq2seq.training.judging import Judged, Worth, fit_rule, judge_cases, reliability, worth
from seq2seq.translation.confidence import open_reverse
from seq2seq.translation.engine import Engine
from seq2seq.translation.translator import Translator

PROGRAM = "confidence"
BINS = (0.2, 0.4, 0.6, 0.8, 0.9, 0.95)  # bounds of the probabilities that are held against the share that is right


def run() -> None:
    """Read the command line, fit if asked to, measure, and print tables."""
    options = _parser().parse_args()
    folder = find_model(options.model)
    info = load_info(folder)
    grades = read_grades(options.graded)
    if info.confidence is None and not options.fit:
        raise UserError(f"{folder / CONFIG} has no rule of confidence to measure: make one with --fit")
    translator = Translator.from_pretrained(folder)
    if options.fit or info.confidence is None:
        reverse = open_reverse(translator.engine, options.reverse)
        rule = fit_rule(*_split("dev", options, translator, reverse, grades), options.reverse)
        changed = info.model_copy(update={"confidence": rule}).model_dump_json(indent=2, exclude_none=True)
        write_file(folder / CONFIG, [(changed + "\n").encode()])
        print(f"{PROGRAM}: a rule in {folder / CONFIG}", file=sys.stderr)
    else:
        rule = info.confidence
        reverse = open_reverse(translator.engine, rule.reverse)
    damaged, graded = _split("test", options, translator, reverse, grades)
    for what, rows in worth(rule, damaged, graded).items():
        print(f"\nAUROC, {what}\n\n{_table(rows)}")
    found = reliability(rule, graded, BINS)
    lines = [[f"{100 * said:.0f} %", f"{100 * true:.0f} %", str(count)] for said, true, count in found]
    print(f"\nReliability\n\n{markdown(('said', 'right', 'sentences'), lines)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    model_option(parser)
    parser.add_argument("--reverse", metavar="M", help="model of the other direction, which a new rule asks, too")
    parser.add_argument("--dataset", default="tatoeba", metavar="NAME", help="sample, tatoeba (default) or multi30k")
    parser.add_argument("--graded", type=Path, required=True, metavar="FILE", help="split TAB fingerprint TAB grade")
    parser.add_argument("--fit", action="store_true", help="fit a rule on the dev split and write it into config.json")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N sentences of a split")
    return parser


def _split(
    split: str,
    options: argparse.Namespace,
    translator: Translator,
    reverse: Engine | None,
    grades: Mapping[str, Mapping[str, bool]],
) -> tuple[Judged, Judged]:
    """Translations of a split, whole and damaged; and those of them that have been graded."""
    options.split = split
    examples, _ = load_examples(options, translator)
    results = translator.translate([example.source for example in examples])
    sentences = [result.sentences[0] for result in results if len(result.sentences) == 1]
    cases = [*map(whole, sentences), *Damager(sentences).damage(sentences)]
    engine, whole_ones = translator.engine, len(sentences)
    damaged = judge_cases(engine, reverse, cases, (number < whole_ones for number in range(len(cases))))
    known = grades.get(split, {})
    texts = {fingerprint(result.source, result.text): Case(result.source, result.text, "whole") for result in results}
    chosen = [name for name in texts if name in known]
    if len({known[name] for name in chosen}) < 2:
        raise UserError(f"{options.graded}: {split} has no right and wrong translations that this model makes")
    kinds = ", ".join(f"{sum(case.kind == kind for case in cases):,} {kind}" for kind in ("whole", *KINDS))
    wrong = sum(not known[name] for name in chosen)
    print(f"{split}: {kinds}; {len(chosen)} of {len(known)} graded translations ({wrong} wrong)", flush=True)
    return damaged, judge_cases(engine, reverse, [texts[name] for name in chosen], map(known.__getitem__, chosen))


def _table(rows: list[Worth]) -> str:
    natural = any(row.graded is not None for row in rows)
    heads = ("evidence", "damaged", "graded by hand") if natural else ("evidence", "damaged")
    return markdown(
        heads, [[row.name, *(f"{one:.2f}" for one in (row.damaged, row.graded) if one is not None)] for row in rows]
    )


if __name__ == "__main__":
    sys.exit(exit_status(PROGRAM, run))
