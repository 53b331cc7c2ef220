"""The survey of heads: what each does, and what is lost without it."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from seq2seq.data.splits import Example
from seq2seq.errors import UserError
from seq2seq.evaluation import score_subset
from seq2seq.folder import BUNDLED, HEADS, PRETRAINED
from seq2seq.insight.heads import HeadFacts, load_survey, panels, statistics, survey, survey_panels, without_head
from seq2seq.insight.scene import attention_of, stage
from seq2seq.translation.translator import Translator

SENTENCES = [
    Example("The old man is reading a book.", ("Le vieil homme lit un livre.",)),
    Example("She likes the black cat.", ("Elle aime le chat noir.",)),
]


@pytest.fixture
def own(tmp_path: Path) -> Translator:
    """The bundled model in a folder that may be written to."""
    shutil.copytree(PRETRAINED / BUNDLED, tmp_path / "model")
    return Translator.from_pretrained(tmp_path / "model")


def test_statistics_are_means_over_queries(translator: Translator) -> None:
    scenes = [stage(translator, example.source) for example in SENTENCES]
    facts = statistics(translator, [scene.sentence for scene in scenes])
    config = translator.info.model
    assert len(facts) == (config.encoder_layers + 2 * config.decoder_layers) * config.heads
    fact = next(one for one in facts if (one.kind, one.layer, one.head) == ("encoder", 2, 1))
    rows = [row for scene in scenes for row in scene.trace.encoder[2].A[0, 1]]
    assert fact.entropy == pytest.approx(np.mean([-(row * row.log2()).sum() for row in rows]), abs=1e-3)
    marks = [float(row[-1]) for row in rows]
    assert fact.mark == pytest.approx(np.mean(marks), abs=1e-3)
    before = [
        float(row[place - 1]) if place else 0.0
        for scene in scenes
        for place, row in enumerate(scene.trace.encoder[2].A[0, 1])
    ]
    assert fact.previous == pytest.approx(np.mean(before), abs=1e-3)


def test_no_decoder_head_looks_at_the_next_position(translator: Translator) -> None:
    facts = statistics(translator, [stage(translator, SENTENCES[0].source).sentence])
    assert {fact.next for fact in facts if fact.kind == "decoder"} == {0.0}


def test_the_head_that_aligns_agrees_with_the_links(translator: Translator) -> None:
    facts = statistics(translator, [stage(translator, example.source).sentence for example in SENTENCES])
    cross = [fact for fact in facts if fact.kind == "cross"]
    assert all(fact.agreement is not None for fact in cross)
    assert max(fact.agreement for fact in cross) > 0.5
    assert all(fact.agreement is None for fact in facts if fact.kind != "cross")


def test_a_head_is_taken_out_and_put_back(translator: Translator) -> None:
    attention = attention_of(translator.model, "encoder", 0)
    scene = stage(translator, SENTENCES[0].source)
    kept = attention.w_o.weight.clone()
    with without_head(attention, 2):
        without = attention.project(scene.trace.encoder[0].O)
    assert torch.equal(attention.w_o.weight, kept)
    silent = scene.trace.encoder[0].O.clone()
    silent[:, 2] = 0
    torch.testing.assert_close(without, attention.project(silent))
    assert not torch.allclose(without, attention.project(scene.trace.encoder[0].O))


def test_a_survey_is_kept_with_the_model_and_holds_for_these_weights_only(own: Translator) -> None:
    found = survey(own, SENTENCES, "two sentences", lambda facts: facts[:2])
    folder = own.engine.folder
    (folder / HEADS).write_text(found.model_dump_json(), encoding="utf-8")
    assert load_survey(own) == found
    values = json.loads((folder / HEADS).read_text())
    (folder / HEADS).write_text(json.dumps(values | {"model": "of other weights"}), encoding="utf-8")
    assert load_survey(own) is None
    (folder / HEADS).write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match=r"heads\.json cannot be read"):
        load_survey(own)


def test_bleu_is_that_of_the_model_less_that_without_the_head(own: Translator) -> None:
    sources = [example.source for example in SENTENCES]
    references = [example.references for example in SENTENCES]

    def bleu() -> float:
        return score_subset([result.text for result in own.translate(sources, beam_size=1)], references).bleu

    def cross(facts: list[HeadFacts]) -> list[HeadFacts]:
        return [fact for fact in facts if fact.kind == "cross" and fact.layer == 1]

    found = survey(own, SENTENCES, "two sentences", cross)
    assert found.bleu == pytest.approx(bleu(), abs=0.01)
    for fact in found.heads:
        with without_head(attention_of(own.model, fact.kind, fact.layer), fact.head):
            assert fact.bleu_lost == pytest.approx(found.bleu - bleu(), abs=0.02)


def test_the_survey_of_the_bundled_model_is_of_its_weights(translator: Translator) -> None:
    found = load_survey(translator)
    assert found is not None, "scripts/heads.py has not been run for the bundled model"
    table = survey_panels(found)[2]
    config = translator.info.model
    assert len(table.rows) == (config.encoder_layers + 2 * config.decoder_layers) * config.heads
    assert found.sentences > 2000
    assert max(fact.bleu_lost for fact in found.heads) > 1
    assert len(panels(stage(translator, SENTENCES[0].source), found)) == 6
