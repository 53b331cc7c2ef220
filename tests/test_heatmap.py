import re
from html.parser import HTMLParser

import numpy as np
import pytest

from seq2seq.errors import UserError
from seq2seq.insight.heatmap import (
    STRONG,
    HeatMap,
    cross_attention,
    heatmap_fragment,
    heatmap_page,
    heatmap_script,
    heatmap_style,
)
from seq2seq.translation.result import SentenceTranslation

HOSTILE = ['<script>alert("1")</script>', 'it\'s "q" & co', "</th>", "${x}{{y}}"]


class Table(HTMLParser):
    """Headers with their attributes and cells with theirs, as a browser would read them."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.columns, self.rows, self.cells = [], [], [], []
        self._into = None
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        values = dict(attributes)
        lists = {("th", "col"): self.columns, ("th", "row"): self.rows, ("td", None): self.cells}
        self._into = lists.get((tag, values.get("scope")), self._into if tag == "span" else None)
        if self._into is not None and tag != "span":
            self._into.append(values | {"text": ""})

    def handle_endtag(self, tag):
        self._into = None

    def handle_data(self, data):
        if self._into is not None:
            self._into[-1]["text"] += data


def heatmap(rows=("Le", "chat"), columns=("The", "cat", "."), weights=None):
    if weights is None:
        weights = np.array([[0.8, 0.15, 0.05], [0.001, 0.75, 0.249]], dtype=np.float32)
    return HeatMap(np.asarray(weights), list(rows), list(columns), "layer 1, head 0")


def texts(cells):
    return [cell["text"] for cell in cells]


def test_rows_go_down_and_columns_across_with_scoped_headers():
    table = Table(heatmap_fragment(heatmap()))
    assert texts(table.columns) == ["The", "cat", "."]
    assert texts(table.rows) == ["Le", "chat"]
    assert [cell["data-column"] for cell in table.columns] == ["0", "1", "2"]
    assert all(cell["tabindex"] == "0" for cell in table.columns + table.rows)


def test_a_cell_holds_its_weight_as_colour_text_and_title():
    table = Table(heatmap_fragment(heatmap()))
    assert texts(table.cells) == ["0.80", "0.15", "0.05", "", "0.75", "0.25"]
    assert table.cells[3]["style"] == "--w:0.0010"
    assert table.cells[3]["title"] == "chat ← The 0.0010"
    assert ["class" in cell for cell in table.cells] == [True, False, False, False, True, False]


def test_wide_maps_leave_the_numbers_to_the_titles():
    def wide(columns):
        return heatmap_fragment(heatmap(["a"], ["b"] * columns, np.full((1, columns), 1 / columns)))

    assert 'class="heatmap"' in wide(24)
    assert 'class="heatmap dense"' in wide(25)


def test_words_are_text_whatever_they_contain():
    weights = np.full((4, 4), 0.25)
    fragment = heatmap_fragment(HeatMap(weights, HOSTILE, HOSTILE, HOSTILE[0]))
    table = Table(fragment)
    assert "script" not in table.tags
    assert table.tags.count("th") == 1 + 4 + 4
    assert texts(table.rows) == texts(table.columns) == HOSTILE
    assert [cell["title"] for cell in table.rows] == HOSTILE
    assert table.cells[0]["title"] == f"{HOSTILE[0]} ← {HOSTILE[0]} 0.2500"


def test_an_empty_translation_has_no_rows():
    table = Table(heatmap_fragment(heatmap(rows=[], weights=np.zeros((0, 3)))))
    assert (texts(table.columns), table.rows, table.cells) == (["The", "cat", "."], [], [])


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"weights have the shape \(2, 3\), the labels ask for \(2, 2\)"):
        heatmap(columns=["The", "cat"])


def test_a_page_needs_nothing_but_itself():
    page = heatmap_page(heatmap(), heading=HOSTILE[0])
    tags = Table(page).tags
    assert page.startswith("<!doctype html>")
    assert heatmap_fragment(heatmap()) in page
    assert heatmap_style() in page
    assert heatmap_script() in page
    assert (tags.count("script"), tags.count("style")) == (1, 1)
    assert not re.search(r"https?:|\bsrc=|\bhref=|@import|url\(", page)
    assert "default-src 'none'" in page


def luminance(colour):
    """Relative luminance as in WCAG 2.2."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_numbers_are_readable_on_every_shade(theme):
    found = {
        name: np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        for name, *pair in re.findall(r"--(\w+): light-dark\((#\w{6}), (#\w{6})\)", heatmap_style())
        for colour in [pair[theme == "dark"]]
    }
    for weight in np.linspace(0, 1, 201):
        shade = luminance(weight * found["ink"] + (1 - weight) * found["paper"])
        text = luminance(found["flipped" if weight >= STRONG else "text"])
        assert (max(shade, text) + 0.05) / (min(shade, text) + 0.05) >= 4.5, weight


def sentence():
    weights = np.array(
        [
            [[0.5, 0.2, 0.2, 0.1], [0.1, 0.4, 0.4, 0.1], [0.0, 0.2, 0.6, 0.2], [0.0, 0.0, 0.1, 0.9]],
            [[0.1, 0.2, 0.2, 0.5], [0.1, 0.0, 0.0, 0.9], [0.0, 0.2, 0.4, 0.4], [0.0, 0.0, 0.5, 0.5]],
        ],
        dtype=np.float32,
    )
    return SentenceTranslation(
        source="a redhead",
        text="une rousse",
        score=-0.5,
        source_tokens=["▁a", "▁red", "head", "</s>"],
        target_tokens=["▁une", "▁rou", "sse", "</s>"],
        source_ids=(4, 5, 6, 3),
        target_ids=(7, 8, 9, 3),
        alternatives=[],
        truncated=False,
        weights=weights[None],
    )


def test_between_words_the_weights_are_those_of_the_sentence():
    weights, rows, columns = cross_attention(sentence(), 0, 0)
    assert (rows, columns) == (["une", "rousse"], ["a", "redhead"])
    np.testing.assert_array_equal(weights, sentence().word_attention(0, 0))
    np.testing.assert_allclose(weights, [[0.5, 0.4], [0.05, 0.8]], atol=1e-6)


def test_the_end_of_sentence_is_a_word_of_its_own_and_rows_then_sum_to_one():
    weights, rows, columns = cross_attention(sentence(), 0, 0, end=True)
    assert (rows, columns) == (["une", "rousse", "</s>"], ["a", "redhead", "</s>"])
    np.testing.assert_allclose(weights, [[0.5, 0.4, 0.1], [0.05, 0.8, 0.15], [0, 0.1, 0.9]], atol=1e-6)


def test_between_pieces_nothing_is_merged():
    weights, rows, columns = cross_attention(sentence(), 0, 1, pieces=True)
    assert (rows, columns) == (["▁une", "▁rou", "sse"], ["▁a", "▁red", "head"])
    np.testing.assert_array_equal(weights, sentence().attention[0, 1, :3, :3])
    weights, rows, columns = cross_attention(sentence(), 0, None, pieces=True, end=True)
    assert (rows[-1], columns[-1], weights.shape) == ("</s>", "</s>", (4, 4))
    np.testing.assert_allclose(weights, sentence().attention[0].mean(axis=0))


def test_a_layer_that_is_not_there_is_refused():
    with pytest.raises(UserError, match="layer 3 is not one of 0 to 0"):
        cross_attention(sentence(), 3, None)
