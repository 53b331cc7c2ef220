"""Inspection of a served translation, its views, and the still pictures."""

import io

import numpy as np
import pytest
from matplotlib import image

from seq2seq.data.splits import Pair
from seq2seq.errors import UserError
from seq2seq.insight import views
from seq2seq.insight.figures import attention_png, curves_png
from seq2seq.insight.inspection import Inspection, aligning_layer, inspect
from seq2seq.translation.translator import Translator

SENTENCE = "The old man is reading a book."


@pytest.fixture(scope="module")
def found(translator: Translator) -> Inspection:
    return inspect(translator, SENTENCE)


def test_cross_attention_is_that_of_the_translation(found: Inspection, translator: Translator) -> None:
    np.testing.assert_allclose(found.cross, translator.translate(SENTENCE).attention, atol=1e-6)


@pytest.mark.parametrize("name", ["cross", "encoder", "decoder"])
def test_every_row_of_every_view_sums_to_one(found: Inspection, name: str) -> None:
    weights, rows, columns = found.view(name)
    assert weights.shape[2:] == (len(rows), len(columns))
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=1e-5)


def test_the_decoder_never_looks_ahead(found: Inspection) -> None:
    weights, rows, _ = found.view("decoder")
    assert rows[0] == "<s>"
    assert np.abs(np.triu(weights, k=1)).max() == 0.0


def test_cross_attention_is_shown_between_words_where_it_aligns_best(found: Inspection) -> None:
    view = views.choose(found, "cross", None, None)
    layer, head = found.sentence.default_choice
    assert (view.layer, view.head) == (layer, head)
    np.testing.assert_array_equal(view.weights, found.sentence.word_attention())
    assert view.columns == ["The", "old", "man", "is", "reading", "a", "book", "."]


@pytest.mark.parametrize(("layer", "head", "says"), [(50, None, "layer 50"), (0, 50, "head 50"), (-1, 0, "layer -1")])
def test_a_layer_or_head_that_is_not_there_is_named(found: Inspection, layer: int, head: int | None, says: str) -> None:
    for name in ("cross", "encoder"):
        with pytest.raises(UserError, match=says):
            views.choose(found, name, layer, head)


def test_a_head_alone_is_taken_from_the_default_layer(found: Inspection) -> None:
    view = views.choose(found, "cross", None, 1)
    assert (view.layer, view.head) == (found.sentence.default_choice[0], 1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "there is nothing to translate in this text"),
        ("42", "there is nothing to translate in this text"),
        ("One sentence. Another one.", "is read in 2 parts .*“One sentence.”, “Another one.”"),
        ("I love 🍕 a lot.", "is read in 2 parts .*“I love”, “a lot.”"),
        (f"{'Donaudampf' * 8} is long.", "is read in 2 parts"),  # the first is no word that could be translated
    ],
)
def test_inspect_takes_exactly_one_sentence(translator: Translator, text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        inspect(translator, text)


def test_the_text_view_holds_percents(found: Inspection) -> None:
    view = views.choose(found, "cross", 0, 0)
    last = views.as_text(view).splitlines()[-1].split()
    assert last[0] == view.rows[-1]
    assert [int(cell) for cell in last[1:]] == [round(100 * float(weight)) for weight in view.weights[-1]]


def test_the_aligning_layer_is_one_of_the_models(translator: Translator) -> None:
    choice = aligning_layer(translator, [Pair("The cat sleeps.", "Le chat dort."), Pair("Hello.", "Bonjour.")])
    assert 0 <= choice.layer < translator.info.model.decoder_layers
    assert choice.head is None


def test_the_picture_is_darkest_where_the_weight_is_largest() -> None:
    weights = np.zeros((3, 4))
    weights[1, 2] = 1.0
    picture = image.imread(io.BytesIO(attention_png(weights, ["a", "$b$", "c"], ["w", "x_1", "y^2", "\\z"], "a title")))
    blue = (picture[..., 2] - picture[..., 0] > 0.2) & (picture[..., :3].sum(axis=-1) < 1.2)
    rows, columns = np.nonzero(blue)
    assert blue.sum() > 500
    assert rows.mean() > 0.4 * len(picture)
    assert columns.mean() > 0.5 * picture.shape[1]


def test_curves_are_drawn_with_and_without_bleu() -> None:
    rows = [{"update": 50, "loss": 5.0}, {"update": 100, "dev_loss": 4.0}]
    with_bleu = [*rows, {"update": 100, "dev_bleu": 7.5}]
    assert curves_png(rows).startswith(b"\x89PNG")
    assert curves_png(with_bleu) != curves_png(rows)
