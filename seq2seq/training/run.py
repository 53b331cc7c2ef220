"""One run: its folder, data, model and state, made ready to start or to go on."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import torch
from filelock import FileLock, Timeout
from torch import nn

from seq2seq.checkpoint import load_model
from seq2seq.config import Recipe, TrainConfig, validate
from seq2seq.data.corpus import Corpus, load_corpus
from seq2seq.data.encoding import EncodedPairs, encode_epoch
from seq2seq.data.mixture import Mixture
from seq2seq.data.splits import Pair
from seq2seq.data.tokenizer import Tokenizer
from seq2seq.errors import UserError, first_line
from seq2seq.folder import ModelInfo, copy_files
from seq2seq.model import Transformer
from seq2seq.storage import replacing, sweep, write_text
from seq2seq.training import checkpoints, record
from seq2seq.training.distributed import Group
from seq2seq.training.guidance import Guide, guided_head, read_guide
from seq2seq.training.metrics import say
from seq2seq.training.objective import Objective, make_optimiser, pick_precision
from seq2seq.training.state import MovingAverage, Progress, TrainingState, random_state, restore_random

CHECKPOINTS = "checkpoints"
LOCK = ".lock"  # in the run folder, while a process trains there and after
RECIPE = "recipe.json"  # in the run folder: the recipe as it was validated
FREE_TO_CHANGE = {"validate_every", "validation_sentences", "patience", "keep"}  # of [train], on resume


@dataclass(frozen=True)
class Start:
    """What the first process reads and the others get from it."""

    tokenizer: bytes
    train: EncodedPairs
    dev: list[Pair]
    guide: Guide | None
    progress: Progress
    saved: dict[str, Any] | None  # the state to go on from


@dataclass
class Run:
    """Everything one run works with."""

    recipe: Recipe
    folder: Path
    group: Group
    device: torch.device
    tokenizer: Tokenizer
    pairs: Mixture | None  # to train on, as they were read; in the first process alone
    train: EncodedPairs  # the same as they are in this epoch
    dev: list[Pair]
    guide: Guide | None
    model: Transformer
    state: TrainingState
    objective: nn.Module  # batch -> summed loss; gradients are averaged over the group

    @property
    def info(self) -> ModelInfo:
        """The model's `config.json`."""
        data, model, decode = self.recipe.data, self.recipe.model, self.recipe.decode
        taught = None if self.guide is None else guided_head(model)
        return ModelInfo(source=data.source, target=data.target, model=model, decode=decode, alignment=taught)

    @property
    def ending(self) -> str | None:
        """Why there is nothing left to do; None while there is."""
        return ending(self.state.progress, self.recipe.train)

    def turn_epoch(self) -> None:
        """Go to the next epoch, where training pairs may be varied otherwise."""
        progress = self.state.progress
        progress.epoch, progress.batch = progress.epoch + 1, 0
        if self.recipe.variation.varies:
            self.train = self.group.share(self._vary)

    def _vary(self) -> EncodedPairs:
        """The pairs as they are in the epoch that begins, in the process that has them."""
        assert self.pairs is not None
        return encode(self.pairs, self.tokenizer, self.recipe, self.state.progress.epoch)

    def autocast(self) -> torch.autocast:
        """Mixed precision, if the run uses it."""
        enabled = self.state.progress.precision == "bfloat16"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=enabled)

    def save(self) -> None:
        """Write a checkpoint, in the first process; all of them hand it their random state."""
        random = self.group.collect(random_state())
        if self.group.first:
            folder = self.folder / CHECKPOINTS
            with self.state.average.applied():
                weights = {name: value.clone() for name, value in self.model.state_dict().items()}
            path = folder / f"{self.state.progress.update:08d}"
            checkpoints.save_checkpoint(
                path, self.state.values() | {"random": random}, weights, self.tokenizer, self.info
            )
            checkpoints.prune(folder, self.recipe.train.keep)


def ending(progress: Progress, config: TrainConfig) -> str | None:
    """Why a run that has come so far ends; None while it goes on."""
    if progress.update == progress.updates:
        return f"all {progress.updates:,} updates are done"
    if 0 < config.patience <= progress.since_best:
        return f"no better score in {progress.since_best} validations"
    # A machine that has become slow ends a run before it overruns its budget by more than a tenth.
    if config.minutes is not None and progress.seconds > 1.1 * 60 * config.minutes:
        return f"{config.minutes:g} minutes are over after {progress.update:,} of {progress.updates or 0:,} updates"
    return None


def check_exists(folder: Path) -> None:
    """Refuse to resume what was never started: a mistyped name must not begin another run."""
    if not folder.is_dir():
        raise UserError(f"{folder} does not exist: there is no run to resume")


def prepare(recipe: Recipe, folder: Path, group: Group, resume: bool = False, resume_from: int | None = None) -> Run:
    """Load data, make or load tokenizer and model, and go to a checkpoint if the run is resumed."""
    device = pick_device(recipe.train)
    pairs: Mixture | None = None  # stays in the first process

    def read() -> Start:
        nonlocal pairs
        pairs, start = gather(recipe, folder, group, device, resume, resume_from)
        return start

    start = group.share(read)
    tokenizer = Tokenizer(start.tokenizer)
    torch.manual_seed(recipe.train.seed)
    model = Transformer(recipe.model, len(tokenizer), tokenizer.pad_id).to(device)
    if recipe.train.init is not None and start.saved is None:
        weights = load_model(recipe.train.init).model.state_dict()
        model.load_state_dict({name: weights[name] for name in model.state_dict()})
    average = MovingAverage(model, recipe.train.ema)
    optimiser = make_optimiser(model, recipe.train, start.progress.precision)
    state = TrainingState(model, optimiser, average, start.progress)
    if group.rank > 0:
        torch.manual_seed(recipe.train.seed + group.rank)
    if start.saved is not None:
        restore(state, start.saved, group, recipe.train.seed)
    train = recipe.train
    objective = group.parallel(Objective(model, train.label_smoothing, train.guided_alignment, train.consistency))
    if group.first:
        size = sum(weight.numel() for weight in model.parameters())
        say(f"{size:,} parameters, {device}, {state.progress.precision}, {_processes(group)}")
    return Run(
        recipe=recipe,
        folder=folder,
        group=group,
        device=device,
        tokenizer=tokenizer,
        pairs=pairs,
        train=start.train,
        dev=start.dev,
        guide=start.guide,
        model=model,
        state=state,
        objective=objective,
    )


def _processes(group: Group) -> str:
    count = "1 process" if group.size == 1 else f"{group.size} processes"
    return f"{count} of {torch.get_num_threads()} thread(s)"


def gather(
    recipe: Recipe, folder: Path, group: Group, device: torch.device, resume: bool, resume_from: int | None
) -> tuple[Mixture, Start]:
    """Read what the run needs from the disk, and write down what it is."""
    path = find_checkpoint(recipe, folder, resume, resume_from)
    corpus = load_corpus(recipe.data)
    say(corpus.report.as_text())
    if not corpus.split.dev:
        raise UserError("data.dev: there is no dev pair to validate on; give data.dev or more data")
    pairs = Mixture(corpus.split.train, corpus.extra, recipe.data.repeat)
    guide = find_guide(recipe.train.links, pairs)
    data = corpus.fingerprint if guide is None else f"{corpus.fingerprint} with links {guide.fingerprint()}"
    saved = checkpoints.read_state(path) if path is not None else None
    if path is None or saved is None:
        tokenizer = make_tokenizer(recipe, pairs)
        updates = None if recipe.train.minutes else recipe.train.updates
        precision = pick_precision(recipe.train, device)
        progress = Progress(data=data, precision=precision, updates=updates)
    else:
        tokenizer = Tokenizer.load(path / "tokenizer.model")
        progress = Progress(**saved["progress"])
        if progress.data != data:
            what = "the data of" if progress.data.split()[0] != corpus.fingerprint else "train.links of"
            raise UserError(f"{what} {folder} has changed since {path.name}: a run resumes on the same")
        say(f"resumed from {path} at update {progress.update:,}")
        for moved in checkpoints.set_aside(folder / CHECKPOINTS, after=path):
            say(f"a later checkpoint is set aside: {moved}")
    restore_model(folder, progress)
    if ending(progress, recipe.train) is None:
        write_down(recipe, folder, corpus, progress.update, group)
    train = encode(pairs, tokenizer, recipe, progress.epoch)
    return pairs, Start(tokenizer.model, train, list(corpus.split.dev), guide, progress, saved)


def find_guide(path: str | None, pairs: Mixture) -> Guide | None:
    """The links that the recipe names, of which there may be fewer than pairs."""
    if path is None:
        return None
    guide = read_guide(path, pairs)
    say(f"{path} has links of {guide.linked:,} of {len(guide):,} training pairs")
    return guide


def make_tokenizer(recipe: Recipe, pairs: Mixture) -> Tokenizer:
    """That of the model that the run starts from, or one that is learned from the training pairs."""
    if recipe.train.init is None:
        return Tokenizer.train((text for pair in pairs for text in pair), recipe.tokenizer)
    loaded = load_model(recipe.train.init)
    check_shape(recipe, loaded.info)
    return loaded.tokenizer


def check_shape(recipe: Recipe, start: ModelInfo) -> None:
    """Refuse to start from a model of another shape."""
    for name in ("d_model", "heads", "head_width", "ffn", "encoder_layers", "decoder_layers"):
        value, given = getattr(recipe.model, name), getattr(start.model, name)
        if value != given and not (name.endswith("_layers") and value < given):  # then it takes the first ones
            raise UserError(f"model.{name} = {value!r}, but train.init = {recipe.train.init!r} has {given!r}")


def encode(pairs: Mixture, tokenizer: Tokenizer, recipe: Recipe, epoch: int) -> EncodedPairs:
    """The training pairs as they are in an epoch."""
    variation, seed, mark = recipe.variation, recipe.train.seed, recipe.data.mark_extra
    return encode_epoch(pairs, tokenizer, variation, seed, epoch, pairs.own, mark)


def restore_model(folder: Path, progress: Progress) -> None:
    """Put the run's best model back, if it was removed or damaged, from the checkpoint that has the same weights."""
    model, best = folder / "model", folder / CHECKPOINTS / f"{progress.best_update:08d}"
    if progress.best is None:
        return
    try:
        if not model.is_dir():
            raise UserError(f"{model} is missing")
        load_model(model)
    except UserError as error:
        if not best.is_dir():
            say(f"{error}; no checkpoint has it, so there is none until a validation is better")
            return
        with replacing(model) as temporary:
            copy_files(best, temporary)
        say(f"{error}: put back from {best}")


def find_checkpoint(recipe: Recipe, folder: Path, resume: bool, resume_from: int | None) -> Path | None:
    """Where to go on; None for a fresh start. Refuses to overwrite a run, or to resume none or another one."""
    saved = bool(checkpoints.checkpoints(folder / CHECKPOINTS))
    if not resume and saved:
        raise UserError(f"{folder} holds a run already: add --resume to go on, or give another --output")
    if not resume:
        return None
    begun = saved or (folder / RECIPE).is_file()
    if not begun and (resume_from is not None or any(path.name != LOCK for path in folder.iterdir())):
        raise UserError(f"{folder} holds no run to resume")
    if begun:
        check_recipe(recipe, folder)
    if resume_from is not None:
        return checkpoints.at(folder / CHECKPOINTS, resume_from)
    path = checkpoints.newest(folder / CHECKPOINTS)
    if path is None:
        say(f"{folder} holds no checkpoint yet: the run starts from its beginning")
    return path


def check_recipe(recipe: Recipe, folder: Path) -> None:
    """Refuse to resume a run with another recipe."""
    path = folder / RECIPE
    try:
        before = validate(Recipe, json.loads(path.read_text(encoding="utf-8")), str(path))
    except (OSError, ValueError) as error:
        reason = str(error).removeprefix(f"{path}: ")
        raise UserError(f"{path} is missing or damaged, so {folder} cannot be resumed: {reason}") from None
    changed = _changed(before.model_dump(mode="json"), recipe.model_dump(mode="json"))
    if changed:
        raise UserError(f"{changed}: a run resumes as itself; start another with --output")


def _changed(before: dict[str, Any], now: dict[str, Any]) -> str | None:
    """The first setting in which two recipes differ and must not."""
    for section, values in now.items():
        for key, value in values.items():
            if key not in FREE_TO_CHANGE and before[section][key] != value:
                return f"{section}.{key} = {value!r} is not the run's {before[section][key]!r}"
    return None


def write_down(recipe: Recipe, folder: Path, corpus: Corpus, update: int, group: Group) -> None:
    """The recipe, the record and the data report of the run, in its folder."""
    report = corpus.report.as_json()
    write_text(folder / RECIPE, recipe.model_dump_json(indent=2) + "\n")
    write_text(folder / "data.json", json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    write_text(folder / "data.txt", corpus.report.as_text() + "\n")
    data = {"fingerprint": corpus.fingerprint} | {name: report[name] for name in ("files", "splits") if name in report}
    changes = record.write_record(folder, recipe.train.seed, data, record.session(update, group.size))
    if changes:
        anew = any(change.startswith("processes") for change in changes) and recipe.model.dropout > 0
        effect = "dropout is drawn anew" if anew else "losses may differ in their last digits"
        say(f"since the last session: {'; '.join(changes)}; {effect}")


def restore(state: TrainingState, saved: dict[str, Any], group: Group, seed: int) -> None:
    """Go to a saved state. With another number of processes than before, random numbers are drawn anew."""
    try:
        state.restore(saved)
        random = saved["random"]
        if len(random) == group.size:
            restore_random(random[group.rank])
        else:
            torch.manual_seed(Random(f"{seed}/{state.progress.update}/{group.rank}").getrandbits(63))
    except Exception as error:  # torch raises many kinds for a state of another model
        message = f"the checkpoint of update {state.progress.update} does not fit the recipe: {first_line(error)}"
        raise UserError(message) from None


@contextmanager
def locked(folder: Path, group: Group) -> Iterator[None]:
    """Hold the run folder for this process alone, and clear away what a killed one left there."""
    lock = FileLock(folder / LOCK, blocking=False)
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    group.share(lambda: _hold(lock, folder))
    try:
        yield
    finally:
        if group.first:
            lock.release()
            if not (folder / RECIPE).exists():  # the run has not begun, so it leaves no trace
                Path(lock.lock_file).unlink(missing_ok=True)
                for path in made:
                    if not any(path.iterdir()):
                        path.rmdir()


def _hold(lock: FileLock, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock.acquire()
    except Timeout:
        raise UserError(f"{folder} is in use: another process trains there") from None
    sweep(folder)
    sweep(folder / CHECKPOINTS)


def pick_device(config: TrainConfig) -> torch.device:
    """The device that the recipe asks for; `auto` takes CUDA if there is one."""
    available = torch.cuda.is_available()
    if config.device == "cuda" and not available:
        raise UserError("train.device = 'cuda', but torch finds no CUDA device here")
    return torch.device("cuda" if config.device == "cuda" or (config.device == "auto" and available) else "cpu")
