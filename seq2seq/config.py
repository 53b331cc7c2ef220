"""Every setting of a recipe, typed and validated.

A recipe is one TOML file with the sections ``[model] [tokenizer] [data] [variation] [train] [decode]``. Nothing is
guessed: an unknown key or a value of the wrong type is refused at load, with the nearest valid name.
"""

import difflib
import tomllib
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from seq2seq.errors import UserError


class Section(BaseModel):
    """A section of a recipe: immutable, strict about types, closed to unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


AnySection = TypeVar("AnySection", bound=Section)


class ModelConfig(Section):
    """Shape of the Transformer (Vaswani et al. 2017, section 3; pre-norm)."""

    d_model: int = Field(256, ge=2, description="width of the residual stream")
    heads: int = Field(4, ge=1, description="attention heads of every attention layer")
    d_head: int | None = Field(None, ge=1, description="width of one head; d_model / heads if not given")
    ffn: int = Field(1024, ge=1, description="inner width of the feed-forward layers")
    encoder_layers: int = Field(4, ge=1, description="encoder blocks")
    decoder_layers: int = Field(4, ge=1, description="decoder blocks")
    dropout: float = Field(0.1, ge=0, lt=1, description="dropout on embeddings and on every sublayer's output")

    @model_validator(mode="after")
    def _check_widths(self) -> Self:
        if self.d_model % 2:
            raise ValueError(f"d_model = {self.d_model} must be even (sinusoidal positions pair their dimensions)")
        if self.d_head is None and self.d_model % self.heads:
            raise ValueError(f"d_model = {self.d_model} is not divisible by heads = {self.heads}; set d_head")
        return self

    @property
    def head_width(self) -> int:
        """K, the width of one head."""
        return self.d_head if self.d_head is not None else self.d_model // self.heads


class TokenizerConfig(Section):
    """SentencePiece, one joint vocabulary for both languages."""

    vocab_size: int = Field(8000, ge=300, description="pieces, with 4 special and 256 byte pieces")
    kind: Literal["unigram", "bpe"] = Field("unigram", description="SentencePiece model type")
    character_coverage: float = Field(0.9998, gt=0, le=1, description="share of characters with a piece of their own")


class DataConfig(Section):
    """Where the sentence pairs come from, and what cleaning drops from the training split."""

    dataset: str = Field(
        "files", description="sample, tatoeba, multi30k, files (forms: docs/own-data.md), or hub:OWNER/NAME"
    )
    source: str = Field("en", min_length=1, description="source language code")
    target: str = Field("fr", min_length=1, description="target language code")
    subset: str | None = Field(None, min_length=1, description="configuration name of a hub dataset")
    train: list[str] = Field(
        [], description="dataset = files: [source, target] or one .tsv, .csv, .jsonl, .parquet, .tmx; also .gz"
    )
    dev: list[str] = Field([], description="as train; without it the split rule of docs/data.md decides")
    test: list[str] = Field([], description="as train; without it the split rule of docs/data.md decides")
    extra: list[str] = Field(
        [], description="further training pairs: sample, tatoeba, multi30k, or one file of pairs in a form of train"
    )
    mark_extra: bool = Field(False, description="begin the source of extra pairs with <s>: tagged, so told apart")
    repeat: int = Field(1, ge=1, description="times that an epoch goes through the corpus's own training pairs")
    max_words: int = Field(100, ge=1, description="training pairs with a longer side are dropped")
    max_ratio: float = Field(4.0, ge=1, description="training pairs whose lengths differ by more are dropped")
    drop_copies: bool = Field(True, description="drop training pairs whose sides are equal")

    @model_validator(mode="after")
    def _check_files(self) -> Self:
        if self.dataset != "files" and (self.train or self.dev or self.test):
            raise ValueError(f"data.train, dev and test name files, but data.dataset is {self.dataset!r}, not 'files'")
        return self


class VariationConfig(Section):
    """How training pairs vary from epoch to epoch, each a share from 0 to 1; 0 is never."""

    lower_case: float = Field(0.0, ge=0, le=1, description="of sources typed in lower case throughout")
    no_final_mark: float = Field(0.0, ge=0, le=1, description="of pairs without the mark that ends both sides")
    other_quotes: float = Field(0.0, ge=0, le=1, description="of sources with typographic quotes for straight ones")
    typing_errors: float = Field(0.0, ge=0, le=1, description="of sources with a letter wrong, missing or too many")
    joined: float = Field(0.0, ge=0, le=1, description="of pairs followed by another, as two sentences of one text")
    stand_ins: float = Field(
        0.0,
        ge=0,
        le=1,
        description="of pairs with a name or number on both sides: a made-up one in its place",
    )
    sampled_pieces: float = Field(
        0.0, ge=0, le=1, description="of sentences, on both sides, cut into pieces by sampling (Kudo 2018)"
    )
    unknown_pieces: float = Field(
        0.0, ge=0, lt=1, description="of source pieces hidden as <unk>: word dropout (Sennrich and Zhang 2019)"
    )

    @property
    def varies(self) -> bool:
        """Whether epochs differ at all."""
        return any(self.model_dump().values())


class TrainConfig(Section):
    """The training loop."""

    init: str | None = Field(
        None,
        min_length=1,
        description="model from whose tokenizer and weights, of more layers the first ones, the run starts",
    )
    seed: int = Field(1, ge=0, lt=2**63, description="decides initialisation, order of batches and dropout")
    updates: int = Field(20_000, ge=1, description="number of updates; train.minutes replaces it")
    minutes: float | None = Field(None, gt=0, description="time budget: fixes the number of updates after a warm-up")
    batch_tokens: int = Field(4096, ge=16, description="padded tokens of the longer side of one batch")
    accumulate: int = Field(1, ge=1, description="batches whose gradients make one update")
    optimiser: Literal["adamw", "muon"] = Field(
        "adamw", description="muon: Muon for the matrices of the layers, AdamW for the rest"
    )
    learning_rate: float = Field(1e-3, gt=0, description="peak of the schedule")
    warmup: int = Field(500, ge=0, description="updates of linear warm-up")
    schedule: Literal["inverse_sqrt", "linear", "cosine"] = Field(
        "linear", description="decay after warm-up; linear and cosine end at zero with the last update"
    )
    weight_decay: float = Field(0.0, ge=0, description="AdamW's decoupled weight decay, on matrices")
    label_smoothing: float = Field(0.1, ge=0, lt=1, description="mass given to the whole vocabulary")
    links: str | None = Field(
        None, min_length=1, description="file of word links of the training pairs, by which one head is taught to align"
    )
    consistency: float = Field(
        0.0, ge=0, description="R-Drop: two passes over each batch, under other dropout, are to agree; twice the time"
    )
    guided_alignment: float = Field(
        0.05, ge=0, description="weight of the links' loss beside the translation's (Garg et al. 2019)"
    )
    clip_norm: float = Field(1.0, gt=0, description="ceiling of the gradient's norm")
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        "auto", description="auto: bfloat16 autocast where it is the faster, by a short measurement"
    )
    ema: float = Field(0.999, ge=0, lt=1, description="decay of the averaged weights that are validated; 0 is off")
    validate_every: int = Field(1000, ge=1, description="updates between validations, each followed by a checkpoint")
    validation_sentences: int = Field(
        300, ge=0, description="dev sentences, evenly spaced, translated (greedily) for BLEU"
    )
    patience: int = Field(0, ge=0, description="validations without a better score before the run ends; 0 is never")
    keep: int = Field(2, ge=1, description="checkpoints kept")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="auto: cuda if there is one")


class DecodeConfig(Section):
    """Defaults of the search, stored with the model."""

    beam_size: int = Field(5, ge=1, le=64, description="hypotheses kept per sentence; 1 is greedy")
    length_penalty: float = Field(1.0, ge=0, description="alpha in score = log-probability / length ** alpha")
    max_source_tokens: int = Field(128, ge=8, description="longer sentences are translated in parts")
    max_length_ratio: float = Field(2.0, gt=0, description="longest translation: ratio * source tokens + 10")


class Recipe(Section):
    """A whole recipe file."""

    model: ModelConfig = ModelConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    data: DataConfig = DataConfig()
    variation: VariationConfig = VariationConfig()
    train: TrainConfig = TrainConfig()
    decode: DecodeConfig = DecodeConfig()

    @model_validator(mode="after")
    def _check_sampling(self) -> Self:
        if self.variation.sampled_pieces and self.tokenizer.kind == "bpe" and self.train.init is None:
            raise ValueError("variation.sampled_pieces needs tokenizer.kind = 'unigram': BPE has one cut of a text")
        return self


def load_recipe(path: str | Path, overrides: list[str] | None = None) -> Recipe:
    """Read a TOML recipe and apply ``section.key=value`` overrides; values are TOML, bare words are strings."""
    values = read_toml(Path(path), f"recipe {path}")
    for override in overrides or []:
        _apply(values, override)
    return validate(Recipe, values, str(path))


def read_toml(path: Path, name: str) -> dict[str, Any]:
    """The values of a TOML file, which is called `name` where it cannot be read."""
    try:
        return tomllib.loads(read_text(path, name))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{name} cannot be read: it is not valid TOML: {error}") from None


def read_text(path: Path, name: str) -> str:
    """A UTF-8 file as one text, which is called `name` where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"{name} does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{name} cannot be read: {error}") from None


def _apply(values: dict[str, Any], override: str) -> None:
    """Set one ``section.key=value`` in place."""
    name, equals, text = override.partition("=")
    section, dot, key = name.strip().partition(".")
    if not (equals and dot and section and key):
        raise UserError(f"--set {override!r} must read section.key=value, as in train.minutes=10")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    target = values.setdefault(section, {})
    if not isinstance(target, dict):
        raise UserError(f"--set {override!r}: {section!r} is not a section of the recipe")
    target[key] = value


def validate(kind: type[AnySection], values: dict[str, Any], where: str) -> AnySection:
    """Validate plain values into a section; the first fault becomes one line that names key, value and rule."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise UserError(f"{where}: {_first_fault(kind, error)}") from None


def _first_fault(kind: type[Section], error: ValidationError) -> str:
    fault = error.errors()[0]
    path = [str(part) for part in fault["loc"]]
    name = ".".join(path)
    if fault["type"] == "extra_forbidden":
        near = difflib.get_close_matches(path[-1], _names_at(kind, path[:-1]), n=1)
        return f"unknown setting {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")
    if fault["type"] == "missing":
        return f"setting {name!r} is missing"
    message = fault["msg"].removeprefix("Value error, ")
    of_section = fault["type"] == "value_error" and isinstance(fault["input"], dict)  # its message names the setting
    field = kind.model_fields.get(path[0]) if path else None
    if field is not None and not field.repr:  # a value that is shown nowhere
        return f"{name}: {message}"
    return f"{name} = {fault['input']!r}: {message}" if path and not of_section else message


def _names_at(kind: type[Section], path: list[str]) -> list[str]:
    """Valid keys of the section that a path leads to."""
    for name in path:
        annotation = kind.model_fields[name].annotation
        if not (isinstance(annotation, type) and issubclass(annotation, Section)):
            return []
        kind = annotation
    return list(kind.model_fields)
