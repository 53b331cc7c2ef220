"""`seq2seq data`: what it prints and writes, and that no corpus makes it crash."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from seq2seq.cli import main

PAIRS = [(f"There are {number} boats.", f"Il y a {number} bateaux.") for number in range(300)]
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def tsv(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS), encoding="utf-8")
    return path


def test_the_help_has_an_example(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["data", "--help"])
    assert stop.value.code == 0
    assert "example:\n  seq2seq data " in capsys.readouterr().out


def test_files_are_reported_on_with_their_languages(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "a.de").write_text("".join(f"{source}\n" for source, _ in PAIRS), encoding="utf-8")
    (tmp_path / "a.nl.gz").write_bytes(gzip.compress("".join(f"{target}\n" for _, target in PAIRS).encode()))
    files = [str(tmp_path / "a.de"), str(tmp_path / "a.nl.gz")]
    assert main(["data", *files, "--source-language", "de", "--target-language", "nl"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("files, de to nl\n")
    assert "\npairs read: train 300\n" in out
    assert err == ""


def test_json_goes_to_stdout_alone_and_files_hold_both_forms(tsv: Path, tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "new" / "report"
    assert main(["data", str(tsv), "--json", "--output", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["read"] == {"train": 300}
    assert (folder / "data.json").read_text(encoding="utf-8") == out
    assert (folder / "data.txt").read_text(encoding="utf-8").startswith("files, en to fr\n")
    assert sorted(path.name for path in folder.iterdir()) == ["data.json", "data.txt"]
    assert err == ""


def test_a_recipe_is_reported_on_with_its_settings_overridden(tsv: Path, tmp_path: Path, capsys: Captured) -> None:
    recipe = tmp_path / "my.toml"
    recipe.write_text(f'[data]\ndataset = "files"\ntrain = ["{tsv.as_posix()}"]\n', encoding="utf-8")
    assert main(["data", str(recipe), "--set", "data.max_words=3", "--set", "data.target=de"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("files, en to de\n")
    assert "\ndropped from train: too long 2" in out
    assert err == "seq2seq: no training pair is left after cleaning\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.toml", "b.tsv"], "a recipe stands alone"),
        (["a.toml", "--source-language", "de"], "a recipe stands alone"),
        (["b.tsv", "--set", "data.max_words=3"], "--set goes with a recipe"),
        (["missing.toml"], "recipe missing.toml does not exist"),
        (["b.tsv", "--source-language", ""], "b.tsv"),
        (["b.tsv", "--output", __file__], "is a file, not a folder"),
    ],
)
def test_wrong_use_is_one_line(arguments: list[str], message: str, capsys: Captured) -> None:
    assert main(["data", *arguments]) == 1
    out, err = capsys.readouterr()
    assert message in err
    assert err.count("\n") == 1
    assert out == ""


CORPORA = {
    "empty.tsv": b"",
    "blank.tsv": b"\n\n \n",
    "blank-pairs.tsv": b"\t\n\t\n",
    "empty.csv": b"",
    "empty.jsonl": b"",
    "empty.parquet": b"",
    "empty.tmx": b"",
    "empty.tsv.gz": b"",
    "one-column.tsv": b"alone\n",
    "latin.tsv": b"fine\tfine\ncaf\xe9\tx\n",
    "utf16.tsv": "one\tun\n".encode("utf-16"),
    "type.jsonl": b'{"en": 1, "fr": []}\n',
    "list.jsonl": b"[1, 2]\n",
    "none.parquet": b"one\tun\n",
    "cut.tsv.gz": gzip.compress(b"one\tun\n" * 1000)[:-9],
    "plain.tsv.gz": b"one\tun\n",
    "broken.tmx": b"<tmx><body><tu>",
    "other.tmx": b"<tmx/>",
    "bomb.tmx": b'<!DOCTYPE t [<!ENTITY a "x">]><tmx><body><tu><tuv lang="en"><seg>&a;</seg></tuv></tu></body></tmx>',
    "huge.csv": b'"' + b"x," * 200_000,
    "quotes.csv": b'"\n' * 1000,
    "unknown.docx": b"one",
    "nul.tsv": b"\0\t\0\n",
}


@pytest.mark.parametrize("name", CORPORA)
def test_no_corpus_makes_it_crash(name: str, tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / name
    path.write_bytes(CORPORA[name])
    status = main(["data", str(path)])
    _, err = capsys.readouterr()
    assert (status, err.count("\n")) in ((1, 1), (0, 0))
    assert err.startswith("seq2seq: ") or not err


def test_a_missing_file_and_a_folder_are_one_line(tmp_path: Path, capsys: Captured) -> None:
    for name in ("none.tsv", "none.parquet", "none.tmx", "none.csv.gz"):
        assert main(["data", str(tmp_path / name)]) == 1
        assert f"{name} does not exist\n" in capsys.readouterr().err
    (tmp_path / "folder.tsv").mkdir()
    assert main(["data", str(tmp_path / "folder.tsv")]) == 1
    assert "folder.tsv cannot be read" in capsys.readouterr().err


def test_one_pair_is_a_corpus(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "a.tsv").write_text("Hello.\tBonjour.\n", encoding="utf-8")
    assert main(["data", str(tmp_path / "a.tsv")]) == 0
    assert "pairs: train 1, dev 0, test 0" in capsys.readouterr().out


def test_text_that_ascii_cannot_hold_is_printed_in_any_locale(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("É\tÉ\n" + "".join(f"{a}\t{b}\n" for a, b in PAIRS), encoding="utf-8")
    command = [sys.executable, "-m", "seq2seq", "data", str(tmp_path / "a.tsv")]
    environment = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, env=environment, check=True)
    assert "copy: pair 1: É | É" in done.stdout.decode("utf-8")


def test_the_command_needs_neither_torch_nor_datasets(tsv: Path) -> None:
    code = (
        "import sys; from seq2seq.cli import main; main(sys.argv[1:]); print({'torch', 'datasets'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code, "data", str(tsv)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\nset()\n")


PEAK = """
import resource, sys
from seq2seq.cli import main
main(["data", sys.argv[1]])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak_kilobytes(path: Path) -> int:
    command = [sys.executable, "-c", PEAK, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux")
def test_a_pair_more_costs_less_than_six_hundred_bytes(tmp_path: Path) -> None:
    """Of these, its text takes about 140: it is mapped, so the system may take that memory back."""
    peaks = []
    for count in (50_000, 250_000):
        path = tmp_path / f"{count}.tsv"
        with path.open("w", encoding="utf-8") as stream:
            for number in range(count):
                words = " ".join(f"word{number * step % 9973}" for step in range(1, 9))
                stream.write(f"{number} {words}.\t{words} {number} !\n")
        peaks.append(peak_kilobytes(path))
    assert (peaks[1] - peaks[0]) * 1024 < 600 * 200_000
