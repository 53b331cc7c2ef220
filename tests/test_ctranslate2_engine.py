"""CTranslate2 as engine: the same translations as torch in every field, without torch; what it refuses."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from small import PAIRS, saved_model, source_ids
from test_translator import VARIED

from seq2seq import Translator
from seq2seq.config import DecodeConfig
from seq2seq.errors import UserError
from seq2seq.folder import CTRANSLATE2, PRETRAINED
from seq2seq.translation import ctranslate2_engine
from seq2seq.translation.conversion import export
from seq2seq.translation.ctranslate2_engine import CTranslate2Engine
from seq2seq.translation.engine import open_engine

BUNDLED = PRETRAINED / "en-fr"
SOURCES = source_ids(PAIRS[::5])


# The same as torch.


@pytest.mark.parametrize("beam_size", [1, 5])
def test_both_engines_give_the_same_in_every_field(translator, fast, beam_size):
    options = {"beam_size": beam_size, "n_best": min(3, beam_size)}
    for ours, theirs in zip(fast.translate(VARIED, **options), translator.translate(VARIED, **options), strict=True):
        assert ours.text == theirs.text
        assert ours.truncated == theirs.truncated
        [one], [other] = ours.sentences, theirs.sentences
        for name in ("source", "text", "source_tokens", "target_tokens", "source_ids", "target_ids", "aligning"):
            assert getattr(one, name) == getattr(other, name), name
        assert one.score == pytest.approx(other.score, abs=1e-3)
        assert [each.text for each in one.alternatives] == [each.text for each in other.alternatives]
        assert [each.score for each in one.alternatives] == pytest.approx(
            [each.score for each in other.alternatives], abs=1e-3
        )
        np.testing.assert_allclose(one.attention, other.attention, atol=1e-5)
        assert one.alignment == other.alignment


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize(
    "shape", [{}, {"d_head": 5}, {"heads": 1, "d_head": 20, "encoder_layers": 1, "decoder_layers": 3}]
)
def test_a_model_of_any_shape_is_searched_alike(tmp_path, shape, beam_size, alpha):
    folder = saved_model(tmp_path / "model", **shape)
    found, expected = (open_engine(folder, name).search(SOURCES, beam_size, alpha) for name in ("ctranslate2", "torch"))
    assert len({hypotheses[0].tokens for hypotheses in expected}) > 5
    for ours, theirs in zip(found, expected, strict=True):
        assert ours[0].tokens == theirs[0].tokens
        assert ours[0].truncated == theirs[0].truncated
        assert ours[0].log_probability == pytest.approx(theirs[0].log_probability, abs=1e-3)
        assert ours[0].score == pytest.approx(theirs[0].score, abs=1e-3)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_every_sentence_keeps_to_its_own_length_limit_and_says_so(tmp_path, beam_size):
    folder = saved_model(tmp_path / "model", decode=DecodeConfig(max_length_ratio=0.5))
    sources = [source[start:] for start, source in enumerate(SOURCES)]
    engine = open_engine(folder, "ctranslate2")
    limits = [engine.limit(source) for source in sources]
    assert len(set(limits)) > 3
    found, expected = engine.search(sources, beam_size, 1.0), open_engine(folder, "torch").search(sources, beam_size, 1)
    cut = 0
    for ours, theirs, limit in zip(found, expected, limits, strict=True):
        assert [hypothesis.score for hypothesis in ours] == sorted((each.score for each in ours), reverse=True)
        assert all(hypothesis.tokens.count(engine.tokenizer.eos_id) == 1 for hypothesis in ours)
        assert all(len(hypothesis.tokens) <= limit for hypothesis in ours)
        assert (ours[0].tokens, ours[0].truncated) == (theirs[0].tokens, theirs[0].truncated)
        assert ours[0].score == pytest.approx(theirs[0].score, abs=1e-3)
        cut += ours[0].truncated
    assert cut > 3


def test_what_the_limit_would_not_have_cut_is_not_called_truncated(fast, monkeypatch):
    [whole] = fast.engine.search([source := [*fast.tokenizer.encode("Close the window, please."), 3]], 1, 1.0)[0]
    for limit, truncated in ((len(whole.tokens), False), (len(whole.tokens) - 1, True)):
        monkeypatch.setattr(CTranslate2Engine, "limit", lambda self, source, limit=limit: limit)
        [found] = fast.engine.search([source], 1, 1.0)[0]
        assert len(found.tokens) == limit
        assert found.truncated == truncated
    assert fast.engine.search([], 5, 1.0) == []


def test_a_sentence_is_the_same_alone_and_in_a_batch(fast):
    together = fast.translate(VARIED, attention=False)
    assert [each.text for each in together] == [fast.translate(text, attention=False).text for text in VARIED]


def test_threads_share_the_engine(fast):
    expected = [result.text for result in fast.translate(VARIED, attention=False)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda text: fast.translate(text, attention=False).text, VARIED * 3))
    assert found == expected * 3


@pytest.mark.parametrize("total", [1, 7, 1023, 1025, 4096, 100_000])
@pytest.mark.parametrize("processors", [1, 2, 64])
def test_batches_are_within_the_budget_and_no_processor_waits(fast, monkeypatch, processors, total):
    monkeypatch.setattr(fast.engine, "processors", processors)
    size = fast.engine._batch_tokens(total)
    assert 1 <= size <= ctranslate2_engine.BATCH_TOKENS
    assert total / size > min(processors, total) / 2


def test_a_precision_is_asked_for_as_the_model_is_loaded(exported, tmp_path):
    export(BUNDLED, tmp_path / "int8", "int8")
    small = Translator.from_pretrained(tmp_path / "int8", "ctranslate2")
    asked = Translator.from_pretrained(exported, "ctranslate2", "int8")
    texts = [small.translate(VARIED, attention=False), asked.translate(VARIED, attention=False)]
    assert [one.text for one in texts[0]] == [one.text for one in texts[1]]


# What is opened, and what is refused.


def test_an_export_without_weights_beside_it_still_translates(tmp_path):
    model = saved_model(tmp_path / "model")
    export(model, tmp_path / "fast")
    (tmp_path / "fast/model.safetensors").unlink()
    found = open_engine(tmp_path / "fast", "ctranslate2").search(SOURCES, 1, 1.0)
    assert found == open_engine(model, "ctranslate2").search(SOURCES, 1, 1.0)


def test_an_export_beside_other_weights_is_refused(tmp_path):
    export(saved_model(tmp_path / "first"), tmp_path / "fast")
    saved_model(tmp_path / "second", seed=1)
    (tmp_path / "fast/model.safetensors").write_bytes((tmp_path / "second/model.safetensors").read_bytes())
    with pytest.raises(UserError, match=r"was made from another model\.safetensors or config\.json: export"):
        open_engine(tmp_path / "fast", "ctranslate2")


def test_an_export_beside_another_shape_is_refused(tmp_path):
    export(saved_model(tmp_path / "model"), tmp_path / "fast")
    path = tmp_path / "fast/config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    settings["model"]["heads"] = 1
    path.write_text(json.dumps(settings), encoding="utf-8")
    with pytest.raises(UserError, match=r"was made from another model\.safetensors or config\.json: export"):
        open_engine(tmp_path / "fast", "ctranslate2")


def cut(name: str) -> object:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-500])


def other_vocabulary(folder: Path) -> None:
    path = folder / CTRANSLATE2 / "shared_vocabulary.json"
    pieces = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps([*pieces[:-1], "another"]), encoding="utf-8")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(cut("ctranslate2/model.bin"), "ctranslate2 is damaged: .*: export the model again", id="weights"),
        pytest.param(cut("ctranslate2/shared_vocabulary.json"), "ctranslate2 is damaged", id="vocabulary"),
        pytest.param(
            lambda folder: (folder / CTRANSLATE2 / "model.bin").unlink(), "is damaged: .*model.bin", id="none"
        ),
        pytest.param(other_vocabulary, r"shared_vocabulary.json does not fit tokenizer.model: export", id="other"),
    ],
)
def test_a_damaged_export_is_one_line(tmp_path, damage, message):
    folder = tmp_path / "fast"
    export(saved_model(tmp_path / "model"), folder)
    damage(folder)
    with pytest.raises(UserError, match=message) as caught:
        Translator.from_pretrained(folder, engine="ctranslate2")
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_ctranslate2_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(UserError, match=r'^engine "ctranslate2" is not installed: pip install "seq2seq\[fast\]"$'):
        Translator.from_pretrained(engine="ctranslate2")


@pytest.mark.parametrize(
    ("engine", "precision", "known"), [("torch", "int8", "float32, bfloat16"), ("ctranslate2", "half", "float32, int8")]
)
def test_a_precision_that_an_engine_lacks_is_refused(engine, precision, known):
    with pytest.raises(UserError, match=rf"^precision '{precision}' is not one of {known}, which {engine} has$"):
        open_engine(None, engine, precision)


# Without torch.


QUICK = """
import sys
from seq2seq.cli import main
assert main(["translate", *sys.argv[1:], "--engine", "ctranslate2", "The old man is reading a book."]) == 0
print(sorted({"torch", "numpy", "gradio", "datasets", "huggingface_hub"} & set(sys.modules)))
from seq2seq import Translator
print(Translator.from_pretrained(engine="ctranslate2").translate("Nobody came.").attention.shape[:2])
print("torch" in sys.modules)
"""


def run(*arguments: str) -> list[str]:
    command = [sys.executable, "-W", "error", "-c", QUICK, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_an_exported_model_is_run_without_torch_and_numpy_and_torch_can_still_come(translator, exported):
    expected = translator.translate("The old man is reading a book.").text
    assert run("--model", str(exported)) == [expected, "[]", "(3, 4)", "True"]


def test_an_ordinary_model_is_converted_without_torch(translator):
    assert run() == [translator.translate("The old man is reading a book.").text, "['numpy']", "(3, 4)", "True"]


def test_opening_a_model_leaves_torch_its_threads(exported):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        Translator.from_pretrained(exported, "ctranslate2")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
