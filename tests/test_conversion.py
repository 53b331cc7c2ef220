"""A model converted for CTranslate2 as CTranslate2 itself does it, and the folder that an export writes."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from small import saved_model
from test_translator import VARIED

from seq2seq import Translator
from seq2seq.errors import UserError
from seq2seq.folder import CTRANSLATE2, PRETRAINED, load_info
from seq2seq.model.blocks import sinusoids
from seq2seq.translation import conversion
from seq2seq.translation.conversion import export
from seq2seq.translation.engine import open_engine

BUNDLED = PRETRAINED / "en-fr"


# The conversion.


def test_positions_are_those_of_the_model():
    np.testing.assert_allclose(conversion.sinusoids(300, 16), sinusoids(300, 16).numpy(), atol=1e-4)


def by_their_own_converter(folder: Path, output: Path, quantization: str) -> Path:
    """The model converted by CTranslate2's classes, as its documentation says."""
    from ctranslate2.specs import TransformerSpec

    info, weights = (
        load_info(folder),
        {name: w.astype(np.float32) for name, w in load_file(folder / "model.safetensors").items()},
    )
    spec = TransformerSpec.from_config((info.model.encoder_layers, info.model.decoder_layers), info.model.heads)
    tokenizer = open_engine(folder, "torch").tokenizer

    def linear(theirs, ours):
        theirs.weight = np.concatenate([weights[f"{name}.weight"] for name in ours])
        theirs.bias = np.concatenate([weights[f"{name}.bias"] for name in ours])

    def norm(theirs, ours):
        theirs.gamma, theirs.beta = weights[f"{ours}.weight"], weights[f"{ours}.bias"]

    def attention(theirs, ours, groups):
        norm(theirs.layer_norm, f"{ours}_norm")
        for layer, group in zip(theirs.linear, groups, strict=True):
            linear(layer, [f"{ours}.w_{letter}" for letter in group])

    for name, stack, embeddings in (
        ("encoder", spec.encoder, spec.encoder.embeddings[0]),
        ("decoder", spec.decoder, spec.decoder.embeddings),
    ):
        embeddings.weight = weights["embedding.weight"]
        stack.position_encodings.encodings = conversion.sinusoids(conversion.POSITIONS, info.model.d_model)
        norm(stack.layer_norm, f"{name}_norm")
        for index, layer in enumerate(stack.layer):
            attention(layer.self_attention, f"{name}.{index}.attention", ["qkv", "o"])
            if name == "decoder":
                attention(layer.attention, f"{name}.{index}.cross_attention", ["q", "kv", "o"])
            norm(layer.ffn.layer_norm, f"{name}.{index}.feed_forward_norm")
            linear(layer.ffn.linear_0, [f"{name}.{index}.feed_forward.w_1"])
            linear(layer.ffn.linear_1, [f"{name}.{index}.feed_forward.w_2"])
    spec.decoder.projection.weight = weights["embedding.weight"]
    pieces = tokenizer.pieces(range(len(tokenizer)))
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.validate()
    spec.optimize(quantization)
    output.mkdir()
    spec.save(str(output))
    return output


@pytest.mark.parametrize("quantization", ["float32", "int8"])
def test_the_conversion_is_that_of_ctranslate2_to_the_last_bit(tmp_path, quantization):
    import ctranslate2

    export(BUNDLED, tmp_path / "ours", quantization)
    theirs = by_their_own_converter(BUNDLED, tmp_path / "theirs", quantization)
    tokenizer = open_engine(BUNDLED, "torch").tokenizer
    sources = [[*tokenizer.pieces(ids), "</s>"] for ids in tokenizer.encode_all(VARIED)]
    found = []
    for folder in (tmp_path / "ours" / CTRANSLATE2, theirs):
        translator = ctranslate2.Translator(str(folder), inter_threads=1, intra_threads=1)
        results = translator.translate_batch(sources, beam_size=5, num_hypotheses=5, return_scores=True)
        found.append([(result.hypotheses, result.scores) for result in results])
    assert found[0] == found[1]


# What is exported.


def test_an_exported_folder_is_a_model_folder_that_both_engines_load(translator, exported):
    files = {str(path.relative_to(exported)) for path in exported.rglob("*") if path.is_file()}
    converted = {
        f"{CTRANSLATE2}/{name}" for name in ("model.bin", "config.json", "origin.sha256", "shared_vocabulary.json")
    }
    own = {"README.md", "config.json", "curves.png", "heads.json", "model.safetensors", "tokenizer.model"}
    assert files == own | converted
    expected = [result.text for result in translator.translate(VARIED, attention=False)]
    for engine in ("torch", "ctranslate2"):
        found = Translator.from_pretrained(exported, engine=engine).translate(VARIED, attention=False)
        assert [result.text for result in found] == expected


def test_int8_is_a_quarter_of_the_size_and_translates_nearly_alike(exported, fast, tmp_path):
    export(BUNDLED, tmp_path / "int8", "int8")
    sizes = [(folder / CTRANSLATE2 / "model.bin").stat().st_size for folder in (tmp_path / "int8", exported)]
    assert sizes[0] < 0.3 * sizes[1]
    small = Translator.from_pretrained(tmp_path / "int8", engine="ctranslate2")
    found, expected = (each.translate(VARIED, attention=False) for each in (small, fast))
    same = sum(ours.text == theirs.text for ours, theirs in zip(found, expected, strict=True))
    assert 0.8 * len(VARIED) < same


def test_a_copy_of_an_exported_model_is_the_model_folder(exported, tmp_path):
    Translator.from_pretrained(exported, engine="ctranslate2").save_pretrained(tmp_path / "copy")
    assert {path.name for path in (tmp_path / "copy").iterdir()} == {path.name for path in BUNDLED.iterdir()}
    assert (tmp_path / "copy/model.safetensors").read_bytes() == (BUNDLED / "model.safetensors").read_bytes()


def test_an_export_takes_no_place_and_leaves_nothing_behind_when_it_fails(tmp_path, monkeypatch):
    folder = saved_model(tmp_path / "model")
    with pytest.raises(UserError, match=r"model exists already: name a new folder$"):
        export(folder, folder)

    def full_disk(path, content):
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(OSError, match="No space left"):
        export(folder, tmp_path / "fast")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_an_unknown_quantization_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"^quantization 'int4' is not one of float32, int8$"):
        export(BUNDLED, tmp_path / "fast", "int4")
    assert not (tmp_path / "fast").exists()
