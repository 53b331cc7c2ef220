"""Sets of links: notation, symmetrisation and error rate, worked out by hand."""

import pytest

from seq2seq.errors import UserError
from seq2seq.translation.link_sets import (
    SYMMETRISE,
    ErrorRate,
    Gold,
    error_rate,
    grow_diag_final_and,
    read_gold,
    read_links,
    write_links,
)


def test_links_are_read_and_written_as_pharaoh_has_them():
    assert read_links("1-0  0-2 10-11\n") == {(1, 0), (0, 2), (10, 11)}
    assert read_links(" ") == frozenset()
    assert write_links(frozenset({(10, 2), (2, 0), (2, 10)})) == "2-0 2-10 10-2"


@pytest.mark.parametrize("text", ["1-", "-1", "1:2", "a-b", "1-2-3", "1--2", "²-1"])
def test_what_is_no_link_is_named(text):
    with pytest.raises(UserError, match=f"^{text!r} is not a link"):
        read_links(f"0-0 {text} 1-1")


def test_gold_counts_from_one_and_tells_sure_from_possible():
    assert read_gold("1-1 2p3 2?1") == Gold(frozenset({(0, 0)}), frozenset({(0, 0), (1, 2), (1, 0)}))
    assert read_gold("0-0", first=0).sure == {(0, 0)}
    with pytest.raises(UserError, match="'0-1' counts from 0"):
        read_gold("1-1 0-1")
    with pytest.raises(UserError, match="'1x1' is not a link"):
        read_gold("1x1")


def test_the_error_rate_of_a_worked_example():
    """A = 4 links, S = 3, P = 5 in two pairs: |A & S| = 2, |A & P| = 3, so AER = 1 - 5/7."""
    gold = [read_gold("1-1 2-2 2p3"), read_gold("1-1 2p1")]
    links = [read_links("0-0 1-2 2-2"), read_links("0-0")]
    found = error_rate(links, gold)
    assert found.aer == pytest.approx(1 - 5 / 7)
    assert found.precision == pytest.approx(3 / 4)
    assert found.recall == pytest.approx(2 / 3)


def test_error_rates_at_the_ends():
    gold = [read_gold("1-1 2p2")]
    assert error_rate([read_links("0-0")], gold) == ErrorRate(0.0, 1.0, 1.0)
    assert error_rate([read_links("0-0 1-1")], gold).aer == 0.0  # a possible link costs nothing
    assert error_rate([read_links("5-5")], gold) == ErrorRate(1.0, 0.0, 0.0)
    assert error_rate([frozenset()], gold) == ErrorRate(1.0, 1.0, 0.0)
    assert error_rate([], []) == ErrorRate(0.0, 1.0, 1.0)
    with pytest.raises(UserError, match="1 pairs have links but 0 have gold"):
        error_rate([frozenset()], [])


FORWARD, BACKWARD = read_links("0-0 1-1 2-1 4-4 5-3"), read_links("0-0 1-1 1-2 5-4 6-6")


def test_intersection_and_union():
    assert SYMMETRISE["intersection"](FORWARD, BACKWARD) == read_links("0-0 1-1")
    assert SYMMETRISE["union"](FORWARD, BACKWARD) == FORWARD | BACKWARD


def test_growing_takes_neighbours_of_free_words_and_then_links_of_two_free_words():
    """From 0-0 and 1-1 on: 2-1 and 1-2 touch 1-1. 4-4 and 6-6 join two free words; 5-3 too, and then 5-4 does not."""
    assert grow_diag_final_and(FORWARD, BACKWARD) == read_links("0-0 1-1 1-2 2-1 4-4 5-3 6-6")


def test_growing_goes_on_from_what_has_grown():
    assert grow_diag_final_and(read_links("0-0 1-1 2-2"), read_links("0-0")) == read_links("0-0 1-1 2-2")


def test_a_link_between_two_words_that_have_links_is_not_taken():
    assert grow_diag_final_and(read_links("0-0 1-1"), read_links("0-0 1-1 0-1")) == read_links("0-0 1-1")


def test_without_links_there_are_none():
    for rule in SYMMETRISE.values():
        assert rule(frozenset(), frozenset()) == frozenset()
