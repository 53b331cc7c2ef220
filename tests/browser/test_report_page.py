"""The report of an evaluation in a real browser: opened from the disk, on a desk and on a phone."""

from importlib.util import find_spec

import pytest
from chromium import PHONE, WIDE, skip_without_browser

from seq2seq.cli import main

skip_without_browser()
if find_spec("playwright"):
    from playwright.sync_api import expect

SOURCES = [
    "The cat sleeps on the chair.",
    "He wrote <script>document.title = 'taken'</script> to me.",
    "The old man who lives near the river is reading a book about the black cat that he saw yesterday in the garden.",
    "An" + "other" * 30 + " word.",
]
REFERENCES = ["Le chat dort sur la chaise.", "Il m'a écrit.", "Le vieil homme lit un livre.", "Un autre mot."]
BASELINE = ["Le chat.", "<b>Il</b> écrit.", "Le vieil homme qui vit près de la rivière lit un livre.", "Un mot."]

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report that `seq2seq evaluate` wrote."""
    folder = tmp_path_factory.mktemp("report")
    files = {"source": SOURCES, "reference": REFERENCES, "baseline": BASELINE}
    command = ["evaluate", "--beam-size", "1", "--report", str(folder / "report.html")]
    for name, lines in files.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        command += [f"--{name}", str(folder / name)]
    assert main(command) == 0
    return folder / "report.html"


@pytest.fixture
def visit(browser, report):
    """Opens the page; whatever the test did, nothing may have been fetched and nothing may have gone wrong."""
    contexts, requests, errors = [], [], []

    def open_page(size=WIDE, **settings):
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **settings)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text))
        page.goto(report.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert set(requests) == {report.as_uri()}
    assert errors == []


def sideways(page):
    """By how much the page is wider than its window."""
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


def test_a_desk_sees_scores_bars_and_sentences(visit):
    page = visit()
    assert page.title().startswith("Evaluation of en-fr, bundled (en-fr) on source")
    expect(page.locator(".scores tbody tr")).to_have_count(3)
    lengths = page.locator(".bar").evaluate_all(
        "bars => bars.map(bar => [Number(bar.innerText), bar.firstChild.getBoundingClientRect().width])"
    )
    per_point = [width / value for value, width in lengths if value > 5]
    assert per_point == pytest.approx([per_point[0]] * len(per_point), rel=0.02)
    assert page.locator("article mark").count() > 0
    assert page.locator("article b, article script").count() == 0
    assert sideways(page) == 0


def test_the_attention_opens_and_its_words_light_up(visit):
    page = visit()
    article = page.locator("article").first
    expect(article.locator(".heatmap").first).to_be_hidden()
    article.get_by_text("Cross-attention").click()
    expect(article.locator(".heatmap").first).to_be_visible()
    article.locator(".heatmap tbody th").first.hover()
    expect(article.locator(".heatmap output").first).to_contain_text("draws on")
    assert article.locator(".heatmap thead th.lit").count() > 0


def test_a_phone_never_scrolls_sideways(visit):
    page = visit(PHONE, has_touch=True)
    page.locator("summary").evaluate_all("summaries => summaries.forEach(summary => summary.click())")
    expect(page.locator("details[open]")).to_have_count(page.locator("details").count())
    assert sideways(page) == 0
    boxes = page.locator(".heatmap-box").evaluate_all("boxes => boxes.map(box => box.scrollWidth - box.clientWidth)")
    assert max(boxes) > 0, "a wide map scrolls in its own box"
    expect(page.locator(".scores thead")).to_be_hidden()  # every cell bears the name of its column instead


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_readers_theme(visit, scheme):
    page = visit(color_scheme=scheme)
    script = "element => getComputedStyle(element).backgroundColor.match(/\\d+/g).map(Number)"
    for place in ("body", "section", ".heatmap"):
        red, *_ = page.locator(place).first.evaluate(script)
        assert (red > 128) == (scheme == "light"), place
