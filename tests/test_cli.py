"""The command: what goes to stdout, what to stderr, and with which exit status."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from seq2seq.cli import build_parser, main
from seq2seq.commands import inspect
from seq2seq.insight.gallery import VIEWS
from seq2seq.translation.translator import Translator

COMMANDS = ("train", "data", "translate", "evaluate", "score", "average", "export", "inspect", "demo")
RECIPE = Path(__file__).parents[1] / "configs/sample.toml"
Captured = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("one_loaded_model")


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
        (["inspect", "One. Two.", "--output", "map.json"], "this text is read in 2 parts"),
        (["inspect", "Hi.", "--layer", "99"], "layer 99"),
        (["inspect", "Hi.", "--view", "side"], "view 'side'"),
        (["inspect", "Hi.", "--view", "steps", "--word", "zebra"], "'zebra' is none of the pieces"),
        (["inspect", "Hi.", "--view", "contexts", "--word", "ho"], "'ho' is not a word of 'Hi.'"),
        (["inspect", "Hi.", "--view", "decoding", "--beam-size", "50"], "beam size 50"),
        (["inspect", "Hi.", "--view", "recipe", "--output", "recipe.png"], "no picture"),
        (
            ["inspect", "Hi.", "--view", "example", "--layer", "9"],
            "--view example takes no --layer: no option of its own",
        ),
        (["inspect", "Hi.", "--view", "mask", "--kind", "cross"], "--view mask takes no --kind: --layer, --head"),
        (["inspect", "Hi.", "--force", "0=la"], "--view cross takes no --force: --layer, --head"),
        (["inspect", "Hi.", "--view", "steps", "--until", "0"], "--view steps takes no --until"),
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


WRITERS = {
    "translate": ["translate", "Hi."],
    "evaluate": ["evaluate", "--dataset", "sample"],
    "inspect": ["inspect", "Hi."],
    "data": ["data", str(RECIPE)],
    "train": ["train", str(RECIPE)],
    "average": ["average", "en-fr"],
    "export": ["export", "--format", "ctranslate2"],
}


@pytest.mark.parametrize("command", WRITERS)
@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("", "--output '' is empty: name where to write"),
        ("notes/x.html", "notes/x.html(:| cannot be made:) (notes is|.*notes does not exist)"),
    ],
)
def test_an_output_that_cannot_be_is_refused(
    command: str, output: str, says: str, capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "notes", "a file")
    assert main([*WRITERS[command], "--output", output]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert re.search(says, err)
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


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


def test_inspect_has_every_view_of_the_explorer(tmp_path: Path, capsys: Captured) -> None:
    assert tuple(VIEWS) == inspect.EXPLORER
    text = "The bank <was> crowded near the river."
    asked = ["--view", "decoding", "--beam-size", "2", "--force", "1=rive"]
    for ending in ("json", "png", "html"):
        assert main(["inspect", text, *asked, "--output", str(tmp_path / f"tree.{ending}")]) == 0
    values = json.loads((tmp_path / "tree.json").read_text(encoding="utf-8"))
    assert "rive" in values["panels"][1]["rows"][0][-1]
    assert (tmp_path / "tree.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "tree.html").read_text(encoding="utf-8")
    assert "<was>" not in page
    capsys.readouterr()
    assert main(["inspect", text, "--view", "steps", "--kind", "cross", "--word", "2", "--unscaled"]) == 0
    assert "what it would have done" in capsys.readouterr().out


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
