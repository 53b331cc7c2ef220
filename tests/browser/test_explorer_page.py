"""The explorer as a visitor has it: every view is opened, and what it shows is held against the model."""

import re
from importlib.util import find_spec

import pytest
from chromium import PHONE, WIDE, skip_without_browser

from seq2seq.insight import steps
from seq2seq.insight.contexts import PAIRS
from seq2seq.insight.gallery import VIEWS
from seq2seq.insight.occlusion import occlusions
from seq2seq.insight.panels import number
from seq2seq.insight.scene import stage

skip_without_browser()
if find_spec("playwright"):
    from playwright.sync_api import expect

TEXT = "The bank was crowded near the river."

FIRST_WORDS = {
    "contexts": "in two sentences",
    "geometry": "Softmax row",
    "steps": "1. Shapes",
    "example": "50,000 × 128",
    "sides": "One formula, two questions",
    "mask": "Allowed (1) and forbidden",
    "heads": "rows ask, columns answer",
    "decoding": "Finished translations",
    "cost": "One layer of self-attention",
    "recipe": "These functions are the model",
    "occlusion": "Each source word is left out",
}

pytestmark = [
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:gradio.queueing"),
]


@pytest.fixture
def explore(visit):
    """Opens the explorer, which shows its first view by itself."""

    def open_explorer(size=WIDE, **settings):
        page = visit(size, **settings)
        page.get_by_role("tab", name="Explore").click()
        expect(page.locator("#view .panels")).to_be_visible()
        return page

    return open_explorer


@pytest.fixture(scope="module")
def scene(demo):
    return stage(demo.translator, TEXT)


def choose(page, view):
    title = VIEWS[view].title
    page.locator("#view-choice").get_by_label(title).check()
    return page.locator("#view")


def table(page, caption):
    """Cells of the table under a caption, row by row."""
    rows = page.locator("#view figure.table", has_text=caption).locator("tbody tr").all()
    return [row.locator("td").all_inner_texts() for row in rows]


def pick(page, control, option):
    page.locator(f"#{control}").get_by_label(option, exact=True).check()


def test_a_word_in_two_sentences_parts_layer_by_layer(explore, demo):
    page = explore()
    for word in ("charge", "bank"):
        page.locator("#pair").get_by_label(word).check()
        expect(page.locator("#view")).to_contain_text(f"the embedding of “{word}” is the same")
    first, second = PAIRS["bank"]
    expect(page.locator("#looked-into textarea")).to_have_value(first)
    shown = table(page, "in two sentences")
    assert [row[:2] for row in shown] == [[text, demo.translate(text).text] for text in (first, second)]
    cosines = [float(row[2]) for row in table(page, "Cosine between")]
    assert cosines[0] == 1
    assert cosines[-1] < 0.95


def test_the_geometry_turns_and_its_bars_are_the_softmax_row(explore, scene):
    page = explore()
    choose(page, "geometry")
    expect(page.locator("svg.turning")).to_be_visible()
    pick(page, "asking", "▁river")
    expect(page.locator("#view .cloud")).to_contain_text("q ▁river")
    row = scene.trace.encoder[3].A[0, 0, 6].tolist()  # the middle layer
    assert page.locator("#view .bar span").all_inner_texts() == [number(weight) for weight in row]
    point = page.locator(".point-query").last
    before = point.get_attribute("transform")
    box = page.locator("svg.turning").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 150)
    page.mouse.down()
    page.mouse.move(box["x"] + 320, box["y"] + 170)
    page.mouse.up()
    turned = point.get_attribute("transform")
    assert turned != before
    page.locator("svg.turning").press("ArrowLeft")
    assert point.get_attribute("transform") != turned


def test_the_walk_shows_the_numbers_of_the_model(explore, scene):
    page = explore()
    choose(page, "steps")
    expect(page.locator("#view")).to_contain_text("“▁bank” asks, 9 of 9 pieces may answer")
    page.locator("#kind").get_by_label("cross").check()
    pick(page, "explored-layer", "2")
    pick(page, "explored-head", "3")
    expect(page.locator("#view")).to_contain_text("Cross-attention, layer 2, head 3")
    found = steps.steps(scene, "cross", 2, 3, 1, 1)
    weights = [row[-1] for row in table(page, "From scores to weights")]
    assert weights == [number(weight) for weight in found.weights.tolist()]
    expect(page.locator("#view")).to_contain_text("away from the layer's own in the worst")
    vectors = page.locator(".panel.vectors").first
    vectors.locator(".panel-box").press("ArrowRight")
    expect(vectors.locator("output")).to_have_text(re.compile(r"^x = LN\(h\)\[0\] = "))
    vectors.locator(".panel-box").press("ArrowDown")
    expect(vectors.locator("output")).to_have_text(re.compile(r"^W_Q\[\d+\]\[0\] = "))
    page.get_by_label("divide by sqrt(d_head)").uncheck()
    expect(page.locator("#view")).to_contain_text("scores are not divided")
    expect(page.locator("#view")).to_contain_text("what it would have done")


def test_the_chapters_example_is_put_right(explore):
    page = explore()
    choose(page, "example")
    expect(page.locator("#view")).to_contain_text("50,000 × 128")
    assert table(page, "row of scores")[1][1:7] == ["0.21", "0.14", "0.47", "0.05", "0.1", "0.03"]


def test_self_and_cross_attention_stand_side_by_side(explore, scene):
    page = explore()
    choose(page, "sides")
    captions = page.locator("#view .heatmap figcaption")
    expect(captions).to_have_count(3)
    expect(captions.nth(1)).to_have_text("cross-attention, layer 2, mean over heads")  # as the command starts
    pick(page, "explored-layer", "6")
    expect(captions.nth(0)).to_have_text("encoder self-attention, layer 6, mean over heads")
    pick(page, "explored-layer", "0")
    expect(captions.nth(0)).to_have_text("encoder self-attention, layer 0, mean over heads")
    shown = page.locator("#view .heatmap").nth(1).locator("tbody td").first.get_attribute("style")
    assert float(shown.split(":")[1]) == pytest.approx(float(scene.trace.cross[0].A[0, :, 0, 0].mean()), abs=1e-3)


def test_without_the_mask_the_decoder_looks_ahead(explore):
    page = explore()
    choose(page, "mask")
    expect(page.locator("#view .heatmap")).to_have_count(3)
    future = "maps => maps.map(map => map.querySelector('tbody tr').cells[3].style.getPropertyValue('--w'))"
    allowed, masked, unmasked = map(float, page.locator("#view .heatmap").evaluate_all(future))
    assert (allowed, masked) == (0, 0)
    assert unmasked > 0


def test_all_heads_are_on_one_screen_and_one_grows_at_a_click(explore, demo):
    page = explore()
    choose(page, "heads")
    config = demo.translator.info.model
    maps = page.locator(".small-map")
    expect(maps).to_have_count((config.encoder_layers + 2 * config.decoder_layers) * config.heads)
    small = maps.first.bounding_box()["width"]
    maps.first.press("Enter")
    assert maps.first.bounding_box()["width"] > 2 * small
    expect(maps.first.locator("text").first).to_be_visible()
    maps.first.locator("rect:not(.ground)").first.hover()
    expect(page.locator("#view figure.small-maps output").first).to_contain_text("←")
    maps.first.click()
    assert maps.first.bounding_box()["width"] == pytest.approx(small, abs=1)
    assert len(table(page, "What each head does")) == maps.count()


def test_words_are_forced_and_forbidden_and_the_search_goes_on(explore, demo):
    page = explore()
    choose(page, "decoding")
    expect(page.locator("svg.branches")).to_be_visible()
    assert table(page, "Finished translations")[0][-1] == demo.translate(TEXT).text
    page.locator("#force textarea").fill("1=rive")
    page.locator("#force textarea").press("Enter")
    expect(page.locator("#view figure.table tbody td").nth(4)).to_contain_text("rive")
    page.locator("#forbid textarea").fill("0=La")
    page.locator("#forbid textarea").press("Enter")
    expect(page.locator("#view figure.table tbody td").nth(4)).not_to_contain_text("La ")
    nodes = page.locator("svg.branches .node").count()
    page.get_by_label("number input for Steps shown").fill("2")
    page.get_by_label("number input for Steps shown").press("Tab")
    expect(page.locator("svg.branches .node")).not_to_have_count(nodes)
    assert [row[2] for row in table(page, "The cache grows")] == ["1", "2"]
    page.locator("#forbid textarea").fill("banque")
    page.locator("#forbid textarea").press("Enter")
    expect(page.locator("#view")).to_contain_text("'banque' must read step=word")


def test_cost_and_recipe_are_shown(explore, scene):
    page = explore()
    choose(page, "cost")
    own = len(scene.sentence.source_tokens)
    expect(page.locator("#view")).to_contain_text(f"{own} (this sentence)")
    width = scene.model.config.heads * scene.model.config.head_width
    counted = next(row for row in table(page, "by length") if "this sentence" in row[0])
    assert counted[1] == f"{2 * own**2 * width:,}"
    page.locator("#view a", has_text="attend_fused").click()
    expect(page.locator("#view details", has_text="def attend_fused").locator("pre")).to_be_visible()
    choose(page, "recipe")
    expect(page.locator("#view details")).to_have_count(24)
    link = page.locator("#view a", has_text=" attend").first
    link.click()
    code = page.locator("#view details", has_text="def attend(").first
    expect(code.locator("pre")).to_be_visible()
    expect(code).to_contain_text("softmax")
    expect(code).to_be_in_viewport()
    page.locator("#view a", has_text="Scores and weights").first.click()
    expect(
        page.locator("#view details", has_text="docs/attention.md: Scores and weights").locator(".docs")
    ).to_be_visible()


def test_occlusion_stands_beside_attention(explore, demo, scene):
    page = explore()
    choose(page, "occlusion")
    expect(page.locator("#view .heatmap")).to_have_count(2)
    (found,) = occlusions(demo.translator.engine, [scene.sentence])
    shown = [
        [float(cell.replace(",", "")) for cell in row[1:]] for row in table(page, "Loss of log-probability in nats")
    ]
    assert shown[1] == pytest.approx(found.lost[1], abs=0.01)


def test_a_sentence_of_the_visitors_goes_along_with_a_word_of_it(visit):
    page = visit()
    page.locator("#source textarea").fill("The old man is reading a book.")
    page.get_by_role("tab", name="Explore").click()
    expect(page.locator("#looked-into textarea")).to_have_value("The old man is reading a book.")
    expect(page.locator("#view")).to_contain_text("the embedding of “reading” is the same")
    page.get_by_role("tab", name="Translate").click()
    page.locator("#source textarea").fill("One sentence. Another one.")
    page.get_by_role("tab", name="Explore").click()
    expect(page.locator("#looked-into textarea")).to_have_value("The old man is reading a book.")


def test_what_cannot_be_shown_is_said_in_its_place(explore):
    page = explore()
    page.locator("#looked-into textarea").fill("One sentence. Another one.")
    page.get_by_role("button", name="Look inside").click()
    expect(page.locator("#view")).to_have_text(
        re.compile("one sentence can be laid open, this text is read in 2 parts")
    )
    page.locator("#looked-into textarea").fill("A bank & a <b>river</b>.")
    page.locator("#looked-into textarea").press("Enter")
    expect(page.locator("#view .panels")).to_contain_text("A bank & a <b>river</b>.")


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.slow), "dark"])
def test_no_view_scrolls_a_phone_sideways_in_any_light(explore, scheme):
    page = explore(PHONE, has_touch=True, color_scheme=scheme)
    for view in VIEWS:
        choose(page, view)
        expect(page.locator("#view .panels")).to_contain_text(FIRST_WORDS[view])
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE[0], view
    paper = page.locator("#view details").first.evaluate("box => getComputedStyle(box).backgroundColor.match(/\\d+/g)")
    assert (int(paper[0]) > 128) == (scheme == "light")


def test_a_cloud_turns_under_a_finger(explore):
    page = explore(PHONE, has_touch=True)
    choose(page, "geometry")
    expect(page.locator("svg.turning")).to_be_visible()
    script = """svg => { const box = svg.getBoundingClientRect();
        const at = (type, x) => svg.dispatchEvent(new PointerEvent(type, {pointerId: 1, pointerType: "touch",
            bubbles: true, clientX: box.x + x, clientY: box.y + 50}));
        const capture = svg.setPointerCapture; svg.setPointerCapture = () => {};
        at("pointerdown", 50); at("pointermove", 120); at("pointerup", 120); svg.setPointerCapture = capture; }"""
    before = page.locator(".point-query").last.get_attribute("transform")
    page.locator("svg.turning").evaluate(script)
    assert page.locator(".point-query").last.get_attribute("transform") != before
