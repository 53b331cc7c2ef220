"""The search as it is watched: the same search, and what becomes of it when a word is forced or forbidden."""

from typing import Any

import pytest

from seq2seq.errors import UserError
from seq2seq.insight.decoding import Edits, decoding, panels, read_edits, tree_of
from seq2seq.insight.gallery import Question, answer, explore
from seq2seq.insight.scene import Scene, stage
from seq2seq.translation.translator import Translator

SENTENCE = "The bank was crowded near the river."


@pytest.fixture(scope="module")
def scene(translator: Translator) -> Scene:
    return stage(translator, SENTENCE)


@pytest.mark.parametrize("beam_size", [1, 2, 5])
def test_the_watched_search_finds_what_the_translator_finds(
    translator: Translator, scene: Scene, beam_size: int
) -> None:
    found = decoding(scene, beam_size)
    result = translator.translate(SENTENCE, beam_size=beam_size, n_best=beam_size)
    assert found.texts[0] == result.text
    assert found.hypotheses[0].score == pytest.approx(result.sentences[0].score, abs=1e-4)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_the_tree_holds_every_finished_translation(translator: Translator, scene: Scene, beam_size: int) -> None:
    found = decoding(scene, beam_size)
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
    assert float(best.note.split()[0]) == pytest.approx(found.hypotheses[0].log_probability, abs=0.01)


def test_every_node_but_the_root_continues_one_of_the_step_before(scene: Scene) -> None:
    nodes = decoding(scene, 4).nodes
    assert nodes[0].parent is None
    for node in nodes[1:]:
        parent = nodes[node.parent]
        assert parent.step == node.step - 1
        assert parent.state == "kept"
        assert float(node.note.split()[0]) <= float(parent.note) + 0.01  # a log-probability only falls
    assert {node.state for node in nodes} == {"kept", "finished", "dropped"}


def test_a_forbidden_word_is_not_begun_at_that_step(scene: Scene) -> None:
    tokenizer = scene.translator.tokenizer
    (piece,) = tokenizer.encode("La")
    other = decoding(scene, 4, read_edits(tokenizer, None, "0=La"))
    assert all(hypothesis.tokens[0] != piece for hypothesis in other.hypotheses)
    assert piece in {hypothesis.tokens[0] for hypothesis in decoding(scene, 4).hypotheses}


def test_forced_words_are_written_at_their_steps_and_the_search_goes_on(scene: Scene) -> None:
    tokenizer = scene.translator.tokenizer
    found = decoding(scene, 4, read_edits(tokenizer, "1=rive, 3=très", "0=Le, 0=L"))
    for hypothesis in found.hypotheses:
        pieces = tokenizer.pieces(hypothesis.tokens)
        assert "".join(pieces[1:4]) == "▁rive▁très"
    assert found.hypotheses[0].log_probability < decoding(scene, 4).hypotheses[0].log_probability


def test_a_word_of_several_pieces_is_forced_whole(scene: Scene) -> None:
    word = "Hippopotames"
    assert len(scene.translator.tokenizer.encode(word)) > 1
    found = decoding(scene, 3, read_edits(scene.translator.tokenizer, f"0={word}", None))
    assert all(text.startswith(word) for text in found.texts)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_an_end_that_the_length_limit_forces_is_in_the_tree(
    scene: Scene, beam_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(scene.translator.engine), "limit", lambda self, source: 4)
    found = decoding(scene, beam_size)
    ends = [node for node in found.nodes if node.state == "finished"]
    assert len(ends) == len(found.hypotheses)
    assert all(node.label == "</s>" and node.step <= 4 for node in ends)
    assert "(cut short)" in panels(found)[1].rows[0][-1]


def test_a_tree_of_nothing_is_its_root(translator: Translator) -> None:
    assert [node.label for node in tree_of([], [], translator.tokenizer, 3)] == ["<s>"]


def test_a_search_can_be_shown_up_to_a_step(scene: Scene) -> None:
    found = decoding(scene, 3)
    tree, _, cache, lines, _ = panels(found, until=2)
    assert max(node.step for node in tree.nodes) == 2
    assert len(cache.rows) == len(lines.x) == 2
    assert max(node.step for node in panels(found)[0].nodes) > 5


def test_the_cache_grows_and_saves_more_with_every_step(scene: Scene) -> None:
    found = decoding(scene, 2)
    saved = [without / with_cache for with_cache, without in found.products[1:]]
    assert saved == sorted(saved)
    assert len(found.products) == len(found.pieces) == len(found.cached)
    config = scene.model.config
    width = config.heads * config.head_width
    assert found.cached[2] == 3 * 2 * 4 * width * config.decoder_layers  # three pieces, K and V, four bytes


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"beam_size": 11}, "beam size 11 is not one of 1 to 10"),
        ({"beam_size": 0}, "beam size 0 is not one of 1 to 10"),
        ({"until": 0}, "until 0 must be at least 1"),
        ({"force": "rive"}, "'rive' must read step=word, as in 1=rive"),
        ({"force": "-1=rive"}, "'-1=rive' must read step=word"),
        ({"forbid": "1="}, "'1=' must read step=word"),
        ({"force": "1=rive, 1=lac"}, "two words are forced at step 1"),
        ({"force": "99=rive"}, r"step 100 \(of “99=rive”\) is not one of 0 to"),
        ({"forbid": "22=rive"}, r"step 22 \(of “22=rive”\) was not reached"),
        ({"force": "0=La", "forbid": "0=La"}, "no translation is left"),
        ({"force": "0=La", "forbid": "0=La", "beam_size": 1}, "no translation is left"),
        ({"text": ""}, "there is nothing to translate in this text"),
        ({"text": "42"}, "there is nothing to translate in this text"),
    ],
)
def test_what_cannot_be_drawn_or_done_is_said(translator: Translator, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        answer("decoding", Question(translator, **({"text": SENTENCE} | changes)))


def test_where_everything_is_forbidden_it_is_said(scene: Scene) -> None:
    everything = frozenset(range(len(scene.translator.tokenizer)))
    with pytest.raises(UserError, match="no translation is left"):
        decoding(scene, 2, Edits(forbidden={0: everything}))


def test_the_end_can_be_forced_and_what_was_forced_or_forbidden_is_said(scene: Scene) -> None:
    tokenizer = scene.translator.tokenizer
    found = decoding(scene, 3, read_edits(tokenizer, "3=</s>", None))
    assert {len(one.tokens) for one in found.hypotheses} == {4}
    assert all(one.tokens[-1] == tokenizer.eos_id for one in found.hypotheses)
    assert all(node.note.endswith("forced") == (node.step == 4) for node in found.nodes)
    forbidden = decoding(scene, 3, read_edits(tokenizer, None, "0=La"))
    assert panels(forbidden)[0].text.startswith("Forbidden: “▁La” at step 0.")


def test_the_title_says_that_the_translation_is_the_unedited_one(scene: Scene, translator: Translator) -> None:
    asked = {"kept": scene, "beam_size": 3}
    edited = explore(translator, scene.sentence.source, "decoding", force="1=rive", **asked)
    assert edited.title.endswith("(before any word was forced or forbidden)")
    assert explore(translator, scene.sentence.source, "decoding", **asked).title.endswith(scene.sentence.text)
