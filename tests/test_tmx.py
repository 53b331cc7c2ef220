"""TMX: languages, inline codes, encodings, and files that would do harm."""

import gzip
from pathlib import Path

import pytest

from seq2seq.data.files import read_pairs
from seq2seq.data.tmx import speaks
from seq2seq.errors import UserError

HEAD = '<?xml version="1.0" encoding="{}"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'


def variant(language: str, text: str, name: str = "xml:lang") -> str:
    return f'<tuv {name}="{language}"><seg>{text}</seg></tuv>'


def unit(english: str, french: str) -> str:
    return f"<tu>{variant('en', english)}{variant('fr', french)}</tu>\n"


def tmx(path: Path, *units: str, encoding: str = "UTF-8", attributes: str = "") -> Path:
    body = f'<tmx version="1.4"{attributes}><header srclang="en"/><body>\n{"".join(units)}</body></tmx>\n'
    data = (HEAD.format(encoding) + body).encode(encoding)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def pairs(path: Path, source: str = "en", target: str = "fr") -> list[tuple[str, str]]:
    return list(read_pairs([path], source, target))


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16", "ISO-8859-1"])
@pytest.mark.parametrize("name", ["a.tmx", "a.tmx.gz", "A.TMX"])
def test_units_are_pairs_in_any_encoding(tmp_path, name, encoding):
    path = tmx(tmp_path / name, unit("one &amp; &#x41;", "un été"), unit("NA", "null"), encoding=encoding)
    assert pairs(path) == [("one & A", "un été"), ("NA", "null")]
    assert pairs(path, "fr", "en") == [("un été", "one & A"), ("null", "NA")]


@pytest.mark.parametrize("tag", ["en", "EN", "en-US", "en_GB", "En-us"])
def test_a_region_and_the_case_of_a_language_do_not_matter(tag):
    assert speaks(tag, "en")


@pytest.mark.parametrize(("tag", "wanted"), [("eng", "en"), ("", "en"), ("fr", "en"), ("en", "en-US"), ("x-en", "en")])
def test_another_language_is_another(tag, wanted):
    assert not speaks(tag, wanted)


def test_the_old_lang_attribute_counts(tmp_path):
    old = f"<tu>{variant('EN-US', 'one', 'lang')}{variant('FR', 'un', 'lang')}</tu>"
    assert pairs(tmx(tmp_path / "a.tmx", old)) == [("one", "un")]


def test_units_with_a_namespace_are_read(tmp_path):
    path = tmx(tmp_path / "a.tmx", unit("one", "un"), attributes=' xmlns="http://www.lisa.org/tmx14"')
    assert pairs(path) == [("one", "un")]


def test_native_codes_are_left_out_and_text_inside_elements_is_kept(tmp_path):
    english = (
        'Click <bpt i="1">&lt;b&gt;</bpt><hi type="x">the <it pos="begin">{i}</it>red</hi><ept i="1">&lt;/b&gt;</ept>'
        " button<ph>[img alt=<sub>a picture</sub>]</ph><ut>{x}</ut>.<!-- note --> Then<?go?> go."
    )
    path = tmx(tmp_path / "a.tmx", unit(english, "Cliquez."))
    assert pairs(path) == [("Click the red buttona picture. Then go.", "Cliquez.")]


def test_several_variants_of_a_language_are_several_pairs(tmp_path):
    variants = [("en", "a"), ("fr", "b"), ("de", "x"), ("en-GB", "c"), ("fr-CA", "d")]
    many = f"<tu>{''.join(variant(*one) for one in variants)}</tu>"
    assert pairs(tmx(tmp_path / "a.tmx", many)) == [("a", "b"), ("a", "d"), ("c", "b"), ("c", "d")]


def test_a_unit_without_one_of_the_languages_is_skipped_and_blank_text_stays(tmp_path):
    alone = f"<tu>{variant('en', 'alone')}</tu><tu/>"
    assert pairs(tmx(tmp_path / "a.tmx", alone, unit("", "vide"), unit("x", "y"))) == [("", "vide"), ("x", "y")]


def test_line_breaks_of_the_layout_are_spaces(tmp_path):
    assert pairs(tmx(tmp_path / "a.tmx", unit("\n    two\n    words\n  ", "deux"))) == [("two words", "deux")]


def test_a_file_of_other_languages_is_refused_with_those_it_has(tmp_path):
    path = tmx(tmp_path / "a.tmx", f"<tu>{variant('de', 'x')}{variant('en', 'y')}</tu>")
    with pytest.raises(UserError, match=r"a\.tmx has no unit with both en and fr; its languages are: de, en$"):
        pairs(path)
    with pytest.raises(UserError, match=r"b\.tmx has no unit .*: none$"):
        pairs(tmx(tmp_path / "b.tmx"))


@pytest.mark.parametrize(
    ("content", "line"),
    [("", 1), ("<tmx>\n<body>\n<tu>", 3), ("<tmx>\n</body>", 2), ("one\tun\n", 1), ("<tmx>\n\n&#0;</tmx>", 3)],
)
def test_broken_xml_is_one_line_that_names_the_line(tmp_path, content, line):
    path = tmp_path / "a.tmx"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=rf"a\.tmx, line {line}: not well-formed XML: \S") as caught:
        pairs(path)
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_utf8_are_refused(tmp_path):
    path = tmp_path / "a.tmx"
    path.write_bytes((HEAD.format("UTF-8") + "<tmx>\n").encode() + unit("caf\xe9", "x").encode("latin-1"))
    with pytest.raises(UserError, match=r"a\.tmx, line 4: not well-formed XML"):
        pairs(path)


def test_a_truncated_gzip_file_is_refused(tmp_path):
    path = tmx(tmp_path / "a.tmx.gz", *(unit(f"one {number}", f"un {number}") for number in range(2000)))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UserError, match=r"a\.tmx\.gz cannot be read"):
        pairs(path)


def test_entities_are_not_expanded(tmp_path):
    path = tmp_path / "a.tmx"
    path.write_text(f'<!DOCTYPE tmx [<!ENTITY x "ha">]>\n<tmx><body>{unit("&x;", "x")}</body></tmx>', encoding="utf-8")
    with pytest.raises(UserError, match=r"a\.tmx, line 2: the entity &x; is not expanded"):
        pairs(path)


@pytest.mark.parametrize("where", ["<seg>&i;</seg>", '<seg x="&i;">x</seg>'])
def test_an_xml_bomb_is_one_line(tmp_path, where):
    names = zip("abcdefgh", "bcdefghi", strict=True)
    entities = "".join(f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in names)
    body = f"<tmx><body>{unit('x', 'x').replace('<seg>x</seg>', where, 1)}</body></tmx>"
    path = tmp_path / "bomb.tmx"
    path.write_text(f'<!DOCTYPE tmx [<!ENTITY a "ha">{entities}]>\n{body}', encoding="utf-8")
    with pytest.raises(UserError, match=r"bomb\.tmx, line \d: .*(not expanded|amplification|entity)") as caught:
        pairs(path)
    assert "\n" not in str(caught.value)


def test_no_other_file_is_read(tmp_path):
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    path = tmp_path / "a.tmx"
    declaration = f'<!DOCTYPE tmx [<!ENTITY x SYSTEM "{(tmp_path / "secret.txt").as_uri()}">]>'
    path.write_text(f"{declaration}<tmx><body>{unit('&x;', 'x')}</body></tmx>", encoding="utf-8")
    with pytest.raises(UserError, match="the entity &x; is not expanded"):
        pairs(path)


def test_the_tree_does_not_grow_with_the_file(tmp_path):
    path = tmx(tmp_path / "a.tmx", *(unit(f"one {number}", f"un {number}") for number in range(3000)))
    stream = read_pairs([path], "en", "fr")
    for _ in range(2000):
        next(stream)
    body = stream.gi_frame.f_locals["unit"].getparent()  # what lxml holds is not seen by Python's own tools
    assert len([child for child in body if len(child)]) < 1000 / 2
