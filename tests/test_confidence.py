"""How sure to be of a translation: evidence, rules, and every door that tells."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from fastapi.testclient import TestClient
from small import loaded_model

from seq2seq import Translator
from seq2seq.cli import main
from seq2seq.demo.sureness import sureness
from seq2seq.demo.translate_tab import translate_text
from seq2seq.errors import UserError
from seq2seq.folder import BUNDLED, PRETRAINED, ConfidenceRule
from seq2seq.service.app import create_app
from seq2seq.translation.alignment import Words
from seq2seq.translation.confidence import CALM, Judge, about_sentence, open_reverse, suspect, weigh
from seq2seq.translation.evidence import LEAST, Evidence, Pair, _Reading, _weigh_up, gather_evidence
from seq2seq.translation.result import Confidence

SENTENCE = "The old man is reading a book."
FRENCH = "Le vieil homme lit un livre."


@pytest.fixture(scope="module")
def judge(translator):
    return translator.judge


def pair(translator, source, target):
    end = translator.tokenizer.eos_id
    return Pair(*([*translator.tokenizer.encode(text), end] for text in (source, target)))


def evidence(translator, judge, target, source=SENTENCE):
    return gather_evidence(translator.engine, judge.reverse, [pair(translator, source, target)])[0]


def verdict(translator, judge, target, source=SENTENCE):
    found = evidence(translator, judge, target, source)
    suspicion = suspect(judge.rule, found)
    return weigh(judge.rule.right, about_sentence(found, suspicion)), suspicion, found


def test_evidence_is_what_the_forced_passes_say(translator, judge):
    given = pair(translator, SENTENCE, FRENCH)
    found = evidence(translator, judge, FRENCH)
    (likelihood,) = translator.engine.likelihood([given.source], [given.target])
    assert found.target.words == ["Le", "vieil", "homme", "lit", "un", "livre", "."]
    for pieces, value in zip(found.target.pieces, found.of_target["log_probability"], strict=True):
        assert value == pytest.approx(max(likelihood[pieces].sum(), LEAST), abs=1e-4)
    assert found.of_sentence["mean_log_probability"] == pytest.approx(likelihood.mean(), abs=1e-4)
    assert set(found.of_source) > {"coverage", "reverse_log_probability"}
    given_back = [
        [*judge.reverse.tokenizer.encode(text), judge.reverse.tokenizer.eos_id] for text in (FRENCH, SENTENCE)
    ]
    (back,) = judge.reverse.likelihood(*([one] for one in given_back))
    assert found.of_sentence["reverse_mean_log_probability"] == pytest.approx(back.mean(), abs=1e-4)
    assert all(len(values) == 7 for values in found.of_target.values())
    assert found.of_source["coverage"].min() >= 0
    assert found.of_source["coverage"].max() <= 1
    assert list(found.of_source["is_mark"]) == [0, 0, 0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize(("taught", "coverage"), [(True, 0.3), (False, 1.0)])
def test_what_a_taught_head_gives_the_end_is_not_made_up_for(taught, coverage):
    word = Words(["a"], [[0]])
    reading = _Reading(word, word, np.array([-0.1, -0.1]), np.array([[0.3, 0.7], [0.0, 1.0]]), taught)
    found = _weigh_up(reading, None)
    assert found.of_source["coverage"] == pytest.approx([coverage])
    assert found.of_target["attention_on_end"] == pytest.approx([0.7])


def test_without_a_reverse_model_the_evidence_of_one_is_not_there(translator):
    (found,) = gather_evidence(translator.engine, None, [pair(translator, SENTENCE, FRENCH)])
    names = {*found.of_source, *found.of_target, *found.of_sentence}
    assert not any(name.startswith("reverse") for name in names)


def test_a_pair_is_judged_alike_alone_and_among_others(translator, judge):
    pairs = [pair(translator, SENTENCE, FRENCH), pair(translator, "No.", "Non."), pair(translator, "Run!", "Cours !")]
    together = gather_evidence(translator.engine, judge.reverse, pairs)
    for one, expected in zip(pairs, together, strict=True):
        (alone,) = gather_evidence(translator.engine, judge.reverse, [one])
        for name, values in expected.of_source.items():
            np.testing.assert_allclose(alone.of_source[name], values, atol=1e-3)
        for name, values in expected.of_target.items():
            np.testing.assert_allclose(alone.of_target[name], values, atol=1e-3)
        assert alone.of_sentence == pytest.approx(expected.of_sentence, abs=1e-3)


@pytest.mark.parametrize("worse", ["Le vieil homme lit.", "L'homme lit un livre.", "Le vieil homme lit un cheval."])
def test_a_damaged_translation_is_less_surely_right(translator, judge, worse):
    assert verdict(translator, judge, FRENCH)[0] > verdict(translator, judge, worse)[0] + 0.5


def test_the_word_that_was_left_out_is_the_most_suspect(translator, judge):
    _, suspicion, found = verdict(translator, judge, "Le vieil homme lit.")
    assert found.source.words[suspicion.omitted.argmax()] == "book"
    _, suspicion, found = verdict(translator, judge, "L'homme lit un livre.")
    assert found.source.words[suspicion.omitted.argmax()] == "old"


def test_the_word_that_was_made_up_is_the_most_suspect(translator, judge):
    _, suspicion, found = verdict(translator, judge, "Le vieil homme lit un cheval.")
    assert found.target.words[suspicion.invented.argmax()] == "cheval"


def test_a_translation_is_judged_when_asked(translator):
    sure = translator.translate(SENTENCE, confidence=True).confidence
    assert 0.5 < sure.right <= 1
    assert [len(sure.omitted), len(sure.invented)] == [8, 7]
    assert max(sure.omitted + sure.invented) < 0.5
    assert translator.translate(SENTENCE).confidence is None


def test_words_with_stand_ins_put_back_each_have_their_own(translator):
    text = "Please call 0123 456 789 or write to ann.lee@example.org {name}."
    (sentence,) = translator.translate(text, confidence=True).sentences
    assert "ann.lee@example.org" in sentence.source_words  # put back where the model read a stand-in
    assert len(sentence.confidence.omitted) == len(sentence.source_words)
    assert len(sentence.confidence.invented) == len(sentence.target_words)
    assert sentence.confidence.omitted[sentence.source_words.index("ann.lee@example.org")] == 0


def test_a_term_of_the_glossary_is_not_held_against_the_translation(translator):
    text, terms = "The bank was crowded.", {"bank": "rive"}
    (sentence,) = translator.translate(text, confidence=True, glossary=terms).sentences
    assert sentence.confidence.omitted[sentence.source_words.index("bank")] == 0
    assert sentence.confidence.invented[sentence.target_words.index("rive")] == 0


def test_capitals_pages_and_other_scripts_are_judged_as_well(translator):
    (loud,) = translator.translate("THE OLD MAN IS READING A BOOK.", confidence=True).sentences
    (calm,) = translator.translate(SENTENCE, confidence=True).sentences
    assert loud.confidence.right == pytest.approx(calm.confidence.right, abs=0.1)
    page = translator.translate("<p>The <b>old</b> man is reading.</p>", confidence=True, format="html")
    assert all(one.confidence.right > 0 for one in page.sentences)
    for text in ("I love 東京。", "Réf. № 12 – “so”…", "a", "Hello"):
        for one in translator.translate(text, confidence=True).sentences:
            assert np.isfinite([one.confidence.right, *one.confidence.omitted, *one.confidence.invented]).all()


def test_a_word_without_pieces_is_beyond_suspicion(judge):
    rule = ConfidenceRule(right={}, omitted={"constant": 3.0}, invented={})
    words = Words(["a", "b"], [[0], []])
    table = {"letters": np.ones(2)}
    suspicion = suspect(rule, Evidence(words, words, table, table, {}))
    assert list(suspicion.omitted) == [3.0, CALM]
    assert list(suspicion.invented) == [CALM, CALM]  # there is no rule


def test_the_other_engine_judges_alike(translator, fast):
    (ours,), (theirs,) = (one.translate(SENTENCE, confidence=True).sentences for one in (translator, fast))
    assert theirs.confidence.right == pytest.approx(ours.confidence.right, abs=0.01)
    assert theirs.confidence.omitted == pytest.approx(ours.confidence.omitted, abs=0.01)


def test_a_rule_whose_model_is_gone_stops_no_translation(tmp_path, capsys, translator):
    folder = tmp_path / "model"
    shutil.copytree(PRETRAINED / BUNDLED, folder)
    values = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    values["confidence"]["reverse"] = "runs/lost/model"
    (folder / "config.json").write_text(json.dumps(values), encoding="utf-8")
    assert main(["translate", "--json", "--model", str(folder), "No."]) == 0
    output = capsys.readouterr()
    assert json.loads(output.out)["sentences"][0]["confidence"] is None
    assert "seq2seq: no confidence: model 'runs/lost/model' is neither a folder nor a bundled model" in output.err
    other = Translator.from_pretrained(folder)
    assert translate_text(other, "No.", 1, 1).text
    with TestClient(create_app([other])) as client:
        answer = client.post("/v1/translate", json={"text": "No.", "confidence": True})
    assert answer.status_code == 400
    assert "neither a folder nor a bundled model" in answer.json()["error"]


def test_a_model_without_a_rule_refuses(tmp_path):
    other = Translator(loaded_model())
    with pytest.raises(UserError, match=r"confidence: this model has no rule for it; docs/confidence\.md tells"):
        other.translate("the cat", confidence=True)
    assert "has no rule" in other.why_unsure


def test_weights_must_name_evidence():
    with pytest.raises(UserError, match=r"confidence: config\.json has a weight for 'luck', not one of coverage"):
        weigh({"constant": 1.0, "luck": 2.0}, {"coverage": np.ones(2)})
    assert list(weigh({"constant": 1.0, "coverage": 2.0}, {"coverage": np.array([0.0, 1.0])})) == [1.0, 3.0]


def test_a_rule_of_constants_alone_holds_for_every_word(translator):
    rule = ConfidenceRule(right={"constant": 0.0}, omitted={"constant": 0.0}, invented={"constant": 0.0})
    (sure,) = Judge(translator.engine, rule).judge(translator.translate(SENTENCE).sentences)
    assert sure == Confidence(0.5, [0.5] * 8, [0.5] * 7)


def test_the_way_back_must_be_the_way_back(translator):
    assert open_reverse(translator.engine, None) is None
    with pytest.raises(UserError, match="model 'en-fr' translates from en to fr: no way back"):
        open_reverse(translator.engine, "en-fr")


def test_every_door_tells_the_same(translator, client, capsys):
    expected = translator.translate(SENTENCE, confidence=True).confidence
    answer = client.post("/v1/translate", json={"text": SENTENCE, "confidence": True}).json()
    found = answer["sentences"][0]["confidence"]
    assert found["right"] == pytest.approx(expected.right, abs=1e-3)
    assert found["omitted"] == pytest.approx(expected.omitted, abs=1e-3)
    assert client.post("/v1/translate", json={"text": SENTENCE}).json()["sentences"][0]["confidence"] is None
    streamed = client.post("/v1/translate", json={"text": SENTENCE, "confidence": True, "stream": True}).text
    assert json.dumps(found["omitted"]) in streamed
    assert translate_text(translator, SENTENCE, 5, 1).confidence == expected
    assert main(["translate", "--json", SENTENCE]) == 0
    told = json.loads(capsys.readouterr().out)["sentences"][0]["confidence"]
    assert told["invented"] == pytest.approx(expected.invented, abs=1e-3)


def test_the_page_marks_words_in_doubt_and_nothing_else(translator):
    result = translator.translate("The <old> man is reading.", confidence=True)
    (sentence,) = result.sentences
    number = len(sentence.source_words)
    doubt = Confidence(0.25, [0.0] * (number - 2) + [0.64, 0.0], [0.7] + [0.0] * (len(sentence.target_words) - 1))
    shown = sureness(translator.info, replace(result, parts=[replace(sentence, confidence=doubt)]))
    assert "<b>25 %</b> sure that the meaning is kept</p>" in shown
    assert "&lt;old&gt; man is " in shown
    assert 'data-why="may have been left out: 64 %"' in shown
    assert shown.count("tabindex") == 2
    calm = Confidence(0.99, [0.0] * number, [0.0] * len(sentence.target_words))
    shown = sureness(translator.info, replace(result, parts=[replace(sentence, confidence=calm)]))
    assert "<b>over 95 %</b> sure" in shown
    assert "<span" not in shown
    assert "underlined" not in shown
    assert sureness(translator.info, translator.translate("42")) == ""
    two = sureness(translator.info, translator.translate("It is late. The sun is shining.", confidence=True))
    assert "<p>1. <b>" in two
    assert "<p>2. <b>" in two
