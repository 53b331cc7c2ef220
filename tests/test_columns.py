"""Parquet: the shapes in which pairs come, and the files that are none."""

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seq2seq.data.columns import ROWS
from seq2seq.data.files import read_pairs
from seq2seq.errors import UserError

TEXTS = (["one", "NA", "a\nb"], ["un", "null", "é\u2028, \0"])
PAIRS = [("one", "un"), ("NA", "null"), ("a b", "é\u2028, \0")]
STRUCT = [{"en": source, "fr": target, "de": "x"} for source, target in zip(*TEXTS, strict=True)]


def parquet(path: Path, **columns: pa.Array) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def pairs(path: Path) -> list[tuple[str, str]]:
    return list(read_pairs([path], "en", "fr"))


@pytest.mark.parametrize(
    "columns",
    [
        {"id": pa.array([1, 2, 3]), "fr": pa.array(TEXTS[1]), "en": pa.array(TEXTS[0])},
        {"source": pa.array(TEXTS[0], pa.large_string()), "target": pa.array(TEXTS[1]).dictionary_encode()},
        {"translation": pa.array(STRUCT)},
        {"translation": pa.array([1, 2, 3]), "en": pa.array(TEXTS[0]), "fr": pa.array(TEXTS[1])},
        {"translation": pa.array([list(row.items()) for row in STRUCT], pa.map_(pa.string(), pa.string()))},
    ],
    ids=["languages", "sides", "struct", "languages first", "map"],
)
def test_pairs_come_by_language_by_side_or_as_translations(tmp_path, columns):
    assert pairs(parquet(tmp_path / "a.parquet", **columns)) == PAIRS


def test_a_missing_value_is_a_blank_sentence_and_shifts_nothing(tmp_path):
    path = parquet(tmp_path / "a.parquet", en=pa.array(["a", None, "c"]), fr=pa.array([None, "b", "c"]))
    assert pairs(path) == [("a", ""), ("", "b"), ("c", "c")]
    rows = [{"en": "a", "fr": None}, None, {"en": "c", "fr": "c"}]
    assert pairs(parquet(tmp_path / "b.parquet", translation=pa.array(rows))) == [("a", ""), ("", ""), ("c", "c")]


def test_a_file_of_many_batches_keeps_its_order_also_gzipped(tmp_path):
    count = 3 * ROWS + 1
    numbers = [str(number) for number in range(count)]
    path = parquet(tmp_path / "a.parquet", en=pa.array(numbers), fr=pa.array(numbers))
    assert pairs(path) == list(zip(numbers, numbers, strict=True))
    (tmp_path / "b.parquet.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert pairs(tmp_path / "b.parquet.gz") == pairs(path)


def test_other_columns_are_refused_with_their_names(tmp_path):
    path = parquet(tmp_path / "a.parquet", de=pa.array(["x"]), fr=pa.array(["y"]))
    with pytest.raises(UserError, match=r"a\.parquet has no columns 'en' and 'fr', 'translation', .* but de, fr$"):
        pairs(path)
    path = parquet(tmp_path / "b.parquet", translation=pa.array([{"de": "x", "fr": "y"}]))
    with pytest.raises(UserError, match=r"b\.parquet holds the languages de, fr, not en and fr"):
        pairs(path)


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"en": pa.array([1]), "fr": pa.array(["x"])}, "'en' is int64"),
        ({"translation": pa.array([{"en": "x", "fr": [1]}])}, r"'translation\.fr' is list"),
        ({"translation": pa.array(["x"])}, "'translation' is string, not a struct or map of languages"),
    ],
)
def test_columns_that_are_no_text_are_refused(tmp_path, columns, named):
    with pytest.raises(UserError, match=named):
        pairs(parquet(tmp_path / "a.parquet", **columns))


@pytest.mark.parametrize("content", [b"", b"one\tun\n", b"PAR1" + b"\0" * 40 + b"PAR1"])
@pytest.mark.parametrize("name", ["a.parquet", "a.parquet.gz"])
def test_what_is_no_parquet_is_refused_in_one_line(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with pytest.raises(UserError, match=r"cannot be read") as caught:
        pairs(path)
    assert "\n" not in str(caught.value)


def test_a_damaged_parquet_file_is_refused_in_one_line(tmp_path):
    path = parquet(tmp_path / "a.parquet", en=pa.array(["a sentence"] * 99), fr=pa.array(["une phrase"] * 99))
    data = bytearray(path.read_bytes())
    data[4:60] = b"\xff" * 56
    path.write_bytes(bytes(data))
    with pytest.raises(UserError, match=r"a\.parquet cannot be read"):
        pairs(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(UserError, match=r"none\.parquet does not exist"):
        pairs(tmp_path / "none.parquet")
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(UserError, match=r"folder\.parquet cannot be read"):
        pairs(tmp_path / "folder.parquet")
