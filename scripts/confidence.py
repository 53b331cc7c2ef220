"""How well a model's rule of confidence tells right translations from wrong ones; with --fit, a new rule.

python scripts/confidence.py --model en-fr --graded tests/data/confidence/graded.tsv
python scripts/confidence.py --model runs/my/model --dataset my.toml --sheet graded.tsv   # translations to be graded
python scripts/confidence.py --model runs/my/model --dataset my.toml --graded graded.tsv --reverse runs/back/model --fit
"""

import argparse
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from seq2seq.benchmark.tables import markdown
from seq2seq.commands.common import dataset_option, load_examples, model_option
from seq2seq.errors import UserError, exit_status
from seq2seq.folder import CONFIG, ConfidenceRule, bundled, find_model, write_info
from seq2seq.storage import write_file
from seq2seq.training.damage import KINDS, WHOLE, Case, Damager, whole
from seq2seq.training.grades import Grade, Grades, fingerprint, read_grades, sheet_line
from seq2seq.training.judging import Judged, Worth, fit_rule, judge_cases, reliability, worth, worth_by_kind
from seq2seq.translation.confidence import open_reverse
from seq2seq.translation.engine import Engine
from seq2seq.translation.evidence import Pair
from seq2seq.translation.result import SentenceTranslation
from seq2seq.translation.translator import Translator

PROGRAM = "confidence"
BOUNDS = (0.2, 0.4, 0.6, 0.8, 0.9, 0.95)  # of the probabilities that are held against how often they are true
SHEET = 300  # translations of each split that are drawn to be graded
LEAST = 20  # graded translations of either kind, at least


def run() -> None:
    """Read the command line and do it."""
    options = _parser().parse_args()
    folder = find_model(options.model)
    translator = Translator.from_pretrained(folder)
    if options.sheet:
        write_sheet(options, translator)
        return
    if options.graded is None:
        raise UserError("--graded FILE is missing: translations that have been graded; --sheet FILE draws some")
    if options.reverse and not options.fit:
        raise UserError(f"--reverse {options.reverse}: a rule names its model itself; it is for --fit")
    grades = read_grades(options.graded)
    rule = translator.info.confidence
    if rule is None and not options.fit:
        raise UserError(f"{folder / CONFIG} has no rule of confidence to measure: make one with --fit")
    name = _lasting(options.reverse) if rule is None or options.fit else rule.reverse
    reverse = open_reverse(translator.engine, name)
    if rule is None or options.fit:
        rule = fit_rule(*judged_split("dev", options, translator, reverse, grades), name)
    report(rule, *judged_split("test", options, translator, reverse, grades))
    if options.fit:
        write_info(folder, translator.info.model_copy(update={"confidence": rule}))
        print(f"{PROGRAM}: a rule in {folder / CONFIG}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    model_option(parser)
    dataset_option(parser)
    parser.add_argument("--graded", type=Path, metavar="FILE", help="graded translations of the dev and test split")
    parser.add_argument("--sheet", type=Path, metavar="FILE", help=f"write {SHEET} translations a split to be graded")
    parser.add_argument("--fit", action="store_true", help="fit a rule on the dev split and write it into config.json")
    parser.add_argument("--reverse", metavar="M", help="model of the other direction, which a new rule asks, too")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N sentences of a split")
    return parser


def _lasting(name: str | None) -> str | None:
    """A name that holds wherever the command is run."""
    return str(Path(name).resolve()) if name and not bundled(name) and Path(name).is_dir() else name


def translations(split: str, options: argparse.Namespace, translator: Translator) -> list[SentenceTranslation]:
    """Those of a split that are of one sentence, and that nobody but the model has written."""
    options.split = split
    examples, _ = load_examples(options, translator.info)
    results = translator.translate([example.source for example in examples])
    sentences = [result.sentences[0] for result in results if len(result.sentences) == 1]
    decode = translator.tokenizer.decode
    return [one for one in sentences if (decode(one.source_ids), decode(one.target_ids)) == (one.source, one.text)]


def write_sheet(options: argparse.Namespace, translator: Translator) -> None:
    """Translations drawn at random, to be graded in the third column."""
    lines = []
    for split in ("dev", "test"):
        found = translations(split, options, translator)
        for one in random.Random(0).sample(found, min(SHEET, len(found))):
            lines.append(sheet_line(split, one.source, one.text).encode())
    write_file(options.sheet, lines)
    print(f"{PROGRAM}: {len(lines)} translations in {options.sheet}: write right or wrong into the third column")


def judged_split(
    split: str, options: argparse.Namespace, translator: Translator, reverse: Engine | None, grades: Grades
) -> tuple[Judged, Judged]:
    """Translations of a split, whole and damaged; and those of them that have been graded."""
    sentences = translations(split, options, translator)
    known = grades.get(split, {})
    graded = [(one, known[name]) for one in sentences if (name := fingerprint(one.source, one.text)) in known]
    wrong = sum(not grade.right for _, grade in graded)
    if min(wrong, len(graded) - wrong) < LEAST:
        found = f"{len(graded) - wrong} right and {wrong} wrong translations"
        raise UserError(
            f"{options.graded}: of {split} it grades {found} that this model makes; {LEAST} of each are needed"
        )
    bad = {(one.source, one.text) for one, grade in graded if not grade.right}
    sound = [one for one in sentences if (one.source, one.text) not in bad]
    cases = [*map(whole, sound), *Damager(sound).damage(sound)]
    kinds = ", ".join(f"{sum(case.kind == kind for case in cases):,} {kind}" for kind in (WHOLE, *KINDS))
    print(f"{split}: {kinds}; {len(graded)} of {len(known)} graded translations, {wrong} wrong", flush=True)
    return (
        judge_cases(translator.engine, reverse, cases, (case.kind == WHOLE for case in cases)),
        judge_cases(
            translator.engine, reverse, [_graded(*each) for each in graded], (grade.right for _, grade in graded)
        ),
    )


def _graded(one: SentenceTranslation, grade: Grade) -> Case:
    for places, words in ((grade.omitted, one.source_words), (grade.invented, one.target_words)):
        if max(places, default=0) >= len(words):
            name = fingerprint(one.source, one.text)
            raise UserError(f"grade of {name}: there is no word {max(places)}, counted from 0, among {len(words)}")
    pair = Pair(one.source_ids, one.target_ids)
    return Case(one.source, one.text, "graded", grade.omitted, grade.invented, grade.named, pair)


def report(rule: ConfidenceRule, damaged: Judged, graded: Judged) -> None:
    """Tables of what everything is worth, and of what probabilities are worth."""
    for what, rows in worth(rule, damaged, graded).items():
        heads = ("evidence", "damaged", "graded by hand")
        print(f"\nAUROC, {what}\n\n{markdown(heads, list(map(_row, rows)))}")
    kinds: Mapping[str, float] = worth_by_kind(rule, damaged)
    print(f"\nAUROC by kind of damage\n\n{markdown(('damage', 'AUROC'), [[k, f'{v:.3f}'] for k, v in kinds.items()])}")
    for what, found in reliability(rule, graded, BOUNDS).items():
        lines = [[f"{100 * one.said:.0f} %", f"{100 * one.true:.0f} %", f"{one.count:,}"] for one in found]
        print(f"\nReliability: {what}\n\n{markdown(('said', 'true', 'of'), lines)}")


def _row(row: Worth) -> Sequence[str]:
    return [row.name, f"{row.damaged:.3f}", f"{row.graded:.3f} ± {row.error:.3f}"]


if __name__ == "__main__":
    sys.exit(exit_status(PROGRAM, run))
