"""Where two files part company: found to a few lines when the text tells, and nothing said when it does not."""

import random
from pathlib import Path

import pytest

from seq2seq.data.corpus import SAMPLE
from seq2seq.data.files import read_pairs, read_tsv
from seq2seq.data.parting import Place, find_parting, sketch
from seq2seq.errors import UserError

NAMES = ["Anna", "Omar", "Li", "Paris", "Rome"]


def corpus(count: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Sentences of varied length; a translation is longer by a fifth, more or less, and keeps names and numbers."""
    rng = random.Random(seed)
    sources, targets = [], []
    for _ in range(count):
        kept = rng.choice(NAMES) if rng.random() < 0.3 else str(rng.randrange(100)) if rng.random() < 0.2 else "it"
        length = rng.randint(10, 120)
        mark = rng.choice(".?!")
        sources.append(f"{'w' * length} {kept}{mark}")
        targets.append(f"{'v' * round(length * rng.gauss(1.2, 0.1))} {kept}{mark}")
    return sources, targets


def parting(sources: list[str], targets: list[str]) -> Place | None:
    return find_parting(sketch(iter(sources)), sketch(iter(targets)))


def near(place: Place | None, line: int, slack: int = 2) -> bool:
    return place is not None and place.first - slack <= line <= place.last + slack


@pytest.mark.parametrize("line", [0, 1, 7, 150, 500, 990, 999])
@pytest.mark.parametrize("change", ["source line lost", "target line lost", "source line twice", "target line twice"])
def test_a_line_lost_or_doubled_is_found(change, line):
    sources, targets = corpus(1000)
    side = sources if change.startswith("source") else targets
    side[line : line + 1] = [] if change.endswith("lost") else side[line : line + 1] * 2
    assert near(parting(sources, targets), line + 1, slack=3)


@pytest.mark.parametrize("seed", range(5))
def test_of_several_places_the_first_is_found(seed):
    sources, targets = corpus(1500, seed)
    for line in (1200, 700, 300):
        del targets[line]
    targets.insert(1000, "added")
    assert near(parting(sources, targets), 301, slack=3)


@pytest.mark.parametrize("seed", range(10))
def test_of_files_that_do_not_belong_together_nothing_is_said(seed):
    sources, _ = corpus(800, seed)
    _, targets = corpus(790, seed + 100)
    assert parting(sources, targets) is None


@pytest.mark.parametrize(("sources", "targets"), [(0, 3), (3, 0), (1, 2), (0, 0), (12, 5)])
def test_of_a_few_lines_or_of_none_nothing_is_said(sources, targets):
    assert parting(["a b c."] * sources, ["d e f."] * targets) is None


def test_of_lines_that_are_all_alike_nothing_is_said():
    assert parting(["Same."] * 500, ["Pareil."] * 501) is None


def test_the_place_in_real_text_is_found_to_a_few_lines():
    pairs = list(read_tsv(SAMPLE))
    rng = random.Random(1)
    hits = 0
    for _ in range(40):
        line = rng.randrange(len(pairs))
        targets = [target for index, (_, target) in enumerate(pairs) if index != line]
        hits += near(parting([source for source, _ in pairs], targets), line + 1)
    assert hits >= 36


def test_the_message_has_both_counts_and_the_place(tmp_path: Path):
    sources, targets = corpus(400)
    del targets[99]
    for name, lines in (("a.en", sources), ("a.fr", targets)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    found = r"a\.en has 400 lines but .*a\.fr has 399: they must be line-parallel; .* at line (99|100|101)( to 10\d)?$"
    with pytest.raises(UserError, match=found):
        list(read_pairs([tmp_path / "a.en", tmp_path / "a.fr"], "en", "fr"))
