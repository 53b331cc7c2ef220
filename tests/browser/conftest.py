"""A browser and a running demo for the browser tests of a module."""

import socket
import threading
from dataclasses import replace
from importlib.util import find_spec

import pytest
from chromium import CHROMIUM, MISSING, PATIENCE, SWITCHES, WIDE

from seq2seq import Translator
from seq2seq.demo import launch
from seq2seq.translation.result import Confidence

if find_spec("playwright"):
    from playwright.sync_api import expect, sync_playwright


@pytest.fixture(scope="module")
def browser():
    if MISSING:
        pytest.fail(f"the page cannot be tested: {MISSING[0]} is missing", pytrace=False)
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield chromium
        chromium.close()


def doubtful(result):
    """The same translation with doubt about the first source word and the first target word."""
    (sentence,) = result.sentences
    omitted, invented = ([0.75, *[0.0] * (len(words) - 1)] for words in (sentence.source_words, sentence.target_words))
    return replace(result, parts=[replace(sentence, confidence=Confidence(0.25, omitted, invented))])


class Demo:
    """A running demo that counts its translations and can be told to hold one back."""

    def __init__(self):
        self.translator = Translator.from_pretrained()
        self.translate = self.translator.translate
        self.calls = []
        self.settings = {}
        self.go = threading.Event()
        self.translator.translate = self._counted
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.page = launch(self.translator, port=port, block=False)
        self.url = self.page.local_url

    def _counted(self, text, **settings):
        self.calls.append(text)
        self.settings = settings
        if text == "Wait for me.":
            assert self.go.wait(PATIENCE / 1000)
        found = self.translate(text, **settings)
        return doubtful(found) if text == "Doubt me now." else found


@pytest.fixture(scope="module")
def demo(browser):
    running = Demo()
    yield running
    running.page.close(verbose=False)


@pytest.fixture
def visit(browser, demo):
    """Opens the demo; at the end, whatever the test did, no request may have gone elsewhere."""
    contexts, requests, errors = [], [], []

    def open_page(size=WIDE, **settings):
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **settings)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(demo.url)
        expect(page.locator("#source textarea")).to_be_visible()
        return page

    demo.calls.clear()
    yield open_page
    for context in contexts:
        context.close()
    assert len(requests) > 10
    assert [url for url in requests if not url.startswith((demo.url, "data:", "blob:"))] == []
    assert errors == []
