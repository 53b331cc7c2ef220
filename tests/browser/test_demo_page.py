"""The demo page as a visitor has it: a real server with the bundled model, a real browser.

Nothing here depends on what the model says, nor on how many layers and heads it has.
"""

import json
import re
from importlib.util import find_spec

import pytest
from chromium import PHONE, WIDE, skip_without_browser

skip_without_browser()
if find_spec("playwright"):
    from playwright.sync_api import expect

TEXT = "The bank was crowded near the river."
TWO = "The old man is reading a book. She likes the black cat."
LONG = "The old man who lives near the river is reading a book about the black cat that " * 3 + "I saw."

pytestmark = [
    pytest.mark.browser,
    # What Gradio's queue asks of pandas is deprecated in pandas 3.
    pytest.mark.filterwarnings("ignore::DeprecationWarning:gradio.queueing"),
]


def translate(page, text):
    page.locator("#source textarea").fill(text)
    page.get_by_role("button", name="Translate", exact=True).click()


def translated(page, text=TEXT):
    translate(page, text)
    expect(page.locator(".heatmap")).to_be_visible()
    return page


def columns(page):
    return page.locator(".heatmap thead th[data-column]")


def rows(page):
    return page.locator(".heatmap tbody th")


def weights(page):
    """Weights of the map, row by row."""
    script = "cells => cells.map(cell => Number(cell.style.getPropertyValue('--w')))"
    flat = page.locator(".heatmap tbody td").evaluate_all(script)
    width = columns(page).count()
    return [flat[start : start + width] for start in range(0, len(flat), width)]


def lit(headers):
    """Words that are lit, with the weight that colours each."""
    script = """headers => headers.filter(header => header.classList.contains("lit"))
        .map(header => [header.textContent, Number(header.style.getPropertyValue("--w"))])"""
    return headers.evaluate_all(script)


def shade(header):
    return header.evaluate("header => getComputedStyle(header).backgroundColor")


def choose(page, group, name):
    page.locator(f"#{group}").get_by_label(name, exact=True).check()


def test_a_translation_comes_with_its_map(visit, demo):
    page = translated(visit())
    expected = demo.translate(TEXT)
    expect(page.locator("#translation textarea")).to_have_value(expected.text)
    expect(columns(page)).to_have_text(expected.source_words)
    expect(rows(page)).to_have_text(expected.target_words)
    assert weights(page)[0] == pytest.approx(expected.word_attention()[0], abs=1e-4)
    expect(page.locator("#sentence")).to_be_hidden()
    expect(page.locator("#shown")).to_contain_text("Shown: layer")


def test_a_translation_comes_with_how_sure_it_is(visit):
    page = translated(visit())
    expect(page.locator(".sureness p").first).to_have_text(re.compile(r"\d+ % sure that the meaning is kept"))


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_words_in_doubt_are_marked_and_say_why_when_pointed_at(visit, size):
    page = translated(visit(size), "Doubt me now.")
    expect(page.locator(".sureness .omitted[tabindex]")).to_have_text("Doubt")
    expect(page.locator(".sureness p").first).to_have_text("25 % sure that the meaning is kept")
    expect(page.locator(".sureness-note")).to_contain_text("may have no source")
    word = page.locator(".sureness .invented[tabindex]")
    said = "word => getComputedStyle(word, '::after').content"
    assert word.evaluate(said) == "none"
    word.focus()
    assert word.evaluate(said) == '"may have no source: 75 %"'
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_enter_translates_and_shift_enter_does_not(visit, demo):
    page = visit()
    box = page.locator("#source textarea")
    box.fill("Hello.")
    box.press("Shift+Enter")
    box.press_sequentially("Good morning.")
    box.press("Enter")
    expect(page.locator(".heatmap")).to_be_visible()
    assert demo.calls == ["Hello.\nGood morning."]


def test_an_example_is_translated_at_a_click(visit, demo):
    page = visit()
    page.get_by_text("The old man is reading a book.").click()
    expect(page.locator(".heatmap")).to_be_visible()
    assert demo.calls == ["The old man is reading a book."]


def test_pointing_at_a_target_word_lights_the_source_words(visit):
    page = translated(visit())
    found = weights(page)
    dark = shade(columns(page).first)
    rows(page).nth(1).hover()
    names = columns(page).all_inner_texts()
    assert lit(columns(page)) == [[name, weight] for name, weight in zip(names, found[1], strict=True)]
    strongest = max(range(len(names)), key=found[1].__getitem__)
    assert shade(columns(page).nth(strongest)) != dark
    line = page.locator(".heatmap output")
    expect(line).to_contain_text(f"{names[strongest]} {found[1][strongest]:.2f}")
    page.locator("h1").first.hover()
    assert lit(columns(page)) == []
    expect(line).to_contain_text("Point at")


def test_the_keyboard_lights_the_target_words_of_a_source_word(visit):
    page = translated(visit())
    found = weights(page)
    columns(page).nth(0).focus()
    page.keyboard.press("Tab")
    assert [weight for _, weight in lit(rows(page))] == [row[1] for row in found]
    expect(page.locator(".heatmap output")).to_contain_text("is drawn on by")


def test_another_head_or_layer_is_shown_without_translating_again(visit, demo):
    page = translated(visit())
    choose(page, "head", "mean")
    expect(page.locator(".heatmap figcaption")).to_contain_text("mean over heads")
    mean = weights(page)
    choose(page, "head", "1")
    expect(page.locator(".heatmap figcaption")).to_contain_text("head 1")
    head = weights(page)
    choose(page, "layer", "1")
    expect(page.locator(".heatmap figcaption")).to_contain_text("layer 1, head 1")
    assert mean != head
    expect(page.locator("#shown")).to_contain_text("Shown: layer 1, head 1")
    for hidden in ("#download", "#sentence", "#note"):
        expect(page.locator(hidden)).to_be_hidden()
    assert demo.calls == [TEXT]


def test_pieces_and_the_end_of_the_sentence_are_shown_on_request(visit, demo):
    page = translated(visit())
    page.get_by_label("show </s>").check()
    expect(columns(page).last).to_have_text("</s>")
    expect(page.locator("#shown")).to_contain_text("parks it on")
    assert [sum(row) for row in weights(page)] == pytest.approx([1] * rows(page).count(), abs=0.01)
    choose(page, "unit", "pieces")
    expect(columns(page)).to_have_text(demo.translate(TEXT).source_tokens)
    assert demo.calls == [TEXT]


def test_each_sentence_has_its_map(visit, demo):
    page = translated(visit(), TWO)
    first, second = demo.translate(TWO).sentences
    expect(columns(page)).to_have_text(first.source_words)
    page.get_by_label("Sentence").click()
    page.get_by_role("option").nth(1).click()
    expect(columns(page)).to_have_text(second.source_words)
    translate(page, TEXT)
    expect(page.locator("#sentence")).to_be_hidden()
    expect(columns(page)).to_have_text(demo.translate(TEXT).source_words)
    assert demo.calls == [TWO, TEXT]


def test_alternatives_are_listed(visit, demo):
    page = visit()
    page.get_by_text("Search settings").click()
    number = page.get_by_label("number input for Alternatives")
    for _ in range(3):  # on a busy machine a slider that has only just appeared may lose what is typed
        number.fill("3")
        number.press("Tab")
        translated(page)
        if demo.settings["n_best"] == 3:
            break
    assert demo.settings == {"beam_size": demo.translator.info.decode.beam_size, "n_best": 3, "confidence": True}
    found = demo.translate(TEXT, n_best=3).alternatives
    cells = page.locator(".alternatives tbody tr td:last-child")
    expect(cells).to_have_text([alternative.text for alternative in found])


def test_what_has_no_words_passes_through_with_a_friendly_line(visit):
    page = translated(visit())
    translate(page, "42 🙂")
    expect(page.locator("#translation textarea")).to_have_value("42 🙂")
    expect(page.locator("#note")).to_contain_text("nothing to translate")
    expect(page.locator(".heatmap")).to_be_hidden()
    translate(page, "")
    expect(page.locator("#note")).to_contain_text("Type a sentence first")


def test_a_text_that_is_too_long_is_refused_in_a_line(visit, demo):
    page = translated(visit())
    translate(page, "word " * 1001)
    expect(page.get_by_test_id("toast-body")).to_contain_text("this page takes 5,000")
    expect(page.locator(".heatmap")).to_be_visible()
    assert demo.calls == [TEXT]


def test_words_that_look_like_markup_stay_words(visit, demo):
    text = "He wrote <img src=x onerror=alert()> and ${1+1} and {{x}} to me."
    page = translated(visit(), text)
    expect(columns(page)).to_have_text(demo.translate(text).sentences[0].source_words)
    assert page.locator(".heatmap img").count() == 0


def test_the_map_can_be_saved(visit, tmp_path):
    page = translated(visit())
    saved = {}
    for name in ("Save picture", "Save numbers", "Save page"):
        with page.expect_download() as download:
            page.get_by_role("button", name=name).click()
        saved[name] = tmp_path / download.value.suggested_filename
        download.value.save_as(saved[name])
    assert saved["Save picture"].read_bytes().startswith(b"\x89PNG")
    numbers = json.loads(saved["Save numbers"].read_text(encoding="utf-8"))
    assert numbers["columns"] == columns(page).all_inner_texts()
    alone = page.context.browser.new_page()
    alone.goto(saved["Save page"].as_uri())
    alone.locator(".heatmap tbody th").first.hover()
    assert len(lit(columns(alone))) == len(numbers["columns"])
    alone.close()


def test_a_phone_never_scrolls_sideways(visit):
    page = translated(visit(PHONE, has_touch=True), LONG)
    sizes = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert sizes == [PHONE[0], PHONE[0]]
    box = page.locator(".heatmap-box").evaluate("box => [box.scrollWidth, box.clientWidth]")
    assert box[0] > box[1], "a map this wide scrolls in its own box"
    below = page.locator(".heatmap").bounding_box()["y"] > page.locator("#translation").bounding_box()["y"]
    assert below
    rows(page).first.tap()
    assert len(lit(columns(page))) == columns(page).count()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_map_follows_the_theme_of_the_page(visit, scheme):
    page = translated(visit(color_scheme=scheme))
    red, *_ = page.locator(".heatmap").evaluate(
        "map => getComputedStyle(map).backgroundColor.match(/\\d+/g).map(Number)"
    )
    assert (red > 128) == (scheme == "light")


def test_one_visitor_does_not_keep_another_waiting(visit, demo):
    looking = translated(visit())
    waiting = visit()
    translate(waiting, "Wait for me.")
    try:
        choose(looking, "head", "0")
        expect(looking.locator(".heatmap figcaption")).to_contain_text("head 0")
        expect(waiting.locator(".heatmap")).to_be_hidden()
    finally:
        demo.go.set()
    expect(waiting.locator(".heatmap")).to_be_visible()
