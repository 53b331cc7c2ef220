"""A table of pairs is what a list of them is, its text on disk; and the facts by which pairs are known."""

import gc
import tempfile
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2seq.data import facts, table
from seq2seq.data.facts import CONTROL, GARBLED, identity, key, measure, normalise
from seq2seq.data.table import Pair, PairTable

PAIRS = [Pair(f"sentence {number}", f"phrase {number}") for number in range(25)]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(table, "CHUNK", 4)


@pytest.mark.parametrize("count", [0, 1, 4, 5, 25])
def test_a_table_is_a_sequence_like_the_list(count):
    pairs = PAIRS[:count]
    written = PairTable.write(iter(pairs))
    assert list(written) == pairs
    assert len(written) == count
    assert written == pairs
    assert pairs == written
    assert written != [*pairs, PAIRS[0]]
    assert [written[index] for index in range(-count, count)] == pairs * 2
    with pytest.raises(IndexError):
        written[count]


@pytest.mark.parametrize("part", [slice(3, 17), slice(None, -1), slice(20, 2, -3), slice(9, 9), slice(0, 99)])
def test_a_slice_is_a_table_of_those_pairs(part):
    written = PairTable.write(PAIRS)[part]
    assert isinstance(written, PairTable)
    assert written == PAIRS[part]


@given(st.lists(st.integers(0, 24), max_size=40), st.booleans())
def test_any_choice_in_any_order_reads_like_the_list(indices, turned):
    written = PairTable.write(PAIRS)
    chosen = (written.turned() if turned else written).select(np.array(indices, np.int64))
    assert list(chosen) == [PAIRS[index][::-1] if turned else PAIRS[index] for index in indices]
    assert chosen.turned().turned() == chosen
    assert len(chosen.facts) == len(indices)
    assert (chosen.facts.target_keys == measure(chosen).target_keys).all()


def test_what_is_no_pair_is_unequal_and_never_a_key():
    written = PairTable.write(PAIRS)
    assert written != 25
    with pytest.raises(TypeError, match="unhashable"):
        hash(written)


@pytest.mark.parametrize("text", ["", "NA", "a\tb\nc", "\0", "\u2028", "\ufeffx", "😀", "e\u0301"])
def test_any_text_comes_back_as_it_was(text):
    assert list(PairTable.write([(text, "x"), ("y", text)])) == [(text, "x"), ("y", text)]


def test_half_a_surrogate_pair_becomes_the_replacement_sign():
    assert list(PairTable.write([("a\ud83d", "\ude00é"), ("x", "y")])) == [("a\ufffd", "\ufffdé"), ("x", "y")]


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_nothing_is_left_in_the_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    written = PairTable.write(PAIRS)
    assert list(tmp_path.iterdir()) == []
    assert written[3] == PAIRS[3]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no /proc")
def test_the_file_is_closed_with_the_last_table_of_it():
    gc.collect()  # what earlier tests have left is not closed in the middle of this one
    before = open_files()
    written = PairTable.write(PAIRS)
    part = written[:3]
    del written
    assert open_files() == before + 1
    assert part == PAIRS[:3]
    del part
    gc.collect()
    assert open_files() == before


def slow_normalise(sentence: str) -> str:
    """The definition, character by character."""
    folded = unicodedata.normalize("NFKC", sentence).casefold()
    return "".join(c for c in folded if c.isalnum() or unicodedata.category(c)[0] == "M") or folded.strip()


@given(st.text(max_size=12))
def test_normalise_is_as_defined(text):
    assert normalise(text) == slow_normalise(text)


def test_normalise_is_as_defined_for_every_ascii_character_alone_and_among_others():
    for code in range(128):
        for text in (chr(code), f"A {chr(code)}b", chr(code) * 2 + " "):
            assert normalise(text) == slow_normalise(text)


@given(st.text("aA é.", max_size=4), st.text("aA é.", max_size=4))
def test_texts_have_equal_numbers_exactly_if_they_are_equal(first, second):
    assert (identity(first) == identity(second)) == (first == second)
    assert (key(first) == key(second)) == (normalise(first) == normalise(second))


def test_facts_count_words_and_know_copies():
    found = measure([("one two", "un\u00a0deux trois"), (" \u202f", ""), ("x", "x")])
    assert found.source_words.tolist() == [2, 0, 1]
    assert found.target_words.tolist() == [3, 0, 1]
    assert found.copies.tolist() == [False, False, True]
    assert len(set(found.pairs.tolist())) == 3
    assert measure([("a", "b")]).pairs != measure([("b", "a")]).pairs


@pytest.mark.parametrize("text", ["Ã©tÃ©", "itâ€™s", "Â«Â\u00a0non", "caf\ufffd", "â\x80\x99", "Ãª", "naÃ¯ve", "Å“ Ã€"])
def test_wrongly_decoded_text_has_a_sign(text):
    assert measure([("fine", text)]).signs[0] & GARBLED


@pytest.mark.parametrize("text", ["é", "São João", "NÃO É", "Âge", "château", "â", "« Â »", "œuvre", "20 €", "Ã"])
def test_well_decoded_text_has_none(text):
    assert measure([(text, "fine")]).signs[0] == 0


@pytest.mark.parametrize(
    ("text", "sign"), [("\0", 1), ("a\x0cb", 1), ("\x1b[0m", 1), ("\x85", 1), ("a\tb", 0), ("é", 0)]
)
def test_control_characters_have_a_sign(text, sign):
    assert bool(measure([(text, "x")]).signs[0] & CONTROL) == sign


def test_a_pair_costs_forty_one_bytes():
    found = measure(PAIRS)
    assert sum(getattr(found, column).nbytes for column in facts.Facts.__dataclass_fields__) == 41 * len(PAIRS)
