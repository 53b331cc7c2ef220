import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from seq2seq.errors import UserError
from seq2seq.evaluation import Scores, compare, score

HYPOTHESES = [
    "Le chat dort sur le canapé.",
    "Où est-ce que tu as mis mes clés ?",
    "Il a plu pendant toute une semaine .",
    "Je préfère le thé au café.",
    "« C'est trop tard », dit-elle.",
    "Ils sont partis à 7h30 avec 12 valises.",
]
BASELINE = [
    "Le chat dormir sur canapé.",
    "Où as-tu mis mes clés ?",
    "Il pleut une semaine.",
    "Je préfère le café au thé.",
    "C'est tard, elle dit.",
    "Ils sont partis à 7h30 avec 12 valises.",
]
FIRST = [
    "Le chat dort sur le canapé.",
    "Où as-tu mis mes clés ?",
    "Il a plu toute la semaine.",
    "Je préfère le thé au café.",
    "« Il est trop tard », dit-elle.",
    "Ils sont partis à 7 h 30 avec douze valises.",
]
SECOND = [
    "Le chat est endormi sur le canapé.",
    "Où est-ce que vous avez mis mes clés ?",
    "Il a plu pendant une semaine entière.",
    "J'aime mieux le thé que le café.",
    "« C'est trop tard », a-t-elle dit.",
    "Ils partirent à 7h30 avec 12 valises.",
]


def written(folder: Path, name: str, lines: list[str]) -> str:
    (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return name


def sacrebleu(folder: Path, references: list[list[str]], systems: list[list[str]], *options: str) -> str:
    """What sacrebleu's own command line prints, with all digits."""
    refs = [written(folder, f"ref{number}", lines) for number, lines in enumerate(references)]
    names = [written(folder, f"system{number}", lines) for number, lines in enumerate(systems)]
    metrics = ["-m", "bleu", "chrf", "ter", "-w", "15"]
    command = [sys.executable, "-m", "sacrebleu", *refs, "-i", *names, *metrics, *options]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True, cwd=folder).stdout


def per_sentence(references: list[list[str]]) -> list[list[str]]:
    return [list(lines) for lines in zip(*references, strict=True)]


@pytest.mark.parametrize("references", [[FIRST], [FIRST, SECOND]], ids=["one", "two"])
def test_scores_and_signatures_are_those_of_sacrebleus_command_line(tmp_path, references):
    theirs = json.loads(sacrebleu(tmp_path, references, [HYPOTHESES]))
    ours = score(HYPOTHESES, per_sentence(references))
    assert [ours.bleu, ours.chrf, ours.ter] == [metric["score"] for metric in theirs]
    assert list(ours.signatures) == ["bleu", "chrf", "ter"]
    assert list(ours.signatures.values()) == [metric["signature"] for metric in theirs]


def test_sentences_may_have_different_numbers_of_references(tmp_path):
    """The command line wants as many for each; a reference given twice changes no score."""
    some = [None, SECOND[1], None, None, SECOND[4], SECOND[5]]
    filled = [second or first for first, second in zip(FIRST, some, strict=True)]
    theirs = json.loads(sacrebleu(tmp_path, [FIRST, filled], [HYPOTHESES]))
    ours = score(
        HYPOTHESES, [[first, second] if second else [first] for first, second in zip(FIRST, some, strict=True)]
    )
    assert [ours.bleu, ours.chrf, ours.ter] == [metric["score"] for metric in theirs]
    assert list(ours.signatures.values()) == [m["signature"].replace("nrefs:2", "nrefs:var") for m in theirs]


def test_the_significance_test_is_that_of_sacrebleus_command_line(tmp_path):
    options = ("--format", "text", "--no-color", "--paired-bs", "--paired-bs-n", "200")
    theirs = sacrebleu(tmp_path, [FIRST, SECOND], [BASELINE, HYPOTHESES], *options)
    scores = re.findall(r"│ +(\d+\.\d{15}) \(", theirs)
    ours = compare(BASELINE, HYPOTHESES, per_sentence([FIRST, SECOND]), samples=200)
    assert [f"{comparison.baseline:.15f}" for comparison in ours] == scores[:3]
    assert [f"{comparison.score:.15f}" for comparison in ours] == scores[3:]
    assert [f"{comparison.p_value:.4f}" for comparison in ours] == re.findall(r"\(p = (\d\.\d{4})\)", theirs)
    signatures = re.findall(r"^ - (BLEU|chrF2|TER) +(nrefs\S+)", theirs, re.MULTILINE)
    assert [(comparison.metric, comparison.signature) for comparison in ours] == signatures
    assert len(signatures) == 3


def test_a_perfect_translation_scores_the_maximum():
    scores = score(FIRST, per_sentence([FIRST, SECOND]))
    assert (scores.bleu, scores.chrf, scores.ter) == (pytest.approx(100), pytest.approx(100), 0)


def test_a_score_is_shown_with_its_signature():
    scores = Scores(31.25, 55.04, 48.0, {"bleu": "nrefs:1", "chrf": "nc:6", "ter": "case:lc"})
    assert scores.lines() == ["BLEU|nrefs:1 = 31.2", "chrF2|nc:6 = 55.0", "TER|case:lc = 48.0"]


def test_another_number_of_references_is_refused():
    with pytest.raises(UserError, match=r"^6 hypotheses but 5 references: they must be line-parallel"):
        score(HYPOTHESES, per_sentence([FIRST])[:5])
    with pytest.raises(UserError, match=r"^5 hypotheses but 6 references"):
        compare(BASELINE[:5], HYPOTHESES, per_sentence([FIRST]))


def test_nothing_to_score_is_refused():
    with pytest.raises(UserError, match="there is nothing to score"):
        score([], [])


def test_a_sentence_without_a_reference_is_refused():
    with pytest.raises(UserError, match="sentence 2 has no reference"):
        score(HYPOTHESES, [[FIRST[0]], [], *[[line] for line in FIRST[2:]]])
