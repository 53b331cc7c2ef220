"""A beam in an order that a model of the other direction has a say in."""

import json
from dataclasses import replace

import numpy as np
import pytest

from seq2seq import Translator
from seq2seq.cli import main
from seq2seq.errors import UserError
from seq2seq.folder import BUNDLED
from seq2seq.translation.engine import open_engine
from seq2seq.translation.reranking import WEIGHT, Reranked

TEXTS = ["The old man is reading a book.", "We missed the last train.", "No."]


@pytest.fixture(scope="module")
def reverse():
    return open_engine("fr-en", "torch")


@pytest.fixture
def sources(translator):
    return [[*translator.tokenizer.encode(text), translator.tokenizer.eos_id] for text in TEXTS]


def look_back(translator, reverse, text, hypothesis):
    """Log-probability a piece of a source, alone, given a translation."""
    french = translator.tokenizer.decode(list(hypothesis.tokens[:-1]))
    ids = [[*reverse.tokenizer.encode(side), reverse.tokenizer.eos_id] for side in (french, text)]
    (found,) = reverse.likelihood([ids[0]], [ids[1]])
    return found.mean()


@pytest.mark.parametrize("weight", [0.0, WEIGHT, 100.0])
def test_both_directions_decide(translator, reverse, sources, weight):
    plain = translator.engine.search(sources, 5, 1.0)
    found = Reranked(translator.engine, reverse, weight).search(sources, 5, 1.0)
    for text, own, reranked in zip(TEXTS, plain, found, strict=True):
        assert sorted(one.tokens for one in reranked) == sorted(one.tokens for one in own)
        together = [one.score + weight * look_back(translator, reverse, text, one) for one in reranked]
        assert together == sorted(together, reverse=True)
        scores = {one.tokens: one.score for one in own}
        assert all(one.score == pytest.approx(scores[one.tokens], abs=1e-5) for one in reranked)
    if not weight:
        assert [[one.tokens for one in beam] for beam in found] == [[one.tokens for one in beam] for beam in plain]


def test_the_fast_engine_is_reranked_alike(translator, fast, reverse, sources):
    found = [Reranked(one.engine, reverse).search(sources, 5, 1.0) for one in (translator, fast)]
    assert [beam[0].tokens for beam in found[0]] == [beam[0].tokens for beam in found[1]]


def test_in_all_else_it_is_the_first_model(translator, reverse, sources, tmp_path):
    engine = Reranked(translator.engine, reverse)
    assert (engine.info, engine.tokenizer, engine.model) == (translator.info, translator.tokenizer, translator.model)
    (weights,), (expected,) = (one.attention(sources[:1], sources[:1]) for one in (engine, translator.engine))
    assert np.array_equal(weights, expected)
    engine.save(tmp_path / "saved")
    assert json.loads((tmp_path / "saved/config.json").read_text(encoding="utf-8"))["source"] == "en"


def test_python_and_the_command_line_rerank_alike(capsys):
    result = Translator.from_pretrained(rerank="fr-en").translate(TEXTS[1], glossary={"train": "tram"})
    assert "tram" in result.text
    assert main(["translate", "--rerank", "fr-en", TEXTS[0]]) == 0
    assert capsys.readouterr().out == Translator.from_pretrained(rerank="fr-en").translate(TEXTS[0]).text + "\n"


def test_a_model_of_the_same_direction_is_refused(translator, capsys):
    with pytest.raises(UserError, match="translates en-fr: to rerank takes one of fr-en"):
        Reranked(translator.engine, translator.engine)
    assert main(["translate", "--rerank", BUNDLED, TEXTS[0]]) == 1
    assert "to rerank takes one of fr-en" in capsys.readouterr().err


def test_an_empty_beam_stays_empty(translator, reverse):
    engine = Reranked(translator.engine, reverse)
    assert engine.search([], 3, 1.0) == []
    hypothesis = replace(translator.engine.search([[translator.tokenizer.eos_id]], 1, 1.0)[0][0])
    assert engine._ordered([hypothesis], [0.0]) == [hypothesis]
