"""Sharing: a model goes to a hub and comes back through the real client; nothing but localhost is asked."""

import os
from pathlib import Path

import huggingface_hub
import pytest
import torch
from hub import TOKEN, Hub, running_hub
from huggingface_hub import constants
from small import loaded_model

from seq2seq import Translator
from seq2seq.checkpoint import load_model, save_model
from seq2seq.errors import UserError
from seq2seq.folder import find_model

NAME = "ada/toy-en-fr"
MODEL_FILES = ["README.md", "config.json", "curves.png", "model.safetensors", "tokenizer.model"]

# The client hands its HTTP library a file in a way that this library means to drop.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")


def point_to(monkeypatch, url):
    """What HF_ENDPOINT, which the client reads when it is imported, would do."""
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub that the client takes for the real one, an empty cache, and a token."""
    with running_hub() as running:
        point_to(monkeypatch, running.url)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)  # weights go by LFS
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.chdir(tmp_path)
        yield running
    huggingface_hub.close_session()


def save(folder: Path, seed: int = 0, curves: bytes | None = b"\x89PNG a picture") -> Path:
    loaded = loaded_model(seed)
    save_model(folder, loaded.model.state_dict(), loaded.tokenizer, loaded.info, card=f"---\nseed: {seed}\n---\n")
    if curves:
        (folder / "curves.png").write_bytes(curves)
    return folder


@pytest.fixture
def folder(tmp_path):
    """A model folder with a file that is none of the model's."""
    folder = save(tmp_path / "model")
    (folder / "notes.txt").write_text("not to be shared", encoding="utf-8")
    (folder / "optimizer.pt").write_bytes(b"\x80\x04 a pickle")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_a_model_comes_back_from_the_hub_as_it_was_pushed(hub, folder):
    url = Translator.from_pretrained(folder).push_to_hub(NAME)
    assert url == f"{hub.url}/{NAME}"
    back = load_model(NAME)
    assert contents(back.folder) == {name: contents(folder)[name] for name in MODEL_FILES}
    ours = load_model(folder).model.state_dict()
    assert all(torch.equal(ours[name], weight) for name, weight in back.model.state_dict().items())
    text = "the old king sees a dog."
    theirs, mine = (Translator.from_pretrained(name).translate(text) for name in (NAME, folder))
    assert (theirs.text, theirs.score) == (mine.text, mine.score)


def test_exactly_the_models_files_are_pushed_in_one_commit(hub, folder):
    Translator.from_pretrained(folder).push_to_hub(NAME, private=True, message="The first one")
    assert [sorted(files) for _, files in hub.commits[NAME]] == [[".gitattributes"], [".gitattributes", *MODEL_FILES]]
    assert hub.messages == ["The first one"]
    assert hub.private == {NAME: True}
    assert list(hub.large.values()) == [(folder / "model.safetensors").read_bytes()]


def test_pushing_again_replaces_the_files_and_takes_away_what_the_model_no_longer_has(hub, folder, tmp_path):
    Translator.from_pretrained(folder).push_to_hub(NAME)
    hub.commit(NAME, hub.files(NAME)[1] | {"LICENSE": b"of the owner"})
    other = save(tmp_path / "other", seed=1, curves=None)
    Translator.from_pretrained(other).push_to_hub(NAME)
    assert hub.files(NAME)[1] == contents(other) | {
        ".gitattributes": b"*.safetensors filter=lfs\n",
        "LICENSE": b"of the owner",
    }
    assert len(hub.commits[NAME]) == 4
    assert hub.private == {NAME: False}


def test_a_model_that_was_never_saved_can_be_pushed(hub):
    Translator(loaded_model()).push_to_hub(NAME)
    assert sorted(hub.files(NAME)[1]) == [".gitattributes", "config.json", "model.safetensors", "tokenizer.model"]
    expected = loaded_model().model.embedding.weight.half().float()
    assert torch.equal(load_model(NAME).model.embedding.weight, expected)


def test_a_revision_is_a_branch_or_a_commit(hub, folder, tmp_path):
    Translator.from_pretrained(folder).push_to_hub(NAME)
    first = hub.files(NAME)[0]
    Translator.from_pretrained(save(tmp_path / "other", seed=1)).push_to_hub(NAME)
    for revision, seed in ((first, 0), ("main", 1)):
        assert (find_model(f"{NAME}@{revision}") / "README.md").read_text() == f"---\nseed: {seed}\n---\n"
    with pytest.raises(UserError, match=rf"model '{NAME}@v9' is no folder here, .*: there is no such revision"):
        find_model(f"{NAME}@v9")


def test_only_the_models_files_are_ever_fetched(hub, folder):
    hub.commit(NAME, contents(folder) | {"pytorch_model.bin": b"\x80\x04 a pickle", "sub/config.json": b"{}"})
    assert sorted(contents(load_model(NAME).folder)) == MODEL_FILES
    assert not any(name in request for request in hub.requests for name in ("pytorch_model", "optimizer", "sub/"))


def test_a_model_in_the_cache_needs_no_net(hub, folder, monkeypatch):
    hub.commit(NAME, contents(folder))
    fetched = find_model(NAME)
    asked = len(hub.requests)
    with monkeypatch.context() as offline:
        offline.setattr(constants, "HF_HUB_OFFLINE", True)
        huggingface_hub.close_session()  # the client's session reads the setting once
        assert find_model(NAME) == fetched
        assert len(hub.requests) == asked
        with pytest.raises(UserError, match=r"model 'ada/other' .*cannot be reached, and the cache does not hold it$"):
            find_model("ada/other")
    huggingface_hub.close_session()
    point_to(monkeypatch, "http://127.0.0.1:9")  # nobody listens
    assert find_model(NAME) == fetched
    assert Translator.from_pretrained(NAME).translate("the cat sees the bread.").text


@pytest.mark.parametrize("name", ["toy", "a/b/c", "ada/", "/toy", "ada/to y", "ada/to--y", "ada/toy.git", "a/t@1", ""])
def test_a_bad_name_is_refused_before_the_hub_is_asked(hub, name):
    with pytest.raises(UserError, match='is not a name for the hub, as in "owner/name"') as caught:
        Translator(loaded_model()).push_to_hub(name)
    assert repr(name) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert hub.requests == []


def test_without_a_token_the_hub_is_not_asked(hub, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.delenv("HUGGING_FACE_HUB_TOKEN", raising=False)
    with pytest.raises(UserError, match=rf"^pushing '{NAME}' needs a token: run `hf auth login`, set HF_TOKEN"):
        Translator(loaded_model()).push_to_hub(NAME)
    assert hub.requests == []


def test_a_token_that_is_given_is_the_one_used(hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_another")
    with pytest.raises(UserError, match=r"the token does not allow it \(status 401\)"):
        Translator(loaded_model()).push_to_hub(NAME)
    Translator(loaded_model()).push_to_hub(NAME, token=TOKEN)
    assert NAME in hub.commits


@pytest.mark.parametrize(
    ("refusal", "says"),
    [
        ((403, "Forbidden"), r"the token does not allow it \(status 403\)"),
        ((404, "RepoNotFound"), "there is no such model, or it is private: check the name, log in with"),
        ((400, "Odd"), r"Bad request: Odd \(status 400\)$"),
    ],
)
def test_a_push_that_the_hub_refuses_is_one_line(hub, refusal, says):
    hub.refusal = refusal
    with pytest.raises(UserError, match=rf"^'{NAME}' cannot be pushed: .*{says}") as caught:
        Translator(loaded_model()).push_to_hub(NAME)
    assert "\n" not in str(caught.value)


def test_a_push_without_net_is_one_line(hub, monkeypatch):
    point_to(monkeypatch, "http://127.0.0.1:9")
    with pytest.raises(UserError, match=rf"^'{NAME}' cannot be pushed: the hub cannot be reached: ") as caught:
        Translator(loaded_model()).push_to_hub(NAME)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("refusal", "says"),
    [
        (None, "there is no such model, or it is private"),
        ((403, "GatedRepo"), f"it is gated: accept its terms at https://huggingface.co/{NAME}"),
        ((500, "Down"), "the hub cannot be reached, and the cache does not hold it"),
    ],
)
def test_a_model_that_the_hub_does_not_give_is_one_line(hub: Hub, refusal, says):
    hub.refusal = refusal
    with pytest.raises(UserError, match=rf"^model '{NAME}' is no folder here, and the hub .*: {says}") as caught:
        Translator.from_pretrained(NAME)
    assert "\n" not in str(caught.value)


# A copy of one's own.


def test_a_saved_copy_holds_the_files_that_the_model_was_loaded_from(folder, tmp_path):
    Translator.from_pretrained(folder).save_pretrained(tmp_path / "copy")
    assert contents(tmp_path / "copy") == {name: contents(folder)[name] for name in MODEL_FILES}


def test_a_model_in_memory_is_saved_as_one_that_loads(tmp_path):
    Translator(loaded_model()).save_pretrained(tmp_path / "copy")
    assert torch.equal(
        load_model(tmp_path / "copy").model.embedding.weight, loaded_model().model.embedding.weight.half().float()
    )


def test_a_copy_never_takes_the_place_of_anything(folder, tmp_path):
    (tmp_path / "file").write_text("kept", encoding="utf-8")
    for taken in (folder, tmp_path / "file", tmp_path):
        with pytest.raises(UserError, match="exists already: name a new folder"):
            Translator.from_pretrained(folder).save_pretrained(taken)
    assert "notes.txt" in os.listdir(folder)  # noqa: PTH208
    (tmp_path / "empty").mkdir()
    Translator.from_pretrained(folder).save_pretrained(tmp_path / "empty")
    assert sorted(contents(tmp_path / "empty")) == MODEL_FILES
