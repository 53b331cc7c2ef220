"""What a model folder is: its files, its `config.json`, and the names by which it is found. No weights are read here.

So it needs no torch, and a translator that runs without torch starts without it.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Self, TypeVar

from pydantic import Field, model_validator
from safetensors import SafetensorError

from seq2seq import hub
from seq2seq.config import DecodeConfig, ModelConfig, Section, validate
from seq2seq.errors import UserError
from seq2seq.storage import obstacle, replacing, write_file

FORMAT_VERSION = 1
WEIGHTS, CONFIG, TOKENIZER, CARD = "model.safetensors", "config.json", "tokenizer.model", "README.md"
CURVES, HEADS = "curves.png", "heads.json"
FILES = (WEIGHTS, CONFIG, TOKENIZER, CARD, CURVES, HEADS)  # of a model folder; the last three may be missing
CTRANSLATE2 = "ctranslate2"  # folder within an exported model folder: the same model for that engine
ORIGIN = "origin.sha256"  # in it: the fingerprint of the model that it was made from
PRETRAINED = Path(__file__).with_name("pretrained")
BUNDLED = "en-fr"

Weight = TypeVar("Weight")


class AlignmentChoice(Section):
    """The cross-attention that aligns words best; head null is the mean over the layer's heads."""

    layer: int = Field(ge=0)
    head: int | None = Field(None, ge=0)
    step: Literal["output", "input"] = Field("output", description="where a target word is predicted, or has been read")
    taught: bool = Field(False, description="by links (train.links); looks at </s> for a word without a source")
    aer: float | None = Field(None, ge=0, description="alignment error rate in percent, if measured against gold")
    gold: str | None = Field(None, description="name of the pairs with gold links on which it was measured")

    def said(self) -> str:
        """What is read, in words."""
        head = "mean over heads" if self.head is None else f"head {self.head}"
        return f"layer {self.layer}, {head}, {self.step} step"


class ConfidenceRule(Section):
    """Weights of logistic combinations of evidence about a translation, by its name: see translation/confidence.py."""

    reverse: str | None = Field(None, description="model of the other direction that is asked, too")
    right: dict[str, float] = Field(description="the sentence is right")
    omitted: dict[str, float] = Field(description="a source word has been left out")
    invented: dict[str, float] = Field(description="a target word has no source")


class ModelInfo(Section):
    """`config.json`: what is needed to run the weights."""

    format_version: int = FORMAT_VERSION
    source: str
    target: str
    model: ModelConfig
    decode: DecodeConfig = DecodeConfig()
    alignment: AlignmentChoice | None = None
    confidence: ConfidenceRule | None = None

    @property
    def aligning(self) -> AlignmentChoice:
        """The cross-attention that is read as word links: the one on record, else the mean of the middle layer."""
        return self.alignment or AlignmentChoice(layer=self.model.decoder_layers // 2)

    def alignment_at(self, layer: int, head: int | None, step: Literal["output", "input"]) -> AlignmentChoice:
        """The cross-attention at a place, to be read as links: the model's own choice if that is it, else untaught."""
        own = self.aligning
        found = AlignmentChoice(layer=layer, head=head, step=step)
        return own if (own.layer, own.head, own.step) == (layer, head, step) else found

    @model_validator(mode="after")
    def _check_alignment(self) -> Self:
        layers, heads = self.model.decoder_layers, self.model.heads
        if self.alignment is not None and self.alignment.layer >= layers:
            raise ValueError(f"alignment.layer = {self.alignment.layer}, but the decoder has {layers} layers")
        if self.alignment is not None and self.alignment.head is not None and self.alignment.head >= heads:
            raise ValueError(f"alignment.head = {self.alignment.head}, but a layer has {heads} heads")
        return self


def find_model(name: str | Path | None) -> Path:
    """The folder that a name stands for."""
    folder = Path(name) if name is not None else PRETRAINED / BUNDLED
    if folder.is_dir():
        return folder
    if name is not None and (own := bundled(str(name))):
        return own
    repository, _, revision = str(name).partition("@")
    if repository.count("/") == 1 and not repository.startswith((".", "/", "~")):
        return hub.download(repository, revision or None, FILES)
    names = ", ".join(sorted(path.name for path in PRETRAINED.glob("*") if path.is_dir())) or "none"
    raise UserError(f"model {str(name or BUNDLED)!r} is neither a folder nor a bundled model ({names})")


def bundled(name: str) -> Path | None:
    """The folder of a model that comes with the package."""
    folder = PRETRAINED / name
    return folder if name and not name.startswith(".") and "/" not in name and folder.is_dir() else None


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


def write_info(folder: Path, info: ModelInfo) -> None:
    """Write `config.json`; an old one stays until the new one is complete."""
    write_file(folder / CONFIG, [(info.model_dump_json(indent=2, exclude_none=True) + "\n").encode()])


def read_weights(folder: Path, load: Callable[[Path], dict[str, Weight]]) -> dict[str, Weight]:
    """The weights by name, as one of safetensors' loaders gives them."""
    path = folder / WEIGHTS
    if not path.is_file():
        raise UserError(f"{folder} is not a model folder: {WEIGHTS} is missing")
    try:
        return load(path)
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path} is damaged: {error}") from None


def misfit(folder: Path, name: str, found: Sequence[int] | None, expected: Sequence[int] | None) -> UserError:
    """A weight that has another shape than expected; None where there is, or should be, no such weight."""
    shape = "missing" if found is None else tuple(found)
    rule = "no such weight" if expected is None else tuple(expected)
    return UserError(f"{folder / WEIGHTS} does not fit: {name} is {shape}, expected {rule} by {CONFIG} and {TOKENIZER}")


def fingerprint(folder: Path, info: ModelInfo) -> str:
    """SHA-256 of a model folder's weights and of the shape that they are read in."""
    digest = hashlib.sha256((folder / WEIGHTS).read_bytes())
    digest.update(info.model.model_dump_json().encode())
    return digest.hexdigest()


def refuse_existing(folder: Path) -> None:
    """A model is written as a new folder: refuse one that holds something, before any work is done."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists already: name a new folder")
    if found := obstacle(folder):
        raise UserError(f"{folder} cannot be made: {found} is not a folder")


def copy_folder(model: Path, folder: Path) -> None:
    """Copy what a model folder may hold as a new folder."""
    refuse_existing(folder)
    with replacing(folder) as temporary:
        copy_files(model, temporary)


def copy_files(model: Path, folder: Path) -> None:
    """Copy what a model folder may hold, and nothing else, into a folder that is there."""
    for name in FILES:
        if (model / name).is_file():
            shutil.copyfile(model / name, folder / name)
