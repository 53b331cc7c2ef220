"""`seq2seq align`: links of given pairs, by one model or two, and their error rate."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from small import loaded_model, saved_model

from seq2seq.cli import main
from seq2seq.data.tokenizer import EOS
from seq2seq.folder import BUNDLED, PRETRAINED, AlignmentChoice, load_info
from seq2seq.translation.aligner import Forced, _choices, choose_by_agreement, force, join_words
from seq2seq.translation.alignment import Words, merge_pieces
from seq2seq.translation.link_sets import SYMMETRISE, read_gold, read_links
from seq2seq.translation.refinement import Reading, refine
from seq2seq.translation.torch_engine import TorchEngine
from seq2seq.translation.translator import Translator

DATA = Path(__file__).parent / "data/alignment"
PAIRS = [("the cat sees the apple .", "le chat voit la pomme ."), ("a dog", "un chien"), ("", "le roi"), ("yes .", "")]


@pytest.fixture
def folder(tmp_path):
    return saved_model(tmp_path / "model")


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / "source", tmp_path / "target"]
    for path, lines in zip(paths, zip(*PAIRS, strict=True), strict=True):
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return ["--source", str(paths[0]), "--target", str(paths[1])]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("Mr . Speaker , it 's late", "Mr. Speaker, it's late"),
        ("l' école ( la nôtre ) n' ouvre pas .", "l'école (la nôtre) n'ouvre pas."),
        ("Ça va ?", "Ça va ?"),
        ("do n't", "don't"),
        ("Où as -tu mis ça ?", "Où as-tu mis ça ?"),
        (". a", ". a"),
        ("the boys ' dog lost by -5 or 3 %", "the boys ' dog lost by -5 or 3 %"),
        ("Puisqu' il est l' un d' eux", "Puisqu'il est l'un d'eux"),
        ("", ""),
    ],
)
def test_words_are_joined_as_text_is_written(words, text):
    found, spans = join_words(words.split())
    assert found == text
    assert [found[start:end] for start, end in spans] == words.split()


def test_a_pair_is_forced_as_its_text_would_be():
    engine = TorchEngine(loaded_model())
    (forced,) = force(engine, [(["the", "cat", "sees", "a", "dog", "."], ["le", "chat", "."])])
    source, target = ([*engine.tokenizer.encode(text), EOS] for text in ("the cat sees a dog.", "le chat."))
    assert (forced.attention == engine.attention([source], [target])[0]).all()
    assert forced.source == merge_pieces(engine.tokenizer.pieces(source[:-1]))
    assert forced.target == merge_pieces(engine.tokenizer.pieces(target[:-1]))


def rates(capsys, stem, *options):
    """AER of the bundled model's links, in percent."""
    files = [f"--{side}={stem}.{end}" for side, end in (("source", "en"), ("target", "fr"), ("gold", "gold"))]
    assert main(["align", *files, *options]) == 0
    return float(capsys.readouterr().out.split()[1])


def test_the_bundled_model_links_everyday_pairs_as_its_card_says(capsys):
    stem = DATA / "everyday"
    assert rates(capsys, stem, "--plain") == pytest.approx(load_info(PRETRAINED / BUNDLED).aligning.aer, abs=0.1)
    assert rates(capsys, stem) < 3.5
    assert rates(capsys, stem, "--reverse", "fr-en") < 2.6


@pytest.mark.slow
def test_by_one_model_the_links_of_parliament_debates_are_as_good_as_a_statistical_aligners(capsys, real_data):
    stem = real_data / "alignment/hansards_dev"
    assert rates(capsys, stem) <= 9.1
    assert rates(capsys, stem, "--reverse", "fr-en") < 7


def test_the_everyday_pairs_have_links_within_their_sentences():
    sources, targets, gold = (
        (DATA / f"everyday.{kind}").read_text("utf-8").splitlines() for kind in ("en", "fr", "gold")
    )
    assert len(sources) == len(targets) == len(gold) == 62
    for source, target, line in zip(sources, targets, gold, strict=True):
        found = read_gold(line)
        assert all(i < len(source.split()) and j < len(target.split()) for i, j in found.possible)
        assert {i for i, _ in found.possible} == set(range(len(source.split()))), source
        assert {j for _, j in found.possible} == set(range(len(target.split()))), target


def test_a_no_break_space_is_part_of_a_word(folder, tmp_path, capsys):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("a\u00a0b  c\td\n", encoding="utf-8")
    target.write_text("x\u202fy z w\n", encoding="utf-8")
    assert main(["align", "--plain", "--model", str(folder), "--source", str(source), "--target", str(target)]) == 0
    links = read_links(capsys.readouterr().out)
    assert {j for _, j in links} <= {0, 1, 2}
    assert max(j for _, j in links) == 2


def test_two_directions_are_read_where_they_agree_most():
    """The forward maps align at layer 1's input step, the backward ones at layer 0's output step; noise elsewhere."""
    words = Words(list("abcd"), [[0], [1], [2], [3]])
    rng = np.random.default_rng(0)
    orders = [rng.permutation(4) for _ in range(20)]

    def maps(layer: int, step: str, order: np.ndarray) -> Forced:
        weights = rng.dirichlet(np.ones(5), size=(2, 2, 5)).astype(np.float32)
        rows = slice(0, 4) if step == "output" else slice(1, 5)
        weights[layer, :, rows] = np.eye(5)[order]
        return Forced(weights, words, words)

    forward = [maps(1, "input", order) for order in orders]
    backward = [maps(0, "output", np.argsort(order)) for order in orders]
    info = loaded_model().info
    chosen = choose_by_agreement((info, info), forward, backward)
    assert chosen == (AlignmentChoice(layer=1, step="input"), AlignmentChoice(layer=0, step="output"))


def test_a_head_that_was_taught_is_compared_as_such():
    taught = AlignmentChoice(layer=1, head=0, step="input", taught=True, aer=5.0)
    found = _choices(loaded_model().info.model_copy(update={"alignment": taught}))
    assert len(found) == 2 * 3 * 2
    assert [choice for choice in found if (choice.layer, choice.head, choice.step) == (1, 0, "input")] == [taught]
    assert sum(choice.taught for choice in found) == 1


def test_each_pair_has_its_line_of_links(folder, files, capsys):
    assert main(["align", "--plain", "--model", str(folder), *files]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(PAIRS)
    links = [read_links(line) for line in lines]
    assert {j for _, j in links[0]} == set(range(6))
    assert (5, 5) in links[0]
    assert all(i < 6 for i, _ in links[0])
    assert {j for _, j in links[1]} == {0, 1}
    assert links[2:] == [frozenset(), frozenset()]


def test_layer_head_and_step_say_which_attention_is_read(folder, files, capsys):
    engine = Translator.from_pretrained(folder).engine
    pairs = [(source.split(), target.split()) for source, target in PAIRS]
    forced = list(force(engine, pairs))
    found = set()
    for layer, head, step in [(0, None, "output"), (1, 1, "output"), (0, None, "input"), (1, 0, "input")]:
        chosen = ["--layer", str(layer), "--step", step] + (["--head", str(head)] if head is not None else [])
        assert main(["align", "--plain", "--model", str(folder), *files, *chosen]) == 0
        lines = capsys.readouterr().out
        choice = AlignmentChoice(layer=layer, head=head, step=step)
        assert [read_links(line) for line in lines.splitlines()] == [one.links(choice) for one in forced]
        found.add(lines)
    assert len(found) > 1


@pytest.fixture
def reverse(tmp_path):
    """A model of the other direction."""
    saved = saved_model(tmp_path / "reverse", seed=5)
    config = (saved / "config.json").read_text(encoding="utf-8")
    (saved / "config.json").write_text(config.replace('"en"', '"x"').replace('"fr"', '"en"').replace('"x"', '"fr"'))
    return saved


@pytest.mark.parametrize("rule", list(SYMMETRISE))
def test_links_of_the_other_direction_are_turned_round_and_joined(folder, reverse, files, capsys, rule):
    back = TorchEngine(loaded_model(seed=5))
    plain = ["align", "--plain", "--model", str(folder), *files]
    assert main([*plain, "--reverse", str(reverse), "--symmetrise", rule]) == 0
    found = [read_links(line) for line in capsys.readouterr().out.splitlines()]
    main(plain)
    forward = [read_links(line) for line in capsys.readouterr().out.splitlines()]
    turned = [(target.split(), source.split()) for source, target in PAIRS]
    backward = [frozenset((i, j) for j, i in one.links(AlignmentChoice(layer=1))) for one in force(back, turned)]
    assert found == [SYMMETRISE[rule](*both) for both in zip(forward, backward, strict=True)]


def readings(folder, pairs):
    engine = Translator.from_pretrained(folder).engine
    forced = force(engine, [(source.split(), target.split()) for source, target in pairs])
    choice = engine.info.aligning
    return [Reading(one.word_attention(choice), one.source.words, one.target.words) for one in forced]


@pytest.mark.parametrize("rule", [None, "union"])
@pytest.mark.parametrize("both", [False, True])
def test_without_plain_links_are_refined_by_all_pairs_together(folder, reverse, files, capsys, rule, both):
    backward = readings(reverse, [pair[::-1] for pair in PAIRS]) if both else None
    options = (["--reverse", str(reverse)] if both else []) + (["--symmetrise", rule] if rule else [])
    assert main(["align", "--model", str(folder), *files, *options]) == 0
    expected = refine(readings(folder, PAIRS), backward, rule or "grow-diag-final-and")
    assert [read_links(line) for line in capsys.readouterr().out.splitlines()] == expected


def test_gold_prints_the_error_rate_and_a_table_prints_all_of_them(folder, files, tmp_path, capsys):
    gold, output = tmp_path / "gold", tmp_path / "links"
    main(["align", "--plain", "--model", str(folder), *files, "--layer", "0", "--output", str(output)])
    lines = output.read_text(encoding="utf-8").splitlines()
    shifted = [" ".join(f"{i + 1}-{j + 1}" for i, j in read_links(line)) for line in lines]
    gold.write_text("".join(line + "\n" for line in shifted), encoding="utf-8")
    arguments = ["align", "--model", str(folder), *files, "--gold", str(gold)]
    assert main([*arguments, "--plain", "--layer", "0", "--output", str(output)]) == 0
    assert capsys.readouterr().out == "AER         0.0\nprecision 100.0\nrecall    100.0\n"
    assert output.read_text(encoding="utf-8").splitlines() == lines
    assert main([*arguments, "--table"]) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0] == "| layer | step | mean | head 0 | head 1 |"
    assert table[2].startswith("| 0 | output | 0.0 | ")
    assert len(table) == 2 + 2 * 2


def test_a_table_reads_a_taught_head_as_the_model_does(folder, files, tmp_path, capsys):
    """Its </s> stands for no word, so it has fewer links than the same head untaught."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    gold, rates = tmp_path / "gold", {}
    gold.write_text("1-1 2-2 3-3 4-4 5-5 6-6\n1-1\n\n\n", encoding="utf-8")
    for taught in (True, False):
        model = tmp_path / f"taught-{taught}"
        shutil.copytree(folder, model)
        config["alignment"] = {"layer": 1, "head": 0, "step": "input", "taught": taught}
        (model / "config.json").write_text(json.dumps(config), encoding="utf-8")
        arguments = ["align", "--model", str(model), *files, "--gold", str(gold)]
        assert main([*arguments, "--plain"]) == 0
        plain = capsys.readouterr().out.split()[1]
        assert main([*arguments, "--plain", "--layer", "1", "--head", "0"]) == 0
        assert capsys.readouterr().out.split()[1] == plain
        assert main([*arguments, "--table"]) == 0
        rates[taught] = plain, capsys.readouterr().out.splitlines()[-1].split(" | ")[3]
    assert rates[True][0] == rates[True][1]
    assert rates[False][0] == rates[False][1]
    assert rates[True] != rates[False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--layer", "2"], "--layer 2 is not between 0 and 1"),
        (["--layer", "-1"], "--layer -1 is not between 0 and 1"),
        (["--layer", "0", "--head", "2"], "--head 2 is not between 0 and 1"),
        (["--head", "0"], "--head needs --layer"),
        (["--table"], "--table needs --gold"),
        (["--gold", "outside"], "--gold outside, line 2: a link leads outside the 2 and 2 words of the pair"),
        (
            ["--gold", "wrong", "--table", "--step", "input"],
            "--table shows every layer, head and step: it takes no --step",
        ),
        (["--symmetrise", "union", "--plain"], "--symmetrise joins two directions: with --plain it needs --reverse"),
        (["--source", "long", "--target", "long"], "line 2 has over 1,000 words: align its sentences one by one"),
        (["--gold", "short"], "--gold short has 1 lines, --source has 4"),
        (["--gold", "wrong"], "--gold wrong, line 2: '1:2' is not a link such as 1-2 (sure) or 1p2 (possible)"),
        (["--target", "short"], "--source source has 4 lines, --target short has 1: they must be line-parallel"),
        (["--reverse", "model"], "--reverse model translates en-fr, not fr-en"),
        (["--output", "no/links"], "--output no/links: folder no does not exist"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(folder, files, tmp_path, monkeypatch, capsys, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short").write_text("1-1\n")
    (tmp_path / "wrong").write_text("1-1\n1:2\n\n\n")
    (tmp_path / "outside").write_text("1-1\n2-2 1p3\n\n\n")
    (tmp_path / "long").write_text("a b\n" + "a " * 1001 + "\n")
    arguments = ["align", "--model", "model", "--source", "source", "--target", "target", *options]
    assert main(arguments) == 1
    assert capsys.readouterr().err == f"seq2seq: {message}\n"
