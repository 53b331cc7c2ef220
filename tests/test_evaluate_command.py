"""The commands `evaluate` and `score`: one number for the same lines at every door, and what they refuse."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import sacrebleu

from seq2seq import evaluation
from seq2seq.cli import main
from seq2seq.insight.robustness import TYPINGS
from seq2seq.translation.translator import Translator

pytestmark = pytest.mark.usefixtures("one_loaded_model")
RECIPE = Path(__file__).parents[1] / "configs/sample.toml"
Captured = pytest.CaptureFixture[str]


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def test_score_prints_sacrebleus_numbers(tmp_path: Path, capsys: Captured) -> None:
    hypotheses = ["Le chat dort sur le lit.", "Il pleut beaucoup ce soir."]
    references = [["Le chat dort dans le lit.", "Il pleut très fort ce soir."], ["Un chat dort sur le lit.", ""]]
    files = [str(write(tmp_path / f"ref{i}", *lines)) for i, lines in enumerate(references)]
    hypothesis = write(tmp_path / "hyp", *hypotheses)
    assert main(["score", "--hypothesis", str(hypothesis), "--reference", *files, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["bleu"] == sacrebleu.corpus_bleu(hypotheses, references).score
    assert found["chrf"] == sacrebleu.corpus_chrf(hypotheses, references).score
    assert "tok:13a" in found["signatures"]["bleu"]
    assert main(["score", "--hypothesis", str(hypothesis), "--reference", *files]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == f"BLEU  {found['bleu']:5.1f}"
    assert found["signatures"]["bleu"] in err


def test_a_blank_line_of_a_reference_file_is_no_reference(tmp_path: Path, capsys: Captured) -> None:
    hypothesis = write(tmp_path / "hyp", "Bonjour.", "Je suis ici.", "Le gros chien dort.")
    first = write(tmp_path / "ref0", "Bonjour.", "Je suis là.", "Le chien dort.")
    second = write(tmp_path / "ref1", "Salut.", "", "Le grand chien dort.")
    command = ["score", "--hypothesis", str(hypothesis), "--json", "--reference"]
    assert main([*command, str(first), str(second)]) == 0
    found = json.loads(capsys.readouterr().out)
    ragged = [("Bonjour.", "Salut."), ("Je suis là.",), ("Le chien dort.", "Le grand chien dort.")]
    expected = evaluation.score(hypothesis.read_text(encoding="utf-8").splitlines(), ragged)
    assert (found["bleu"], found["chrf"], found["ter"]) == (expected.bleu, expected.chrf, expected.ter)
    assert "nrefs:var" in found["signatures"]["ter"]
    assert main([*command, str(second)]) == 1
    assert "sentence 2 has no reference" in capsys.readouterr().err


def test_score_compares_with_a_baseline(tmp_path: Path, capsys: Captured) -> None:
    lines = [f"La maison numéro {i} est au bout de la rue." for i in range(30)]
    worse = [line.replace("au bout de", "devant") if i % 2 else line for i, line in enumerate(lines)]
    files = {name: str(write(tmp_path / name, *text)) for name, text in (("a", lines), ("b", worse), ("r", lines))}
    command = ["score", "--hypothesis", files["a"], "--reference", files["r"], "--baseline", files["b"], "--json"]
    assert main(command) == 0
    bleu = json.loads(capsys.readouterr().out)["comparison"][0]
    assert bleu["metric"] == "BLEU"
    assert bleu["score"] == pytest.approx(100)
    assert bleu["baseline"] < 90
    assert bleu["bootstrap"]["p_value"] < 0.01
    assert bleu["randomisation"]["p_value"] < 0.01
    assert "|bs:1000|seed:12345|" in bleu["bootstrap"]["signature"]
    assert "|ar:10000|seed:12345|" in bleu["randomisation"]["signature"]
    assert main(command[:-1]) == 0
    out, err = capsys.readouterr()
    tests = [(bleu["bootstrap"], "paired bootstrap"), (bleu["randomisation"], "approximate randomisation")]
    for test, name in tests:
        assert f"p = {test['p_value']:.4f} ({name})" in out.splitlines()[3]
        assert f"BLEU|{test['signature']}\n" in err


def test_evaluate_scores_what_translate_gives(tmp_path: Path, translator: Translator, capsys: Captured) -> None:
    source = write(tmp_path / "test.en", "The cat sleeps.", "Where is the house?", "I like music.")
    reference = write(tmp_path / "test.fr", "Le chat dort.", "Où est la maison ?", "J'aime la musique.")
    output = tmp_path / "out.fr"
    common = ["evaluate", "--source", str(source), "--reference", str(reference), "--json"]
    assert main([*common, "--output", str(output)]) == 0
    found = json.loads(capsys.readouterr().out)
    hypotheses = output.read_text(encoding="utf-8").splitlines()
    assert hypotheses == [translator.translate(line).text for line in source.read_text().splitlines()]
    assert found["bleu"] == sacrebleu.corpus_bleu(hypotheses, [reference.read_text().splitlines()]).score
    assert found["sentences"] == 3


def test_the_protocol_of_papers_has_a_line_of_its_own(tmp_path: Path, capsys: Captured) -> None:
    source = write(tmp_path / "test.en", "The cat sleeps.", "Where is the house?")
    reference = write(tmp_path / "test.fr", "LE CHAT DORT.", "OÙ EST LA MAISON ?")
    output = tmp_path / "out"
    common = ["evaluate", "--source", str(source), "--reference", str(reference), "--output", str(output), "--moses"]
    assert main([*common, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["moses"]["bleu"] > found["bleu"]  # capitals do not count
    assert main(["score", "--hypothesis", str(output), "--reference", str(reference), "--moses", "fr"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[3] == f"BLEU  {found['moses']['bleu']:5.1f} (Moses tokens, lower case)"
    assert found["moses"]["signature"] in err


def test_evaluate_tells_how_much_is_kept_of_sentences_typed_in_other_ways(tmp_path: Path, capsys: Captured) -> None:
    source = write(tmp_path / "test.en", "The cat sleeps.", "Where is the house?")
    reference = write(tmp_path / "test.fr", "Le chat dort.", "Où est la maison ?")
    common = ["evaluate", "--source", str(source), "--reference", str(reference), "--robustness"]
    assert main([*common, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["robustness"]
    assert [one["typing"] for one in found] == ["as written", *TYPINGS]
    assert found[0]["share"] == 1.0
    assert main(common) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[4] == f"  {'as written':26} {found[0]['bleu']:5.1f} 100.0%"
    assert len(lines) == 5 + len(TYPINGS)


def test_evaluate_breaks_its_scores_down(tmp_path: Path, capsys: Captured) -> None:
    source = write(tmp_path / "test.en", "The cat sleeps.", "Where is the big old house of your mother's friend?")
    reference = write(tmp_path / "test.fr", "Le chat dort.", "Où est la grande maison de l'ami de ta mère ?")
    assert main(["evaluate", "--source", str(source), "--reference", str(reference), "--breakdown"]) == 0
    lines = capsys.readouterr().out.splitlines()[3:]
    assert lines[0] == "BLEU and chrF2 by words of the source:"
    assert [line.split()[:4] for line in lines[1:]] == [
        ["up", "to", "5", "1"],
        ["6–10", "1", "sentences", lines[2].split()[3]],
    ]
    assert (
        main(["evaluate", "--dataset", str(RECIPE), "--split", "dev", "--beam-size", "1", "--breakdown", "--json"]) == 0
    )
    found = json.loads(capsys.readouterr().out)
    for buckets in found["breakdown"].values():
        assert sum(bucket["count"] for bucket in buckets) == found["sentences"]
    assert list(found["breakdown"])[1] == "how often training saw the rarest word of the source"


def test_evaluate_says_when_a_baseline_is_the_same(tmp_path: Path, capsys: Captured) -> None:
    source, reference = write(tmp_path / "a", "The cat sleeps."), write(tmp_path / "b", "Le chat dort.")
    output = str(tmp_path / "out")
    common = ["evaluate", "--source", str(source), "--reference", str(reference)]
    assert main([*common, "--output", output]) == 0
    assert main([*common, "--baseline", output]) == 0
    assert "word for word" in capsys.readouterr().err


@pytest.mark.parametrize("count", [1, 2])
def test_every_way_to_a_score_gives_the_same_numbers(tmp_path: Path, capsys: Captured, count: int) -> None:
    source = write(tmp_path / "test.en", "The cat sleeps.", "Where is the house?", "I like music.")
    first = write(tmp_path / "a.fr", "Le chat dort.", "Où est la maison ?", "J'adore la musique.")
    second = write(tmp_path / "b.fr", "Le chat est endormi.", "Où se trouve la maison ?", "J'aime bien la musique.")
    references, output = [str(path) for path in (first, second)[:count]], str(tmp_path / "out.fr")
    evaluated = ["evaluate", "--source", str(source), "--reference", *references, "--output", output, "--confidence"]
    assert main(evaluated) == 0
    shown = capsys.readouterr()
    assert main([*evaluated, "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    scored = ["score", "--hypothesis", output, "--reference", *references, "--confidence"]
    assert main(scored) == 0
    assert capsys.readouterr() == shown
    assert main([*scored, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == values
    metrics = ["-m", "bleu", "chrf", "ter", "--confidence"]
    command = [sys.executable, "-m", "sacrebleu", *references, "-i", output, *metrics]
    theirs = subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout
    for metric, key, line in zip(json.loads(theirs), evaluation.NAMES, shown.out.splitlines(), strict=True):
        assert line == f"{metric['name']:5} {metric['score']:5.1f} ({metric['confidence']})"
        assert f"{values[key]:.1f}" == f"{metric['score']:.1f}"
        assert f"{metric['name']}|{metric['signature']}\n" in shown.err


def test_evaluate_and_score_agree_where_sentences_have_different_numbers_of_references(
    tmp_path: Path, capsys: Captured
) -> None:
    source = write(tmp_path / "test.en", "The cat sleeps.", "Where is the house?", "I like music.")
    first = write(tmp_path / "a.fr", "Le chat dort.", "Où est la maison ?", "J'adore la musique.")
    second = write(tmp_path / "b.fr", "", "Où se trouve la maison ?", "")
    output, references = str(tmp_path / "out.fr"), [str(first), str(second)]
    assert main(["evaluate", "--source", str(source), "--reference", *references, "--output", output, "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert main(["score", "--hypothesis", output, "--reference", *references, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == values
    ragged = [("Le chat dort.",), ("Où est la maison ?", "Où se trouve la maison ?"), ("J'adore la musique.",)]
    ours = evaluation.score(Path(output).read_text(encoding="utf-8").splitlines(), ragged)
    assert [values[key] for key in evaluation.NAMES] == [ours.bleu, ours.chrf, ours.ter]
    assert values["signatures"] == ours.signatures


@pytest.fixture
def pair(tmp_path: Path) -> list[str]:
    """`evaluate` with a test set of two sentences."""
    source = write(tmp_path / "two.en", "The cat sleeps.", "I like music.")
    reference = write(tmp_path / "two.fr", "Le chat dort.", "J'aime la musique.")
    return ["evaluate", "--source", str(source), "--reference", str(reference)]


@pytest.mark.parametrize(
    ("baseline", "says"),
    [
        ("mistyped.fr", "--baseline 'mistyped.fr' is no file, and not a model either: model 'mistyped.fr' is neither"),
        ("short.fr", "has 1 lines, the test set has 2 sentences"),
    ],
)
def test_a_baseline_that_does_not_fit_is_refused_before_anything_is_translated(
    tmp_path: Path, pair: list[str], capsys: Captured, monkeypatch: pytest.MonkeyPatch, baseline: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "short.fr", "Le chat.")
    monkeypatch.setattr(Translator, "translate", lambda *_, **__: pytest.fail("translated"))
    assert main([*pair, "--baseline", baseline]) == 1
    out, err = capsys.readouterr()
    assert says in err
    assert (out, err.count("\n")) == ("", 1)


def test_a_source_without_its_reference_is_refused_before_anything_is_translated(
    tmp_path: Path, pair: list[str], capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Translator, "translate", lambda *_, **__: pytest.fail("translated"))
    write(tmp_path / "two.fr", "Le chat dort.", "")
    assert main(pair) == 1
    assert "sentence 2 has no reference" in capsys.readouterr().err
    write(tmp_path / "two.fr", "Le chat dort.")
    assert main(pair) == 1
    assert "two.en has 2 lines, --reference" in capsys.readouterr().err


def test_evaluate_writes_a_report_with_a_model_as_baseline(
    tmp_path: Path, pair: list[str], capsys: Captured, translator: Translator
) -> None:
    report = tmp_path / "report.html"
    translator.save_pretrained(tmp_path / "old")
    assert main([*pair, "--baseline", str(tmp_path / "old"), "--report", str(report), "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    page = report.read_text(encoding="utf-8")
    assert f"μ = {values['confidence']['bleu']['mean']:.1f} ± " in page
    assert values["signatures"]["bleu"] in page
    assert str(tmp_path / "old") in page
    assert "two.en: 2 sentences" in page
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old", "report.html", "two.en", "two.fr"]


def test_evaluate_writes_a_report_with_a_file_as_baseline_or_none(
    tmp_path: Path, pair: list[str], capsys: Captured
) -> None:
    baseline = str(write(tmp_path / "theirs.fr", "Le chat.", "J'aime la musique."))
    for options in ([], ["--baseline", baseline]):
        assert main([*pair, *options, "--report", str(tmp_path / "report.html")]) == 0
        page = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert (baseline in page) == bool(options)
        assert "<figure" in page
    assert main([*pair, "--report", str(tmp_path / "nowhere/report.html")]) == 1
    assert f"--report {tmp_path}/nowhere/report.html: folder" in capsys.readouterr().err


def test_the_held_out_split_of_a_recipe_is_scored_by_the_recipes_name(capsys):
    results = []
    for name in (str(RECIPE), "sample"):
        assert main(["evaluate", "--dataset", name, "--split", "dev", "--beam-size", "1", "--json"]) == 0
        results.append(json.loads(capsys.readouterr().out))
    assert results[0] == results[1]


def test_a_recipe_of_other_languages_than_the_model_is_no_test_set_for_it(tmp_path, capsys):
    recipe = tmp_path / "other.toml"
    recipe.write_text('[data]\ntarget = "de"\ntrain = ["a.tsv"]\n', encoding="utf-8")
    assert main(["evaluate", "--dataset", str(recipe)]) == 1
    assert f"--dataset {recipe} is en-de, the model en-fr" in capsys.readouterr().err
