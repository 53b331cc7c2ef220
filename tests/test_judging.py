"""Fitting a rule of confidence and measuring it: damage, logistic regression, grades."""

import importlib.util
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from seq2seq.errors import UserError
from seq2seq.folder import BUNDLED, PRETRAINED
from seq2seq.training.damage import KINDS, Damager, whole
from seq2seq.training.grades import fingerprint, read_grades
from seq2seq.training.logistic import auroc, fit_logistic

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


def test_logistic_regression_on_one_flag_gives_the_log_odds():
    """With 400 cases without the flag, 100 of them positive, and 400 with it, 300 positive: -log 3 and 2 log 3."""
    flag = np.repeat([0.0, 1.0], 400)
    positive = np.array([*[True] * 100, *[False] * 300, *[True] * 300, *[False] * 100])
    weights = fit_logistic({"flag": flag, "still": np.ones(800)}, positive)
    assert set(weights) == {"constant", "flag"}  # what never varies says nothing
    assert weights["constant"] == pytest.approx(-math.log(3), abs=0.02)
    assert weights["flag"] == pytest.approx(2 * math.log(3), abs=0.04)


def test_importance_is_as_so_many_cases():
    values, positive = np.array([0.0, 1.0, 2.0, 3.0]), np.array([False, True, False, True])
    weighted = fit_logistic({"x": values}, positive, np.array([1.0, 1.0, 1.0, 3.0]))
    repeated = np.array([0, 1, 2, 3, 3, 3])
    expected = fit_logistic({"x": values[repeated]}, positive[repeated])
    # The ridge is on evidence of variance 1, which differs a little between the two.
    assert weighted["x"] == pytest.approx(expected["x"], rel=0.2)


def test_separable_cases_have_finite_weights():
    weights = fit_logistic({"x": np.array([0.0, 1.0, 2.0, 3.0])}, np.array([False, False, True, True]))
    assert 0 < weights["x"] < 10


def test_damage_is_where_it_says(sentences):
    found = [case for seed in range(8) for case in Damager(sentences, seed, 3).damage(sentences)]
    assert {case.kind for case in found} <= set(KINDS)
    assert len({case.kind for case in found}) == len(KINDS)
    by_source = {sentence.source: sentence for sentence in sentences}
    for case in found:
        sentence = by_source[case.source]
        words, left = sentence.target_words, case.target.replace(".", " .").split()
        if case.kind == "word replaced":
            (place,) = case.invented
            assert len(left) == len(words)
            assert [n for n, pair in enumerate(zip(words, left, strict=True)) if pair[0] != pair[1]] == [place]
        else:
            assert len(words) - len(left) == 1 if case.kind == "word removed" else 1 <= len(words) - len(left) <= 3
            assert case.invented == frozenset()
            assert set(left) <= set(words)
            assert left[-1] == "."
        assert all(place < len(sentence.source_words) for place in case.omitted)
        assert "  " not in case.target


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


def test_grades_are_read_and_faults_named(tmp_path):
    path = tmp_path / "grades.tsv"
    name = fingerprint("A cat.", "Un chat.")
    path.write_text(f"test\t{name}\tright\ndev\t{name}\twrong\n", encoding="utf-8")
    assert read_grades(path) == {"test": {name: True}, "dev": {name: False}}
    path.write_text(f"test\t{name}\tgood\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"grades\.tsv: line 1 is not `split TAB fingerprint TAB right or wrong`"):
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


@pytest.mark.slow
def test_a_rule_is_fitted_written_and_measured(translator, tmp_path, monkeypatch, capsys):
    """On the packaged sample, with grades that say a translation is right if it is short."""
    module, folder, graded = script(), tmp_path / "model", tmp_path / "grades.tsv"
    shutil.copytree(PRETRAINED / BUNDLED, folder)
    from seq2seq.config import DataConfig
    from seq2seq.data.corpus import load_split

    lines = []
    for split in ("dev", "test"):
        sources = list(dict.fromkeys(pair.source for pair in load_split(DataConfig(dataset="sample"), split)))[:25]
        for result in translator.translate(sources):
            grade = "right" if len(result.text) < 30 else "wrong"
            lines.append(f"{split}\t{fingerprint(result.source, result.text)}\t{grade}\n")
    graded.write_text("".join(lines), encoding="utf-8")
    command = ["confidence", "--model", str(folder), "--dataset", "sample", "--graded", str(graded), "--limit", "25"]
    monkeypatch.setattr("sys.argv", [*command, "--fit"])
    module.run()
    output = capsys.readouterr().out
    assert "AUROC, omitted source words" in output
    rule = json.loads((folder / "config.json").read_text(encoding="utf-8"))["confidence"]
    assert "constant" in rule["right"]
    assert "reverse" not in rule
    monkeypatch.setattr("sys.argv", command)
    module.run()
    assert capsys.readouterr().out.split("test:")[1] == output.split("test:")[1]
