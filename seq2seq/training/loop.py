"""The training loop: one readable function over small parts.

A run folder holds `model/` (the best so far, a model folder), `checkpoints/` (the last few, each a model folder with
the training state beside it), `recipe.json`, `run.json` (code, versions, machine), `data.txt` and `data.json` (what was
in the data), `metrics.jsonl` and `curves.png`.
"""

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from torch import nn

from seq2seq.config import Recipe, TrainConfig
from seq2seq.data.batching import Batch, collate, plan_epoch, share, with_links, without_targets
from seq2seq.errors import UserError
from seq2seq.memory import keep_freed_memory
from seq2seq.training.distributed import joined, unsynchronised
from seq2seq.training.interruption import Interruption, interruptible
from seq2seq.training.metrics import Metrics, NoMetrics, say
from seq2seq.training.objective import lr_at
from seq2seq.training.run import Run, check_exists, locked, pick_device, prepare
from seq2seq.training.state import Progress
from seq2seq.training.validation import validate

PLAN_AT = 100  # updates after which train.minutes becomes a number of updates, at the latest
STEP_SHARE = 0.92  # of train.minutes that goes into updates; the rest is for validation and checkpoints


class Part(NamedTuple):
    """What one process does of a batch."""

    batch: Batch
    tokens: int  # target tokens of the whole batch, over all processes


def train(recipe: Recipe, folder: Path, resume: bool = False, resume_from: int | None = None) -> Path:
    """Train as the recipe says, or go on exactly where a run stopped. Returns the folder of the best model.

    Under torchrun this is one of several processes, which divide every batch of the recipe among them.
    """
    device = pick_device(recipe.train)
    keep_freed_memory()
    resume = resume or resume_from is not None
    with interruptible() as interruption, joined(cuda=device.type == "cuda") as group:
        if resume:
            group.share(lambda: check_exists(folder))
        with legible(folder), locked(folder, group):
            run = prepare(recipe, folder, group, resume, resume_from)
            if run.ending is None:
                go_on(run, interruption)
            elif group.first:
                say(f"nothing left to do in {folder}: {run.ending}")
    return folder / "model"


@contextmanager
def legible(folder: Path) -> Iterator[None]:
    """An error of the system, such as a full disk, as one line that says what it means for the run."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        reason = f"{name}{error.strerror or error}"
        raise UserError(f"{folder} cannot be written ({reason}); mend that and go on with --resume") from None


def go_on(run: Run, interruption: Interruption) -> None:
    """Go on to the run's end, or until somebody asks it to stop."""
    with closing(Metrics(run.folder, run.state.progress) if run.group.first else NoMetrics()) as metrics:
        iterate(run, interruption, metrics)
    if run.group.first:
        update = run.state.progress.update
        say(run.ending or f"stopped after update {update:,} with a checkpoint: go on with --resume")
    if run.ending is None:
        interruption.end()


def iterate(run: Run, interruption: Interruption, metrics: Metrics) -> None:
    """Updates, and every so many of them a validation and a checkpoint."""
    config, progress, group = run.recipe.train, run.state.progress, run.group
    batches = stream(run)
    asked = 0.0  # to stop, by a signal in any process
    while not (run.ending or asked):
        started = time.perf_counter()
        lr = lr_at(progress.update + 1, config, progress.updates)
        loss, tokens, norm = train_step(run, list(itertools.islice(batches, config.accumulate)), lr)
        spent = time.perf_counter() - started if group.first else 0.0  # there is one clock
        seconds, asked = group.total(spent, interruption.signal is not None)
        progress.update += 1
        progress.tokens += tokens
        progress.seconds += seconds
        planned = plan_updates(config, progress)
        metrics.step(progress, loss, tokens, lr, norm)
        due = run.ending is not None or progress.update % config.validate_every == 0
        if due:
            agree(run, lambda: validate(run, metrics))
        if due or planned or asked:
            metrics.flush()
            run.save()


def train_step(run: Run, chunk: Sequence[Part], lr: float) -> tuple[float, int, float]:
    """One update from one or more batches; returns summed loss (nats), target tokens and the gradient's norm.

    All three are those of the whole update, over all processes.
    """
    tokens = sum(part.tokens for part in chunk)
    own = 0.0
    run.model.train()
    for number, part in enumerate(chunk, 1):
        with unsynchronised(run.objective, enabled=number < len(chunk)):
            with run.autocast():
                loss = run.objective(part.batch.to(run.device))
            (loss / tokens * run.group.size).backward()  # the group takes the mean of its gradients
        own += loss.item()
    (total,) = run.group.total(own)
    if not math.isfinite(total):
        raise UserError(f"the loss is {total} at update {run.state.progress.update + 1}: lower train.learning_rate")
    norm = nn.utils.clip_grad_norm_(run.model.parameters(), run.recipe.train.clip_norm)
    for group in run.state.optimiser.param_groups:
        group["lr"] = lr
    run.state.optimiser.step()
    run.state.optimiser.zero_grad()
    run.state.average.update(run.state.progress.update + 1)
    return total, tokens, norm.item()


def stream(run: Run) -> Iterator[Part]:
    """One process's part of batches without end, from the position in the run's progress, which moves along."""
    config, progress, tokenizer = run.recipe.train, run.state.progress, run.tokenizer
    while True:
        lengths, targets = run.train.lengths(), run.train.tgt.lengths()
        plan = plan_epoch(lengths, config.batch_tokens, config.seed, progress.epoch)
        for indices in plan[progress.batch :]:
            progress.batch += 1
            mine = share(indices, lengths, run.group.rank, run.group.size)
            batch = make_batch(run, mine or indices[:1])
            tokens = sum(targets[index] for index in indices)
            yield Part(batch if mine else without_targets(batch, tokenizer.pad_id), tokens)
        run.turn_epoch()


def make_batch(run: Run, indices: Sequence[int]) -> Batch:
    """Training pairs as one batch, with their links if the run is guided by some."""
    pairs, tokenizer = [run.train[index] for index in indices], run.tokenizer
    batch = collate(pairs, tokenizer.pad_id, tokenizer.bos_id)
    if run.guide is None:
        return batch
    guide, partners = run.guide, run.train.partners
    known = zip(indices, pairs, strict=True)
    return with_links(batch, [guide.piece_links(n, pair, tokenizer, partners.get(n)) for n, pair in known])


def agree(run: Run, work: Callable[[], None]) -> None:
    """Do some work in the first process, and let the others know how it has changed the run's progress."""

    def result() -> Progress:
        work()
        return run.state.progress

    vars(run.state.progress).update(vars(run.group.share(result)))


def plan_updates(config: TrainConfig, progress: Progress) -> bool:
    """Turn `train.minutes` into a number of updates, once, from the speed of the first ones.

    Until then the learning rate does not depend on the number of updates in all.
    """
    if progress.updates is not None or not config.minutes or progress.update < min(PLAN_AT, max(config.warmup, 20)):
        return False
    per_update = progress.seconds / progress.update
    progress.updates = max(progress.update + 1, round(STEP_SHARE * config.minutes * 60 / per_update))
    return True
