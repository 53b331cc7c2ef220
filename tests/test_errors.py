import pytest

from seq2seq.errors import first_line


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("one\ntwo"), "one"),
        (OSError("\n  disk full\nmore"), "disk full"),
        (RuntimeError(), "RuntimeError"),  # a line in any case
        (KeyError("  "), "'  '"),
    ],
)
def test_an_error_of_a_library_is_told_in_one_line(error, line):
    assert first_line(error) == line
