"""The benchmark's command: every subcommand with tiny turns, and what it refuses."""

import json
import re
import sys

import pytest
import torch
from benchmarks import SHORT, TRAIN, cells

from seq2seq.benchmark import comparisons
from seq2seq.benchmark.command import main
from seq2seq.model import attention

# Every subcommand.


@pytest.mark.usefixtures("here")
def test_training_gives_every_contender_the_same_batches(tmp_path, capsys):
    file = tmp_path / "speed.json"
    assert main(["train", *TRAIN, "--contenders", "ours:float32,torch", "--json", str(file)]) == 0
    output = capsys.readouterr().out
    found = json.loads(file.read_text())
    turns = found["results"]["train"]["turns"]
    assert [(turn["player"], turn["round"]) for turn in turns] == [
        ("ours:float32", 1),
        ("torch", 1),
        ("ours:float32", 2),
        ("torch", 2),
    ]
    for ours, torchs in (turns[:2], turns[2:]):
        assert ours["measured"]["updates"] == torchs["measured"]["updates"] > 0
        assert ours["measured"]["tokens"] == torchs["measured"]["tokens"] > 0
    first, second = found["results"]["train"]["players"]
    assert first["facts"]["precision"] == "float32"
    assert first["final"]["updates"] == second["final"]["updates"]
    assert 5 < second["final"]["dev_loss"] < 9
    assert cells(output, "ours:float32")[2] == "1.00"
    assert cells(output, "torch")[-1] == f"{second['final']['dev_loss']:.3f}"
    assert found["machine"]["threads"] == 1
    assert found["machine"]["versions"]["torch"] == torch.__version__
    assert found["settings"]["batch_tokens"] == 128


@pytest.mark.usefixtures("here")
def test_training_to_a_number_of_updates(tmp_path, capsys):
    peer = """echo '{"target_tokens_per_s": 50, "loss": 1.5}'"""
    options = ["--contenders", "ours,ours:bfloat16", "--updates", "4", "--peer", f"other={peer}"]
    file = tmp_path / "speed.json"
    assert main(["train", *TRAIN, *options, "--json", str(file)]) == 0
    found = json.loads(file.read_text())["results"]["train"]
    assert [player["final"].get("updates") for player in found["players"]] == [4, 4, None]
    assert sum(turn["player"] == "other" for turn in found["turns"]) == 2  # rounds
    assert re.search("- ours chose (float32|bfloat16)", capsys.readouterr().out)


@pytest.mark.usefixtures("here", "one_loaded_model")
def test_translating_with_scores_and_peers(tmp_path, capsys):
    (tmp_path / "a.en").write_text("I am here.\nThe cat sleeps.\nHe reads.\n")
    (tmp_path / "a.fr").write_text("Je suis ici.\nLe chat dort.\nIl lit.\n")
    lines = [{"beam": beam, "sentences_per_s": 10.0 * beam, "bleu": 12.5} for beam in (1, 2)]
    (tmp_path / "peer.sh").write_text("\n".join(f"echo '{json.dumps(line)}'" for line in lines))
    files = ["--source", str(tmp_path / "a.en"), "--reference", str(tmp_path / "a.fr")]
    options = [*files, "--beam-size", "1", "2", "--contenders", "ours", "--peer", f"other=sh {tmp_path}/peer.sh"]
    file = tmp_path / "speed.json"
    assert main(["translate", *SHORT, *options, "--json", str(file)]) == 0
    output = capsys.readouterr().out
    assert cells(output, "ours")[1] == "beam 1"
    assert cells(output, "ours")[-1] == "100.0%"
    assert cells(output, "other")[2] == "10.0"
    assert cells(output, "other")[-2:] == ["12.5", "–"]
    found = json.loads(file.read_text())["results"]["translate"]
    bleu = found["players"][0]["final"]["bleu"]
    assert bleu.keys() == {"beam 1", "beam 2"}
    assert all(20 < value <= 100.001 for value in bleu.values())
    assert found["turns"][0]["measured"]["output_tokens"] > 9


@pytest.mark.usefixtures("here", "one_loaded_model")
def test_latency_of_a_sentence_and_of_the_whole_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(comparisons, "_command", lambda engine, model: [sys.executable, "-c", "print(1)"])
    options = ["--alone", "3", "--beam-size", "1", "--contenders", "ours", "--sentences", "4"]
    file = tmp_path / "speed.json"
    assert main(["latency", *SHORT, *options, "--json", str(file)]) == 0
    found = json.loads(file.read_text())["results"]
    times = [time for turn in found["latency"]["turns"] for time in turn["measured"]["times"]]
    assert len(times) == 6
    output = capsys.readouterr().out
    assert float(cells(output, "ours")[-1]) == pytest.approx(max(times), rel=0.05)  # p95 of six
    assert 0 < found["cold"]["turns"][0]["measured"]["seconds"] < 5


def test_the_command_of_a_cold_start():
    assert comparisons._command("torch", None)[1:] == ["-m", "seq2seq", "translate", comparisons.SENTENCE]
    assert comparisons._command("ctranslate2", "my/model")[-4:] == ["--model", "my/model", "--engine", "ctranslate2"]


@pytest.mark.usefixtures("here")
def test_length_switches_the_attention_of_its_workers(tmp_path, capsys, monkeypatch):
    seen = []
    attend = attention.attend
    monkeypatch.setattr(attention, "attend_fastest", attention.attend_fastest)  # put back at the end
    monkeypatch.setattr(attention, "attend", lambda *values: seen.append(len(seen)) or attend(*values))
    file = tmp_path / "speed.json"
    assert (
        main(["length", "--rounds", "1", "--threads", "1", "--rows", "1", "--lengths", "3", "2", "--json", str(file)])
        == 0
    )
    output = capsys.readouterr().out
    assert len(cells(output, "2")) == 5
    assert seen
    turns = json.loads(file.read_text())["results"]["length"]["turns"]
    assert [turn["case"] for turn in turns] == ["2"] * 4 + ["3"] * 4
    assert all(turn["measured"]["milliseconds"] > 0 and turn["measured"]["peak_mb"] >= 0 for turn in turns)


@pytest.mark.usefixtures("here")
def test_peak_of_products(capsys):
    assert main(["peak", *SHORT, "--seconds", "0.001", "--tokens", "64", "--vocab", "100"]) == 0
    row = cells(capsys.readouterr().out, "scores 64 x 128 x 100")
    assert all(float(cell.split()[0].replace(",", "")) > 0 for cell in row[1:])


@pytest.mark.usefixtures("here", "one_loaded_model")
def test_all_is_train_translate_and_latency(tmp_path, monkeypatch):
    monkeypatch.setattr(comparisons, "_command", lambda engine, model: [sys.executable, "-c", "print(1)"])
    monkeypatch.setattr(comparisons, "_installed", lambda contender, package: [])
    file = tmp_path / "speed.json"
    options = ["--beam-size", "1", "--sentences", "4", "--rounds", "1", "--json", str(file)]
    assert main(["all", *TRAIN, *options]) == 0
    assert list(json.loads(file.read_text())["results"]) == ["train", "translate", "latency", "cold"]


# What is refused.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--contenders", "theirs"], "contender 'theirs': 'theirs' is not one of ours, torch, hf"),
        (["train", "--contenders", "ours:int4"], "contender 'ours:int4': 'int4' is not one of auto, float32, bfloat16"),
        (["train", "--contenders", "ours:threads=0"], "contender 'ours:threads=0': 'threads=0' is not one of"),
        (["train", "--contenders", "ours:preload=/no.so"], "preload=/no.so: there is no such file"),
        (["train", "--contenders", " , "], "--contenders ' , ' names none"),
        (["train", "--contenders", "ours,ours"], "--contenders names ours twice"),
        (["train", "--peer", "marian"], "--peer 'marian' must read NAME=COMMAND"),
        (["train", "--contenders", "ours", "--peer", "ours=true"], "--peer ours: another contender has this name"),
        (["train", "--rounds", "0"], "--rounds 0 is not 1 or more"),
        (["train", "--seconds", "0"], "--seconds 0 is not above 0"),
        (["train", "--updates", "5"], "--updates 5 is not above --warm-up 5"),
        (["translate", "--beam-size", "1", "0"], "--beam-size 0 is not 1 or more"),
        (["translate", "--sentences", "-1"], "--sentences -1 is not 0 or more"),
        (["translate", "--reference", "a.fr"], "--reference goes with --source"),
        (["translate", "--source", "nowhere.en"], "nowhere.en"),
        (["translate", "--model", "nowhere"], "model 'nowhere' is neither a folder nor a bundled model"),
        (["peak", "--json", "/nowhere/a.json"], "--json /nowhere/a.json: folder /nowhere does not exist"),
        (["peak", "--json", "/"], "--json / is a folder, not a file"),
    ],
)
def test_a_mistake_is_one_line(capsys, arguments, message):
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"benchmark: {message}")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--vocab", "5"], "--vocab: vocab_size = 5: "),
        (["train", "--contenders", ""], "--contenders '' names none"),
        (["peak", "--contenders", ""], "--contenders '' names none"),
    ],
)
def test_a_value_that_means_nothing_is_one_line(capsys, arguments, message):
    assert main(arguments) == 1
    assert message in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("contender", "message"),
    [
        ("hf", "hf needs transformers, which is not installed: pip install transformers"),
        ("torch:auto", "torch has no precision auto: say float32 or bfloat16"),
    ],
)
def test_when_nothing_was_measured_the_reason_is_told(capsys, monkeypatch, contender, message):
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert main(["train", *TRAIN, "--contenders", contender]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == f"benchmark: nothing was measured: {contender}: {message}"
