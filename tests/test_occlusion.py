"""Leaving a word out: what it costs each target word, and how that goes with attention."""

import numpy as np
import pytest

from seq2seq.insight.occlusion import Agreement, agreements, all_attentions, occlusions, panels, spearman
from seq2seq.insight.scene import stage
from seq2seq.translation.translator import Translator

SENTENCES = ["The old man is reading a book.", "She likes the black cat."]


def test_the_likelihood_is_that_of_the_search(translator: Translator) -> None:
    sentences = [translator.translate(text).sentences[0] for text in SENTENCES]
    sources, targets = [one.source_ids for one in sentences], [one.target_ids for one in sentences]
    found = translator.engine.likelihood(sources, targets)
    alpha = translator.info.decode.length_penalty
    for values, sentence in zip(found, sentences, strict=True):
        assert values.shape == (len(sentence.target_ids),)
        assert values.sum() / len(values) ** alpha == pytest.approx(sentence.score, abs=1e-4)


def test_likelihoods_are_the_same_in_any_batch(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = [translator.translate(text).sentences[0] for text in SENTENCES * 3]
    pairs = [one.source_ids for one in sentences], [one.target_ids for one in sentences]
    together = translator.engine.likelihood(*pairs)
    monkeypatch.setattr("seq2seq.translation.torch_engine.FORCED_TOKENS", 1)
    for one, other in zip(together, translator.engine.likelihood(*pairs), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_what_is_lost_is_what_a_forced_pass_without_the_word_gives(translator: Translator) -> None:
    sentence = translator.translate(SENTENCES[0]).sentences[0]
    (found,) = occlusions(translator.engine, [sentence])
    assert found.lost.shape == (len(sentence.target_words), len(sentence.source_words))
    book = sentence.source_words.index("book")
    pieces = sentence._source.pieces[book]
    without = [token for place, token in enumerate(sentence.source_ids) if place not in pieces]
    whole, less = translator.engine.likelihood([sentence.source_ids, without], [sentence.target_ids] * 2)
    row = sentence.target_words.index("livre")
    own = sentence._target.pieces[row]
    assert found.lost[row, book] == pytest.approx(float((whole - less)[own].sum()), abs=1e-4)
    assert found.lost[row].argmax() == book  # the word that a book cannot be translated without
    assert found.lost[row, book] > 1


def test_sentences_are_the_same_alone_and_together(translator: Translator) -> None:
    sentences = [translator.translate(text).sentences[0] for text in SENTENCES]
    together = list(occlusions(translator.engine, sentences))
    for sentence, expected in zip(sentences, together, strict=True):
        (alone,) = occlusions(translator.engine, [sentence])
        np.testing.assert_allclose(alone.lost, expected.lost, atol=1e-3)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([1, 2, 3], [10, 20, 30], 1.0),
        ([1, 2, 3], [3, 2, 1], -1.0),
        ([1, 1, 1], [1, 2, 3], 0.0),
        ([1, 2, 2, 3], [1, 3, 2, 4], 0.9487),  # by hand: ranks 0, 1.5, 1.5, 3 and 0, 2, 1, 3
    ],
)
def test_rank_correlation_by_hand(a: list[float], b: list[float], expected: float) -> None:
    assert spearman(np.array(a, float), np.array(b, float)) == pytest.approx(expected, abs=1e-4)


def test_agreement_counts_target_words_with_a_choice() -> None:
    attention = [np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[1.0]])]
    lost = [np.array([[5.0, 1.0], [3.0, 1.0]]), np.array([[2.0]])]
    assert Agreement.of(attention, lost) == Agreement(correlation=0.0, same_word=0.5, target_words=2)
    assert Agreement.of([], []).target_words == 0


def test_every_head_and_what_is_shown_is_compared(translator: Translator) -> None:
    sentences = [translator.translate(text).sentences[0] for text in SENTENCES]
    found = agreements(translator.engine, sentences)
    config = translator.info.model
    assert len(found) == config.decoder_layers * (config.heads + 1) + 1
    assert found["as shown"].same_word > 0.5
    attention = all_attentions(sentences[0])["layer 0, head 1"]
    np.testing.assert_allclose(attention, sentences[0].word_attention(0, 1), atol=1e-6)


def test_the_view_says_how_well_they_go_together(translator: Translator) -> None:
    shown = panels(stage(translator, SENTENCES[0]))
    assert "rank correlation" in shown[3].text
    assert shown[2].weights.max() == 1
    assert panels(stage(translator, "Hello"))[3].text.startswith("Over 0 target words")
