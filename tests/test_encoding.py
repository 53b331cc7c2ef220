"""Token ids of a corpus: what comes out is what went in, in little memory."""

import pickle
import sys

import pytest
from small import PAIRS, tokenizer

from seq2seq.data import encoding
from seq2seq.data.encoding import EncodedPair, EncodedPairs, Rows, encode_pairs
from seq2seq.data.tokenizer import EOS


@pytest.fixture
def encoded() -> EncodedPairs:
    return encode_pairs(PAIRS, tokenizer())


def test_a_pair_is_as_long_as_its_longer_side():
    assert len(EncodedPair([4, 3], [4, 5, 3])) == 3


def test_every_pair_is_encoded_with_an_end_on_both_sides(encoded):
    assert len(encoded) == len(PAIRS)
    for pair, ids in zip(PAIRS, encoded, strict=True):
        assert ids == EncodedPair(
            [*tokenizer().encode(pair.source), EOS],
            [*tokenizer().encode(pair.target), EOS],
        )


def test_the_size_of_the_chunks_changes_nothing(encoded, monkeypatch):
    monkeypatch.setattr(encoding, "CHUNK", 7)
    assert list(encode_pairs(iter(PAIRS), tokenizer())) == list(encoded)


def test_lengths_are_those_of_the_longer_sides(encoded):
    assert encoded.lengths() == [len(pair) for pair in encoded]
    assert encoded.tgt.lengths() == [len(pair.tgt) for pair in encoded]


def test_pairs_are_taken_by_number_and_by_slice(encoded):
    assert encoded[3:6] == [encoded[3], encoded[4], encoded[5]]
    for wrong in (len(PAIRS), -1):
        with pytest.raises(IndexError):
            encoded[wrong]
    assert list(encode_pairs([], tokenizer())) == []


def test_they_travel_to_another_process(encoded):
    assert list(pickle.loads(pickle.dumps(encoded))) == list(encoded)


@pytest.mark.parametrize(("vocab", "size"), [(8_000, 2), (2**16, 2), (2**16 + 1, 4)])
def test_an_id_takes_as_many_bytes_as_the_vocabulary_asks_for(vocab, size):
    rows = Rows(vocab)
    rows.append([vocab - 1])
    assert rows[0] == [vocab - 1]
    assert rows._ids.itemsize == size


def test_a_million_tokens_take_two_megabytes():
    rows = Rows(8_000)
    for _ in range(10_000):
        rows.append(range(1_000, 1_100))
    assert sys.getsizeof(rows._ids) < 2.3e6
