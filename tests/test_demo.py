import asyncio
import json
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import numpy as np
import pytest

from seq2seq.config import ModelConfig
from seq2seq.demo import app, build_demo, launch, translate_tab, wording
from seq2seq.demo.translate_tab import MEAN, PIECES, WORDS, Choice
from seq2seq.errors import UserError
from seq2seq.folder import AlignmentChoice, ModelInfo
from seq2seq.insight.views import as_json
from seq2seq.translation.result import Alternative, SentenceTranslation, Translation


def info(alignment=None):
    return ModelInfo(source="en", target="fr", model=ModelConfig(decoder_layers=3), alignment=alignment)


def sentence(source="Hi <b>you</b>.", alternatives=(("Salut <i>toi</i>.", -0.25),), truncated=False):
    weights = np.random.default_rng(1).dirichlet(np.ones(3), size=(3, 4, 3)).astype(np.float32)
    return SentenceTranslation(
        source=source,
        text=alternatives[0][0],
        score=alternatives[0][1],
        source_tokens=["▁Hi", "▁you", "</s>"],
        target_tokens=["▁Salut", "▁toi", "</s>"],
        source_ids=(4, 5, 3),
        target_ids=(6, 7, 3),
        alternatives=[Alternative(*pair) for pair in alternatives],
        truncated=truncated,
        weights=weights,
    )


def with_event_loop(make):
    """What `make` returns; where no event loop runs, Gradio leaves some of its own open."""

    async def call():
        return make()

    return asyncio.run(call())


def translation(*parts):
    return Translation(source="".join(part if isinstance(part, str) else part.source for part in parts), parts=[*parts])


def test_languages_have_names():
    assert wording.language("fr") == "French"
    assert wording.language("tlh") == "tlh"


def test_text_up_to_the_limit_is_taken():
    wording.check_length("x" * 5000)
    with pytest.raises(UserError, match=r"The text has 5,001 characters, this page takes 5,000\."):
        wording.check_length("x" * 5001)


def test_what_has_no_words_gets_a_friendly_line():
    assert wording.notice(translation(" \n")).startswith("Type a sentence first")
    assert "passes through" in wording.notice(translation("42 🙂"))
    assert wording.notice(translation(sentence(), " ")) == ""


def test_a_cut_translation_is_said_to_be_cut():
    assert "Cut short" in wording.notice(translation(sentence(), sentence(truncated=True)))


def test_sentences_are_numbered_and_long_ones_shortened():
    long = sentence("word " * 30)
    labels = wording.sentence_choices(translation(sentence(), " ", long))
    assert labels[0] == ("1. Hi <b>you</b>.", 0)
    assert labels[1][0].startswith("2. word word")
    assert labels[1][0].endswith("word…")
    assert len(labels[1][0]) <= 3 + wording.LABEL_CHARACTERS
    assert wording.sentence_choices(None) == []


def test_the_page_starts_where_the_model_aligns_best():
    assert translate_tab.first_choice(info()) == Choice(0, 1, MEAN, WORDS, end=False)
    best = AlignmentChoice(layer=2, head=3)
    assert translate_tab.first_choice(info(best)) == Choice(0, 2, 3, WORDS, end=False)
    assert translate_tab.first_choice(info(AlignmentChoice(layer=0))).head_or_mean is None


def test_the_choice_of_layer_and_head_is_explained():
    unmeasured = wording.describe_choice(info(), 1, None)
    assert "layer 1, mean over heads" in unmeasured
    assert "has not been measured" in unmeasured
    best = info(AlignmentChoice(layer=2, head=None, aer=31.25))
    assert "because its word links agree best" in wording.describe_choice(best, 2, None)
    assert "alignment error rate is 31.2 %" in wording.describe_choice(best, 2, None)
    other = wording.describe_choice(best, 0, 3)
    assert "Shown: **layer 0, head 3**" in other
    assert "starts with layer 2, mean over heads" in other
    by_agreement = wording.describe_choice(info(AlignmentChoice(layer=0)), 0, None)
    assert "links agree best" in by_agreement
    assert "error rate" not in by_agreement
    head = AlignmentChoice(layer=1, head=0, step="input", taught=True, aer=3.1, gold="everyday")
    taught = wording.describe_choice(info(head), 1, 0)
    assert (
        "it was taught which words belong together: its alignment error rate on the pairs “everyday” is 3.1 %" in taught
    )
    assert "the row of a word without a source is nearly empty" in taught


def test_alternatives_are_ranked_and_escaped():
    table = wording.alternatives_table(sentence(alternatives=(("<i>a</i>", -0.25), ("b", -1.5))), 0.6)
    assert "<td>1</td><td>-0.250</td><td>&lt;i&gt;a&lt;/i&gt;</td>" in table
    assert "<td>2</td><td>-1.500</td><td>b</td>" in table
    assert "log-probability / length^0.6" in table
    assert wording.alternatives_table(sentence(), 0.6) == ""


def test_the_list_of_sentences_may_be_that_of_an_older_text():
    first, second = sentence("One."), sentence("Two.")
    result = translation(first, " ", second)
    assert translate_tab.chosen_sentence(result, 1) is second
    assert translate_tab.chosen_sentence(result, 2) is first
    assert translate_tab.chosen_sentence(translation("42"), 0) is None
    assert translate_tab.chosen_sentence(None, 0) is None


@pytest.mark.parametrize(("unit", "end"), [(WORDS, False), (WORDS, True), (PIECES, False), (PIECES, True)])
def test_a_map_shows_what_the_controls_ask_for(unit, end):
    view = translate_tab.shown_view(sentence(), Choice(0, 2, 1, unit, end))
    mark = "▁" if unit == PIECES else ""
    assert view.rows == [f"{mark}Salut", f"{mark}toi", *["</s>"] * end]
    assert view.columns == [f"{mark}Hi", f"{mark}you", *["</s>"] * end]
    size = 2 + end
    np.testing.assert_allclose(view.weights, sentence().attention[2, 1, :size, :size])
    assert "layer 2, head 1: English across, French down" in translate_tab.map_html(info(), view)


def test_saved_maps_are_named_after_what_they_show():
    view = translate_tab.shown_view(sentence(), Choice(0, 1, MEAN, WORDS, end=False))
    assert translate_tab.file_name(view, "png") == "attention-layer1-mean.png"
    view = translate_tab.shown_view(sentence(), Choice(0, 1, 0, WORDS, end=False))
    assert translate_tab.file_name(view, "json") == "attention-layer1-head0.json"
    assert json.loads(as_json(view))["rows"] == ["Salut", "toi"]


def test_an_error_of_the_user_is_a_warning_and_changes_nothing():
    def refuse(text, **settings):
        raise UserError("n_best 3 is not between 1 and beam_size = 2")

    event = translate_tab._translate_event(SimpleNamespace(translate=refuse, why_unsure=None))
    with pytest.warns(UserWarning, match="n_best 3 is not between"):
        assert event("Hello", 2, 3) == gr.skip()
    with pytest.warns(UserWarning, match="this page takes 5,000"):
        assert event("x" * 5001, 2, 1) == gr.skip()


def test_a_map_that_the_server_has_forgotten_cannot_be_saved(tmp_path, capsys):
    save = translate_tab._save_event(as_json, "json", str(tmp_path))
    assert save(None, None, 0, MEAN, WORDS, False) is None
    assert "press Translate again" in capsys.readouterr().out
    path = Path(save(translation(sentence()), None, 0, MEAN, WORDS, False))
    assert path.name == "attention-layer0-mean.json"
    assert json.loads(path.read_text(encoding="utf-8"))["columns"] == ["Hi", "you"]


def test_building_the_page_starts_nothing(translator, no_net):
    demo = with_event_loop(lambda: build_demo(translator))
    assert demo.analytics_enabled is False
    assert not demo.is_running
    assert no_net == []


def test_the_head_of_the_page_loads_nothing_from_elsewhere():
    head = app.page_head()
    assert "http" not in head
    assert head.count("<script>") == head.count("<style>") == 1


def test_a_port_that_is_taken_is_one_line(translator, monkeypatch):
    def taken(*args, **settings):
        raise OSError("Cannot find empty port in range: 7860-7860")

    monkeypatch.setattr(gr.Blocks, "launch", taken)
    with pytest.raises(UserError, match=r"port 7860 on 127\.0\.0\.1 cannot be used"):
        with_event_loop(lambda: launch(translator))
