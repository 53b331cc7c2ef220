"""Links of many pairs together: the HMM against every path there is, likeness, and what other pairs know."""

import itertools

import numpy as np
import pytest

from seq2seq.translation.alignment import links
from seq2seq.translation.link_sets import SYMMETRISE, turn
from seq2seq.translation.refinement import (
    DECAY,
    FAR,
    NO_WORD,
    Company,
    Reading,
    _one_sided,
    _turned,
    likeness,
    posterior,
    refine,
)


def reading(attention: list[list[float]], source: str, target: str) -> Reading:
    weights = np.array(attention, dtype=np.float32).reshape(len(target.split()), len(source.split()))
    return Reading(weights, source.split(), target.split())


def posterior_by_hand(emission: np.ndarray) -> np.ndarray:
    """The sum over all paths, each the product of its jumps and emissions; -1 is no word."""
    count, words = emission.shape[0], emission.shape[1] - 1
    found = np.zeros_like(emission)
    for path in itertools.product(range(-1, words), repeat=count):
        place, probability = 0, 1.0
        for j, word in enumerate(path):
            if word < 0:
                probability *= NO_WORD * emission[j, -1]
                continue
            likely = [max(np.exp(-DECAY * abs(other - place)), FAR) for other in range(words)]
            probability *= (1 - NO_WORD) * likely[word] / sum(likely) * emission[j, word]
            place = word + 1
        for j, word in enumerate(path):
            found[j, word] += probability
    return found / found.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("words", "count"), [(1, 1), (3, 2), (2, 4), (4, 4)])
def test_forward_and_backward_sum_over_every_path(words, count):
    emission = np.random.default_rng(words).dirichlet(np.ones(words + 1), size=count)
    assert posterior(emission) == pytest.approx(posterior_by_hand(emission), abs=1e-12)


def test_a_long_pair_does_not_vanish():
    emission = np.full((900, 801), 1e-4)
    found = posterior(emission)
    assert np.isfinite(found).all()
    assert found.sum(axis=1) == pytest.approx(np.ones(900))


@pytest.mark.parametrize(
    ("one", "other", "least", "most"),
    [
        ("anna", "anna", 1.0, 1.0),
        ("7", "7", 1.0, 1.0),
        ("minister", "ministre", 0.85, 0.95),
        ("cat", "cats", 0.0, 0.0),  # too short to tell
        ("house", "maison", 0.0, 0.0),
        (",", ",", 0.0, 0.0),
        ("", "", 0.0, 0.0),
    ],
)
def test_words_that_are_written_alike(one, other, least, most):
    assert least <= likeness(one, other) <= most
    assert likeness(one, other) == pytest.approx(likeness(other, one), abs=0.05)


def test_order_decides_where_attention_is_in_doubt():
    """The second "the" of the source is the one that follows what was translated before."""
    drawn = [[0.9, 0, 0, 0, 0], [0, 0.9, 0, 0, 0], [0, 0, 0.9, 0, 0], [0.45, 0, 0, 0.45, 0], [0, 0, 0, 0, 0.9]]
    pair = reading(drawn, "the cat saw the dog", "le chat vit le chien")
    assert (0, 3) in {(link.source, link.target) for link in links(pair.attention, pair.source, pair.target)}
    assert refine([pair]) == [frozenset((i, i) for i in range(5))]


def test_a_name_is_linked_with_itself_where_attention_passes_over_it():
    pair = reading([[0.8, 0.1, 0.1], [0.3, 0.3, 0.3], [0.4, 0.3, 0.3]], "I met Zorvax", "je rencontrai Zorvax")
    assert (2, 2) in refine([pair])[0]


def test_what_goes_together_in_other_pairs_goes_together_here():
    sure = [reading([[0.9, 0.0], [0.0, 0.9]], f"zig a{n}", f"lup b{n}") for n in range(8)]
    sure += [reading([[0.9]], f"a{n}", f"b{n}") for n in range(100)]
    doubtful = reading([[0.25, 0.25, 0.25], [0.3, 0.3, 0.3], [0.25, 0.25, 0.25]], "un zig deux", "eins zwei lup")
    assert (1, 2) not in refine([doubtful])[0]
    assert (1, 2) in refine([*sure, doubtful])[-1]


def test_several_source_words_belong_to_one_target_word_if_they_are_drawn_on_by_it_alone():
    pair = reading([[0.4, 0.3, 0.25, 0], [0, 0, 0, 0.9]], "in order to win", "pour gagner")
    assert refine([pair]) == [frozenset({(0, 0), (1, 0), (2, 0), (3, 1)})]
    assert len(refine([pair], rule="intersection")[0]) <= 2


def test_a_model_of_the_other_direction_has_its_say():
    doubtful = reading([[0.45, 0.45], [0.5, 0.4]], "zig zag", "lup kom")
    crossed = reading([[0.0, 0.95], [0.95, 0.0]], "lup kom", "zig zag")
    assert refine([doubtful], [crossed]) == [frozenset({(0, 1), (1, 0)})]
    assert refine([doubtful]) != [frozenset({(0, 1), (1, 0)})]


@pytest.mark.parametrize("rule", SYMMETRISE)
def test_both_sides_are_joined_by_the_rule(rule):
    pair = reading([[0.6, 0.3, 0.05], [0.5, 0.1, 0.3], [0.1, 0.2, 0.6]], "a b c", "d e f")
    alone = [side([pair])[0] for side in (_one_sided, lambda readings: _one_sided(list(map(_turned, readings))))]
    assert refine([pair], rule=rule) == [SYMMETRISE[rule](alone[0], turn(alone[1]))]


def test_a_pair_does_not_vouch_for_itself():
    pair = reading([[0.6, 0.3], [0.3, 0.6]], "a b", "c d")
    emission = np.array([[0.6, 0.3, 0.1], [0.3, 0.6, 0.1]])
    found = posterior(emission)
    assert Company([(pair, found)]).weighed(pair, emission, found) == pytest.approx(emission)


def test_a_word_without_a_source_has_no_link():
    pair = reading([[0.95, 0.0], [0.02, 0.03], [0.0, 0.95]], "we won", "nous avons gagné")
    assert refine([pair]) == [frozenset({(0, 0), (1, 2)})]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("Yes .", "Oui !", {(0, 0), (1, 1)}),
        ("Yes .", "Oui bien", {(0, 0)}),
        ("Yes", "Oui !", {(0, 0)}),
        (".", "!", {(0, 0)}),
        (".", "Oui", set()),
        ("", "Oui", set()),
        ("Yes", "", set()),
        ("", "", set()),
    ],
)
def test_the_mark_that_ends_both_sides_is_linked_with_its_like_alone(source, target, expected):
    drawn = [[0.9 if i == 0 else 0.05 for i, _ in enumerate(source.split())] for _ in target.split()]
    drawn = [row if j == 0 else [0.02] * len(row) for j, row in enumerate(drawn)]
    assert refine([reading(drawn, source, target)]) == [frozenset(expected)]


def test_nothing_is_refined_to_nothing():
    assert refine([]) == []
