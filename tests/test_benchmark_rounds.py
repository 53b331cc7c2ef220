"""What the turns of the benchmark say: medians, paired ratios, turns that were disturbed."""

import pytest
from benchmarks import results

from seq2seq.benchmark.players import Case
from seq2seq.benchmark.rounds import Spread, disturbed


def test_medians_and_ranges():
    assert Spread.of([3, 1, 2, 10]) == Spread(2.5, 1, 10)
    assert Spread.of([]) is None


def test_ratios_are_paired_by_round():
    found = results()
    assert found.ratios(found.players[1], Case("")) == [2.0, 1.5]
    assert found.ratios(found.players[0], Case("")) == [1.0, 1.0, 1.0]
    slower = results(less_is_better=True)
    assert slower.ratios(slower.players[1], Case("")) == [0.5, 20 / 30]


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
