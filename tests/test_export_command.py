"""`seq2seq export`, and the commands that take what it wrote."""

import pytest
from small import saved_model

from seq2seq import Translator
from seq2seq.cli import main


def test_the_command_exports_and_the_others_take_the_engine(tmp_path, capsys):
    folder = saved_model(tmp_path / "model")
    fast = str(tmp_path / "fast")
    arguments = ["export", "--model", str(folder), "--format", "ctranslate2", "--output", fast]
    assert main([*arguments, "--quantization", "int8"]) == 0
    assert capsys.readouterr().out == f"{fast}\n"
    assert main(arguments) == 1
    assert capsys.readouterr().err == f"seq2seq: {fast} exists already: name a new folder\n"
    assert main(["translate", "--model", fast, "--engine", "ctranslate2", "the cat sees the bread."]) == 0
    expected = Translator.from_pretrained(fast, engine="ctranslate2").translate("the cat sees the bread.")
    assert capsys.readouterr().out == expected.text + "\n"
    source, reference = tmp_path / "source", tmp_path / "reference"
    source.write_text("the cat sees the bread.\n", encoding="utf-8")
    reference.write_text("le chat voit le pain.\n", encoding="utf-8")
    files = ["--source", str(source), "--reference", str(reference), "--output", str(tmp_path / "output")]
    assert main(["evaluate", "--model", fast, "--engine", "ctranslate2", *files]) == 0
    assert (tmp_path / "output").read_text(encoding="utf-8") == expected.text + "\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "onnx"], "argument --format: invalid choice: 'onnx'"),
        ([], "the following arguments are required: --format"),
    ],
)
def test_a_format_that_is_none_is_wrong_usage(tmp_path, capsys, options, message):
    with pytest.raises(SystemExit) as stop:
        main(["export", "--output", str(tmp_path / "fast"), *options])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_an_unknown_engine_is_refused_with_the_names_there_are(capsys):
    assert main(["translate", "--engine", "onnx", "Hello."]) == 1
    assert capsys.readouterr().err == "seq2seq: engine 'onnx' is not one of torch, ctranslate2\n"


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("", "--output '' is empty: name where to write"),
        ("notes", "notes exists already: name a new folder"),
        ("notes/x", "notes/x cannot be made: notes is not a folder"),
        ("notes/x/y", "notes/x/y cannot be made: notes is not a folder"),
    ],
)
def test_an_output_that_cannot_be_made_is_one_line(tmp_path, monkeypatch, capsys, output, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").write_text("a file\n")
    assert main(["export", "--format", "ctranslate2", "--output", output]) == 1
    assert capsys.readouterr().err == f"seq2seq: {message}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]
