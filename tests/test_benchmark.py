"""The benchmark: every subcommand with tiny turns, outside peers, disturbed turns, workers that die, the arithmetic."""

import io
import json
import re
import signal
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from seq2seq.benchmark import comparisons, machine, players, rounds
from seq2seq.benchmark.command import main
from seq2seq.benchmark.contenders import Contender, parse_contenders
from seq2seq.benchmark.players import Case, Outside, Player, PlayerError, Worker, json_lines
from seq2seq.benchmark.rounds import Results, Spread, Turn, compare, disturbed
from seq2seq.benchmark.tables import grid_table, list_table, notes, number, shown
from seq2seq.benchmark.torch_model import TorchModel
from seq2seq.benchmark.training import product_flops
from seq2seq.benchmark.worker import make_task, serve
from seq2seq.config import ModelConfig
from seq2seq.errors import UserError
from seq2seq.model import attention

SHORT = ["--rounds", "2", "--threads", "1"]
TRAIN = [*SHORT, "--seconds", "0.05", "--batch-tokens", "128", "--warm-up", "1", "--vocab", "600"]


class Here(Player):
    """A worker that works in this process; orders and answers still go through JSON."""

    leads = True

    def __init__(self, contender: Contender, job: dict[str, Any]) -> None:
        super().__init__(contender.label, contender.threads)
        self.contender, self.job = contender, job

    def start(self) -> None:
        try:
            self.task = make_task(json.loads(json.dumps(self.job)))
        except UserError as error:
            raise PlayerError(str(error)) from None
        self.facts = json.loads(json.dumps(self.task.facts))

    def turn(self, number: int, case: Case) -> dict[str, Any]:
        measured = json.loads(json.dumps(self.task.turn({**case.order, "round": number})))
        self.finished = bool(measured.get("finished"))
        return measured

    def finish(self) -> None:
        self.final = json.loads(json.dumps(self.task.finish()))


@pytest.fixture(autouse=True)
def _restless(monkeypatch):
    monkeypatch.setattr(rounds, "SETTLE", 0)


@pytest.fixture
def here(monkeypatch):
    """Workers in this process: a torch that is imported once."""
    monkeypatch.setattr(comparisons, "Worker", Here)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def cells(output: str, name: str) -> list[str]:
    """The cells of the first row of a table that begins with a name."""
    line = next(line for line in output.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


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


# Processes.


def test_a_worker_is_a_process_that_sleeps_between_its_turns(tmp_path, capsys):
    file = tmp_path / "speed.json"
    options = ["--seconds", "0.001", "--tokens", "64", "--vocab", "100", "--contenders", "float32:threads=1"]
    assert main(["peak", "--rounds", "1", *options, "--json", str(file)]) == 0
    found = json.loads(file.read_text())["results"]["peak"]
    assert found["players"][0]["facts"] == {"precision": "float32", "threads": 1}
    assert found["summary"][0]["ratio"] == {"median": 1.0, "low": 1.0, "high": 1.0}
    assert capsys.readouterr().err.startswith("benchmark: float32:threads=1 gets ready\n")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; print('noise\\nno memory\\n', file=sys.stderr); sys.exit(7)", "ended with status 7: no memory"),
        ("import os; os.kill(os.getpid(), 9)", f"ended by signal {signal.SIGKILL.value}"),
        ('print(\'{"error": "hf is not there"}\')', "hf is not there"),
    ],
)
def test_a_worker_that_dies_is_told_in_a_line_and_the_rest_goes_on(monkeypatch, code, message):
    class Steady(Player):
        def turn(self, number, case):
            return {"rate": float(number)}

    popen = players.subprocess.Popen
    monkeypatch.setattr(players.subprocess, "Popen", lambda command, **kw: popen([sys.executable, "-c", code], **kw))
    said: list[str] = []
    dead = Worker(Contender("dead", "dead"), {})
    results = compare([dead, Steady("steady")], [Case("")], "rate", 2, said.append)
    assert dead.error == message
    assert f"dead is out: {message}" in said
    assert [turn.measured["rate"] for turn in results.turns] == [1.0, 2.0]
    assert notes(results)[-1] == f"- dead is out: {message}"
    assert results.ratios(results.players[1], Case("")) == []


def test_a_workers_answers():
    answers = io.StringIO()
    job = {"task": "peak", "precision": "float32"}
    orders = [job, {"shape": [2, 3, 4], "seconds": 0}, {}]
    serve(io.StringIO("".join(json.dumps(order) + "\n" for order in orders)), answers)
    facts, measured, final = map(json.loads, answers.getvalue().splitlines())
    assert facts["precision"] == "float32"
    assert measured["products"] == 1
    assert measured["gflops"] == pytest.approx(2 * 2 * 3 * 4 / measured["best_seconds"] / 1e9)
    assert final == {}


def test_a_users_error_in_a_worker_is_its_answer():
    answers = io.StringIO()
    serve(io.StringIO('{"task": "peak", "precision": "float8"}\n'), answers)
    assert json.loads(answers.getvalue()) == {"error": "peak: 'float8' is not one of float32, bfloat16"}


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("echo well; echo oh dear >&2; exit 3", "ended with status 3: oh dear"),
        ("echo well; exit 3", "ended with status 3: well"),
        ("exit 4", "ended with status 4"),
        ("echo well", "no JSON line with target_tokens_per_s"),
        ("echo '{\"target_tokens_per_s\": \"fast\"}'; echo '[1]'; echo '{'", "no JSON line with target_tokens_per_s"),
    ],
)
def test_an_outside_command_that_fails(command, message):
    with pytest.raises(PlayerError, match=f"^{message}$"):
        Outside("peer", command, "target_tokens_per_s", 2, 1).turn(1, Case(""))


def test_an_outside_command_runs_once_a_round_and_its_last_line_counts(tmp_path):
    lines = [{"sentences_per_s": speed, "beam": beam} for speed, beam in ((1, 1), (2, 1), (3, 5))]
    script = "\n".join(f"echo '{json.dumps(line)}'" for line in lines)
    peer = Outside("peer", f"echo x >> {tmp_path}/runs\n{script}", "sentences_per_s", 2, 1)
    found = [peer.turn(number, Case("", {"beam": beam}))["sentences_per_s"] for number in (1, 2) for beam in (1, 5)]
    assert found == [2, 3, 2, 3]
    assert (tmp_path / "runs").read_text() == "x\nx\n"
    with pytest.raises(PlayerError, match="no JSON line with sentences_per_s and beam 2"):
        peer.turn(2, Case("", {"beam": 2}))


def test_what_a_peer_measured_itself_goes_before_what_was_measured_of_it():
    peer = Outside("peer", """echo '{"rate": 5, "seconds": 60, "cpu_seconds": 90}'""", "rate", 1, 2)
    measured = peer.turn(1, Case(""))
    assert (measured["seconds"], measured["cpu_seconds"]) == (60, 90)


def test_json_lines_among_others():
    assert json_lines('loading\n{"a": 1}\n7\n{"b"\n{"c": 2}') == [{"a": 1}, {"c": 2}]


# Contenders.


def test_contenders_are_read(tmp_path, monkeypatch):
    library = tmp_path / "libfast.so"
    library.touch()
    monkeypatch.setenv("LD_PRELOAD", "")
    text = f"ours, ours:bfloat16:threads=3,torch:preload={library}:preload={library},torch:preload=none"
    ours, precise, loaded, bare = parse_contenders(text, ("ours", "torch"), ("float32", "bfloat16"), 2)
    assert ours == Contender("ours", "ours", None, 2, None)
    assert precise == Contender("ours:bfloat16:threads=3", "ours", "bfloat16", 3, None)
    assert loaded.label == "torch:preload=libfast.so:preload=libfast.so"
    assert loaded.environment()["LD_PRELOAD"] == f"{library}:{library}"
    assert bare.environment()["LD_PRELOAD"] == ""
    assert precise.environment()["OMP_NUM_THREADS"] == "3"


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


@pytest.mark.usefixtures("here")
def test_hugging_faces_model_gets_our_shape_and_batches(capsys, monkeypatch):
    class Model(nn.Module):
        """As much of MarianMTModel as is used."""

        def __init__(self, config):
            super().__init__()
            self.embedding = nn.Embedding(config.vocab_size, config.d_model, config.pad_token_id)

        def forward(self, input_ids, attention_mask, decoder_input_ids, use_cache):
            source = (self.embedding(input_ids) * attention_mask[..., None]).sum(dim=1, keepdim=True)
            return SimpleNamespace(logits=(self.embedding(decoder_input_ids) + source) @ self.embedding.weight.T)

    library = ModuleType("transformers")
    library.MarianConfig, library.MarianMTModel = SimpleNamespace, Model
    monkeypatch.setitem(sys.modules, "transformers", library)
    assert main(["train", *TRAIN, "--contenders", "hf"]) == 0
    assert cells(capsys.readouterr().out, "hf")[2] == "1.00"


def test_torchs_model_sees_neither_padding_nor_the_future():
    config = ModelConfig(d_model=16, heads=2, ffn=32, encoder_layers=1, decoder_layers=1, dropout=0.0)
    model = TorchModel(config, 20, 0, 3).eval()
    with torch.no_grad():
        src, tgt = torch.tensor([[5, 6, 3]]), torch.tensor([[2, 7, 8]])
        scores = model(src, tgt)
        padded = model(torch.tensor([[5, 6, 3, 0, 0]]), torch.tensor([[2, 7, 8, 0]]))[:, :3]
        changed = model(src, torch.tensor([[2, 7, 9]]))
    torch.testing.assert_close(padded, scores)
    torch.testing.assert_close(changed[:, :2], scores[:, :2])
    assert not torch.equal(changed[:, 2], scores[:, 2])


# Arithmetic.


def results(less_is_better: bool = False) -> Results:
    """Rates by round: a 10, 20, 40; b 20, 30 and no third."""
    a, b = Player("a"), Player("b")
    rates = {"a": [10, 20, 40], "b": [20, 30]}
    turns = [
        Turn(name, "", number, {"rate": rate, "seconds": 2.0, "cpu_seconds": 3.0}, disturbed=name == "b")
        for name, values in rates.items()
        for number, rate in enumerate(values, 1)
    ]
    return Results([a, b], [Case("")], "rate", less_is_better, turns)


def test_medians_and_ranges():
    assert Spread.of([3, 1, 2, 10]) == Spread(2.5, 1, 10)
    assert Spread.of([]) is None


def test_ratios_are_paired_by_round():
    found = results()
    assert found.ratios(found.players[1], Case("")) == [2.0, 1.5]
    assert found.ratios(found.players[0], Case("")) == [1.0, 1.0, 1.0]
    slower = results(less_is_better=True)
    assert slower.ratios(slower.players[1], Case("")) == [0.5, 20 / 30]


def test_the_table_of_a_list():
    titles, _, first, second = list_table(results(), "tokens/s").splitlines()
    assert titles == "| contender | tokens/s | times as fast as a | cores used |"
    assert first == "| a | 20.0 (10.0–40.0) | 1.00 | 1.50 |"
    assert second == "| b | 25.0 (20.0–30.0) | 1.75 (1.50–2.00) | 1.50 |"


def test_the_table_of_a_grid():
    assert grid_table(results(), "x").splitlines()[0] == "| x | a | b |"
    assert grid_table(results(), "x", "seconds").splitlines()[2] == "|  | 2.00 | 2.00 |"
    assert grid_table(results(), "x", "nothing").splitlines()[2] == "|  | – | – |"


def test_notes_name_disturbed_rounds():
    assert notes(results())[1] == "- b: something else had the processor in round 1, 2 of 2"


def test_numbers_are_shown_with_three_digits():
    assert [number(value) for value in (12345.6, 123.4, 12.34, 1.234)] == ["12,346", "123", "12.3", "1.23"]
    assert shown(Spread(2, 1, 3)) == "2.00 (1.00–3.00)"
    assert shown(None) == "–"


@pytest.mark.parametrize(
    ("processor", "others", "threads", "expected"),
    [
        (4.0, 0.0, 2, False),  # two seconds, both threads busy
        (3.0, 0.5, 2, True),  # half a core missing, and something else had it
        (3.0, 0.05, 2, False),  # half a core missing, but the machine was idle: it is its own nature
        (4.0, 0.5, 2, False),  # others worked, elsewhere
        (2.0, None, 2, True),  # not told what others do: one thread's worth
        (3.0, None, 2, False),
        (None, 0.5, 2, False),
        (1.0, 0.5, None, False),
    ],
)
def test_a_turn_is_disturbed_if_others_had_what_it_lacks(processor, others, threads, expected):
    measured = {"seconds": 2.0, "cpu_seconds": processor, "others": others}
    assert disturbed(measured, threads) is expected


def test_the_others_of_a_round_do_as_much_as_the_first():
    case = Case("", {"seconds": 5, "until": 9}, shared="updates")
    assert case.after({"updates": 7}).order == {"until": 9, "updates": 7}
    assert case.after({"updates": 7}).after({"updates": 8}).order == {"until": 9, "updates": 7}
    assert Case("", {"seconds": 5}).after({"updates": 7}).order == {"seconds": 5}


# The machine.


def test_a_stopwatch_knows_its_own_work_from_that_of_others(monkeypatch):
    busy, own = iter([100.0, 103.0]), iter([10.0, 11.0])
    monkeypatch.setattr(machine, "busy_seconds", lambda: next(busy))
    monkeypatch.setattr(machine, "processor_seconds", lambda children: next(own))
    monkeypatch.setattr(machine.time, "perf_counter", iter([50.0, 54.0]).__next__)
    with machine.Stopwatch() as watch:
        pass
    assert watch.measured() == {"seconds": 4.0, "cpu_seconds": 1.0, "others": 0.5}


def test_a_system_that_does_not_tell_what_others_do(monkeypatch):
    monkeypatch.setattr(machine, "busy_seconds", lambda: None)
    with machine.Stopwatch() as watch:
        pass
    assert watch.measured()["others"] is None


def test_the_facts_of_the_machine_can_be_written_down():
    facts = json.loads(json.dumps(machine.facts(2)))
    assert facts["threads"] == 2
    assert facts["memory_gb"] > 0
    assert set(facts["flags"]) <= set(machine.FLAGS)


def test_memory_rises_and_is_forgotten():
    machine.forget_peak()
    before = machine.peak_memory()
    block = torch.ones(16 * 2**20 // 4)
    assert machine.peak_memory() - before > 12 * 2**20
    del block


def test_the_operations_of_an_update_counted_by_hand():
    shape = ModelConfig(d_model=4, heads=2, d_head=3, ffn=5, encoder_layers=1, decoder_layers=2)
    # a layer of attention has four matrices of 4 x 6, a feed-forward layer two of 4 x 5
    a_source = (4 * 24 + 40) + 2 * 2 * 24  # the encoder's layer; keys and values of two cross-attentions
    a_target = 2 * (4 * 24 + 2 * 24 + 40) + 7 * 4  # self-attention, q and o of cross-attention; 7 pieces
    assert product_flops(shape, 7, sources=3, targets=2) == 6 * (3 * a_source + 2 * a_target)


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
