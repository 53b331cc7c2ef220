"""A model folder: weights (safetensors), `config.json`, `tokenizer.model`, card. Saved whole or not at all.

No pickle is ever loaded from it; files that do not fit each other are refused by name.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import torch
from pydantic import Field, model_validator
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from seq2seq import __version__
from seq2seq.config import DecodeConfig, ModelConfig, Section, validate
from seq2seq.data.tokenizer import Tokenizer
from seq2seq.errors import UserError, first_line
from seq2seq.model import Transformer
from seq2seq.storage import replacing

FORMAT_VERSION = 1
WEIGHTS, CONFIG, TOKENIZER, CARD = "model.safetensors", "config.json", "tokenizer.model", "README.md"
CURVES = "curves.png"
FILES = (WEIGHTS, CONFIG, TOKENIZER, CARD, CURVES)  # of a model folder; the last two may be missing
PRETRAINED = Path(__file__).with_name("pretrained")
BUNDLED = "en-fr"


class AlignmentChoice(Section):
    """The cross-attention that aligns words best; head null is the mean over the layer's heads."""

    layer: int = Field(ge=0)
    head: int | None = Field(None, ge=0)
    aer: float | None = Field(None, ge=0, description="alignment error rate in percent, if measured against gold")


class ModelInfo(Section):
    """`config.json`: what is needed to run the weights."""

    format_version: int = FORMAT_VERSION
    source: str
    target: str
    model: ModelConfig
    decode: DecodeConfig = DecodeConfig()
    alignment: AlignmentChoice | None = None
    confidence: dict[str, float] | None = None

    @model_validator(mode="after")
    def _check_alignment(self) -> Self:
        layers, heads = self.model.decoder_layers, self.model.heads
        if self.alignment is not None and self.alignment.layer >= layers:
            raise ValueError(f"alignment.layer = {self.alignment.layer}, but the decoder has {layers} layers")
        if self.alignment is not None and self.alignment.head is not None and self.alignment.head >= heads:
            raise ValueError(f"alignment.head = {self.alignment.head}, but a layer has {heads} heads")
        return self


@dataclass(frozen=True)
class LoadedModel:
    """A model folder in memory; weights in float32, dropout off."""

    model: Transformer
    tokenizer: Tokenizer
    info: ModelInfo
    folder: Path | None = None  # that it was loaded from


def save_model(
    folder: Path, weights: Mapping[str, Tensor], tokenizer: Tokenizer, info: ModelInfo, card: str | None = None
) -> None:
    """Write a model folder, weights in half precision; an old folder stays until the new one is complete."""
    with replacing(folder) as temporary:
        write_model(temporary, weights, tokenizer, info, card)


def write_model(
    folder: Path, weights: Mapping[str, Tensor], tokenizer: Tokenizer, info: ModelInfo, card: str | None = None
) -> None:
    """Write the files of a model into a folder that is there."""
    half = {name: value.detach().to("cpu", torch.float16).contiguous() for name, value in weights.items()}
    (folder / WEIGHTS).write_bytes(save(half))
    (folder / TOKENIZER).write_bytes(tokenizer.model)
    (folder / CONFIG).write_text(info.model_dump_json(indent=2, exclude_none=True) + "\n", encoding="utf-8")
    if card is not None:
        (folder / CARD).write_text(card, encoding="utf-8")


def load_model(name: str | Path | None = None) -> LoadedModel:
    """Load a model folder, a bundled model by its name (default en-fr), or a hub model "owner/name[@revision]"."""
    folder = find_model(name)
    info = load_info(folder)
    tokenizer = Tokenizer.load(folder / TOKENIZER)
    model = Transformer(info.model, vocab_size=len(tokenizer), pad_id=tokenizer.pad_id)
    model.load_state_dict(load_weights(folder, model))
    return LoadedModel(model.eval().requires_grad_(False), tokenizer, info, folder)


def find_model(name: str | Path | None) -> Path:
    """The folder that a name stands for."""
    folder = Path(name) if name is not None else PRETRAINED / BUNDLED
    if folder.is_dir():
        return folder
    bundled = PRETRAINED / str(name)
    if name is not None and "/" not in str(name) and bundled.is_dir():
        return bundled
    repository, _, revision = str(name).partition("@")
    if repository.count("/") == 1 and not repository.startswith((".", "/", "~")):
        return _download(repository, revision or None)
    names = ", ".join(sorted(path.name for path in PRETRAINED.glob("*") if path.is_dir())) or "none"
    raise UserError(f"model {str(name or BUNDLED)!r} is neither a folder nor a bundled model ({names})")


def load_info(folder: Path) -> ModelInfo:
    """Read and validate `config.json`."""
    path = folder / CONFIG
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise UserError(f"{folder} is not a model folder: {CONFIG} is missing") from None
    except ValueError as error:
        raise UserError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(values, dict):
        raise UserError(f"{path} is not a JSON object")
    version = values.get("format_version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise UserError(f"{path} has format_version {version}; this release reads up to {FORMAT_VERSION}: upgrade")
    return validate(ModelInfo, values, str(path))


def load_weights(folder: Path, model: Transformer) -> dict[str, Tensor]:
    """Read the weights in float32 and hold them against the shapes that the model expects."""
    path = folder / WEIGHTS
    if not path.is_file():
        raise UserError(f"{folder} is not a model folder: {WEIGHTS} is missing")
    try:
        weights = {name: value.float() for name, value in load_file(path).items()}
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path} is damaged: {error}") from None
    expected = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    found = {name: tuple(value.shape) for name, value in weights.items()}
    wrong = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    if wrong:
        name = wrong[0]
        rule = f"{expected.get(name, 'no such weight')} by {CONFIG} and {TOKENIZER}"
        raise UserError(f"{path} does not fit: {name} is {found.get(name, 'missing')}, expected {rule}")
    return weights


def average_models(folders: list[Path], output: Path) -> None:
    """Write the mean of several models' weights (same shape and tokenizer) as a new model folder."""
    models = [load_model(folder) for folder in folders]
    first = models[0]
    for folder, other in zip(folders[1:], models[1:], strict=True):
        if other.info.model != first.info.model or other.tokenizer.model != first.tokenizer.model:
            raise UserError(f"{folder} cannot be averaged with {folders[0]}: another shape or tokenizer")
    states = [loaded.model.state_dict() for loaded in models]
    mean = {name: torch.stack([state[name] for state in states]).mean(dim=0) for name in states[0]}
    save_model(output, mean, first.tokenizer, first.info)


def copy_model(loaded: LoadedModel, folder: Path) -> None:
    """Write a loaded model as a folder of its own: the files that it was loaded from, or new ones."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists already: name a new folder")
    with replacing(folder) as temporary:
        if loaded.folder is None:
            write_model(temporary, loaded.model.state_dict(), loaded.tokenizer, loaded.info)
            return
        copy_files(loaded.folder, temporary)


def copy_files(model: Path, folder: Path) -> None:
    """Copy what a model folder may hold, and nothing else, into a folder that is there."""
    for name in FILES:
        if (model / name).is_file():
            shutil.copyfile(model / name, folder / name)


# The hub.


def push_model(
    loaded: LoadedModel, repository: str, private: bool = False, token: str | None = None, message: str | None = None
) -> str:
    """Upload the files of a model folder to the hub in one commit; returns the address of the model's page."""
    from huggingface_hub import get_token
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # exported, but not by name

    try:
        validate_repo_id(repository)
        if repository.count("/") != 1:
            raise HFValidationError("an owner is missing")
    except HFValidationError as error:
        reason = first_line(error)
        raise UserError(f'{repository!r} is not a name for the hub, as in "owner/name": {reason}') from None
    token = token or get_token()
    if not token:
        raise UserError(f"pushing {repository!r} needs a token: run `hf auth login`, set HF_TOKEN, or pass token=")
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "model"
        copy_model(loaded, folder)
        try:
            return _upload(folder, repository, private, token, message or f"Upload with seq2seq {__version__}")
        except Exception as error:  # the hub client raises many kinds
            raise UserError(f"{repository!r} cannot be pushed: {_reason(error, repository)}") from None


def _upload(folder: Path, repository: str, private: bool, token: str, message: str) -> str:
    """One commit with the files that a model folder may have, and without those that this one has not."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    api = HfApi(token=token, library_name="seq2seq", library_version=__version__)
    url = str(api.create_repo(repository, private=private, exist_ok=True))
    present = [name for name in FILES if (folder / name).is_file()]
    stale = set(FILES) & set(api.list_repo_files(repository)) - set(present)
    # Not upload_folder: it may make several commits, and between two of them the model would not fit its tokenizer.
    additions = [CommitOperationAdd(path_in_repo=name, path_or_fileobj=folder / name) for name in present]
    deletions = [CommitOperationDelete(path_in_repo=name) for name in sorted(stale)]
    api.create_commit(repository, [*additions, *deletions], commit_message=message)
    return url


def _download(repository: str, revision: str | None) -> Path:
    """The files of a hub model and nothing else, from the cache where they are there or the hub does not answer."""
    from huggingface_hub import snapshot_download

    name = f"{repository}@{revision}" if revision else repository
    try:
        return Path(snapshot_download(repository, revision=revision, allow_patterns=list(FILES)))
    except Exception as error:  # the hub client raises many kinds
        reason = _reason(error, repository)
        raise UserError(f"model {name!r} is no folder here, and the hub does not give it: {reason}") from None


def _reason(error: Exception, repository: str) -> str:
    """What the client's error means, and what to do, in one line."""
    from huggingface_hub import errors

    login = "log in with `hf auth login` or set HF_TOKEN"
    meanings = {
        errors.GatedRepoError: f"it is gated: accept its terms at https://huggingface.co/{repository}, then {login}",
        errors.RevisionNotFoundError: "there is no such revision (branch, tag or commit)",
        errors.RepositoryNotFoundError: f"there is no such model, or it is private: check the name, {login}",
        errors.LocalEntryNotFoundError: "the hub cannot be reached, and the cache does not hold it",
    }
    for kind, meaning in meanings.items():
        if isinstance(error, kind):
            return meaning
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in (401, 403):
        return f"the token does not allow it (status {status}): {login}, with a token that may write there"
    if isinstance(error, ConnectionError) or "Connect" in type(error).__name__:
        return f"the hub cannot be reached: {first_line(error)}"
    if isinstance(error, RuntimeError) and isinstance(error.__cause__, Exception):  # "error while uploading", but why?
        return f"{first_line(error)} {_reason(error.__cause__, repository)}"
    said = getattr(error, "server_message", None)
    return f"{first_line(error)} {said} (status {status})" if said else first_line(error)
