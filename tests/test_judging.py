"""Fitting a rule of confidence and measuring it: damage, logistic regression, grades."""

import importlib.util
import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from seq2seq.errors import UserError
from seq2seq.folder import BUNDLED, PRETRAINED
from seq2seq.training.damage import KINDS, WHOLE, Case, Damager, whole
from seq2seq.training.grades import Grade, fingerprint, read_grades, sheet_line
from seq2seq.training.judging import Judged, _source_words, fit_rule, reliability, worth, worth_by_kind
from seq2seq.training.logistic import Sample, auroc, auroc_error, fit_logistic, fit_on_both
from seq2seq.translation.alignment import Words
from seq2seq.translation.confidence import logistic, weigh
from seq2seq.translation.evidence import Evidence

ROOT = Path(__file__).parents[1]
TEXTS = [
    "The old man is reading a book near the window.",
    "My brother bought three red apples yesterday.",
    "She likes the black cat of our neighbour.",
]


@pytest.fixture(scope="module")
def sentences(translator):
    return [translator.translate(text).sentences[0] for text in TEXTS]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [([1, 2, 3, 4], 1.0), ([4, 3, 2, 1], 0.0), ([1, 3, 2, 4], 0.75), ([1, 1, 1, 1], 0.5), ([1, 2, 2, 3], 0.875)],
)
def test_auroc_by_hand(scores, expected):
    """Two negatives, then two positives: of four comparisons those that the positive wins, a tie for half."""
    assert auroc(np.array(scores, float), np.array([False, False, True, True])) == expected


def test_auroc_of_one_class_is_not_a_number():
    assert math.isnan(auroc(np.array([1.0, 2.0]), np.array([True, True])))


def test_the_error_of_an_auroc_is_hanley_and_mcneils():
    """Half of 51 positives and 58 negatives: their table gives 0.0288 for an area of 0.893."""
    positive = np.array([True] * 51 + [False] * 58)
    assert auroc_error(0.893, positive) == pytest.approx(0.032, abs=0.002)
    assert auroc_error(1.0, positive) == 0


def test_logistic_regression_on_one_flag_gives_the_log_odds():
    """With 400 cases without the flag, 100 of them positive, and 400 with it, 300 positive: -log 3 and 2 log 3."""
    flag = np.repeat([0.0, 1.0], 400)
    positive = np.array([*[True] * 100, *[False] * 300, *[True] * 300, *[False] * 100])
    weights = fit_logistic(Sample({"flag": flag, "still": np.ones(800)}, positive))
    assert set(weights) == {"constant", "flag"}  # what never varies says nothing
    assert weights["constant"] == pytest.approx(-math.log(3), abs=0.02)
    assert weights["flag"] == pytest.approx(2 * math.log(3), abs=0.04)


def test_a_case_of_importance_three_is_three_cases():
    values, positive = np.array([0.0, 1.0, 2.0, 3.0]), np.array([False, True, False, True])
    weighted = fit_logistic(Sample({"x": values}, positive), np.array([1.0, 1.0, 1.0, 3.0]))
    repeated = np.array([0, 1, 2, 3, 3, 3])
    assert weighted == pytest.approx(fit_logistic(Sample({"x": values[repeated]}, positive[repeated])), abs=1e-6)


def test_separable_cases_have_finite_weights():
    weights = fit_logistic(Sample({"x": np.array([0.0, 1.0, 2.0, 3.0])}, np.array([False, False, True, True])))
    assert 0 < weights["x"] < 10


def drawn(count, slope, shift, seed=0):
    """Cases whose log-odds of being positive are slope * x + shift, beside a number that says nothing."""
    random = np.random.default_rng(seed)
    x, noise = random.normal(size=count), random.normal(size=count)
    positive = random.random(count) < 1 / (1 + np.exp(-(slope * x + shift)))
    return Sample({"x": x, "noise": noise}, positive)


def test_probabilities_hold_on_natural_cases_whatever_the_share_of_artificial_ones():
    """Artificial cases are positive half of the time, natural ones rarely; the rule speaks of the latter."""
    natural = drawn(4000, 1.5, -3.0, seed=1)
    weights = fit_on_both(drawn(4000, 1.5, 0.0), natural)
    said = logistic(weigh(weights, natural.table))
    assert said.mean() == pytest.approx(natural.positive.mean(), abs=0.005)
    top = said > np.quantile(said, 0.9)
    assert said[top].mean() == pytest.approx(natural.positive[top].mean(), abs=0.06)
    assert abs(weights["noise"]) < 0.2
    assert weights["x"] > 1


def test_evidence_that_says_nothing_of_natural_cases_is_refused():
    natural = drawn(200, 1.5, 0.0)
    nothing = Sample({name: np.zeros(200) for name in natural.table}, natural.positive)
    with pytest.raises(UserError, match="grade more, and name the words to blame"):
        fit_on_both(drawn(2000, -3.0, 0.0), nothing)


def test_damage_is_where_it_says(sentences):
    found = [case for seed in range(20) for case in Damager(sentences, seed, 3).damage(sentences)]
    assert {case.kind for case in found} == set(KINDS)
    by_source = {sentence.source: sentence for sentence in sentences}
    change = {"word removed": -1, "word replaced": 0, "word repeated": 1, "word added": 1}
    for case in found:
        sentence = by_source[case.source]
        words, left = sentence.target_words, case.target.replace(".", " .").split()
        differ = [place for place, word in enumerate(left) if place >= len(words) or word != words[place]]
        if case.kind in change:
            assert len(left) - len(words) == change[case.kind]
        else:
            assert 1 <= len(words) - len(left) <= 3
        if case.invented:
            assert list(case.invented) == differ[:1]
        else:
            assert set(left) <= set(words)
        assert case.target.endswith(left[-2] + ".")  # no space before the mark that would tell
        assert "  " not in case.target
        assert all(place < len(sentence.source_words) for place in case.omitted)
        assert bool(case.omitted) or case.kind in ("word repeated", "word added", "word replaced", "word removed")


def test_what_is_taken_out_leaves_no_trace(sentences):
    texts = {case.target for seed in range(60) for case in Damager(sentences[:1], seed, 0).damage(sentences[:1])}
    assert "Le vieil homme lit un livre près de la." in texts
    assert "Le homme lit un livre près de la fenêtre." in texts


def test_the_sources_of_what_is_gone_are_the_omitted_words(sentences):
    sentence = sentences[1]
    removed = [case for seed in range(60) for case in Damager([sentence], seed, 0).damage([sentence])]
    found = {case.target: case.omitted for case in removed if case.kind == "word removed"}
    assert found["Mon frère a acheté trois rouges hier."] == {sentence.source_words.index("apples")}
    assert found["Mon a acheté trois pommes rouges hier."] == {sentence.source_words.index("brother")}


def test_the_same_seed_damages_alike(sentences):
    once, again = (list(Damager(sentences, 3, 0).damage(sentences)) for _ in range(2))
    assert once == again != []


def test_a_sentence_without_content_words_is_left_alone(translator):
    sentence = translator.translate("No.").sentences[0]
    assert list(Damager([sentence], 0, 0).damage([sentence])) == []
    assert whole(sentence).omitted == frozenset()


def test_the_only_content_word_there_is_is_replaced_by_none_of_its_like(translator):
    sentence = translator.translate("It is a window.").sentences[0]
    cases = [case for seed in range(30) for case in Damager([sentence], seed, 0).damage([sentence])]
    replaced = {case.target for case in cases if case.kind == "word replaced"}
    assert replaced
    assert all(case.target != sentence.text for case in cases)


def test_grades_are_read_and_faults_named(tmp_path):
    path = tmp_path / "grades.tsv"
    name = fingerprint("A cat.", "Un chat.")
    lines = [
        f"test\t{name}\tright",
        f"dev\t{name}\twrong\t1\t0,2",
        f"dev\t{name[::-1]}\twrong",
        sheet_line("dev", "A dog.", "Un chien.").strip("\n"),  # not graded yet
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    grades = read_grades(path)
    assert grades["test"] == {name: Grade(right=True)}
    assert grades["dev"][name] == Grade(False, frozenset({1}), frozenset({0, 2}))
    assert grades["dev"][name[::-1]] == Grade(right=False)
    assert [grade.named for grade in (*grades["test"].values(), *grades["dev"].values())] == [True, True, False]
    assert len(grades["dev"]) == 2
    path.write_text(f"test\t{name}\tgood\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"grades\.tsv: line 1 is not split TAB fingerprint TAB right or wrong"):
        read_grades(path)
    path.write_text(f"test\t{name}\twrong\tcat\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"grades\.tsv: line 1: 'cat' are not places of words, as in 2,5"):
        read_grades(path)


def test_the_bundled_grades_hold_no_text():
    grades = read_grades(ROOT / "tests/data/confidence/graded.tsv")
    assert {split: len(found) for split, found in grades.items()} == {"dev": 300, "test": 300}
    assert all(len(name) == 16 and int(name, 16) >= 0 for found in grades.values() for name in found)


def script():
    spec = importlib.util.spec_from_file_location("confidence_script", ROOT / "scripts/confidence.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def planted(count, seed):
    """Cases in which a wrong translation has one improbable word, and the evidence of them."""
    random = np.random.default_rng(seed)
    cases, evidence, right = [], [], random.random(count) < 0.5
    words = Words(["un", "mot", "de", "plus"], [[0], [1], [2], [3]])
    for row in range(count):
        probable = -random.random(4)
        place = int(random.integers(4))
        if not right[row]:
            probable[place] -= 3 * random.random()
        to_blame = frozenset() if right[row] else frozenset({place})
        cases.append(Case("", "", WHOLE if right[row] else KINDS[row % len(KINDS)], to_blame, to_blame))
        table = {"log_probability": probable, "letters": random.random(4)}
        evidence.append(Evidence(words, words, table, table, {"mean_log_probability": float(probable.mean())}))
    return Judged(cases, evidence, right)


def test_a_planted_signal_is_found_weighed_and_measured():
    damaged, graded, new = (planted(600, seed) for seed in (1, 2, 3))
    rule = fit_rule(damaged, graded, None)
    assert rule.omitted["log_probability"] < -1
    assert rule.right["worst_invention"] + rule.right["worst_omission"] < 0
    found = {what: {row.name: row for row in rows} for what, rows in worth(rule, damaged, new).items()}
    assert found["invented target words"]["log_probability"].graded > 0.85
    assert found["invented target words"]["letters"].graded == pytest.approx(0.5, abs=0.06)
    together = found["wrong sentences"]["together"]
    assert together.graded >= found["wrong sentences"]["mean_log_probability"].graded > 0.6
    assert all(value > 0.7 for value in worth_by_kind(rule, damaged).values())
    parts = reliability(rule, new, (0.5, 0.9))["right"]
    assert sum(part.count for part in parts) == 600
    assert [part.true for part in parts] == sorted(part.true for part in parts)
    assert sum(part.said * part.count for part in parts) == pytest.approx(new.right.sum(), abs=30)


def test_words_that_cannot_be_named_are_left_out_of_the_words():
    judged = planted(20, 1)
    cases = [replace(case, named=row >= 10) for row, case in enumerate(judged.cases)]
    hidden = Judged(cases, judged.evidence, judged.right)
    assert len(_source_words(hidden).positive) == 40
    assert len(_source_words(judged).positive) == 80


@pytest.mark.slow
def test_a_rule_is_fitted_written_and_measured(translator, tmp_path, monkeypatch, capsys):
    """On the packaged sample; its grades say that short translations are right, and long ones' first words wrong."""
    module, folder, graded = script(), tmp_path / "model", tmp_path / "grades.tsv"
    shutil.copytree(PRETRAINED / BUNDLED, folder)
    command = ["confidence", "--model", str(folder), "--dataset", "sample"]
    monkeypatch.setattr("sys.argv", [*command, "--sheet", str(graded)])
    module.run()
    assert "write right or wrong into the third column" in capsys.readouterr().out
    rows = [line.split("\t") for line in graded.read_text(encoding="utf-8").splitlines()]
    middle = sorted(len(row[6]) for row in rows)[len(rows) // 2]
    for row in rows:
        row[2:5] = ["right", "", ""] if len(row[6]) < middle else ["wrong", "0,2", "1"]
    graded.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    monkeypatch.setattr(module, "LEAST", 5)
    monkeypatch.setattr("sys.argv", [*command, "--graded", str(graded), "--fit"])
    module.run()
    output = capsys.readouterr().out
    assert "AUROC, omitted source words" in output
    assert "Reliability: right" in output
    rule = json.loads((folder / "config.json").read_text(encoding="utf-8"))["confidence"]
    assert "constant" in rule["right"]
    assert "reverse" not in rule
    monkeypatch.setattr("sys.argv", [*command, "--graded", str(graded)])
    module.run()
    assert capsys.readouterr().out.split("test:")[1] == output.split("test:")[1]
    monkeypatch.setattr(module, "LEAST", 500)
    with pytest.raises(UserError, match="500 of each are needed"):
        module.run()
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(UserError, match="--graded FILE is missing"):
        module.run()
    monkeypatch.setattr("sys.argv", [*command, "--graded", str(graded), "--reverse", "fr-en"])
    with pytest.raises(UserError, match="--reverse fr-en: a rule names its model itself"):
        module.run()
