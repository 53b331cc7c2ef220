import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import sacremoses
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

from seq2seq.errors import UserError
from seq2seq.evaluation import (
    NAMES,
    Scores,
    bleu_settings,
    compare,
    moses_bleu,
    score,
    score_subset,
    sentence_scores,
    signatures,
)

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
    metrics = ["-m", "bleu", "chrf", "ter", "-w", "15"]  # options that come later win
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


@pytest.mark.parametrize(
    ("kind", "samples", "test"), [("bs", 200, "bootstrap"), ("ar", 500, "randomisation")], ids=["bootstrap", "ar"]
)
def test_each_significance_test_is_that_of_sacrebleus_command_line(tmp_path, kind, samples, test):
    options = ("--format", "text", "--no-color", f"--paired-{kind}", f"--paired-{kind}-n", str(samples))
    theirs = sacrebleu(tmp_path, [FIRST, SECOND], [BASELINE, HYPOTHESES], *options)
    scores = re.findall(r"│ +(\d+\.\d{15})", theirs)
    ours = compare(
        BASELINE, HYPOTHESES, per_sentence([FIRST, SECOND]), **{"bs": {"samples": 200}, "ar": {"trials": 500}}[kind]
    )
    assert [f"{comparison.baseline:.15f}" for comparison in ours] == scores[:3]
    assert [f"{comparison.score:.15f}" for comparison in ours] == scores[3:]
    tests = [getattr(comparison, test) for comparison in ours]
    assert [f"{found.p_value:.4f}" for found in tests] == re.findall(r"\(p = (\d\.\d{4})\)", theirs)
    signatures = re.findall(r"^ - (BLEU|chrF2|TER) +(nrefs\S+)", theirs, re.MULTILINE)
    assert [(comparison.metric, found.signature) for comparison, found in zip(ours, tests, strict=True)] == signatures
    assert len(signatures) == 3


@pytest.mark.parametrize("kind", ["bs", "ar"])
def test_both_tests_take_sacrebleus_own_defaults(kind):
    streams = [FIRST, SECOND]
    metrics = {"bleu": BLEU(), "chrf": CHRF(), "ter": TER()}
    theirs = PairedTest([("a", BASELINE), ("b", HYPOTHESES)], metrics, streams, test_type=kind)
    signatures, results = theirs()
    for comparison in compare(BASELINE, HYPOTHESES, per_sentence(streams)):
        ours = comparison.bootstrap if kind == "bs" else comparison.randomisation
        assert ours.p_value == results[comparison.metric][1].p_value
        assert ours.signature == signatures[comparison.metric].format()
        assert f"{kind}:{1000 if kind == 'bs' else 10000}|seed:12345" in ours.signature


def test_the_same_translations_differ_by_chance_alone():
    for comparison in compare(HYPOTHESES, HYPOTHESES, per_sentence([FIRST]), samples=50, trials=50):
        assert comparison.baseline == comparison.score
        assert comparison.randomisation.p_value <= 1
        assert comparison.randomisation.signature != comparison.bootstrap.signature


@pytest.mark.parametrize("references", [[FIRST], [FIRST, SECOND]], ids=["one", "two"])
def test_confidence_intervals_are_those_of_sacrebleus_command_line(tmp_path, references):
    theirs = json.loads(sacrebleu(tmp_path, references, [HYPOTHESES], "--confidence"))
    ours = score(HYPOTHESES, per_sentence(references), confidence=True)
    for name, metric in zip(NAMES, theirs, strict=True):
        assert f"{ours.confidence[name].mean:.15f}" == f"{metric['confidence_mean']:.15f}"
        assert f"{ours.confidence[name].margin:.15f}" == f"{metric['confidence_var']:.15f}"
        assert ours.signatures[name] == metric["signature"]
    assert [ours.bleu, ours.chrf, ours.ter] == [metric["score"] for metric in theirs]


def test_an_interval_is_shown_as_sacrebleu_shows_it(tmp_path):
    options = ("--format", "text", "--confidence", "-w", "1")
    theirs = sacrebleu(tmp_path, [FIRST], [HYPOTHESES], *options).splitlines()
    ours = score(HYPOTHESES, per_sentence([FIRST]), confidence=True).lines()
    assert len(theirs) == 3
    for mine, other in zip(ours, theirs, strict=True):
        assert other.lstrip().startswith(mine)  # BLEU's line goes on with its precisions


def test_sentence_scores_are_those_of_sacrebleus_command_line(tmp_path):
    theirs = {}
    for metric in ("bleu", "chrf"):
        options = ["--sentence-level", "--format", "text", "-m", metric]
        lines = sacrebleu(tmp_path, [FIRST, SECOND], [HYPOTHESES], *options).splitlines()
        theirs[metric] = [float(re.search(r" = (\d+\.\d+)", line)[1]) for line in lines]
    ours = sentence_scores(HYPOTHESES, per_sentence([FIRST, SECOND]))
    assert [found.bleu for found in ours] == pytest.approx(theirs["bleu"], abs=1e-12)
    assert [found.chrf for found in ours] == pytest.approx(theirs["chrf"], abs=1e-12)


def test_a_subset_scores_as_a_corpus_of_its_own():
    found = score_subset(HYPOTHESES[2:], per_sentence([FIRST[2:], SECOND[2:]]))
    whole = score(HYPOTHESES[2:], per_sentence([FIRST[2:], SECOND[2:]]))
    assert (found.bleu, found.chrf) == (whole.bleu, whole.chrf)
    assert score_subset(FIRST, per_sentence([FIRST])).length_ratio == 1
    assert score_subset(["Le chat"], [["Le chat dort ici"]]).length_ratio == 0.5


def test_the_settings_of_bleu_are_its_signature_without_the_references():
    assert score(HYPOTHESES, per_sentence([FIRST])).signatures["bleu"] == f"nrefs:1|{bleu_settings()}"


def test_every_signature_is_listed_once():
    references = per_sentence([FIRST])
    scores = score(HYPOTHESES, references, confidence=True)
    lines = signatures(scores, compare(BASELINE, HYPOTHESES, references, trials=20))
    assert len(lines) == len(set(lines)) == 6  # the bootstrap of interval and test is the same
    assert all(line.startswith(("BLEU|", "chrF2|", "TER|")) for line in lines)


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


# The protocol of the papers on Multi30k.


def test_by_moses_case_and_the_look_of_marks_do_not_count():
    references = [("L'homme attend « ici ».",), ("Où vas-tu, Anna ?",)]
    hypotheses = ["l’homme attend “ici”.", "OÙ VAS-TU, ANNA ?"]
    found = moses_bleu(hypotheses, references, "fr")
    assert found.bleu == pytest.approx(100.0)
    assert score(hypotheses, references).bleu < 60
    assert "case:mixed|eff:no|tok:none" in found.signature
    assert found.signature.endswith("moses:fr+lowercase+sacremoses-" + sacremoses.__version__)


def test_by_moses_a_clitic_is_a_token_of_its_own():
    """As the papers count: three of four tokens here, where 13a has two of three."""
    [tokens] = [sacremoses.MosesTokenizer("fr").tokenize("l'homme attend ici")]
    assert tokens == ["l&apos;", "homme", "attend", "ici"]
    hypotheses, references = ["l'homme attend là"] * 2, [("l'homme attend ici",)] * 2
    by_moses = BLEU(tokenize="none", force=True).corpus_score(
        [" ".join([*tokens[:-1], "là"])] * 2, [[" ".join(tokens)] * 2]
    )
    assert moses_bleu(hypotheses, references, "fr").bleu == by_moses.score


def test_by_moses_all_references_of_a_sentence_count():
    assert moses_bleu(["il dort ici ce soir"], [("il est ici", "il dort ici ce soir")], "fr").bleu == pytest.approx(100)
    with pytest.raises(UserError, match="line-parallel"):
        moses_bleu(["a"], [], "fr")


@pytest.mark.parametrize("language", ["french", "FR", "xx", ""])
def test_moses_refuses_a_language_that_it_has_no_tokens_for(language):
    with pytest.raises(UserError, match=f"Moses has no tokens for language '{language}': it knows .* fr,"):
        moses_bleu(["a"], [("a",)], language)
