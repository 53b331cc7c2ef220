"""Every view of the explorer, its numbers held against the model that they are read from."""

import json
import math
import re
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from small import saved_model

from seq2seq.errors import UserError
from seq2seq.insight import contexts, cost, example, geometry, masking, panels, sides, steps
from seq2seq.insight.drawing import fragment, page
from seq2seq.insight.figures import panels_png
from seq2seq.insight.gallery import VIEWS, Question, answer, explore, sources
from seq2seq.insight.recipe import STEPS, place_of
from seq2seq.insight.scene import KINDS, Scene, stage
from seq2seq.translation.translator import Translator

SENTENCE = "The bank was crowded near the river."
THIRTY = (
    "The old man who lives near the river is reading a book about the black cat that his sister saw in the garden "
    "of the big house near the station."
)


@pytest.fixture(scope="module")
def scene(translator: Translator) -> Scene:
    return stage(translator, SENTENCE)


@pytest.mark.parametrize("kind", KINDS)
def test_every_head_of_every_layer_is_recomputed_to_within_a_hundred_thousandth(scene: Scene, kind: str) -> None:
    for layer in range(len(scene.attentions(kind))):
        for head in range(scene.model.config.heads):
            found = steps.steps(scene, kind, layer, head, asking=2, answering=1)
            assert found.relative < 1e-5
            trace = scene.attentions(kind)[layer]
            for own, other in ((found.query, trace.Q), (found.scores + found.mask, trace.S), (found.weights, trace.A)):
                torch.testing.assert_close(own, other[0, head, 2], atol=1e-4, rtol=1e-4)
            torch.testing.assert_close(found.output, trace.O[0, head, 2], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_the_walk_ends_at_the_state_that_the_block_goes_on_with(scene: Scene, kind: str) -> None:
    found = steps.steps(scene, kind, 0, 0, asking=1, answering=0)
    if kind == "encoder":
        block = next(iter(scene.model.encoder))
        h = scene.inputs(kind, 0).residual
        h = h.clone()
        h[1] = found.result
        after = h + block.feed_forward(block.feed_forward_norm(h))
        torch.testing.assert_close(after[1], scene.trace.encoder_states[1][0, 1], atol=1e-3, rtol=1e-4)
    if kind == "cross":
        block = next(iter(scene.model.decoder))
        after = found.result + block.feed_forward(block.feed_forward_norm(found.result))
        torch.testing.assert_close(after, scene.trace.decoder_states[1][0, 1], atol=1e-3, rtol=1e-4)
    if kind == "decoder":
        torch.testing.assert_close(found.result, scene.inputs("cross", 0).residual[1], atol=1e-4, rtol=1e-4)


def test_without_the_division_the_row_is_sharper_and_the_output_another(scene: Scene) -> None:
    with_it = steps.steps(scene, "encoder", 2, 1, 1, 2)
    without = steps.steps(scene, "encoder", 2, 1, 1, 2, scaled=False)
    assert steps.entropy(without.weights) < steps.entropy(with_it.weights)
    assert without.distance > 1e-3
    assert float(with_it.raw[2]) == pytest.approx(8 * float(with_it.scores[2]))  # d_head 64


def test_the_mask_hides_later_pieces_in_the_walk(scene: Scene) -> None:
    found = steps.steps(scene, "decoder", 0, 0, asking=1, answering=0)
    assert found.mask.tolist()[:3] == [0.0, 0.0, -math.inf]
    assert found.weights[2:].sum() == 0


def test_entropy_is_in_bits() -> None:
    assert steps.entropy(torch.tensor([0.25, 0.25, 0.25, 0.25])) == pytest.approx(2.0)
    assert steps.entropy(torch.tensor([1.0, 0.0])) == 0


def test_a_words_embedding_is_the_same_and_its_states_part(translator: Translator) -> None:
    first, second = (stage(translator, text) for text in contexts.PAIRS["bank"])
    found = contexts.contexts(first, second, "bank")
    assert found.cosines[0] == pytest.approx(1.0, abs=1e-6)
    assert found.cosines[-1] < 0.95
    assert len(found.stages) == len(found.cosines) == 3 + translator.info.model.encoder_layers
    assert found.translations == (first.sentence.text, second.sentence.text)
    assert [len(near) for near in (*found.before, *found.after)] == [contexts.NEIGHBOURS] * 4
    assert "bank" not in [word for word, _ in found.before[0]]


def test_the_state_of_a_word_is_that_of_the_encoder(translator: Translator) -> None:
    scene = stage(translator, SENTENCE)
    again = contexts.contexts(scene, scene, "river")
    assert again.cosines == pytest.approx([1.0] * len(again.cosines), abs=1e-5)


@pytest.mark.parametrize("word", contexts.PAIRS)
def test_the_pairs_have_their_word(translator: Translator, word: str) -> None:
    first, second = contexts.PAIRS[word]
    found = answer("contexts", Question(translator, first, word=word))
    assert second in found[1].rows[1]


def test_a_word_that_is_not_there_is_named(translator: Translator) -> None:
    with pytest.raises(UserError, match="'mole' is not a word of 'The bank"):
        answer("contexts", Question(translator, SENTENCE, word="mole", beside="A mole digs."))


def test_without_a_second_sentence_a_word_is_held_against_itself_alone(translator: Translator) -> None:
    found = answer("contexts", Question(translator, SENTENCE, word="river", beside=""))
    assert found[1].rows[1][0] == "river"


def test_neighbours_of_two_spellings_have_a_column_each(translator: Translator) -> None:
    first, second = stage(translator, "The Bank is old."), stage(translator, "The bank is old.")
    found = contexts.contexts(first, second, "bank")
    assert found.cosines[0] < 0.999
    assert contexts.panels(found)[-1].head[:2] == ["before, in the first", "before, in the second"]


def test_the_projection_keeps_what_it_says(scene: Scene) -> None:
    found = geometry.geometry(scene, "encoder", 3, 0, 1)
    trace = scene.trace.encoder[3]
    vectors = torch.cat([trace.Q[0, 0, 1:2], trace.K[0, 0], trace.V[0, 0], trace.O[0, 0, 1:2]])
    places = torch.tensor([found.query, *found.keys, *found.values, found.output])
    whole = (vectors - vectors.mean(dim=0)).square().sum()
    assert found.kept == pytest.approx(float(places.square().sum() / whole), abs=1e-4)
    assert sum(found.weights) == pytest.approx(1.0, abs=1e-5)
    mixed = (torch.tensor(found.weights)[:, None] * torch.tensor(found.values)).sum(dim=0)
    np.testing.assert_allclose(mixed.numpy(), found.output, atol=1e-3)  # the output is the mean of the values
    assert len(found.words) == geometry.WORDS


def test_a_cloud_in_three_dimensions_is_kept_whole() -> None:
    vectors = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    assert geometry.principal(torch.cat([vectors, torch.zeros(20, 5)], dim=1))[2] == pytest.approx(1.0)


def test_the_chapters_example_has_its_shapes_and_one_word_is_one_row() -> None:
    found = example.example()
    shapes = {name: shape for name, shape, _ in found.shapes}
    assert shapes["E"] == (50_000, 128)
    assert (shapes["X"], shapes["Q, K, V"], shapes["S"], shapes["O"]) == ((6, 128), (6, 64), (6, 6), (6, 64))
    assert found.distance < 1e-5
    assert [round(weight, 2) for weight in found.softmax] == [0.21, 0.14, 0.47, 0.05, 0.10, 0.03]


def test_without_its_mask_a_layer_looks_ahead(scene: Scene) -> None:
    found = masking.masking(scene, 1, 0)
    assert np.triu(found.masked, k=1).max() == 0
    assert found.looks_ahead > 0.01
    np.testing.assert_allclose(found.unmasked.sum(axis=1), 1, atol=1e-5)
    assert found.honest != found.cheating
    score = sum(found.honest) / len(found.honest) ** scene.translator.info.decode.length_penalty
    assert score == pytest.approx(scene.sentence.score, abs=1e-4)


def test_only_the_chosen_layer_loses_its_mask(scene: Scene) -> None:
    tgt = torch.tensor([[scene.translator.tokenizer.bos_id, *scene.sentence.target_ids[:-1]]])
    last = len(scene.model.decoder) - 1
    with torch.inference_mode():
        _, weights = masking.decode_unmasked(scene.model, tgt, scene.trace.memory, last)
        trace = scene.trace.decoder[last]
        free = (trace.Q @ trace.K.transpose(-2, -1) / trace.Q.size(-1) ** 0.5).softmax(dim=-1)
    torch.testing.assert_close(weights, free, atol=1e-4, rtol=1e-4)  # so the layers below were as they are


def test_the_three_attentions_stand_side_by_side(scene: Scene) -> None:
    _, _, encoder, cross, decoder = sides.panels(scene, 1, None)
    np.testing.assert_allclose(encoder.weights, scene.trace.encoder[1].A[0].mean(dim=0), atol=1e-6)
    np.testing.assert_allclose(cross.weights, scene.trace.cross[1].A[0].mean(dim=0), atol=1e-6)
    np.testing.assert_allclose(decoder.weights, scene.trace.decoder[1].A[0].mean(dim=0), atol=1e-6)


def test_multiplications_are_counted_by_hand(translator: Translator) -> None:
    assert cost.attention_products(3, 5, 64) == 2 * 3 * 5 * 64
    config = translator.info.model.model_copy(
        update={"d_model": 2, "heads": 1, "d_head": 2, "ffn": 3, "decoder_layers": 1}
    )
    # with the cache: 4*2*2 projections, 2*1*4*2 prefix, 2*2*2 cross, 2*1*5*2 source, 2*2*3 feed-forward, 2*7 output
    assert cost.step_products(config, 7, prefix=4, source=5, cached=True) == 16 + 16 + 8 + 20 + 12 + 14
    # at the first step keys and values of the source are made: 2*5*2*2
    assert cost.step_products(config, 7, prefix=1, source=5, cached=True) == 16 + 4 + 8 + 20 + 12 + 14 + 40
    # without: four queries, 4 of each, and keys and values of the source anew
    assert cost.step_products(config, 7, prefix=4, source=5, cached=False) == 64 + 64 + 32 + 80 + 40 + 48 + 14


def test_cost_counts_the_sentence_at_hand_and_measures(scene: Scene) -> None:
    found = cost.cost(scene)
    place = found.lengths.index(found.own)
    heads, width = scene.model.config.heads, scene.model.config.heads * scene.model.config.head_width
    assert found.own == len(scene.sentence.source_tokens)
    assert found.products[place] == 2 * found.own**2 * width
    assert found.newest[place] == 2 * found.own * width
    assert found.table[place] == 4 * heads * found.own**2
    assert min(found.explicit + found.fused + found.cached + found.recomputed) > 0
    assert found.recomputed[-1] > found.cached[-1]


def test_the_recipe_names_places_that_are_there() -> None:
    for step in STEPS:
        path, name = place_of(step.function).split(" ")
        assert path.split(":")[0].startswith("seq2seq/")
        assert name == step.function.__qualname__
    found = answer("recipe", None)
    anchors = {panel.anchor for panel in found if isinstance(panel, panels.Code | panels.Docs)}
    linked = {cell.anchor for row in found[1].rows for cell in row if isinstance(cell, panels.Link)}
    assert linked <= anchors  # each section of docs/attention.md that a step names is there
    assert "softmax" in next(
        panel.text for panel in answer("recipe", None) if "attend" in getattr(panel, "caption", "")
    )


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_text_json_and_a_page(translator: Translator, scene: Scene, view: str) -> None:
    found = answer(view, Question(translator, SENTENCE, word="bank", kept=scene))
    assert len(panels.as_text(found).splitlines()) > 5
    values = json.loads(panels.as_json(view, SENTENCE, found))
    assert (values["view"], values["title"]) == (view, SENTENCE)
    assert len(values["panels"]) == len(found)
    html = page(VIEWS[view].title, [*found, *sources(view)]).decode()
    assert html.count("<figure") + html.count("<details") >= 1
    assert "http://" not in html.replace("http://www.w3.org", "")
    assert '"nan"' not in panels.as_json(view, SENTENCE, found).decode()


PICTURED = [view for view in VIEWS if view != "recipe"]


@pytest.mark.parametrize(
    "view",
    [view if view in ("geometry", "decoding") else pytest.param(view, marks=pytest.mark.slow) for view in PICTURED],
)
def test_every_view_with_a_picture_has_one(translator: Translator, scene: Scene, view: str) -> None:
    found = answer(view, Question(translator, SENTENCE, word="bank", kept=scene))
    assert panels_png(found, view).startswith(b"\x89PNG")


def test_a_view_of_text_alone_has_no_picture(translator: Translator) -> None:
    with pytest.raises(UserError, match="no picture"):
        panels_png(answer("recipe", Question(translator, SENTENCE)), "the recipe")


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_thirty_words_takes_less_than_a_second(translator: Translator, view: str) -> None:
    assert len(THIRTY.split()) == 30
    asked = Question(translator, THIRTY, word="river", beside="He went to the river.", kept=stage(translator, THIRTY))
    answer(view, asked)  # warm
    times = []
    for _ in range(3):
        started = time.perf_counter()
        fragment([*answer(view, asked), *sources(view)])
        times.append(time.perf_counter() - started)
    assert min(times) < 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"layer": 99}, "layer 99 is not one of"),
        ({"head": 99}, "head 99 is not one of"),
        ({"word": "zebra"}, "'zebra' is none of the pieces"),
        ({"word": "theatre"}, "'theatre' is none of the pieces"),
        ({"word": "rivers"}, "'rivers' is none of the pieces"),
        ({"word": "²"}, "'²' is none of the pieces"),
        ({"word": 99}, "piece 99 is not one of"),
        ({"text": ""}, "there is nothing to translate"),
        ({"text": "Two. Sentences."}, "is read in 2 parts"),
        ({"kind": "foo"}, "kind 'foo' is not one of encoder, decoder, cross"),
        ({"layer": "x"}, "layer 'x' is not one of 0 to 6"),
    ],
)
def test_what_is_not_there_is_named(translator: Translator, changes: dict[str, object], says: str) -> None:
    asked = {"text": SENTENCE, "word": "bank"} | changes
    with pytest.raises(UserError, match=says):
        answer("steps", Question(translator, **asked))


def test_an_unknown_view_is_named(translator: Translator) -> None:
    with pytest.raises(UserError, match="view 'nothing' is not one of encoder, decoder, cross, contexts"):
        answer("nothing", Question(translator, SENTENCE))


@pytest.mark.parametrize(
    ("word", "place"), [("bank", 1), ("▁bank", 1), ("3", 3), (4, 4), ("Crowded", 3), (None, 1), ("river", 6)]
)
def test_a_piece_is_named_by_its_text_or_its_number(scene: Scene, word: str | int | None, place: int) -> None:
    assert scene.place(word, "encoder") == place


def test_a_word_of_several_pieces_means_its_first(scene: Scene) -> None:
    word = next(
        word
        for word, pieces in zip(scene.sentence.target_words, scene.sentence._target.pieces, strict=True)
        if len(pieces) > 1
    )
    place = scene.place(word, "cross")
    assert word.startswith(scene.sentence.target_tokens[place].removeprefix("▁"))
    assert scene.place(word, "decoder") == place + 1  # where it has been read


def test_a_word_that_may_not_be_seen_is_said_to_be_hidden(scene: Scene) -> None:
    shown = steps.panels(steps.steps(scene, "decoder", 1, 0, asking=1, answering=4))[0].text
    assert "2 of 11 pieces may answer" in shown
    assert "the mask hides" in shown


def test_the_geometry_of_the_decoder_holds_what_may_be_seen(scene: Scene) -> None:
    found = geometry.geometry(scene, "decoder", 1, 0, asking=2)
    assert len(found.keys) == len(found.values) == len(found.weights) == 3
    assert sum(found.weights) == pytest.approx(1, abs=1e-5)


def test_heads_of_one_number_have_a_picture_too() -> None:
    _, axes, kept = geometry.principal(torch.tensor([[1.0], [2.0], [4.0]]))
    assert axes.shape == (1, 3)
    assert kept == pytest.approx(1)


def test_an_exhibit_says_what_it_is_of(translator: Translator) -> None:
    found = explore(translator, SENTENCE, "sides", layer=1)
    title = f"Self- and cross-attention: {SENTENCE} → {translator.translate(SENTENCE).text}"
    assert found.title == title
    assert json.loads(found.json())["title"] == title
    assert found.png().startswith(b"\x89PNG")
    assert b"docs/attention.md" in found.html()
    assert explore(translator, SENTENCE, "recipe").title == VIEWS["recipe"].title


@pytest.mark.parametrize("layer", [-1, 7])
def test_a_layer_that_no_stack_has_is_named_side_by_side(scene: Scene, layer: int) -> None:
    with pytest.raises(UserError, match=f"layer {layer} is not one of 0 to 6"):
        sides.panels(scene, layer, None)
    assert "layer 2" in sides.panels(scene, 6, None)[3].caption  # the decoder's last


@pytest.mark.parametrize("text", ['I see <b>you</b> & "him".', "THE BANK WAS CROWDED.", "- Hello, “friend”  🙂"])
@pytest.mark.parametrize("view", ["steps", "heads", "decoding"])
def test_odd_sentences_are_laid_open_as_they_are_read(translator: Translator, text: str, view: str) -> None:
    found = explore(translator, text, view)
    assert "<b>" not in fragment(found.panels)
    if view == "decoding":
        best = translator.translate(text).sentences[0]
        assert found.panels[1].rows[0][1] == pytest.approx(best.score, abs=1e-3)


def test_a_model_of_one_layer_and_one_narrow_head_is_laid_open(tmp_path: Path) -> None:
    folder = saved_model(tmp_path / "narrow", encoder_layers=1, decoder_layers=1, heads=1, d_head=1)
    model = Translator.from_pretrained(folder)
    for view in VIEWS:
        assert explore(model, "A man is reading.", view, word="man").html()


def test_a_number_of_the_query_is_shown_to_come_out_of_the_state(scene: Scene) -> None:
    found = steps.steps(scene, "encoder", 3, 1, 1, 4)
    place = int(found.query.abs().argmax())
    shown = steps.panels(found)
    vectors = next(panel for panel in shown if isinstance(panel, panels.Vectors))
    x, row, products = vectors.values
    assert (x * row) == pytest.approx(products)
    assert products.sum() + float(found.b_q[place]) == pytest.approx(float(found.query[place]), abs=1e-3)
    unscaled = steps.panels(steps.steps(scene, "encoder", 3, 1, 1, 4, scaled=False))
    assert any("that would be" in panel.text for panel in unscaled if isinstance(panel, panels.Prose))


def test_the_yardstick_of_a_word_is_its_cosine_to_the_others(translator: Translator) -> None:
    first, second = (stage(translator, text) for text in ("A bank.", "The bank is near."))
    found = contexts.contexts(first, second, "bank")
    table = translator.engine.model.embedding.weight
    bank = table[first.sentence.source_ids[1]]
    sides = [[first.sentence.source_ids[n] for n in (0, 2)], [second.sentence.source_ids[n] for n in (0, 2, 3, 4)]]
    means = [float(torch.cosine_similarity(bank[None], table[ids]).mean()) for ids in sides]
    assert found.others[0] == pytest.approx(sum(means) / 2, abs=1e-5)
    assert len(found.others) == len(found.cosines) == len(found.stages)
    assert found.cosines[0] == pytest.approx(1)
    said = contexts.panels(found)[0].text
    assert "As a yardstick" in said
    assert "did not tell them apart" in said or "became" in said


def test_no_point_leaves_the_picture_however_it_is_turned() -> None:
    points = [panels.Point("a", "key", (3.0, 4.0, 12.0)), panels.Point("b", "query", (-1.0, 0.0, 0.0))]
    places = re.findall(r'data-place="([^"]+)"', fragment([panels.Cloud("c", points)]))
    lengths = [math.hypot(*map(float, place.split())) for place in places]
    assert max(lengths) == pytest.approx(1, abs=1e-3)


def test_the_docs_are_shown_as_a_page_and_not_as_markdown() -> None:
    text = "A `word` and [code](../seq2seq/model/attention.py).\n\n| a | b |\n|---|---|\n| 1 | <i>2</i> |\n"
    html = fragment([panels.Docs("docs: x", text, "recipe-x")])
    assert "<code>word</code> and code." in html
    assert "<td>&lt;i&gt;2&lt;/i&gt;</td>" in html
    assert "href" not in html
    assert "](" not in fragment(sources("steps"))


def test_a_tree_is_nested_in_text() -> None:
    nodes = [
        panels.Node("<s>", 0, None, "0", "kept"),
        panels.Node("La", 1, 0, "-1", "kept"),
        panels.Node("Le", 1, 0, "-2", "kept"),
        panels.Node("rive", 2, 1, "-3", "finished"),
    ]
    lines = panels.as_text([panels.Tree("t", nodes)]).splitlines()
    assert [line.strip().split()[0] for line in lines[1:]] == ["<s>", "La", "rive", "Le"]
