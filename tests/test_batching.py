import random
from itertools import pairwise

import pytest

from seq2seq.data.batching import collate, pad, plan_epoch, share, without_targets
from seq2seq.data.cutting import cut
from seq2seq.data.encoding import EncodedPair


@pytest.fixture(scope="module")
def lengths() -> list[int]:
    """Token counts as in a corpus of everyday sentences: most short, a long tail."""
    rng = random.Random(0)
    return [min(2 + round(rng.lognormvariate(2.2, 0.5)), 120) for _ in range(20_000)]


def padded(batch: list[int], lengths: list[int]) -> int:
    return len(batch) * max(lengths[index] for index in batch)


def test_every_pair_is_in_the_epoch_once(lengths):
    plan = plan_epoch(lengths, 1024, seed=1, epoch=0)
    assert sorted(index for batch in plan for index in batch) == list(range(len(lengths)))


def test_the_padded_size_of_every_batch_is_within_the_budget(lengths):
    assert max(padded(batch, lengths) for batch in plan_epoch(lengths, 1024, seed=1, epoch=0)) <= 1024


def test_padding_wastes_less_than_a_tenth(lengths):
    plan = plan_epoch(lengths, 2048, seed=1, epoch=0)
    assert sum(lengths) / sum(padded(batch, lengths) for batch in plan) > 0.9


def test_seed_and_epoch_alone_decide_the_plan(lengths):
    plan = plan_epoch(lengths, 1024, seed=1, epoch=2)
    random.seed(5)
    assert plan == plan_epoch(lengths, 1024, seed=1, epoch=2)
    assert plan != plan_epoch(lengths, 1024, seed=1, epoch=3)
    assert plan != plan_epoch(lengths, 1024, seed=2, epoch=2)


def test_batches_do_not_come_in_order_of_length(lengths):
    longest = [max(lengths[index] for index in batch) for batch in plan_epoch(lengths, 1024, seed=1, epoch=0)]
    assert 0.3 < sum(a < b for a, b in pairwise(longest)) / len(longest) < 0.7


def test_a_pair_beyond_the_budget_makes_a_batch_of_its_own():
    plan = plan_epoch([3, 500, 4, 5], 20, seed=1, epoch=0)
    assert [1] in plan
    assert sorted(index for batch in plan for index in batch) == [0, 1, 2, 3]


def test_no_pairs_make_no_batches():
    assert plan_epoch([], 100, seed=1, epoch=0) == []


def test_cut_fills_each_batch_as_far_as_the_budget_goes():
    assert list(cut(range(5), [2, 2, 3, 5, 9], 8)) == [[0, 1], [2], [3], [4]]
    assert list(cut(range(4), [2, 2, 2, 2], 8)) == [[0, 1, 2, 3]]


def test_pad_fills_rows_at_the_end():
    assert pad([[5, 6], [7]], 0).tolist() == [[5, 6], [7, 0]]


def test_the_decoder_reads_the_target_shifted_by_one():
    batch = collate([EncodedPair([4, 3], [6, 7, 3]), EncodedPair([4, 5, 3], [8, 3])], pad_id=0, bos_id=2)
    assert batch.src.tolist() == [[4, 3, 0], [4, 5, 3]]
    assert batch.tgt_in.tolist() == [[2, 6, 7], [2, 8, 0]]
    assert batch.tgt_out.tolist() == [[6, 7, 3], [8, 3, 0]]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_a_batch_is_divided_among_processes_and_each_row_goes_to_one(lengths, size):
    for indices in plan_epoch(lengths, 1024, seed=1, epoch=0)[:50]:
        parts = [share(indices, lengths, rank, size) for rank in range(size)]
        assert [index for part in parts for index in part] == indices


def test_every_process_gets_as_many_tokens_as_the_others_to_within_a_row(lengths):
    for indices in plan_epoch(lengths, 1024, seed=1, epoch=0)[:50]:
        tokens = [sum(lengths[index] for index in share(indices, lengths, rank, 3)) for rank in range(3)]
        assert max(tokens) - min(tokens) <= 2 * max(lengths[index] for index in indices)


def test_with_more_processes_than_rows_some_get_nothing():
    parts = [share([4, 2], [9, 9, 5, 9, 5], rank, 5) for rank in range(5)]
    assert [part for part in parts if part] == [[4], [2]]


def test_a_batch_without_targets_has_nothing_to_predict():
    batch = without_targets(collate([EncodedPair([4, 3], [6, 7, 3])], pad_id=0, bos_id=2), pad_id=0)
    assert batch.tgt_out.tolist() == [[0, 0, 0]]
    assert batch.tgt_in.tolist() == [[2, 6, 7]]
