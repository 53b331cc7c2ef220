"""The machine that the benchmark measures on: its clocks, its facts, its memory."""

import json

import torch

from seq2seq.benchmark import machine


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
