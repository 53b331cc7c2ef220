"""A model folder: written whole or not at all, read back as it was, refused by name when its files do not fit."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from small import loaded_model, model_info, shape, tokenizer

from seq2seq import folder as model_folder
from seq2seq.checkpoint import (
    LoadedModel,
    average_models,
    load_model,
    save_model,
)
from seq2seq.config import DecodeConfig
from seq2seq.errors import UserError
from seq2seq.folder import AlignmentChoice, ConfidenceRule, find_model
from seq2seq.translation.ctranslate2_engine import CTranslate2Engine


def save(folder: Path, loaded: LoadedModel) -> Path:
    save_model(folder, loaded.model.state_dict(), loaded.tokenizer, loaded.info)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model folder on disk."""
    return save(tmp_path / "model", loaded_model())


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_model_comes_back_with_its_weights_in_half_precision(folder):
    before, after = loaded_model().model.state_dict(), load_model(folder).model.state_dict()
    assert before.keys() == after.keys()
    for name, weight in before.items():
        assert after[name].dtype == torch.float32
        assert torch.equal(after[name], weight.half().float()), name


def test_a_model_comes_back_ready_to_translate(folder):
    loaded = load_model(folder)
    assert not loaded.model.training
    assert not any(weight.requires_grad for weight in loaded.model.parameters())
    assert loaded.model.pad_id == tokenizer().pad_id
    assert loaded.tokenizer.model == tokenizer().model


def test_what_config_json_says_comes_back(tmp_path):
    loaded = loaded_model()
    info = model_info(
        loaded.info.model,
        decode=DecodeConfig(beam_size=7, length_penalty=0.6),
        alignment=AlignmentChoice(layer=1, head=None, aer=21.5),
        confidence=ConfidenceRule(reverse="fr-en", right={"constant": 1.0}, omitted={}, invented={"coverage": -2.5}),
    )
    save_model(tmp_path / "model", loaded.model.state_dict(), loaded.tokenizer, info)
    assert load_model(tmp_path / "model").info == info


def test_a_model_folder_holds_exactly_these_files(tmp_path):
    loaded = loaded_model()
    save_model(tmp_path / "m", loaded.model.state_dict(), loaded.tokenizer, loaded.info, card="# A card\n")
    assert sorted(contents(tmp_path / "m")) == ["README.md", "config.json", "model.safetensors", "tokenizer.model"]
    assert (tmp_path / "m/README.md").read_text(encoding="utf-8") == "# A card\n"
    assert json.loads((tmp_path / "m/config.json").read_text(encoding="utf-8"))["format_version"] == 1


def test_unknown_files_beside_the_model_are_ignored(folder):
    (folder / "notes.txt").write_text("anything", encoding="utf-8")
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04 a pickle that nobody opens")
    assert torch.equal(load_model(folder).model.embedding.weight, loaded_model().model.embedding.weight.half().float())


# Saving.


def test_a_new_model_takes_the_place_of_the_old_one(folder):
    (folder / "left over").write_text("of the old one", encoding="utf-8")
    other = loaded_model(seed=1)
    save(folder, other)
    assert torch.equal(load_model(folder).model.embedding.weight, other.model.embedding.weight.half().float())
    assert "left over" not in contents(folder)
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_a_failure_while_saving_leaves_the_old_model_and_nothing_else(folder, monkeypatch):
    def full_disk(path, content):
        with path.open("wb") as stream:
            stream.write(content[: len(content) // 2])
        raise OSError("No space left on device")

    before = contents(folder)
    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(OSError, match="No space left"):
        save(folder, loaded_model(seed=1))
    assert contents(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


# Refusals.


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def write(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(content) and None


def configure(**changes: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")

    return change


def truncate(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-100]) and None


def reweigh(**changes: torch.Tensor | None) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors") | changes
        kept = {name: value for name, value in weights.items() if value is not None}
        save_file(kept, folder / "model.safetensors")

    return change


def other_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.model").write_bytes(tokenizer(vocab_size=300).model)


@pytest.mark.parametrize("load", [load_model, CTranslate2Engine], ids=["torch", "ctranslate2"])
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(remove("config.json"), "not a model folder: config.json is missing", id="no config"),
        pytest.param(remove("model.safetensors"), "not a model folder: model.safetensors is missing", id="no weights"),
        pytest.param(remove("tokenizer.model"), "tokenizer.model is missing", id="no tokenizer"),
        pytest.param(write("config.json", b"{"), "config.json is not valid JSON: .*line 1", id="cut JSON"),
        pytest.param(write("config.json", b"\xff\xfe"), "config.json is not valid JSON", id="no UTF-8"),
        pytest.param(write("config.json", b"[1]"), "config.json is not a JSON object", id="a JSON list"),
        pytest.param(configure(format_version=2), "format_version 2; this release reads up to 1", id="newer version"),
        pytest.param(configure(sauce="en"), "unknown setting 'sauce'; did you mean 'source'", id="unknown key"),
        pytest.param(configure(source=5), "source = 5: .*string", id="wrong type"),
        pytest.param(configure(model={"width": 3}), "unknown setting 'model.width'", id="unknown key of the model"),
        pytest.param(configure(alignment={"layer": -1}), "alignment.layer = -1", id="negative layer"),
        pytest.param(truncate("model.safetensors"), "model.safetensors is damaged", id="cut weights"),
        pytest.param(write("model.safetensors", b""), "model.safetensors is damaged", id="empty weights"),
        pytest.param(write("tokenizer.model", b"text"), "tokenizer.model is not a SentencePiece model", id="no pieces"),
        pytest.param(
            other_tokenizer,
            r"model.safetensors does not fit: embedding.weight is \(310, 16\), expected \(300, 16\)",
            id="tokenizer of another size",
        ),
        pytest.param(
            configure(model=shape(ffn=32).model_dump()),
            r"coder.0.feed_forward.w_1.\w+ is \(24,.*\), expected \(32,.*\) by config.json",
            id="other width",
        ),
        pytest.param(
            configure(model=shape(encoder_layers=1).model_dump()),
            "encoder.1.attention.w_k.bias is .*, expected no such weight",
            id="fewer layers",
        ),
        pytest.param(
            reweigh(**{"encoder_norm.bias": None}),
            r"encoder_norm.bias is missing, expected \(16,\)",
            id="missing weight",
        ),
        pytest.param(reweigh(extra=torch.zeros(3)), r"extra is \(3,\), expected no such weight", id="further weight"),
    ],
)
def test_files_that_do_not_fit_are_refused_by_name(folder, load, damage, message):
    damage(folder)
    with pytest.raises(UserError, match=message) as caught:
        load(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


# Averaging.


def test_an_average_is_the_mean_of_the_weights(tmp_path):
    models = [loaded_model(seed=seed) for seed in range(3)]
    folders = [save(tmp_path / str(seed), model) for seed, model in enumerate(models)]
    average_models(folders, tmp_path / "mean")
    mean = load_model(tmp_path / "mean")
    assert mean.info == models[0].info
    for name, weight in mean.model.state_dict().items():
        expected = sum(model.model.state_dict()[name].half().float() for model in models) / 3
        torch.testing.assert_close(weight, expected, atol=2e-3, rtol=1e-3)
        assert not torch.allclose(weight, models[0].model.state_dict()[name], atol=2e-3) or not weight.any(), name


def test_an_average_refuses_models_of_another_shape(tmp_path):
    folders = [save(tmp_path / "a", loaded_model()), save(tmp_path / "b", loaded_model(ffn=32))]
    with pytest.raises(UserError, match=r"b cannot be averaged with .*a: another shape or tokenizer"):
        average_models(folders, tmp_path / "mean")
    assert not (tmp_path / "mean").exists()


def test_an_average_refuses_models_with_another_tokenizer(tmp_path):
    first = loaded_model()
    folders = [save(tmp_path / name, first) for name in "ab"]
    (folders[1] / "tokenizer.model").write_bytes(tokenizer(kind="bpe").model)  # of the same size
    with pytest.raises(UserError, match=r"b cannot be averaged with .*a: another shape or tokenizer"):
        average_models(folders, tmp_path / "mean")


# Names.


@pytest.fixture
def bundled(tmp_path, monkeypatch) -> Path:
    """Two bundled models, seen from an empty working directory."""
    for name in ("en-fr", "fr-en"):
        (tmp_path / "pretrained" / name).mkdir(parents=True)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(model_folder, "PRETRAINED", tmp_path / "pretrained")
    return tmp_path / "pretrained"


def test_no_name_is_the_english_french_model(bundled):
    assert find_model(None) == bundled / "en-fr"


def test_a_bundled_model_is_found_by_its_name_from_anywhere(bundled):
    assert find_model("fr-en") == bundled / "fr-en"


def test_a_folder_comes_before_a_bundled_model_of_the_same_name(bundled):
    Path("fr-en").mkdir()
    assert find_model("fr-en").resolve() == Path("fr-en").resolve() != bundled / "fr-en"


@pytest.mark.parametrize("name", ["fr-de", "./owner/name", "/owner/name", "~/name", "a/b/c"])
def test_a_name_that_is_nothing_is_refused_with_the_names_there_are(bundled, name):
    with pytest.raises(UserError, match=rf"model '{name}' is neither a folder nor a bundled model \(en-fr, fr-en\)"):
        find_model(name)


def test_owner_and_name_are_fetched_from_the_hub_without_any_pickle(bundled, monkeypatch):
    asked = {}

    def snapshot(name, revision, allow_patterns):
        asked.update(name=name, patterns=allow_patterns)
        return str(bundled / "fr-en")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    assert find_model("owner/name") == bundled / "fr-en"
    assert asked["name"] == "owner/name"
    files = ["README.md", "config.json", "curves.png", "heads.json", "model.safetensors", "tokenizer.model"]
    assert sorted(asked["patterns"]) == files


def test_a_hub_that_does_not_answer_is_one_line(bundled, monkeypatch):
    def snapshot(name, revision, allow_patterns):
        raise ConnectionError("no route to host\nand a long explanation")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    with pytest.raises(UserError, match=r"model 'owner/name' is no folder here, .*: no route to host$"):
        find_model("owner/name")
