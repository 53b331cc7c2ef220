"""What must survive: found, stood in for, put back."""

import re
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2seq import Translator
from seq2seq.errors import UserError
from seq2seq.translation.protect import (
    NAMES,
    find_items,
    restored,
    stray,
    survives,
    translate_protected,
    variants,
)
from seq2seq.translation.result import Alternative, SentenceTranslation, Term


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
        ("Call +33 1 23 45 67 89 or 01 23 45 67 89 now.", ["+33 1 23 45 67 89", "01 23 45 67 89"]),
        ("I paid 5 or 10 20 times.", ["10", "20"]),
        ("On 2024-01-02 at 10:30.", ["2024-01-02", "10:30"]),
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
        ("1945", "en 19450", False),
        ("10:30", "à 10 h 30, deux fois", True),
        ("10:30", "à 10h30", True),
        ("+33 1 23 45 67 89", "+33 1 23 45 67 89", True),
        ("+33 1 23 45 67 89", "31454589", False),
        ("555-1234", "Appelle le 5551234.", False),
        ("555-1234", "Appelle le 555 1234.", True),
        ("12/03/1987", "le 12031987", False),
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


class Model:
    """Translates by a table, words linked one to one, and remembers what it was asked."""

    def __init__(self, **table: str) -> None:
        self.table, self.asked = table, []

    def __call__(self, sentences: list[str]) -> list[SentenceTranslation]:
        self.asked += sentences
        return [self.one(sentence) for sentence in sentences]

    def one(self, sentence: str) -> SentenceTranslation:
        found = translation(sentence, self.table.get(sentence, "Rien."))
        count = max(len(found.source_tokens), len(found.target_tokens)) + 1
        weights = np.eye(count, dtype=np.float32)[: len(found.target_tokens) + 1, : len(found.source_tokens) + 1]
        ends = {"source_tokens": [*found.source_tokens, "</s>"], "target_tokens": [*found.target_tokens, "</s>"]}
        return replace(found, weights=weights[None, None], **ends)


def protected(sentence: str, model: Model) -> SentenceTranslation:
    return translate_protected([sentence], model, model)[0]


def test_nothing_more_is_asked_if_nothing_is_lost():
    sentences = {"Hi {a}!": "Salut {a} !", "The cat sleeps.": "Le chat dort.", "It is 6:30.": "Il est 6:30."}
    model = Model(**sentences)
    assert [one.text for one in translate_protected(list(sentences), model, model)] == list(sentences.values())
    assert model.asked == list(sentences)


def test_what_is_lost_comes_back_where_its_stand_in_is():
    sentence = "Hi {a}, it is 6:30."
    model = Model(**{sentence: "Salut a, il est 630 heures et 0.", "Hi Tom, it is 20.": "Salut Tom , il est 20 ."})
    found = protected(sentence, model)
    assert found.text == "Salut {a} , il est 6:30 ."
    assert found.source == sentence
    assert found.alternatives[0].text == found.text
    assert found.target_tokens == ["▁Salut", "▁{a}", "▁,", "▁il", "▁est", "▁6:30", "▁.", "</s>"]


def test_a_translation_with_what_its_sentence_has_not_is_not_taken():
    model = Model(**{"Press {0} now.": "Appuyez {0}}}} maintenant.", "Press Tom now.": "Appuyez sur Tom maintenant."})
    assert protected("Press {0} now.", model).text == "Appuyez sur {0} maintenant."
    assert stray("a {0}", "{0}") == 0
    assert stray("a {0}", "{0}}} <b>") == 4


def test_a_stand_in_that_comes_twice_is_not_put_back_twice():
    model = Model(**{"Hi {a}!": "Salut !", "Hi Tom!": "Salut Tom Tom !", "Hi 30!": "Salut 30 30 !"})
    assert protected("Hi {a}!", model).text == "Salut {a} !"


@pytest.mark.parametrize(
    ("sentence", "plain", "expected"),
    [
        ("We met on 2024-01-02 at noon.", "On se voit à midi.", "On se voit 2024-01-02 à midi."),
        ("Call 331 now.", "Appelez 3314 maintenant.", "Appelez 331 maintenant."),
        ("{a} is here.", "Il est là.", "{a} Il est là."),
        ("I have 12 cats.", "J'ai douze chats.", "J'ai douze chats."),
        ("I have 1000 cats.", "J'ai mille chats.", "J'ai mille chats."),
        ("Pay 5 € and 6 €.", "Payez 5 € et.", "Payez 5 € et 6 €."),
    ],
)
def test_what_no_stand_in_saves_is_put_in_where_the_word_before_it_went(sentence, plain, expected):
    assert protected(sentence, Model(**{sentence: plain})).text == expected


def test_an_item_of_the_glossary_is_not_to_survive():
    model = Model(**{"My iPhone is here.": "Mon téléphone est là."})
    named = replace(model.one("My iPhone is here."), terms=(Term("iPhone", "téléphone", True),))
    assert translate_protected(["My iPhone is here."], lambda sentences: [named], model) == [named]
    assert model.asked == []


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
    "text",
    [
        "See https://example.org/a?b=1&c=2 for more.",
        "Write to info@example.org today.",
        "You have %1$s new messages.",
        "Hello %1$s, you have {n} cats and {{name}} 5 €.",
        "$5 and 10% on 2024-01-02 at 10:30.",
        "Call +33 1 23 45 67 89 now.",
        "Call 555-1234, 30 cats and 70 dogs.",
        "Press {0}+{1} to stop.",
    ],
)
def test_the_bundled_model_keeps_them(translator: Translator, text):
    result = translator.translate(text)
    assert [item.text for item in find_items(text) if not survives(item.text, result.text)] == []
    assert not stray(text, result.text)
    sentence = result.sentences[0]
    assert sentence.attention.shape[2:] == (len(sentence.target_tokens), len(sentence.source_tokens))
    assert sentence.alignment
    assert translator.translate(text, attention=False).text == result.text
    with pytest.raises(UserError, match="carries no attention"):
        _ = translator.translate(text, attention=False).sentences[0].attention
