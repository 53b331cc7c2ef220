"""Scores by length and by rarity."""

import pytest

from seq2seq.evaluation import score_subset
from seq2seq.insight.breakdown import by_length, by_rarity, count_words

SOURCES = ["The cat sleeps.", "A heron waits.", "THE CAT waits?", "..."]
REFERENCES = [("Le chat dort sur le lit.",), ("Un héron attend au bord de l'eau.",), ("Le chat attend ?",), ("...",)]
SYSTEM = ["Le chat dort sur le lit.", "Un chat attend.", "Le chat attend ?", "..."]


def test_words_are_counted_whatever_their_case_and_marks():
    assert count_words(["The cat, the CAT!", "l'été"]) == {"the": 2, "cat": 2, "l": 1, "été": 1}


def test_sentences_are_told_apart_by_their_rarest_word():
    seen = {"the": 200, "cat": 12, "sleeps": 10, "a": 99, "waits": 120}
    found = by_rarity(SOURCES, REFERENCES, [SYSTEM], seen)
    assert [(bucket.label, bucket.count) for bucket in found] == [("0", 1), ("10–29", 2), ("100 and more", 1)]
    assert found[0].scores == [score_subset(SYSTEM[1:2], REFERENCES[1:2])]
    assert found[1].scores == [score_subset([SYSTEM[0], SYSTEM[2]], [REFERENCES[0], REFERENCES[2]])]


@pytest.mark.parametrize(("words", "label"), [(1, "up to 5"), (5, "up to 5"), (6, "6–10"), (41, "41 and more")])
def test_sentences_are_told_apart_by_their_words(words, label):
    [bucket] = by_length(["word " * words], [("mot",)], [["mot"], ["rien"]])
    assert (bucket.label, bucket.count, len(bucket.scores)) == (label, 1, 2)
