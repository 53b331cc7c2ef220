import numpy as np
import pytest

from seq2seq.translation.alignment import (
    Link,
    Words,
    agreement,
    choose_layer,
    given_words,
    links,
    merge_pieces,
    read_at,
    with_terms,
    word_attention,
    word_links,
)


def test_pieces_join_to_words_at_spaces():
    assert merge_pieces(["▁The", "▁ban", "k", "▁is", "▁old"]) == Words(
        ["The", "bank", "is", "old"], [[0], [1, 2], [3], [4]]
    )


def test_outer_punctuation_stands_apart():
    assert merge_pieces(["▁(", "W", "ell", ",", "▁yes", "!", ")"]) == Words(
        ["(", "Well", ",", "yes", "!)"], [[0], [1, 2], [3], [4], [5, 6]]
    )


def test_inner_punctuation_stays_in_the_word():
    assert merge_pieces(["▁l", "'", "école", "▁peut", "-", "être"]) == Words(
        ["l'école", "peut-être"], [[0, 1, 2], [3, 4, 5]]
    )
    assert merge_pieces(["▁s", "’", "il"]).words == ["s’il"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I don't know, it's Ann’s.", "I|do|n't|know|,|it|'s|Ann|’s|."),
        ("L'ami qu’il n'a pas", "L'|ami|qu’|il|n'|a|pas"),
        ("As-tu vu ? Va-t-il jusqu'ici ?", "As|-tu|vu|?|Va|-t|-il|jusqu'|ici|?"),
        ("aujourd'hui 'well' O'Brien's -5 x-2", "aujourd'hui|'|well|'|O'Brien|'s|-|5|x-2"),
        ("d' l' '", "d|'|l|'|'"),
        ("J'm'appelle d'M après-midi", "J'|m'|appelle|d'|M|après|-midi"),
    ],
)
def test_clitics_stand_apart_where_that_is_asked_for(text, words):
    assert merge_pieces([text], clitics_apart=True).words == words.split("|")


def test_pieces_go_with_the_part_of_a_word_that_they_spell():
    assert merge_pieces(["▁l", "'", "am", "i", "▁do", "n", "'", "t"], clitics_apart=True) == Words(
        ["l'", "ami", "do", "n't"], [[0, 1], [2, 3], [4], [5, 6, 7]]
    )


def test_a_french_mark_after_a_space_is_a_word():
    assert merge_pieces(["▁Ça", "▁va", "▁?"]) == Words(["Ça", "va", "?"], [[0], [1], [2]])
    assert merge_pieces(["▁«", "▁Oui", "▁»"]).words == ["«", "Oui", "»"]


def test_byte_pieces_belong_to_the_character_that_they_spell():
    pieces = ["▁c", "<0xC5>", "<0x93>", "ur", "▁", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>"]
    assert merge_pieces(pieces) == Words(["cœur", "😀"], [[0, 1, 2, 3], [5, 6, 7, 8]])


def test_bytes_that_spell_no_character_are_the_replacement_sign():
    assert merge_pieces(["▁a", "<0xC5>"]).words == ["a", "\ufffd"]


def test_a_piece_across_two_words_belongs_to_the_larger_part():
    assert merge_pieces(["▁no", "t,", "▁x"]) == Words(["not", ",", "x"], [[0, 1], [], [2]])


def test_a_lone_space_piece_belongs_to_no_word():
    assert merge_pieces(["▁", "a"]) == Words(["a"], [[1]])
    assert merge_pieces(["▁"]) == Words([], [])
    assert merge_pieces([]) == Words([], [])


SOURCE = Words(["unhappy", "cat"], [[0, 1], [2]])
TARGET = Words(["chat", "malheureux"], [[0], [1, 2]])
WEIGHTS = np.array(
    [
        [0.1, 0.1, 0.7, 0.1],  # chat
        [0.5, 0.3, 0.1, 0.1],  # mal
        [0.3, 0.3, 0.2, 0.2],  # heureux
        [0.0, 0.1, 0.1, 0.8],  # </s>
    ],
    dtype=np.float32,
)


def test_word_attention_sums_source_pieces_and_averages_target_pieces():
    assert word_attention(WEIGHTS, SOURCE, TARGET) == pytest.approx(np.array([[0.2, 0.7], [0.7, 0.15]]))


def test_a_word_without_a_piece_of_its_own_draws_nothing():
    words = word_attention(WEIGHTS, Words(["a", ","], [[0, 1, 2], []]), Words(["b", ","], [[0], []]))
    assert words == pytest.approx(np.array([[0.9, 0.0], [0.0, 0.0]]))


def test_word_attention_of_no_words_is_empty():
    assert word_attention(WEIGHTS, Words([], []), TARGET).shape == (2, 0)
    assert word_attention(WEIGHTS, SOURCE, Words([], [])).shape == (0, 2)


def test_a_target_word_links_to_the_source_word_it_draws_on_most():
    assert links(np.array([[0.2, 0.7], [0.75, 0.125]]), ["a", "b"], ["c", "d"]) == [Link(1, 0, 0.7), Link(0, 1, 0.75)]


def test_there_is_no_link_without_source_or_target_words():
    assert links(np.zeros((2, 0)), [], ["c", "d"]) == []
    assert links(np.zeros((0, 2)), ["a", "b"], []) == []


def test_a_word_that_draws_nothing_has_no_link():
    assert links(np.array([[0.0, 0.0], [0.1, 0.2]]), ["a", "b"], ["c", "d"]) == [Link(1, 1, 0.2)]


def test_a_word_for_which_a_taught_head_looks_at_the_end_has_no_link():
    words = np.array([[0.25, 0.5], [0.125, 0.375], [0.5, 0.5]])  # the rest of each row is on </s>: 0.25, 0.5, 0
    assert links(words, ["a", "b"], ["c", "d", "e"], taught=True) == [Link(1, 0, 0.5), Link(0, 2, 0.5)]
    assert [link.target for link in links(words, ["a", "b"], ["c", "d", "e"])] == [0, 1, 2]


def test_the_mark_that_ends_both_sides_is_linked_with_its_like_alone():
    words = np.array([[0.2, 0.7], [0.9, 0.05]])
    assert links(words, ["Yes", "."], ["Oui", "!"]) == [Link(0, 0, 0.2), Link(1, 1, 0.05)]
    assert links(words, ["Yes", "."], ["Oui", "bien"]) == [Link(0, 0, 0.2), Link(0, 1, 0.9)]
    assert links(words, ["Yes", "sir"], ["Oui", "!"]) == [Link(1, 0, 0.7), Link(0, 1, 0.9)]
    assert links(np.array([[0.4]]), ["."], ["!"]) == [Link(0, 0, 0.4)]
    assert links(np.array([[0.4]]), ["."], ["Oui"]) == []


def test_rows_are_read_where_a_piece_is_predicted_or_one_later_where_it_is_the_newest():
    assert read_at(WEIGHTS, "output").tolist() == WEIGHTS.tolist()
    assert read_at(WEIGHTS, "input").tolist() == WEIGHTS[[1, 2, 3, 3]].tolist()


def test_links_of_words_at_both_steps():
    assert [link[:2] for link in word_links(WEIGHTS, SOURCE, TARGET, "output")] == [(1, 0), (0, 1)]
    assert [link[:2] for link in word_links(WEIGHTS, SOURCE, TARGET, "input")] == [(0, 0), (0, 1)]


def test_given_words_have_the_pieces_that_spell_them():
    pieces = ["▁Mr", ".", "▁O", "'", "Neil", ",", "▁yes"]
    words, spans = ["Mr", ".", "O'Neil", ",", "yes"], [(0, 2), (2, 3), (4, 10), (10, 11), (12, 15)]
    assert given_words(words, spans, pieces) == Words(words, [[0], [1], [2, 3, 4], [5], [6]])
    assert given_words([], [], []) == Words([], [])


def test_agreement_is_the_share_of_common_links():
    one, two = [Link(0, 0, 0.9), Link(1, 1, 0.8)], [Link(0, 0, 0.5), Link(2, 1, 0.6)]
    assert agreement(one, one) == 1.0
    assert agreement(one, two) == 0.5
    assert agreement(one, []) == 0.0
    assert agreement([], []) == 0.0


def diagonal(shift: int) -> list[Link]:
    return [Link((word + shift) % 6, word, 1.0) for word in range(6)]


@pytest.mark.parametrize(
    ("shifts", "layer"),
    [
        ([0, 1, 2, 2, 2, 3], 3),  # the middle of the three layers that agree
        ([0, 0, 0, 1, 2, 3], 0),  # the first layer has one neighbour, and agrees with it wholly
        ([3, 2, 1, 0, 0], 4),
        ([5], 0),
    ],
)
def test_the_chosen_layer_agrees_best_with_its_neighbours(shifts, layer):
    assert choose_layer([[diagonal(shift) for shift in shifts]] * 3) == layer


def test_without_sentences_the_first_layer_is_chosen():
    assert choose_layer([]) == 0


def test_words_of_a_term_lead_to_its_translation():
    words = np.full((4, 3), 0.1, dtype=np.float32)
    found = [Link(2, 0, 0.5), Link(2, 1, 0.5), Link(2, 3, 0.5)]
    source, target = ["the", "Bank", "closed"], ["la", "rive", "du", "fleuve"]
    linked = with_terms(found, words, source, target, [("bank", "rive du fleuve"), ("cat", "chat")])
    assert [(link.source, link.target) for link in linked] == [(2, 0), (1, 1), (1, 2), (1, 3)]
    assert with_terms(found, words, source, target, []) == found
