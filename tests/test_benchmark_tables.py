"""The tables of the benchmark, and the notes below them."""

from benchmarks import results

from seq2seq.benchmark.rounds import Spread
from seq2seq.benchmark.tables import grid_table, list_table, notes, number, shown


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
