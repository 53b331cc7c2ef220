"""What must survive: found, stood in for, put back."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2seq import Translator
from seq2seq.translation.protect import NAMES, best, find_items, needed, restored, survives, variants
from seq2seq.translation.result import Alternative, SentenceTranslation


def translation(source: str, text: str) -> SentenceTranslation:
    pieces = [f"▁{word}" for word in text.split()]
    read = [f"▁{word}" for word in source.split()]
    return SentenceTranslation(source, text, -0.5, read, pieces, [Alternative(text, -0.5)], False, (), ())


@pytest.mark.parametrize(
    ("sentence", "items"),
    [
        ("See https://example.org/a?b=1&c=2 for more.", ["https://example.org/a?b=1&c=2"]),
        ("It is at www.example.org/x.", ["www.example.org/x"]),
        ("Write to info@example.org, please.", ["info@example.org"]),
        ("You have %1$s new messages and %d old ones (%s).", ["%1$s", "%d", "%s"]),
        ("Hello {{name}}, welcome to {place} or ${town} or {0} or %(there)s.",
         ["{{name}}", "{place}", "${town}", "{0}", "%(there)s"]),
        ("Press <enter> or __KEY__.", ["<enter>", "__KEY__"]),
        ("Open report_2.pdf in C:\\Users\\me or /home/me.", ["report_2.pdf", "C:\\Users\\me", "/home/me"]),
        ("Ask @anna about #holidays.", ["@anna", "#holidays"]),
        ("It costs €18.10, or $1,250, or 20 €.", ["€18.10", "$1,250", "20 €"]),
        ("It rose by 3.5% in 1945.", ["3.5%", "1945"]),
        ("Call 555-1234 at 6:30.", ["555-1234", "6:30"]),
        ("2 < 3 and 5 > 4", ["2 < 3", "5 > 4"]),
        ("iPhone and McDonald are names.", ["iPhone", "McDonald"]),
        ("I have 4 cats, 100% of them grey.", ["100%"]),
        ("Nothing here, is there?", []),
        ("I'm 5.", []),
    ],
)  # fmt: skip
def test_items_are_found(sentence, items):
    assert [item.text for item in find_items(sentence)] == items


@pytest.mark.parametrize(
    ("item", "text", "kept"),
    [
        ("{name}", "Bonjour {name} !", True),
        ("{name}", "Bonjour { name } !", False),
        ("€18.10", "Cela coûte 18,10 €.", True),
        ("€18.10", "Cela coûte 18,10.", False),
        ("1,250", "1 250 personnes", True),
        ("1945", "en 194", False),
        ("2 < 3", "2<3", True),
        ("2 < 3", "2 et 3", False),
    ],
)
def test_an_item_survives_as_it_is_or_as_the_same_number(item, text, kept):
    assert survives(item, text) is kept


def test_each_kind_has_its_stand_ins_and_those_in_the_sentence_are_not_taken():
    found = variants("Tom has %d letters for {name} from 1945.")
    assert [variant.text for variant in found] == [
        "Tom has Mary letters for John from 30.",
        "Tom has 30 letters for 20 from 50.",
        "Tom has Mary letters for John from Boston.",
    ]
    assert found[1].items == {"30": "%d", "20": "{name}", "50": "1945"}
    assert variants("A sentence without.") == []
    assert variants(" ".join(f"{{a{number}}}" for number in range(len(NAMES) + 1))) == []


def test_the_plain_translation_stands_if_nothing_is_lost():
    plain = translation("Hi {a}!", "Salut {a} !")
    tried = {variant.text: translation(variant.text, "x") for variant in variants("Hi {a}!")}
    assert best("Hi {a}!", plain, tried) is plain
    assert best("Hi!", translation("Hi!", "Salut !"), {}).text == "Salut !"


def test_what_is_lost_comes_back_where_its_stand_in_is():
    sentence = "Hi {a}, it is 6:30."
    plain = translation(sentence, "Salut a, il est 630 heures et 0.")
    tried = {variant.text: translation(variant.text, "Rien.") for variant in variants(sentence)}
    tried["Hi Tom, it is 20."] = translation("Hi Tom, it is 20.", "Salut Tom , il est 20 .")
    found = best(sentence, plain, tried)
    assert found.text == "Salut {a} , il est 6:30 ."
    assert found.source == sentence
    assert found.alternatives[0].text == found.text
    assert found.target_tokens == ["▁Salut", "▁{a}", "▁,", "▁il", "▁est", "▁6:30", "▁."]


def test_a_stand_in_that_comes_twice_is_not_put_back_twice():
    sentence = "Hi {a}!"
    tried = {"Hi Tom!": translation("Hi Tom!", "Salut Tom Tom !"), "Hi 30!": translation("Hi 30!", "Salut !")}
    plain = translation(sentence, "Salut !")
    assert best(sentence, plain, tried) is plain


def test_no_other_sentence_costs_anything():
    assert list(needed(["The cat sleeps.", "It is 6:30.", "I have two."])) == [
        "The cat sleeps.",
        "It is 6:30.",
        *(variant.text for variant in variants("It is 6:30.")),
        "I have two.",
    ]


@pytest.mark.parametrize(
    "text",
    ["1" * 20_000 + "a", "1." * 10_000 + "a", "a." * 10_000 + "@", "{" * 20_000, "%(" * 10_000, "/a" * 10_000 + "!",
     "a@" + "a." * 10_000 + "!", "https://" + "a" * 20_000 + "!", "1 <" * 10_000, "€" * 20_000, "aA" * 10_000,
     "[[" * 10_000, "__a" * 10_000, "-" * 20_000, "1-" * 10_000, "A" * 20_000],
)  # fmt: skip
def test_items_are_found_in_time_that_grows_with_the_text(text):
    started = time.perf_counter()
    find_items(text)
    assert time.perf_counter() - started < 2


@given(st.text(alphabet="a1 .,%${}<>@#/:€-sd_", max_size=40))
def test_anything_is_cut_into_items_that_stand_in_it(text):
    for item in find_items(text):
        assert text[item.start : item.end] == item.text
    for variant in variants(text):
        glued = any(re.search(rf"\w{word}|{word}\w", variant.text) for word in variant.items)
        back = restored(variant, translation(variant.text, variant.text), text)
        assert glued or back.text == text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("See https://example.org/a?b=1&c=2 for more.", "https://example.org/a?b=1&c=2"),
        ("Write to info@example.org today.", "info@example.org"),
        ("You have %1$s new messages.", "%1$s"),
    ],
)
def test_the_bundled_model_keeps_them(translator: Translator, text, kept):
    result = translator.translate(text)
    assert kept in result.text
    sentence = result.sentences[0]
    assert sentence.attention.shape[2:] == (len(sentence.target_tokens), len(sentence.source_tokens))
    assert sentence.alignment
