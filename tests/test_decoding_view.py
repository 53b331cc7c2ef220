"""The search as it is watched: the same search, and what becomes of it when a word is forced or forbidden."""

import pytest

from seq2seq.errors import UserError
from seq2seq.insight.decoding import Edits, Watched, decoding, forbid_word, force_word, panels, stepper_of
from seq2seq.insight.gallery import Question, answer
from seq2seq.translation.translator import Translator

SENTENCE = "The bank was crowded near the river."


@pytest.mark.parametrize("beam_size", [1, 2, 5])
def test_the_watched_search_finds_what_the_translator_finds(translator: Translator, beam_size: int) -> None:
    found = decoding(translator, SENTENCE, beam_size)
    result = translator.translate(SENTENCE, beam_size=beam_size, n_best=beam_size)
    assert found.texts[0] == result.text
    assert found.hypotheses[0].score == pytest.approx(result.sentences[0].score, abs=1e-4)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_the_tree_holds_every_finished_translation(translator: Translator, beam_size: int) -> None:
    found = decoding(translator, SENTENCE, beam_size)
    ends = [node for node in found.nodes if node.state == "finished"]
    assert len(ends) == len(found.hypotheses)
    spelled = set()
    for node in ends:
        pieces, at = [], node
        while at.parent is not None:
            pieces.append(at.label)
            at = found.nodes[at.parent]
        spelled.add(tuple(reversed(pieces)))
    tokenizer = translator.tokenizer
    assert spelled == {tuple(tokenizer.pieces(hypothesis.tokens)) for hypothesis in found.hypotheses}
    best = next(node for node in ends if node.step == len(found.hypotheses[0].tokens))
    assert float(best.note) == pytest.approx(found.hypotheses[0].log_probability, abs=0.01)


def test_every_node_but_the_root_continues_one_of_the_step_before(translator: Translator) -> None:
    nodes = decoding(translator, SENTENCE, 4).nodes
    assert nodes[0].parent is None
    for node in nodes[1:]:
        parent = nodes[node.parent]
        assert parent.step == node.step - 1
        assert parent.state == "kept"
        assert float(node.note) <= float(parent.note) + 0.01  # a log-probability only falls
    assert {node.state for node in nodes} == {"kept", "finished", "dropped"}


def test_a_forbidden_word_is_not_written_at_that_step(translator: Translator) -> None:
    plain = decoding(translator, SENTENCE, 4)
    assert plain.texts[0].startswith("La banque")
    (piece,) = translator.tokenizer.encode("La")
    other = decoding(translator, SENTENCE, 4, forbid_word(translator.tokenizer, "La", 0))
    assert all(hypothesis.tokens[0] != piece for hypothesis in other.hypotheses)
    assert piece in {hypothesis.tokens[0] for hypothesis in plain.hypotheses}


def test_a_forced_word_is_written_at_that_step_and_the_search_goes_on(translator: Translator) -> None:
    tokenizer = translator.tokenizer
    found = decoding(translator, SENTENCE, 4, force_word(tokenizer, "rive", 1))
    assert all(text.split()[1].startswith("rive") for text in found.texts)
    assert found.hypotheses[0].log_probability < decoding(translator, SENTENCE, 4).hypotheses[0].log_probability
    again = stepper_of(translator, [*tokenizer.encode(SENTENCE), tokenizer.eos_id])
    assert Watched(again, 3).steps == []


def test_a_word_of_several_pieces_is_forced_whole(translator: Translator) -> None:
    word = "Hippopotames"
    pieces = translator.tokenizer.encode(word)
    assert len(pieces) > 1
    found = decoding(translator, SENTENCE, 3, force_word(translator.tokenizer, word, 0))
    assert all(text.startswith(word) for text in found.texts)


def test_a_tree_can_be_shown_up_to_a_step(translator: Translator) -> None:
    found = decoding(translator, SENTENCE, 3)
    assert max(node.step for node in panels(found, until=2)[0].nodes) == 2
    assert max(node.step for node in panels(found)[0].nodes) > 5


def test_the_cache_saves_more_with_every_step(translator: Translator) -> None:
    found = decoding(translator, SENTENCE, 2)
    ratios = [without / with_cache for with_cache, without in found.saved]
    assert ratios == sorted(ratios)
    assert len(ratios) == len(found.pieces)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"beam_size": 11}, "beam size 11 is not one of 1 to 10"),
        ({"force": "a", "forbid": "b"}, "not both"),
        ({"force": " "}, "' ' is no word"),
        ({"forbid": ""}, "'' is no word"),
    ],
)
def test_what_cannot_be_drawn_or_done_is_said(translator: Translator, changes: dict[str, object], says: str) -> None:
    with pytest.raises(UserError, match=says):
        answer("decoding", Question(translator, SENTENCE, **changes))


def test_where_everything_is_forbidden_it_is_said(translator: Translator) -> None:
    everything = frozenset(range(len(translator.tokenizer)))
    with pytest.raises(UserError, match="no translation is left"):
        decoding(translator, SENTENCE, 2, Edits(forbidden={0: everything}))
