"""The command: what goes to stdout, what to stderr, and with which exit status."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import sacrebleu

from seq2seq import evaluation
from seq2seq.cli import build_parser, main
from seq2seq.translation.translator import Translator

COMMANDS = ("train", "translate", "evaluate", "score", "average", "inspect", "demo")
RECIPE = Path(__file__).parents[1] / "configs/sample.toml"
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def one_loaded_model(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bundled model is loaded once for all tests; any other name is loaded as ever."""
    load = Translator.from_pretrained
    monkeypatch.setattr(
        Translator, "from_pretrained", lambda name=None, **kw: translator if name is None else load(name, **kw)
    )


def give_stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_has_an_example(command: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit) as stop:
        build_parser().parse_args([command, "--help"])
    assert stop.value.code == 0
    assert f"example:\n  seq2seq {command} " in capsys.readouterr().out


def test_wrong_usage_is_status_2(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["translate", "--no-such-option"])
    assert stop.value.code == 2
    assert "--no-such-option" in capsys.readouterr().err


def test_translate_writes_the_translation_and_nothing_else(translator: Translator, capsys: Captured) -> None:
    assert main(["translate", "The old man is reading a book."]) == 0
    out, err = capsys.readouterr()
    assert out == translator.translate("The old man is reading a book.").text + "\n"
    assert err == ""


def test_line_n_of_the_output_belongs_to_line_n_of_the_input(
    monkeypatch: pytest.MonkeyPatch, translator: Translator, capsys: Captured
) -> None:
    lines = ["The cat sleeps.", "", "42", "One. Two. Three.", "", "A dog\u2028barks."]
    give_stdin(monkeypatch, "\n".join(lines).encode())
    assert main(["translate"]) == 0
    assert capsys.readouterr().out.split("\n") == [translator.translate(line).text for line in lines] + [""]


def test_crlf_input_gives_as_many_lines(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    give_stdin(monkeypatch, b"The cat sleeps.\r\n\r\nThe dog runs.\r\n")
    assert main(["translate"]) == 0
    assert capsys.readouterr().out.count("\n") == 3


def test_empty_stdin_gives_empty_output(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    give_stdin(monkeypatch, b"")
    assert main(["translate"]) == 0
    assert capsys.readouterr().out == ""


def test_an_empty_text_gives_an_empty_line(capsys: Captured) -> None:
    assert main(["translate", ""]) == 0
    assert capsys.readouterr().out == "\n"


def test_n_best_lines_have_number_rank_score_and_text(
    monkeypatch: pytest.MonkeyPatch, translator: Translator, capsys: Captured
) -> None:
    give_stdin(monkeypatch, b"The cat sleeps.\nThe dog runs.\n")
    assert main(["translate", "--n-best", "2"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [(row[0], row[1]) for row in rows] == [("1", "1"), ("1", "2"), ("2", "1"), ("2", "2")]
    best = translator.translate("The dog runs.", n_best=2).alternatives
    assert rows[2][2:] == [f"{best[0].score:.4f}", best[0].text]
    assert float(rows[2][2]) >= float(rows[3][2])


def test_json_is_one_object_a_line(monkeypatch: pytest.MonkeyPatch, translator: Translator, capsys: Captured) -> None:
    give_stdin(monkeypatch, b"The cat sleeps. The dog runs.\n\n")
    assert main(["translate", "--json"]) == 0
    first, second = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert first["translation"] == translator.translate("The cat sleeps. The dog runs.").text
    assert [sentence["source"] for sentence in first["sentences"]] == ["The cat sleeps.", "The dog runs."]
    assert all(0 <= link["source"] < 4 for link in first["sentences"][0]["alignment"])
    assert second["translation"] == ""
    assert second["sentences"] == []


def test_an_output_file_appears_when_it_is_complete(tmp_path: Path, translator: Translator) -> None:
    source, target = write(tmp_path / "in.en", "The cat sleeps.", "", "The dog runs."), tmp_path / "out.fr"
    assert main(["translate", "--input", str(source), "--output", str(target)]) == 0
    expected = [translator.translate(line).text for line in ("The cat sleeps.", "", "The dog runs.")]
    assert target.read_text(encoding="utf-8").split("\n") == [*expected, ""]


def test_a_failure_on_the_way_leaves_no_output_file(tmp_path: Path, capsys: Captured) -> None:
    source = tmp_path / "in.en"
    source.write_bytes(b"The cat sleeps.\n\xff\n")
    assert main(["translate", "--input", str(source), "--output", str(tmp_path / "out.fr")]) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.en"]
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["translate", "--model", "no-such-model", "Hi."], "no-such-model"),
        (["translate", "--input", "no-such-file.txt"], "no-such-file.txt does not exist"),
        (["translate", "Hi.", "--input", "x"], "not both"),
        (["translate", "Hi.", "--beam-size", "0"], "beam_size 0"),
        (["translate", "Hi.", "--n-best", "9"], "n_best 9"),
        (["translate", "Hi.", "--output", "no-such-folder/x"], "no-such-folder"),
        (["train", "no-such-recipe.toml"], "no-such-recipe.toml does not exist"),
        (["evaluate"], "--dataset"),
        (["evaluate", "--dataset", "sample", "--reference", "x"], "--reference goes with --source"),
        (["evaluate", "--dataset", "sample", "--output", "no-such-folder/x"], "no-such-folder"),
        (["train", str(RECIPE), "--set", "train.minutes=inf"], "train.minutes = inf"),
        (["train", str(RECIPE), "--set", f"train.seed={10**30}"], "train.seed"),
        (["evaluate", "--dataset", "nothing"], "--dataset 'nothing' is not one of sample, tatoeba, multi30k, hub:"),
        (["evaluate", "--dataset", "files"], "--dataset 'files' names no file: give a recipe (my.toml), or"),
        (["evaluate", "--dataset", "sample", "--report", "no-such-folder/x"], "--report no-such-folder/x: folder"),
        (["evaluate", "--dataset", "sample", "--split", "tset"], "split 'tset'"),
        (["evaluate", "--source", "no-such.en", "--reference", "no-such.fr"], "no-such.en does not exist"),
        (["score", "--hypothesis", "no-such.fr", "--reference", "no-such.fr"], "no-such.fr does not exist"),
        (["average", "no-such-checkpoint", "--output", "no-such-output"], "no-such-checkpoint"),
        (["inspect", "Hi.", "--output", "map.gif"], "map.gif"),
        (["inspect", "One. Two.", "--output", "map.json"], "exactly one sentence"),
        (["inspect", "Hi.", "--layer", "99"], "layer 99"),
        (["inspect", "Hi.", "--view", "side"], "view 'side'"),
    ],
)
def test_a_users_mistake_is_one_line_and_status_1(
    arguments: list[str], says: str, capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("seq2seq: ")
    assert err.count("\n") == 1
    assert says in err
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_key_of_a_recipe_is_refused_before_anything_is_written(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recipe = write(tmp_path / "mine.toml", "[train]", "learning_rat = 1e-3")
    assert main(["train", str(recipe)]) == 1
    assert "did you mean 'learning_rate'?" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


def test_a_recipe_whose_data_is_missing_leaves_no_run_folder(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recipe = write(tmp_path / "mine.toml", "[data]", 'train = ["no-such.en", "no-such.fr"]')
    assert main(["train", str(recipe)]) == 1
    assert "no-such.en does not exist" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


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


def test_a_text_argument_that_is_not_utf8_is_translated_to_utf8(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["translate", "--json", "The cat \udcff sleeps."]) == 0
    assert json.loads(capfdbinary.readouterr().out)["translation"]


def test_an_output_that_is_a_pipe_or_a_link_is_not_replaced(tmp_path: Path) -> None:
    target, link = write(tmp_path / "target", "old"), tmp_path / "link"
    link.symlink_to(target)
    assert main(["translate", "42", "--output", str(link)]) == 0
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "42\n"
    assert main(["translate", "42", "--output", "/dev/null"]) == 0
    assert Path("/dev/null").is_char_device()


def test_closed_standard_streams_are_named(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["translate"]) == 1
    assert "stdin is closed" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["translate", "42"]) == 1
    assert "stdout is closed" in capsys.readouterr().err


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


def test_inspect_prints_a_table(translator: Translator, capsys: Captured) -> None:
    assert main(["inspect", "The cat sleeps."]) == 0
    out = capsys.readouterr().out
    result = translator.translate("The cat sleeps.")
    assert result.text in out
    assert "cross-attention" in out
    assert len(out.splitlines()) == 5 + len(result.target_words)


def test_inspect_writes_json_picture_and_page(tmp_path: Path, translator: Translator) -> None:
    for ending in ("json", "png", "html"):
        assert main(["inspect", "The cat <sleeps>.", "--layer", "0", "--output", str(tmp_path / f"map.{ending}")]) == 0
    values = json.loads((tmp_path / "map.json").read_text(encoding="utf-8"))
    expected = translator.translate("The cat <sleeps>.").word_attention(layer=0)
    assert values["weights"] == pytest.approx(expected.round(6), abs=1e-5)
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "map.html").read_text(encoding="utf-8")
    assert "<sleeps>" not in page
    assert "&lt;" in page


def test_average_writes_a_model_that_translates(tmp_path: Path, capsys: Captured) -> None:
    output = tmp_path / "mean"
    assert main(["average", "en-fr", "en-fr", "--output", str(output)]) == 0
    assert main(["translate", "--model", str(output), "The cat sleeps."]) == 0
    assert main(["average", "en-fr", "--output", str(output)]) == 1
    assert "exists already" in capsys.readouterr().err


def test_train_makes_a_model_that_translates_and_is_not_overwritten(tmp_path: Path, capsys: Captured) -> None:
    run = tmp_path / "run"
    small = ["model.d_model=16", "model.ffn=16", "model.encoder_layers=1", "model.decoder_layers=1"]
    small += ["train.updates=2", "train.validation_sentences=2", "tokenizer.vocab_size=600"]
    command = ["train", str(RECIPE), "--output", str(run)]
    for setting in small:
        command += ["--set", setting]
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert out == f"{run / 'model'}\n"
    assert "dev_bleu" in err
    assert main(["translate", "--model", str(run / "model"), "The cat sleeps."]) == 0
    assert main(command) == 1
    assert "--resume" in capsys.readouterr().err
    assert main([*command, "--resume"]) == 0
    assert "nothing left to do" in capsys.readouterr().err


def test_output_can_be_piped_into_a_reader_that_leaves(tmp_path: Path) -> None:
    source = write(tmp_path / "in.en", *["The cat sleeps."] * 2000)
    command = f"{sys.executable} -m seq2seq.cli translate --beam-size 1 --input {source} | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


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
