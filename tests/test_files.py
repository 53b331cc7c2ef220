import gzip
import json
import zipfile
from pathlib import Path

import pytest

from seq2seq.data.files import read_lines, read_pairs, read_tatoeba
from seq2seq.errors import UserError


def write(path: Path, content: str | bytes) -> Path:
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def tatoeba_zip(path: Path, content: str, name: str = "fra.txt") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_about.txt", "about")
        archive.writestr(name, content)
    return path


def pairs(*paths: Path) -> list[tuple[str, str]]:
    return list(read_pairs(list(paths), "en", "fr"))


@pytest.mark.parametrize(
    "inside", ["\u2028", "\u2029", "\u0085", "\f", "\v", "\r", "\x1c"], ids=lambda text: f"U+{ord(text):04X}"
)
def test_a_line_ends_at_a_newline_and_nowhere_else(tmp_path, inside):
    path = write(tmp_path / "a.txt", f"one{inside}two\nthree\n")
    assert list(read_lines(path)) == [f"one{inside}two", "three"]


def test_windows_line_ends_and_a_byte_order_mark_are_no_part_of_a_line(tmp_path):
    path = write(tmp_path / "a.txt", "\ufeffone\r\n\r\ntwo \r\n\ufeffthree")
    assert list(read_lines(path)) == ["one", "", "two ", "\ufeffthree"]


def test_an_empty_file_has_no_line(tmp_path):
    assert list(read_lines(write(tmp_path / "a.txt", ""))) == []


def test_a_gzipped_file_reads_like_the_plain_one(tmp_path):
    text = "été\nété\u2028encore\n"
    assert list(read_lines(write(tmp_path / "a.txt.gz", text))) == list(read_lines(write(tmp_path / "a.txt", text)))


def test_bytes_that_are_no_utf8_name_the_line(tmp_path):
    path = write(tmp_path / "a.txt", b"fine\n\xe9t\xe9\n")
    with pytest.raises(UserError, match=r"a\.txt, line 2: not UTF-8"):
        list(read_lines(path))


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"none\.txt does not exist"):
        list(read_lines(tmp_path / "none.txt"))


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        list(read_lines(tmp_path))


def test_a_truncated_gzip_file_is_refused(tmp_path):
    path = write(tmp_path / "a.txt.gz", "".join(f"line {number}\n" for number in range(1000)))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UserError, match=r"a\.txt\.gz cannot be read"):
        list(read_lines(path))


def test_a_damaged_gzip_file_is_refused(tmp_path):
    path = write(tmp_path / "a.txt.gz", "".join(f"line {number}\n" for number in range(1000)))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.write_bytes(bytes(data))
    with pytest.raises(UserError, match=r"a\.txt\.gz cannot be read"):
        list(read_lines(path))


def test_plain_text_named_gz_is_refused(tmp_path):
    (tmp_path / "a.txt.gz").write_text("not compressed\n")
    with pytest.raises(UserError, match=r"a\.txt\.gz cannot be read"):
        list(read_lines(tmp_path / "a.txt.gz"))


def test_two_files_pair_line_by_line_blank_lines_included(tmp_path):
    source, target = write(tmp_path / "a.en", "one\n\nthree\n"), write(tmp_path / "a.fr", "un\n\ntrois\n")
    assert pairs(source, target) == [("one", "un"), ("", ""), ("three", "trois")]


@pytest.mark.parametrize(("first", "second"), [(3, 5), (5, 3), (0, 2), (2, 0)])
def test_files_of_unequal_length_are_refused_with_both_counts(tmp_path, first, second):
    source, target = write(tmp_path / "a.en", "x\n" * first), write(tmp_path / "a.fr", "y\n" * second)
    with pytest.raises(UserError, match=rf"a\.en has {first} lines but .*a\.fr has {second}: .*line-parallel"):
        pairs(source, target)


def test_a_tsv_keeps_quotes_and_the_sentence_na_and_ignores_further_columns(tmp_path):
    lines = ['"Hi," he said.\t« Salut »', 'a " b\tc', "NA\tNA", "one\tun\tCC-BY\tmore", "", "null\t"]
    path = write(tmp_path / "a.tsv", "\n".join(lines))
    assert pairs(path) == [
        ('"Hi," he said.', "« Salut »"),
        ('a " b', "c"),
        ("NA", "NA"),
        ("one", "un"),
        ("null", ""),
    ]


def test_a_tsv_line_of_one_column_is_named(tmp_path):
    with pytest.raises(UserError, match=r"a\.tsv, line 3: 1 column, expected source TAB target: 'no tab here'"):
        pairs(write(tmp_path / "a.tsv", "a\tb\n\nno tab here\n"))


def test_jsonl_may_be_flat_or_nested_and_name_languages_or_sides(tmp_path):
    rows = [
        {"en": "one", "fr": "un", "id": 7},
        {"translation": {"en": "two", "fr": "deux"}},
        {"source": "three", "target": "trois"},
        {"translation": {"source": "four", "target": "quatre"}},
        {"en": "five", "fr": "cinq", "translation": "by hand", "source": "a book"},
    ]
    path = write(tmp_path / "a.jsonl", "\n\n".join(map(json.dumps, rows)) + "\n")
    assert pairs(path) == [("one", "un"), ("two", "deux"), ("three", "trois"), ("four", "quatre"), ("five", "cinq")]


def test_a_line_break_inside_a_jsonl_text_becomes_a_space_and_all_else_stays(tmp_path):
    row = {"en": "a \r\n b\n\nc", "fr": "tab\there, NUL \0, \u2028, lone CR \r."}
    path = write(tmp_path / "a.jsonl", json.dumps(row))
    assert pairs(path) == [("a b  c", row["fr"])]


@pytest.mark.parametrize("text", ["NA", "null", "None", "nan", "N/A", "-", '5" disk'])
@pytest.mark.parametrize("form", ["en fr", "tsv", "csv", "jsonl"])
def test_no_text_is_ever_a_missing_value(tmp_path, form, text):
    """Parquet and TMX: test_columns.py and test_tmx.py."""
    if form == "en fr":
        assert pairs(write(tmp_path / "a.en", f"{text}\n"), write(tmp_path / "a.fr", f"{text}\n")) == [(text, text)]
        return
    content = {"tsv": f"{text}\t{text}\n", "csv": f"{text},{text}\n", "jsonl": json.dumps({"en": text, "fr": text})}
    assert pairs(write(tmp_path / f"a.{form}", content[form])) == [(text, text)]


@pytest.mark.parametrize(
    "line",
    [
        '{"en": "one"}',
        '{"en": "one", "fr": 1}',
        '{"translation": "one"}',
        "[]",
        "3",
        '{"en": "one",',
        "null",
        "[" * 100_000,
        '{"source": "a", "fr": "b"}',
    ],
)
def test_a_jsonl_line_without_both_texts_is_named(tmp_path, line):
    path = write(tmp_path / "a.jsonl", f'{{"en": "a", "fr": "b"}}\n{line}\n')
    with pytest.raises(UserError, match=r"a\.jsonl, line 2: expected an object with texts 'en' and 'fr'"):
        pairs(path)


def test_tsv_and_jsonl_may_be_gzipped(tmp_path):
    assert pairs(write(tmp_path / "a.tsv.gz", "one\tun\n")) == [("one", "un")]
    assert pairs(write(tmp_path / "a.jsonl.gz", '{"en": "one", "fr": "un"}\n')) == [("one", "un")]


@pytest.mark.parametrize(
    "names", [[], ["a.txt"], ["a.en.gz"], ["a.en", "a.fr", "b.en"], ["a.tsv", "b.tsv"], ["a.en", "b.tmx.gz"]]
)
def test_another_number_or_kind_of_files_is_refused(names):
    with pytest.raises(
        UserError, match=r"give two line-parallel text files, or one \.tsv, \.csv, \.jsonl, \.parquet or \.tmx"
    ):
        pairs(*map(Path, names))


@pytest.mark.parametrize("attribution", ["", "\tCC-BY 2.0 (France) Attribution: tatoeba.org #1 & #2"])
def test_tatoebas_zip_is_read_with_two_and_with_three_columns(tmp_path, attribution):
    path = tatoeba_zip(tmp_path / "fra-eng.zip", f"Go.\tVa !{attribution}\nHi.\tSalut.{attribution}\n")
    assert list(read_tatoeba(path)) == [("Go.", "Va !"), ("Hi.", "Salut.")]


def test_a_zip_without_fra_txt_is_refused(tmp_path):
    path = tatoeba_zip(tmp_path / "fra-eng.zip", "Go.\tGeh.\n", name="deu.txt")
    with pytest.raises(UserError, match=r"is not Tatoeba's fra-eng\.zip .*fra\.txt"):
        list(read_tatoeba(path))


def test_what_is_no_zip_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"is not Tatoeba's fra-eng\.zip"):
        list(read_tatoeba(write(tmp_path / "fra-eng.zip", "<html>Not Acceptable!</html>")))


def test_a_damaged_zip_is_refused(tmp_path):
    path = tatoeba_zip(tmp_path / "fra-eng.zip", "Go.\tVa !\n")
    data = path.read_bytes().replace(b"Va !", b"Va ?", 1)
    path.write_bytes(data)
    with pytest.raises(UserError, match=r"is not Tatoeba's fra-eng\.zip"):
        list(read_tatoeba(path))


def test_a_missing_zip_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"fra-eng\.zip does not exist"):
        list(read_tatoeba(tmp_path / "fra-eng.zip"))


def test_a_faulty_line_inside_the_zip_is_named(tmp_path):
    path = tatoeba_zip(tmp_path / "fra-eng.zip", "Go.\tVa !\nHi.\n")
    with pytest.raises(UserError, match=r"fra\.txt, line 2: 1 column"):
        list(read_tatoeba(path))
