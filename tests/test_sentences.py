import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2seq.translation.sentences import (
    Piece,
    has_words,
    is_capitals,
    split_sentences,
    split_text,
    tidy,
    trim,
    without_capitals,
)

TRICKY = "ab É.!?…,;:7 \n\r\t\u2028\u00a0\u202f\"'“”«»()[]—-😀🎉\u200d\ufe0f🏽\u00ad\x00\ud800"


def translatable(text: str) -> list[str]:
    return [piece.text for piece in split_text(text) if piece.translatable]


@given(st.text(alphabet=st.sampled_from(TRICKY), max_size=60) | st.text(max_size=40))
def test_joining_the_pieces_gives_the_text_again(text):
    assert "".join(piece.text for piece in split_text(text)) == text


@pytest.mark.parametrize(
    ("text", "translated"),
    [
        ("- I see two cats.\n  * I see a dog.", ["I see two cats.", "I see a dog."]),
        ("1. One cat.\n2) Two dogs.", ["One cat.", "Two dogs."]),
        ("## The cat\n> - [x] Buy milk.\n• Go.", ["The cat", "Buy milk.", "Go."]),
        ("| a cat | a dog |\n|---|---|", ["a cat", "a dog"]),
        ("-5 degrees - or more", ["-5 degrees - or more"]),
        ("- ", []),
        ("2. 3", []),
    ],
)
def test_the_marks_of_lists_and_tables_are_kept(text, translated):
    assert translatable(text) == translated


@pytest.mark.parametrize(
    ("text", "translated"),
    [
        ("Note: the door is open. It is cold.", ["the door is open.", "It is cold."]),
        ("  Step-2:  open the door.", ["open the door."]),
        ("He said: come in.", ["He said: come in."]),
        ("Note: 42", ["Note: 42"]),
        ("Time: 10:30 in Paris", ["10:30 in Paris"]),
        ("note: the door", ["note: the door"]),
        ("http://example.org is a page.", ["http://example.org is a page."]),
    ],
)
def test_a_label_before_a_sentence_is_kept(text, translated):
    assert translatable(text) == translated


@given(st.text(alphabet=st.sampled_from(TRICKY), max_size=60))
def test_what_is_translated_has_words_one_line_and_no_space_around_it(text):
    for piece in translatable(text):
        assert has_words(piece)
        assert piece == piece.strip()
        assert "\n" not in piece
        assert tidy(piece)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("The cat sleeps. The dog runs.", ["The cat sleeps.", "The dog runs."]),
        ("Really?! Yes! No? Go.", ["Really?!", "Yes!", "No?", "Go."]),
        ("Mr. Brown met Dr. Green. They spoke.", ["Mr. Brown met Dr. Green.", "They spoke."]),
        ("We saw birds, e.g. Robins. Nice!", ["We saw birds, e.g. Robins.", "Nice!"]),
        ("J. R. Tolkien wrote it. Read it.", ["J. R. Tolkien wrote it.", "Read it."]),
        ("See No. 5 and vol. 2. Then stop.", ["See No. 5 and vol. 2.", "Then stop."]),
        ("It was I. He left.", ["It was I.", "He left."]),
        ("It costs 3.50 euros. Take 2.", ["It costs 3.50 euros.", "Take 2."]),
        ("Version 1.2.3 is out. 20 people came.", ["Version 1.2.3 is out.", "20 people came."]),
        ('"Stop." He ran.', ['"Stop."', "He ran."]),
        ("“Who?” “Me.”", ["“Who?”", "“Me.”"]),
        ("He left (at last.) She stayed.", ["He left (at last.)", "She stayed."]),
        ("Well... maybe not. Wait... What?", ["Well... maybe not.", "Wait...", "What?"]),
        ("Oh… I see.", ["Oh…", "I see."]),
        ("He asked why? and left.", ["He asked why? and left."]),
        ("Visit example.org today. Élan counts.", ["Visit example.org today.", "Élan counts."]),
        ("No full stop at the end", ["No full stop at the end"]),
        ("One.Two", ["One.Two"]),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text, sentences):
    assert translatable(text) == sentences


def test_the_space_after_a_sentence_stays_with_it():
    assert split_sentences("One.  Two. \n") == ["One.  ", "Two. \n"]


def test_emoji_stand_apart_from_the_sentences_around_them():
    assert split_text("I am happy. 😀 The cat 👩🏽‍🚀 sleeps") == [
        Piece("I am happy.", True),
        Piece(" ", False),
        Piece("😀", False),
        Piece(" ", False),
        Piece("The cat", True),
        Piece(" ", False),
        Piece("👩🏽‍🚀", False),
        Piece(" ", False),
        Piece("sleeps", True),
    ]


def test_signs_that_belong_to_words_are_no_emoji():
    assert translatable("It is 20 °C in Windows® today.") == ["It is 20 °C in Windows® today."]


def test_blank_lines_indentation_and_windows_line_ends_are_kept_between_sentences():
    text = "  One.\r\n\r\n\tTwo. \n\n"
    assert translatable(text) == ["One.", "Two."]
    assert "".join(piece.text for piece in split_text(text) if not piece.translatable) == "  \r\n\r\n\t \n\n"


def test_u2028_is_no_line_end_but_may_lie_between_sentences():
    assert translatable("The cat sleeps.\u2028The dog runs.") == ["The cat sleeps.", "The dog runs."]
    assert translatable("The cat\u2028sleeps.") == ["The cat\u2028sleeps."]


@pytest.mark.parametrize("text", ["", " ", "42", "-", "...", "?!", "3.14 + 2 = 5.14", "😀 🎉", "\n\n", "№ 7", "\u00ad"])
def test_what_has_no_word_is_left_alone(text):
    assert translatable(text) == []


def test_trim_takes_white_space_off_and_leaves_a_wordless_stretch_whole():
    assert trim(" a b\u2028") == [Piece(" ", False), Piece("a b", True), Piece("\u2028", False)]
    assert trim(" 42 ") == [Piece(" 42 ", False)]
    assert trim("") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  cat \t sleeps", "The cat sleeps"),
        ("The cat\x00 sleeps.", "The cat sleeps."),
        ("infor\u00adma\u00adtion", "information"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("a\u2028b\u202fc\u0085d", "a b c d"),
        ("Ça va ?", "Ça va ?"),
        ("“It’s here,” she said.", '"It\'s here," she said.'),
    ],
)
def test_tidy_leaves_single_spaces_and_visible_characters(text, expected):
    assert tidy(text) == expected


SPACES = [" ", "\t", "\u00a0", "\n", "a ", "\u200d"]
MARKS = [".", ". ", "! ", "|", " |", "| ", "- ", "1. ", "[ ] ", "> ", "A: ", "I. ", "Mr. A ", "...", "('", "«", "☀"]
FLOODS = [unit * (50_000 // len(unit)) + end for unit in SPACES + MARKS for end in ("", "a")] + ["a" * 50_000 + "! B"]


@pytest.mark.parametrize("text", FLOODS)
def test_an_odd_text_is_split_in_time_that_grows_with_its_length(text):
    """Each of these takes well under a second; a pattern that backtracks would take minutes."""
    started = time.perf_counter()
    assert "".join(piece.text for piece in split_text(text)) == text
    assert time.perf_counter() - started < 3


@pytest.mark.parametrize("text", ["WHERE ARE YOU?", "IL EST LÀ", "THE 2 CATS", "I AM HERE."])
def test_a_sentence_in_capitals_is_recognised(text):
    assert is_capitals(text)


@pytest.mark.parametrize(
    "text", ["NATO", "Where ARE you?", "I I", "42 + 1", "", "USA!", "MCDONALD is here", "שלום לך חבר"]
)
def test_acronyms_and_mixed_case_are_no_sentence_in_capitals(text):
    assert not is_capitals(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("WHERE ARE YOU?", "Where are you?"),
        ("MAY I COME IN?", "May I come in?"),
        ('"ÉTÉ 2020", IT SAYS', '"Été 2020", it says'),
    ],
)
def test_capitals_are_taken_off(text, expected):
    assert without_capitals(text) == expected


@pytest.mark.parametrize("letters", ["a" * 46, "é" * 200, "x_1" * 20])
def test_a_run_of_letters_longer_than_any_word_is_kept_as_it_is(letters):
    assert split_text(f"See {letters}, please.")[2] == Piece(letters, False)
    assert split_text(letters) == [Piece(letters, False)]


def test_the_longest_word_of_english_is_a_word():
    word = "pneumonoultramicroscopicsilicovolcanoconiosis"
    assert split_text(word) == [Piece(word, True)]
