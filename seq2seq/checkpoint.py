"""A model in torch: its folder read, written whole or not at all, and averaged with others.

No pickle is ever loaded from it; files that do not fit each other are refused by name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save
from torch import Tensor

from seq2seq.data.tokenizer import Tokenizer
from seq2seq.errors import UserError
from seq2seq.folder import (
    CARD,
    TOKENIZER,
    WEIGHTS,
    ModelInfo,
    copy_folder,
    find_model,
    load_info,
    misfit,
    read_weights,
    refuse_existing,
    write_info,
)
from seq2seq.model import Transformer
from seq2seq.storage import replacing


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
    write_info(folder, info)
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


def load_weights(folder: Path, model: Transformer) -> dict[str, Tensor]:
    """Read the weights in float32 and hold them against the shapes that the model expects."""
    weights = {name: value.float() for name, value in read_weights(folder, load_file).items()}
    expected = {name: value.shape for name, value in model.state_dict().items()}
    found = {name: value.shape for name, value in weights.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise misfit(folder, name, found.get(name), expected.get(name))
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
    if loaded.folder is not None:
        copy_folder(loaded.folder, folder)
        return
    refuse_existing(folder)
    save_model(folder, loaded.model.state_dict(), loaded.tokenizer, loaded.info)
