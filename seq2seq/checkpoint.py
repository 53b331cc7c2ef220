"""A model folder: weights (safetensors), `config.json`, `tokenizer.model`, card. Saved whole or not at all.

No pickle is ever loaded from it; files that do not fit each other are refused by name.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch
from pydantic import Field, model_validator
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from seq2seq.config import DecodeConfig, ModelConfig, Section, validate
from seq2seq.data.tokenizer import Tokenizer
from seq2seq.errors import UserError
from seq2seq.model import Transformer
from seq2seq.storage import replacing

FORMAT_VERSION = 1
WEIGHTS, CONFIG, TOKENIZER, CARD = "model.safetensors", "config.json", "tokenizer.model", "README.md"
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


def save_model(
    folder: Path, weights: Mapping[str, Tensor], tokenizer: Tokenizer, info: ModelInfo, card: str | None = None
) -> None:
    """Write a model folder, weights in half precision; an old folder stays until the new one is complete."""
    with replacing(folder) as temporary:
        half = {name: value.detach().to("cpu", torch.float16).contiguous() for name, value in weights.items()}
        save_file(half, temporary / WEIGHTS)
        (temporary / WEIGHTS).chmod(0o644)  # safetensors writes for the owner alone; a model is to be shared
        (temporary / TOKENIZER).write_bytes(tokenizer.model)
        (temporary / CONFIG).write_text(info.model_dump_json(indent=2, exclude_none=True) + "\n", encoding="utf-8")
        if card is not None:
            (temporary / CARD).write_text(card, encoding="utf-8")


def load_model(name: str | Path | None = None) -> LoadedModel:
    """Load a model folder, a bundled model by its name (default en-fr), or a hub model "owner/name"."""
    folder = find_model(name)
    info = load_info(folder)
    tokenizer = Tokenizer.load(folder / TOKENIZER)
    model = Transformer(info.model, vocab_size=len(tokenizer), pad_id=tokenizer.pad_id)
    model.load_state_dict(load_weights(folder, model))
    return LoadedModel(model.eval().requires_grad_(False), tokenizer, info)


def find_model(name: str | Path | None) -> Path:
    """The folder that a name stands for."""
    folder = Path(name) if name is not None else PRETRAINED / BUNDLED
    if folder.is_dir():
        return folder
    bundled = PRETRAINED / str(name)
    if name is not None and "/" not in str(name) and bundled.is_dir():
        return bundled
    if str(name).count("/") == 1 and not str(name).startswith((".", "/", "~")):
        return _download(str(name))
    names = ", ".join(sorted(path.name for path in PRETRAINED.glob("*") if path.is_dir())) or "none"
    raise UserError(f"model {str(name or BUNDLED)!r} is neither a folder nor a bundled model ({names})")


def _download(name: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=[WEIGHTS, CONFIG, TOKENIZER, CARD]))
    except Exception as error:  # the hub client raises many kinds
        reason = str(error).strip().split("\n")[0]
        raise UserError(f"model {name!r} is no folder here, and the hub does not give it: {reason}") from None


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
