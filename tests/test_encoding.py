"""Token ids of a corpus: what comes out is what went in, in little memory."""

import pickle
import sys

import pytest
from small import PAIRS, tokenizer

from seq2seq.config import VariationConfig
from seq2seq.data import encoding
from seq2seq.data.encoding import EncodedPair, EncodedPairs, Rows, encode_epoch, encode_pairs
from seq2seq.data.splits import Pair
from seq2seq.data.tokenizer import EOS, UNK


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


def epoch(number: int = 0, seed: int = 1, **shares: float) -> list[EncodedPair]:
    return list(encode_epoch(PAIRS, tokenizer(), VariationConfig(**shares), seed, number))


def test_epochs_of_a_recipe_without_variation_are_all_alike(encoded):
    assert epoch(0) == epoch(1) == list(encoded)


@pytest.mark.parametrize("way", list(VariationConfig.model_fields))
def test_an_epoch_is_decided_by_seed_and_number(way):
    pairs = [Pair(f'{pair.source} "Good", Anna.', f"{pair.target} Bien, Anna.") for pair in PAIRS]

    def draw(seed: int, number: int) -> list[EncodedPair]:
        return list(encode_epoch(pairs, tokenizer(), VariationConfig(**{way: 0.5}), seed, number))

    assert draw(1, 2) == draw(1, 2) != draw(1, 3)
    assert draw(1, 2) != draw(2, 2)


def test_sampled_pieces_are_those_of_the_same_pairs(encoded):
    drawn = epoch(sampled_pieces=1.0)
    assert [tokenizer().decode(pair.src) for pair in drawn] == [pair.source for pair in PAIRS]
    assert [tokenizer().decode(pair.tgt) for pair in drawn] == [pair.target for pair in PAIRS]
    assert all(pair.src[-1] == pair.tgt[-1] == EOS for pair in drawn)
    assert drawn != list(encoded)


def test_hidden_pieces_are_of_the_source_alone_and_never_its_end(encoded):
    hidden = 0
    for pair, plain in zip(epoch(unknown_pieces=0.3), encoded, strict=True):
        assert pair.tgt == plain.tgt
        assert pair.src[-1] == EOS
        assert all(found in (expected, UNK) for found, expected in zip(pair.src, plain.src, strict=True))
        hidden += pair.src.count(UNK)
    assert hidden / sum(len(pair.src) - 1 for pair in encoded) == pytest.approx(0.3, abs=0.1)
