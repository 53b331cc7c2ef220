"""Guided alignment: links of words find their pieces, one head learns them, and the script that makes them."""

import math
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from small import (
    DEV,
    TRAIN,
    decoder_input,
    random_model,
    random_words,
    saved_model,
    shape,
    tiny_recipe,
    tokenizer,
    write_recipe,
    write_word_links,
)
from trainings import prepared

from seq2seq.checkpoint import load_model
from seq2seq.config import VariationConfig
from seq2seq.data.batching import collate, with_links
from seq2seq.data.encoding import EncodedPair, encode_epoch
from seq2seq.data.splits import Pair
from seq2seq.data.tokenizer import BOS, EOS, PAD, UNK
from seq2seq.errors import UserError
from seq2seq.folder import load_info
from seq2seq.training.guidance import Guide, guided_head, head_scores, link_loss, read_guide, words_of
from seq2seq.training.loop import make_batch, train
from seq2seq.training.objective import Objective, summed_loss
from seq2seq.translation.aligner import choose_by_agreement, force_texts
from seq2seq.translation.alignment import merge_pieces
from seq2seq.translation.engine import open_engine
from seq2seq.translation.link_sets import grow_diag_final_and, turn, write_links
from seq2seq.translation.torch_engine import TorchEngine

SCRIPT = Path(__file__).parents[1] / "scripts/link.py"


@pytest.fixture
def links(tmp_path):
    return write_word_links(tmp_path)


def words_linked(links, pair: EncodedPair) -> set[tuple[int, int]]:
    """Links of pieces as links (target word, source word)."""
    owner = []
    for ids in (pair.tgt, pair.src):
        pieces = merge_pieces(tokenizer().pieces(ids[:-1])).pieces
        owner.append({piece: word for word, owned in enumerate(pieces) for piece in owned})
    return {(owner[0][target], owner[1][source]) for target, source in links}


def encoded(source: str, target: str) -> EncodedPair:
    return EncodedPair(*([*tokenizer().encode(text), EOS] for text in (source, target)))


def guide_of(*row: int) -> Guide:
    """Of one pair."""
    guide = Guide()
    guide.append(row)
    return guide


# Links of words, and of the pieces that make them up.


def test_links_of_words_are_links_of_all_their_pieces():
    guide = guide_of(2, 3, 0, 1, 0, 0, 1, 2, 1, 1)
    pair = EncodedPair([5, 6, 7, EOS], [8, 9, 10, EOS])

    class Cut:
        bos_id, unk_id = BOS, UNK

        def pieces(self, ids):
            names = {5: "▁un", 6: "happy", 7: "▁cat", 8: "▁malheureux", 9: "▁ch", 10: "at."}
            return [names[index] for index in ids]

    # The target's words are "malheureux", "chat" and ".", and the last has no piece of its own.
    assert guide.piece_links(0, pair, Cut()) == [(0, 0), (0, 1), (1, 2), (2, 2)]


def test_the_mark_of_an_extra_pair_shifts_its_source():
    pair = encoded("the cat", "le chat")
    guide = guide_of(2, 2, 0, 0, 0, 0, 1, 1)
    found = guide.piece_links(0, pair, tokenizer())
    marked = guide.piece_links(0, EncodedPair([BOS, *pair.src], pair.tgt), tokenizer())
    assert found
    assert marked == [(target, source + 1) for target, source in found]


def test_links_hold_however_an_epoch_cuts_and_not_where_it_has_other_words(corpus, links):
    guide = read_guide(str(links), TRAIN)
    plain = [guide.piece_links(index, encoded(*pair), tokenizer()) for index, pair in enumerate(TRAIN)]
    assert all(plain)
    sampled = encode_epoch(TRAIN, tokenizer(), VariationConfig(sampled_pieces=1.0), 1, 0)
    assert any(one != encoded(*pair) for one, pair in zip(sampled, TRAIN, strict=True))
    for index, pair in enumerate(sampled):
        assert words_linked(guide.piece_links(index, pair, tokenizer()), pair) == words_linked(
            plain[index], encoded(*TRAIN[index])
        )
    hidden = encode_epoch(TRAIN, tokenizer(), VariationConfig(unknown_pieces=0.9), 1, 0)
    assert not any(guide.piece_links(index, hidden[index], tokenizer()) for index in range(len(TRAIN)))


def test_links_of_two_pairs_in_one_are_those_of_both(links):
    guide = read_guide(str(links), TRAIN)
    epoch = encode_epoch(TRAIN, tokenizer(), VariationConfig(joined=1.0), 1, 0)
    assert set(epoch.partners) == set(range(len(TRAIN)))
    for index, pair in enumerate(epoch):
        partner = epoch.partners[index]
        parts = [
            words_linked(guide.piece_links(n, encoded(*TRAIN[n]), tokenizer()), encoded(*TRAIN[n]))
            for n in (index, partner)
        ]
        targets, sources = (len(words_of(text).words) for text in reversed(TRAIN[index]))
        expected = parts[0] | {(target + targets, source + sources) for target, source in parts[1]}
        assert words_linked(guide.piece_links(index, pair, tokenizer(), partner), pair) == expected
        assert guide.piece_links(index, pair, tokenizer()) == []


def test_links_hold_without_the_final_marks(links):
    guide = read_guide(str(links), TRAIN)
    for index, pair in enumerate(encode_epoch(TRAIN, tokenizer(), VariationConfig(no_final_mark=1.0), 1, 0)):
        whole = encoded(*TRAIN[index])
        marks = tuple(len(words_of(text).words) - 1 for text in reversed(TRAIN[index]))
        expected = words_linked(guide.piece_links(index, whole, tokenizer()), whole) - {marks}
        assert words_linked(guide.piece_links(index, pair, tokenizer()), pair) == expected


def test_pieces_of_a_word_without_a_link_are_linked_with_the_end():
    pair = encoded("the cat", "le chat")
    found = guide_of(2, 2, 0, 0, 1, 1).piece_links(0, pair, tokenizer())
    first = merge_pieces(tokenizer().pieces(pair.tgt[:-1])).pieces[0]
    assert [link for link in found if link[0] in first] == [(piece, len(pair.src) - 1) for piece in first]
    assert guide_of(2, 2, 0, 0).piece_links(0, pair, tokenizer()) == []


def test_links_do_not_hold_where_as_many_words_are_others():
    """A name became longer by a word and the final mark went: as many words as before."""
    pair = encoded("Anna Maria sees the cat", "Anna Maria voit le chat")
    links = [number for word in range(5) for number in (word, word)]
    assert guide_of(5, 5, 0, 0, *links).piece_links(0, pair, tokenizer()) != []
    assert guide_of(5, 5, 1, 1, *links).piece_links(0, pair, tokenizer()) == []


def test_pairs_without_links_and_of_other_order_are_told_apart(links):
    guide = read_guide(str(links), [DEV[0], TRAIN[3], TRAIN[0]])
    first = read_guide(str(links), TRAIN)
    assert [guide[index] for index in range(len(guide))] == [[], first[3], first[0]]
    assert guide.piece_links(0, encoded(*DEV[0]), tokenizer()) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a\tb", "line 2: 2 columns, not source, target and links"),
        ("a\tb\t0:0", "line 2: '0:0' is not a link such as 0-2"),
        ("a b\tc\t1-1", "line 2: a link leads outside the 2 and 1 words"),
    ],
)
def test_a_faulty_file_of_links_is_named_with_its_line(tmp_path, line, message):
    path = tmp_path / "links.tsv"
    path.write_text(f"{TRAIN[0].source}\t{TRAIN[0].target}\t0-0\n{line}\n", encoding="utf-8")
    with pytest.raises(UserError, match=message):
        read_guide(str(path), TRAIN)


def test_links_of_another_corpus_are_refused(links):
    with pytest.raises(UserError, match="has links of none of the training pairs"):
        read_guide(str(links), DEV)


# The loss.


def test_the_loss_is_the_cross_entropy_of_the_rows_that_have_links():
    scores = torch.log(torch.tensor([[[0.5, 0.25, 0.25], [0.125, 0.5, 0.375], [0.2, 0.2, 0.6]]]))
    links = torch.tensor([[0, 0, 1], [0, 1, 0], [0, 1, 2]])
    assert link_loss(scores, links, "output").item() == pytest.approx(
        -math.log(0.25) - 0.5 * (math.log(0.125) + math.log(0.375))
    )
    assert link_loss(scores, links, "input").item() == pytest.approx(
        -math.log(0.5) - 0.5 * (math.log(0.2) + math.log(0.6))
    )
    assert link_loss(scores, links[:0], "input").item() == 0.0


def test_a_hidden_source_piece_costs_nothing_and_draws_nothing():
    scores = torch.tensor([[[0.0, 0.0, -math.inf]]], requires_grad=True)
    loss = link_loss(scores, torch.tensor([[0, 0, 1]]), "output")
    loss.backward()
    assert loss.item() == pytest.approx(math.log(2))
    assert torch.isfinite(scores.grad).all()


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("head", [0, 1])
def test_the_scores_are_those_of_the_trace(layer, head):
    model, src, tgt = random_model(), random_words(3, 6), decoder_input(3, 5)
    src[1, 4:] = PAD
    with head_scores(model, layer, head) as seen:
        model(src, tgt)
    expected = model.trace(src, tgt).cross[layer].S[:, head]
    torch.testing.assert_close(seen[0], expected)
    assert len(seen) == 1
    model(src, tgt)
    assert len(seen) == 1


def test_links_add_their_loss_to_that_of_the_translation():
    model = random_model(len(tokenizer()), dtype=torch.float32)
    pairs = [encoded(*pair) for pair in TRAIN[:3]]
    plain = collate(pairs, PAD, BOS)
    found = [[(0, 0)], [], [(1, 1), (1, 2)]]
    batch = with_links(plain, found)
    assert batch.links.tolist() == [[0, 0, 0], [2, 1, 1], [2, 1, 2]]
    scores = model.trace(plain.src, plain.tgt_in).cross[0].S[:, 0]
    expected = summed_loss(model, plain, 0.1) + 0.5 * link_loss(scores, batch.links, "input")
    torch.testing.assert_close(Objective(model, 0.1, 0.5)(batch), expected)
    torch.testing.assert_close(Objective(model, 0.1, 0.5)(plain), summed_loss(model, plain, 0.1))
    # Without dropout two passes agree, so that they cost what one does.
    torch.testing.assert_close(Objective(model, 0.1, 0.5, consistency=5.0)(batch), expected)


def test_every_pair_twice_is_the_batch_and_the_batch_again():
    batch = with_links(collate([encoded(*pair) for pair in TRAIN[:3]], PAD, BOS), [[(0, 0)], [], [(1, 2)]])
    twice = batch.twice()
    for name in ("src", "tgt_in", "tgt_out"):
        assert torch.equal(getattr(twice, name), torch.cat([getattr(batch, name)] * 2))
    assert twice.links.tolist() == [[0, 0, 0], [2, 1, 2], [3, 0, 0], [5, 1, 2]]


# A run.


def test_every_batch_of_a_guided_run_has_the_links_of_its_pairs(corpus, links, tmp_path):
    run = prepared(tiny_recipe(corpus, links=str(links)), tmp_path / "run")
    batch = make_batch(run, [4, 2])
    assert set(batch.links[:, 0].tolist()) == {0, 1}
    row = batch.links[batch.links[:, 0] == 1][:, 1:].tolist()
    assert [tuple(link) for link in row] == run.guide.piece_links(2, run.train[2], run.tokenizer)
    assert make_batch(prepared(tiny_recipe(corpus), tmp_path / "plain"), [4, 2]).links is None


def test_a_batch_has_the_links_of_pairs_that_are_joined(corpus, links, tmp_path):
    recipe = tiny_recipe(corpus, links=str(links)).model_copy(update={"variation": VariationConfig(joined=1.0)})
    run = prepared(recipe, tmp_path / "run")
    batch = make_batch(run, [4, 2])
    for row, index in enumerate([4, 2]):
        found = [tuple(link) for link in batch.links[batch.links[:, 0] == row][:, 1:].tolist()]
        partner = run.train.partners[index]
        assert found == run.guide.piece_links(index, run.train[index], run.tokenizer, partner) != []


def test_a_run_resumes_on_the_same_links_alone(corpus, links, tmp_path, quiet):
    recipe = tiny_recipe(corpus, links=str(links), updates=10)
    train(recipe, tmp_path / "run")
    assert load_info(tmp_path / "run/checkpoints/00000010").alignment == guided_head(recipe.model)
    links.write_text(links.read_text(encoding="utf-8").replace("\t0-0 ", "\t0-1 "), encoding="utf-8")
    with pytest.raises(UserError, match=r"^train\.links of .* has changed"):
        train(recipe, tmp_path / "run", resume=True)


def test_links_that_are_not_there_are_missed_before_anything_is_written(corpus, tmp_path):
    recipe = tiny_recipe(corpus, links=str(tmp_path / "no.tsv"))
    with pytest.raises(UserError, match=r"no\.tsv"):
        train(recipe, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_taught_head_aligns_and_is_the_models_choice(corpus, links, tmp_path, quiet):
    """On pairs that it was not trained on, where the words in question have been seen in others."""
    model = shape(d_model=32, ffn=64, encoder_layers=1, decoder_layers=2)
    values = {"updates": 250, "validate_every": 250, "guided_alignment": 1.0}
    train(tiny_recipe(corpus, model=model, links=str(links), **values), tmp_path / "run")
    loaded = load_model(tmp_path / "run/model")
    assert loaded.info.alignment == guided_head(model)
    assert loaded.info.alignment.step == "input"
    forced = list(force_texts(TorchEngine(loaded), DEV))
    found = [one.links(loaded.info.alignment) for one in forced]
    expected = []
    for source, _ in DEV:
        places = list(range(len(source.split()) + 1))
        if source.endswith("red ball."):
            places[-3:-1] = reversed(places[-3:-1])
        expected.append({(i, j) for j, i in enumerate(places)})
    right = sum(len(one & other) for one, other in zip(found, expected, strict=True))
    assert right > 0.8 * sum(map(len, expected))


# Links made by two models, and by eflomal.


def run_script(monkeypatch, *arguments: str) -> object:
    """Its exit status."""
    monkeypatch.setattr(sys, "argv", ["link", *arguments])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    return ended.value.code


def test_the_script_links_every_pair_by_both_models(corpus, tmp_path, monkeypatch, capsys):
    recipe = write_recipe(tmp_path / "tiny.toml", tiny_recipe(corpus))
    forward, reverse = saved_model(tmp_path / "forward"), saved_model(tmp_path / "reverse", seed=3)
    config = (reverse / "config.json").read_text(encoding="utf-8")
    swapped = config.replace('"en"', '"x"').replace('"fr"', '"en"').replace('"x"', '"fr"')
    output = tmp_path / "links.tsv"
    arguments = [str(recipe), "--model", str(forward), "--reverse", str(reverse), "--output", str(output)]
    assert run_script(monkeypatch, *arguments) == 1
    assert f"{reverse} translates en-fr where the data needs fr-en" in capsys.readouterr().err
    (reverse / "config.json").write_text(swapped, encoding="utf-8")
    assert run_script(monkeypatch, *arguments) == 0
    assert "54 pairs" in capsys.readouterr().err
    lines = output.read_text(encoding="utf-8").splitlines()
    assert [Pair(*line.split("\t")[:2]) for line in lines] == TRAIN
    turned = [pair[::-1] for pair in TRAIN]
    engines = open_engine(forward, "torch"), open_engine(reverse, "torch")
    both = [list(force_texts(*each, clitics_apart=True)) for each in zip(engines, (TRAIN, turned), strict=True)]
    there, back = choose_by_agreement((engines[0].info, engines[1].info), *both)
    expected = [grow_diag_final_and(a.links(there), turn(b.links(back))) for a, b in zip(*both, strict=True)]
    assert [line.split("\t")[2] for line in lines] == list(map(write_links, expected))
    assert len(read_guide(str(output), TRAIN)) == len(TRAIN)


def test_eflomal_is_given_words_in_lower_case_and_its_directions_are_joined(corpus, tmp_path, monkeypatch, capsys):
    """Whatever eflomal finds, it finds it in these lines; here every target word has the first source word."""
    given: list[list[str]] = []

    class Aligner:
        def align(self, sources, targets, forward, reverse):
            given.extend([sources, targets])
            for path in (forward, reverse):
                lines = [" ".join(f"0-{j}" for j in range(len(line.split()))) for line in targets]
                Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="ascii")

    recipe = write_recipe(tmp_path / "tiny.toml", tiny_recipe(corpus))
    output = tmp_path / "links.tsv"
    monkeypatch.setitem(sys.modules, "eflomal", SimpleNamespace(Aligner=Aligner))
    assert run_script(monkeypatch, str(recipe), "--eflomal", "--output", str(output)) == 0
    assert "54 pairs" in capsys.readouterr().err
    assert given[0] == [" ".join(words_of(source).words).lower() for source, _ in TRAIN]
    guide = read_guide(str(output), TRAIN)
    assert guide.linked == len(TRAIN)
    assert guide[0][4:] == [number for j in range(len(words_of(TRAIN[0].target).words)) for number in (0, j)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give either --model and --reverse, or --eflomal"),
        (("--model", "en-fr"), "give either --model and --reverse, or --eflomal"),
        (("--eflomal", "--reverse", "fr-en"), "give either --model and --reverse, or --eflomal"),
        (("--eflomal",), "eflomal is not installed: pip install eflomal"),
    ],
)
def test_the_script_says_what_it_needs(arguments, message, corpus, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "eflomal", None)  # as if it were not installed
    recipe = write_recipe(tmp_path / "tiny.toml", tiny_recipe(corpus))
    assert run_script(monkeypatch, str(recipe), *arguments, "--output", str(tmp_path / "links.tsv")) == 1
    assert message in capsys.readouterr().err
