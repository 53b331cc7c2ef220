"""HTML in and out: nothing of the page is lost, tags go round the words that translate theirs."""

import re
import time
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2seq import Translator
from seq2seq.errors import UserError
from seq2seq.folder import AlignmentChoice
from seq2seq.translation.markup import MarkupPlan, Run, Tag, cut, plan_markup
from seq2seq.translation.plan import Plan
from seq2seq.translation.result import Alternative, SentenceTranslation
from seq2seq.translation.sentences import Piece, split_text, tidy
from seq2seq.translation.tokens import attributes, read_tokens

PIECES = ["<p>", "</p>", "<b>", "</b>", "<i class='x'>", "</i>", "<br>", "<!-- a -->", "text ", "Two words.", "&amp;",
          "&lt;", "&#233;", "<", ">", "&", "<script>if (a<b) {}</script>", "\n", "<img src=x alt='A dog'>", "<b", "</",
          '<div translate="no">keep this</div>', "é", "<![CDATA[x]]>", "<?php x ?>", "<!DOCTYPE html>"]  # fmt: skip


def planned(text: str) -> Plan:
    """As a Translator plans, without a limit of length."""
    return Plan(text, [Piece(tidy(piece.text), True) if piece.translatable else piece for piece in split_text(text)])


def turned(sentence: str) -> SentenceTranslation:
    """A translation that puts the words in the opposite order, in capitals, each linked with its word."""
    words = sentence.split()
    count = len(words)
    weights = np.eye(count + 1, dtype=np.float32)[[*range(count - 1, -1, -1), count]][None, None]
    pieces = [f"▁{word}" for word in words]
    text = " ".join(word.upper() for word in reversed(words))
    return SentenceTranslation(
        source=sentence,
        text=text,
        score=0.0,
        source_tokens=[*pieces, "</s>"],
        target_tokens=[*(f"▁{word.upper()}" for word in reversed(words)), "</s>"],
        alternatives=[Alternative(text, 0.0)],
        truncated=False,
        source_ids=(),
        target_ids=(),
        aligning=AlignmentChoice(layer=0),
        weights=weights,
    )


def translated(source: str) -> str:
    plan = plan_markup(source, planned)
    return plan.assemble({sentence: turned(sentence) for sentence in plan.sentences}).text


# Reading.


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_tokens_are_the_source_again(source):
    assert "".join(token.raw for token in read_tokens(source)) == source


@given(st.text(alphabet="<>&;/ab =\"'!-?[]\n", max_size=30))
def test_tokens_of_anything_are_the_source_again(source):
    assert "".join(token.raw for token in read_tokens(source)) == source


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_parts_are_the_source_again(source):
    assert "".join(part if isinstance(part, str) else part.raw for part in cut(source)) == source


def test_a_run_ends_where_a_line_of_its_own_begins():
    parts = cut("<p>One <b>two</b></p><ul><li>three<li>four</ul>five<br>six")
    assert [part.text for part in parts if isinstance(part, Run)] == ["One two", "three", "four", "five", "six"]
    assert Tag("<br>") in cut("five<br>six")


def test_white_space_is_one_space_and_entities_are_characters():
    (run,) = cut("a\n  <i>b </i> c &eacute;&#33;")
    assert isinstance(run, Run)
    assert run.text == "a b c é!"
    assert [(element.start, element.end) for element in run.elements] == [(2, 4)]


# Writing.


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<p>hello</p>", "<p>HELLO</p>"),
        ("one <b>two</b> three", "THREE <b>TWO</b> ONE"),
        ("<b>one two</b> three", "THREE <b>TWO ONE</b>"),
        ("<b>one <i>two</i></b> three", "THREE <b><i>TWO</i> ONE</b>"),
        ("<b>one</b> <i>two</i>", "<i>TWO</i> <b>ONE</b>"),
        ("<b>one two</b>", "<b>TWO ONE</b>"),
        ("<b>one two. Three</b> four five", "<b>TWO. ONE FIVE FOUR THREE</b>"),
        ("one<br>two three", "ONE<br>THREE TWO"),
        ("2 &lt; 3", "2 &lt; 3"),
        ("a &amp; b", "B &amp; A"),
        ("<p>\n  one\n  two\n</p>", "<p>\n  TWO ONE\n</p>"),
        ("<script>if (a<b) {}</script> one two", "<script>if (a<b) {}</script> TWO ONE"),
        ("one <!-- x --> two three", "THREE <!-- x -->TWO ONE"),
        ("one two<wbr>three", "TWOTHREE ONE<wbr>"),
        ("one <img src=x> two", "<img src=x>TWO ONE"),
        ("one <code>a b</code> two", "TWO <code>a b</code> ONE"),
        ("<CODE>x</CODE>", "<CODE>x</CODE>"),
        ("infor&shy;ma&shy;tion <b>is</b> here", "HERE <b>IS</b> INFORMATION"),
        ("a&nbsp;&nbsp;b <i>c</i>", "<i>C</i> B A"),
        ("Read <a href=x><i class='icon'></i></a> now", "<a href=x><i class='icon'></i></a>NOW READ"),
        ("<pre>one\n  two</pre> three", "<pre>one\n  two</pre> THREE"),
        ("<b onclick=\"go( title='Red car')\">one</b>", "<b onclick=\"go( title='Red car')\">ONE</b>"),
        ("<a title='Red car' translate=no>one</a>", "<a title='Red car' translate=no>one</a>"),
        ("<i TRANSLATE='NO'>one</i> two", "TWO <i TRANSLATE='NO'>one</i>"),
        ("<i class=notranslate>one</i> two", "TWO <i class=notranslate>one</i>"),
        ("<i title='x translate=no'>one</i> two", "TWO <i title='TRANSLATE=NO X'>ONE</i>"),
        ("<li translate=no>one<li>two", "<li translate=no>one<li>TWO"),
        ("<a title='Next page'>»</a>", "<a title='PAGE NEXT'>»</a>"),
        ("a <b", "A <b"),
        ("one <![x[ two", "ONE <![x[ two"),
        ("I <3 you two", "TWO YOU &lt;3 I"),
        (
            '<div translate="no">one <b>two</b> <div>x</div></div> yes',
            '<div translate="no">one <b>two</b> <div>x</div></div> YES',
        ),
        ("<span class='notranslate'>one</span> two", "TWO <span class='notranslate'>one</span>"),
        ("one <code>{1}</code> two <code>{0}</code>", "<code>{0}</code> TWO <code>{1}</code> ONE"),
        ('<b id="{0}">one</b> <code>" x="</code> two', 'TWO <code>" x="</code> <b id="{0}">ONE</b>'),
        ("<img alt=one src=x>", '<img alt="ONE" src=x>'),
        ("<img alt=one&#32;two src=x>", '<img alt="TWO ONE" src=x>'),
        ('<img alt="one two" src="a b">', '<img alt="TWO ONE" src="a b">'),
        ("<a title='one &amp; two' href='x y'>three four</a>", "<a title='TWO &amp; ONE' href='x y'>FOUR THREE</a>"),
        ("one </b>two", "</b>TWO ONE"),
        ("one <b>two", "<b>TWO ONE"),
        ("one<sup>1</sup> two three", "THREE TWO ONE<sup>1</sup>"),
        ("one two<sup>*</sup>.", "TWO<sup>*</sup>. ONE"),
        (
            "<head><title>one &amp; two</title><meta charset=utf-8></head>",
            "<head><title>TWO &amp; ONE</title><meta charset=utf-8></head>",
        ),
        ("", ""),
        ("<p></p> 42 <b>!</b>", "<p></p> 42 <b>!</b>"),
    ],
)
def test_tags_follow_their_words(source, expected):
    assert translated(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<ul><li class='notranslate'>one<li>two three</ul>", "<ul><li class='notranslate'>one<li>THREE TWO</ul>"),
        ("<p translate=no>one <b>two</b><p>three four", "<p translate=no>one <b>two</b><p>FOUR THREE"),
        ("<p translate=no>one two<div>three four</div>", "<p translate=no>one two<div>FOUR THREE</div>"),
        ("<div><p translate=no>one two</div>three four", "<div><p translate=no>one two</div>FOUR THREE"),
        ("<tr><td translate=no>one<th>two three<tr><td>four", "<tr><td translate=no>one<th>THREE TWO<tr><td>FOUR"),
        ("<dl><dt translate=no>one two<dd>three four</dl>", "<dl><dt translate=no>one two<dd>FOUR THREE</dl>"),
        ("<li translate=no>a<ul><li>b</li></ul><li>one two", "<li translate=no>a<ul><li>b</li></ul><li>TWO ONE"),
        ("<body translate=no><p>one two</p>three", "<body translate=no><p>one two</p>three"),
        ("<li>one two<li>three four", "<li>TWO ONE<li>FOUR THREE"),
    ],
)  # fmt: skip
def test_what_is_not_to_be_translated_may_leave_out_its_closing_tag(source, expected):
    assert translated(source) == expected


def test_attributes_are_read_one_by_one():
    found = attributes("""<a href = 'x y' title="A &amp; B" disabled data-x=1>""")
    assert [(each.name, each.value) for each in found] == [
        ("href", "x y"),
        ("title", "A & B"),
        ("disabled", ""),
        ("data-x", "1"),
    ]


@pytest.mark.parametrize(
    "source",
    ["<a " * 16_000, "<a/" * 16_000, '<a x="' * 10_000, "<!--" * 12_000, "<![" * 16_000,
     " " * 50_000 + "a" + " " * 50_000, "<b>a</b>" * 6_000, "</b>" * 12_000, "<script>" * 6_000,
     "&" * 50_000, "<" * 50_000, "<li translate=no>" * 3_000, "<p translate=no><b>" * 3_000,
     "<p title='a'>" * 3_000],
)  # fmt: skip
def test_hostile_pages_take_no_longer_than_others(source):
    started = time.perf_counter()
    plan_markup(source, lambda text: Plan(text, []))
    assert time.perf_counter() - started < 2


@pytest.mark.parametrize(
    "source",
    ["<wbr>I. " * 6_000, "".join(f"{{{n}}}" for n in range(4_000)) + " a<code></code>" * 2_000,
     "<b>a</b> " * 5_000, "<i>one. </i>" * 3_000, "<code>a</code>. " * 3_000, "a <b></b>" * 5_000],
)  # fmt: skip
def test_hostile_pages_are_put_together_as_quickly(source):
    plan = plan_markup(
        source, lambda text: Plan(text, [Piece(text[n : n + 40], True) for n in range(0, len(text), 40)])
    )
    sentences = {sentence: turned(sentence) for sentence in plan.sentences}
    started = time.perf_counter()
    plan.assemble(sentences)
    assert time.perf_counter() - started < 5


def test_a_page_of_tags_inside_each_other_is_refused():
    assert translated("<b>" * 100 + "one" + "</b>" * 100) == "<b>" * 100 + "ONE" + "</b>" * 100
    with pytest.raises(UserError, match="more than 100 tags stand inside each other"):
        cut("<b>" * 101 + "one")
    with pytest.raises(UserError, match="more than 100 tags stand inside each other"):
        cut("<b>" + "<i></b><b></i>" * 600 + "one")


def tags(source: str) -> list[str]:
    return sorted(re.findall(r"</?[a-z]+[^>]*>", source))


class Balance(HTMLParser):
    """Whether every tag is closed, in the opposite order of opening."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.balanced = True
        self.feed(source)
        self.close()
        self.balanced = self.balanced and not self.open

    def handle_starttag(self, tag, attrs):
        if tag not in ("br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        self.balanced = bool(self.open) and self.open.pop() == tag and self.balanced


def words_of(source: str) -> list[str]:
    return sorted(re.sub("<[^>]*>", " ", source).split())


words = st.sampled_from(["one", "two", "three", "four", "five"])
inline = st.recursive(
    words,
    lambda inner: st.tuples(st.sampled_from("biu"), st.lists(inner, max_size=3)).map(
        lambda made: f"<{made[0]}>{' '.join(made[1])}</{made[0]}>"
    ),
    max_leaves=8,
)


@given(st.lists(inline, min_size=1, max_size=5).map(" ".join))
def test_tags_are_the_same_and_properly_nested(source):
    found = translated(source)
    assert tags(found) == tags(source)
    assert Balance(found).balanced
    assert sorted(re.sub("<[^>]*>", " ", found).lower().split()) == sorted(
        re.sub("<[^>]*>", " ", source).lower().split()
    )


def test_a_word_that_no_link_names_gives_its_tag_to_the_word_that_draws_on_it_most():
    sentence = turned("one two")
    weights = np.array([[[[0.6, 0.4, 0.0], [0.7, 0.2, 0.1], [0.0, 0.0, 1.0]]]], dtype=np.float32)
    object.__setattr__(sentence, "weights", weights)
    plan = plan_markup("one <b>two</b>", planned)
    assert plan.assemble({"one two": sentence}).text == "<b>TWO</b> ONE"


def test_so_does_a_word_for_which_a_taught_head_finds_no_link():
    sentence = turned("one two")
    weights = np.array([[[[0.1, 0.3, 0.6], [0.9, 0.0, 0.1], [0.0, 0.0, 1.0]]]], dtype=np.float32)
    object.__setattr__(sentence, "weights", weights)
    object.__setattr__(sentence, "aligning", AlignmentChoice(layer=0, taught=True))
    assert [(link.source, link.target) for link in sentence.alignment] == [(0, 1)]
    plan = plan_markup("one <b>two</b>", planned)
    assert plan.assemble({"one two": sentence}).text == "<b>TWO</b> ONE"


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("It costs <b>5 €</b> now.", "Il coûte 5 € maintenant.", "Il coûte <b>5 €</b> maintenant."),
        ("Open <i>foo.py</i> now.", "Ouvrez foo.py maintenant.", "Ouvrez <i>foo.py</i> maintenant."),
        ("A H<sub>2</sub>O molecule.", "Une molécule H2O.", "Une molécule H<sub>2</sub>O."),
        ("I am <b>a</b> man.", "Voilà un à un.", "Voilà un à un."),
    ],
)
def test_what_stands_in_the_translation_as_it_is_keeps_its_tag(source, text, expected):
    plan = plan_markup(source, planned)
    (sentence,) = plan.sentences
    pieces = [f"▁{word}" for word in text.split()] + ["</s>"]
    found = replace(turned(sentence), text=text, target_tokens=pieces)
    count = len(found.source_tokens)
    weights = np.full((1, 1, len(pieces), count), 1 / count, dtype=np.float32)
    result = plan.assemble({sentence: replace(found, weights=weights)}).text
    assert (result == expected) or (expected == text and re.sub("</?b>", "", result) == text)


# A real model.


@pytest.mark.parametrize(
    "source",
    [
        "<p>hello</p>",
        "The <b>red</b> house is <i>very</i> old.",
        "<p>I <b><i>love</i></b> my <u>dog</u>. It is <a href='x'>big</a>.</p>",
        "<ul><li>The cat sleeps.</li><li>The <em>dog</em> runs.</li></ul>",
    ],
)
def test_a_page_keeps_its_tags(translator: Translator, source):
    result = translator.translate(source, format="html")
    assert tags(result.text) == tags(source)
    assert Balance(result.text).balanced
    assert result.sentences
    assert all(element not in result.text for element in ("<b></b>", "<i></i>", "<u></u>"))


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        ("See note<sup>1</sup> for details.", "<sup>1</sup>"),
        ("It costs <b>5 €</b>.", "<b>5 €</b>"),
        ("Open <i>foo.py</i> now.", "<i>foo.py</i>"),
        ("Press <kbd>Ctrl</kbd>+<kbd>C</kbd> to stop.", "<kbd>Ctrl</kbd>"),
        ('Hello <span translate="no">@bob</span>, how are you?', '<span translate="no">@bob</span>'),
    ],
)
def test_what_must_survive_keeps_its_tags(translator: Translator, source, kept):
    found = translator.translate(source, format="html").text
    assert kept in found
    assert tags(found) == tags(source)
    assert not re.search("[{}]", found)


def test_plain_text_is_translated_the_same_as_html(translator: Translator):
    text = "The old man is reading a book. It is late."
    assert translator.translate(text, format="html").text == translator.translate(text).text


def test_a_plan_of_a_page_has_the_sentences_of_its_runs_and_attributes():
    plan = plan_markup('<p title="One two.">Three. Four.</p>', planned)
    assert isinstance(plan, MarkupPlan)
    assert set(plan.sentences) == {"One two.", "Three.", "Four."}


@pytest.mark.parametrize(
    ("source", "size"),
    [
        ("<p>One. Two.</p>", 2),
        ("<p>One.</p><p>One.</p><p>Two.</p>", 3),
        ('<p title="One. Two. Three.">Four.</p>', 4),
        ('<img alt="One."><img alt="One."><b title="Two.">One.</b>', 4),
        ("<p>42</p>", 0),
    ],
)
def test_every_sentence_of_a_page_counts_also_those_of_attributes(source, size):
    assert plan_markup(source, planned).size == size
