"""One run: its folder, data, model and state, made ready to start or to go on."""

import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from seq2seq.checkpoint import ModelInfo
from seq2seq.config import Recipe, TrainConfig
from seq2seq.data.batching import EncodedPair
from seq2seq.data.corpus import Corpus, load_corpus
from seq2seq.data.splits import Pair
from seq2seq.data.tokenizer import Tokenizer
from seq2seq.errors import UserError
from seq2seq.model import Transformer
from seq2seq.training.metrics import say
from seq2seq.training.objective import make_optimiser, pick_precision
from seq2seq.training.state import MovingAverage, Progress, TrainingState, checkpoints

RECIPE = "recipe.json"  # in the run folder: the recipe as it was validated
FREE_TO_CHANGE = {"validate_every", "validation_sentences", "patience", "keep"}  # of [train], on resume


@dataclass
class Run:
    """Everything one run works with."""

    recipe: Recipe
    folder: Path
    corpus: Corpus
    tokenizer: Tokenizer
    model: Transformer
    state: TrainingState
    device: torch.device

    @property
    def info(self) -> ModelInfo:
        """The model's `config.json`."""
        data, model, decode = self.recipe.data, self.recipe.model, self.recipe.decode
        return ModelInfo(source=data.source, target=data.target, model=model, decode=decode)

    def autocast(self) -> torch.autocast:
        """Mixed precision, if the run uses it."""
        enabled = self.state.progress.precision == "bfloat16"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=enabled)


def prepare(recipe: Recipe, folder: Path, resume: bool) -> Run:
    """Load data, make or load tokenizer and model, and go to the last checkpoint if the run is resumed."""
    saved = checkpoints(folder / "checkpoints")
    check_folder(recipe, folder, resume, bool(saved))
    corpus = load_corpus(recipe.data)
    say(corpus.report())
    if not corpus.split.dev:
        raise UserError("data.dev: there is no dev pair to validate on; give data.dev or more data")
    torch.manual_seed(recipe.train.seed)
    device = pick_device(recipe.train)
    if saved:
        tokenizer = Tokenizer.load(saved[-1] / "tokenizer.model")
    else:
        tokenizer = Tokenizer.train(itertools.chain.from_iterable(corpus.split.train), recipe.tokenizer)
    model = Transformer(recipe.model, len(tokenizer), tokenizer.pad_id).to(device)
    updates = None if recipe.train.minutes else recipe.train.updates
    fingerprint = fingerprint_of(corpus)
    progress = Progress(data=fingerprint, precision=pick_precision(recipe.train, device), updates=updates)
    average = MovingAverage(model, recipe.train.ema)
    state = TrainingState(model, make_optimiser(model, recipe.train), average, progress)
    if saved:
        state.load(saved[-1])
        if state.progress.data not in ("", fingerprint):
            raise UserError(f"the data of {folder} has changed since {saved[-1].name}: a run resumes on the same pairs")
        say(f"resumed from {saved[-1]} at update {state.progress.update:,}")
    say(f"{sum(weight.numel() for weight in model.parameters()):,} parameters, {device}, {state.progress.precision}")
    folder.mkdir(parents=True, exist_ok=True)
    written = recipe.model_dump_json(indent=2) + "\n"
    (folder / RECIPE).write_text(written, encoding="utf-8")
    return Run(recipe, folder, corpus, tokenizer, model, state, device)


def fingerprint_of(corpus: Corpus) -> str:
    """SHA-256 of the pairs that a run learns from and chooses by."""
    digest = hashlib.sha256()
    for pair in itertools.chain(corpus.split.train, corpus.split.dev):
        digest.update("\t".join(pair).encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()


def check_folder(recipe: Recipe, folder: Path, resume: bool, started: bool) -> None:
    """Refuse to overwrite a run, to resume none, or to resume one with another recipe."""
    path = folder / RECIPE
    if started and not resume:
        raise UserError(f"{folder} holds a run already: add --resume to go on, or give another --output")
    if resume and not started:
        raise UserError(f"{folder} holds no checkpoint to resume from")
    now = recipe.model_dump(mode="json")
    if started:
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
            changed = _changed(before, now)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path} is missing or damaged, so {folder} cannot be resumed: {error}") from None
        if changed:
            raise UserError(f"{changed}: a run resumes as itself; start another with --output")


def _changed(before: dict[str, Any], now: dict[str, Any]) -> str | None:
    """The first setting in which two recipes differ and must not."""
    for section, values in now.items():
        for key, value in values.items():
            if key not in FREE_TO_CHANGE and before[section][key] != value:
                return f"{section}.{key} = {value!r} is not the run's {before[section][key]!r}"
    return None


def pick_device(config: TrainConfig) -> torch.device:
    """The device that the recipe asks for; `auto` takes CUDA if there is one."""
    available = torch.cuda.is_available()
    if config.device == "cuda" and not available:
        raise UserError("train.device = 'cuda', but torch finds no CUDA device here")
    return torch.device("cuda" if config.device == "cuda" or (config.device == "auto" and available) else "cpu")


def encode_pairs(pairs: Sequence[Pair], tokenizer: Tokenizer) -> list[EncodedPair]:
    """Token ids of all pairs, `</s>` added."""
    sources = tokenizer.encode_all([pair.source for pair in pairs])
    targets = tokenizer.encode_all([pair.target for pair in pairs])
    end = [tokenizer.eos_id]
    return [EncodedPair(source + end, target + end) for source, target in zip(sources, targets, strict=True)]
