"""CSV: what is quoted, what is text, and what a quote that never closes may not do."""

import csv
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2seq.data.files import read_pairs
from seq2seq.data.sheet import LOOKAHEAD, read_rows, split_row
from seq2seq.errors import UserError


def pairs(tmp_path: Path, content: str, source: str = "en", target: str = "fr") -> list[tuple[str, str]]:
    path = tmp_path / "a.csv"
    path.write_bytes(content.encode())
    return list(read_pairs([path], source, target))


def test_without_a_header_there_are_two_columns(tmp_path):
    assert pairs(tmp_path, "one,un\r\n\r\ntwo,deux\r\n") == [("one", "un"), ("two", "deux")]


@pytest.mark.parametrize("header", ["id,text_en,text_fr", "en,text", "id,de,en", "one,un,more"])
def test_columns_are_not_guessed(tmp_path, header):
    with pytest.raises(UserError, match=rf"the first row is '{header}': name the columns 'en' and 'fr' there, or give"):
        pairs(tmp_path, f"{header}\n1,un,one\n")


def test_a_comma_that_is_not_quoted_does_not_shift_a_text_into_the_next_column(tmp_path):
    message = r"a\.csv, line 2: 3 columns, expected 2; a text with a comma must be quoted: 'Yes, of course\.,Oui'"
    with pytest.raises(UserError, match=message):
        pairs(tmp_path, "one,un\nYes, of course.,Oui\n")


@pytest.mark.parametrize("header", ["id,FR, En ,x", '"id","fr","en",""', "\ufeffid,fr,en,x", "id,target,source,x"])
def test_a_header_names_the_columns_by_language_or_side(tmp_path, header):
    assert pairs(tmp_path, f"{header}\n1,un,one,y\n2,deux,two,\n") == [("one", "un"), ("two", "deux")]


def test_a_first_row_that_names_other_languages_is_a_pair(tmp_path):
    assert pairs(tmp_path, "de,it\na,b\n") == [("de", "it"), ("a", "b")]


def test_quoted_fields_keep_commas_and_quotes_and_a_line_break_becomes_a_space(tmp_path):
    content = '"Yes, ""of course"".","Oui,\r\nbien sûr."\n"",""\nnext,suivant\n'
    assert pairs(tmp_path, content) == [('Yes, "of course".', "Oui, bien sûr."), ("", ""), ("next", "suivant")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('a 5" disk,un disque', ('a 5" disk', "un disque")),
        ('"Hi" he said,Salut', ('"Hi" he said', "Salut")),
        ('"never closed,jamais', ('"never closed', "jamais")),
        ('"a, b","jamais', ("a, b", '"jamais')),
        ("lone\rCR,\x00\u2028\f\t", ("lone\rCR", "\x00\u2028\f\t")),
    ],
)
def test_any_other_quote_is_text(tmp_path, line, expected):
    following = [(f"line {number}", f"ligne {number}") for number in range(3 * LOOKAHEAD)]
    content = f"{line}\n" + "".join(f"{source},{target}\n" for source, target in following)
    assert pairs(tmp_path, content) == [expected, *following]


def test_a_stray_quote_that_meets_another_by_chance_swallows_no_line(tmp_path):
    content = '"open,ouvert\nmore,plus\n"quoted",« cité »\nthe end",fin\n'
    assert pairs(tmp_path, content) == [
        ('"open', "ouvert"),
        ("more", "plus"),
        ("quoted", "« cité »"),
        ('the end"', "fin"),
    ]


def test_a_quoted_field_may_go_on_for_some_lines_and_no_further(tmp_path):
    for lines, expected in ((LOOKAHEAD, 1), (LOOKAHEAD + 1, LOOKAHEAD + 2)):
        content = "\n".join(['x,"a', *["b,c"] * (lines - 1), 'd"'])
        rows = list(read_rows(iter(content.split("\n"))))
        assert len(rows) == expected


def test_a_row_that_is_too_short_is_named_by_the_line_it_begins_at(tmp_path):
    with pytest.raises(UserError, match=r"a\.csv, line 4: 1 column, expected 2: 'alone'"):
        pairs(tmp_path, '"a\nb",c\n,\nalone\n')
    with pytest.raises(UserError, match=r"a\.csv, line 2: 2 columns, expected 3: '1,2'"):
        pairs(tmp_path, "en,x,fr\n1,2\n")


def test_an_empty_file_and_a_header_alone_have_no_pair(tmp_path):
    assert pairs(tmp_path, "") == pairs(tmp_path, "en,fr\n") == pairs(tmp_path, "\n\n") == []


def test_a_field_may_be_of_any_length(tmp_path):
    assert csv.field_size_limit() == 131_072
    long = "word " * 200_000
    assert pairs(tmp_path, f'"{long},",{long}\n') == [(f"{long},", long)]


def test_a_gzipped_file_reads_like_the_plain_one(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b'"a, b",c\n'))
    assert list(read_pairs([path], "en", "fr")) == [("a, b", "c")]


@given(st.lists(st.lists(st.text("ab,\"' é\n"), min_size=2, max_size=4), max_size=5))
def test_what_the_csv_module_writes_is_read_as_it_was(rows):
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    lines = iter(stream.getvalue().removesuffix("\n").split("\n") if rows else [])
    assert [row for _, row in read_rows(lines)] == rows


@given(st.text('a,"', max_size=12))
def test_a_row_of_any_shape_has_fields_that_hold_all_its_letters(line):
    row = split_row(line, whole=True)
    assert row
    assert "".join(row).count("a") == line.count("a")
