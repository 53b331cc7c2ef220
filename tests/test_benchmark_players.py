"""Who takes turns in the benchmark: workers, also such as die, and commands of the user's."""

import io
import json
import signal
import sys

import pytest
from benchmarks import Steady

from seq2seq.benchmark import players
from seq2seq.benchmark.command import main
from seq2seq.benchmark.contenders import Contender
from seq2seq.benchmark.players import Case, Outside, PlayerError, Worker, json_lines
from seq2seq.benchmark.rounds import compare
from seq2seq.benchmark.tables import notes
from seq2seq.benchmark.worker import serve

# Workers.


@pytest.mark.usefixtures("restless")
def test_a_worker_is_a_process_that_sleeps_between_its_turns(tmp_path, capsys):
    file = tmp_path / "speed.json"
    options = ["--seconds", "0.001", "--tokens", "64", "--vocab", "100", "--contenders", "float32:threads=1"]
    assert main(["peak", "--rounds", "1", *options, "--json", str(file)]) == 0
    found = json.loads(file.read_text())["results"]["peak"]
    assert found["players"][0]["facts"] == {"precision": "float32", "threads": 1}
    assert found["summary"][0]["ratio"] == {"median": 1.0, "low": 1.0, "high": 1.0}
    assert capsys.readouterr().err.startswith("benchmark: float32:threads=1 gets ready\n")


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; print('noise\\nno memory\\n', file=sys.stderr); sys.exit(7)", "ended with status 7: no memory"),
        ("import os; os.kill(os.getpid(), 9)", f"ended by signal {signal.SIGKILL.value}"),
        ('print(\'{"error": "hf is not there"}\')', "hf is not there"),
    ],
)
def test_a_worker_that_dies_is_told_in_a_line_and_the_rest_goes_on(monkeypatch, code, message):
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


def test_the_others_of_a_round_do_as_much_as_the_first():
    case = Case("", {"seconds": 5, "until": 9}, shared="updates")
    assert case.after({"updates": 7}).order == {"until": 9, "updates": 7}
    assert case.after({"updates": 7}).after({"updates": 8}).order == {"until": 9, "updates": 7}
    assert Case("", {"seconds": 5}).after({"updates": 7}).order == {"seconds": 5}


# Outside commands.


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
