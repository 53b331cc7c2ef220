"""The training loop: one readable function over small parts.

A run folder holds `model/` (the best so far, a model folder), `checkpoints/` (the last few, each a model folder with
the training state beside it), `recipe.json`, `metrics.jsonl` and `curves.png`.
"""

import itertools
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from torch import nn

from seq2seq.config import Recipe, TrainConfig
from seq2seq.data.batching import Batch, EncodedPair, collate, plan_epoch
from seq2seq.data.tokenizer import Tokenizer
from seq2seq.errors import UserError
from seq2seq.training.metrics import Metrics, say
from seq2seq.training.objective import lr_at, summed_loss
from seq2seq.training.run import Run, encode_pairs, prepare
from seq2seq.training.state import Progress
from seq2seq.training.validation import validate

PLAN_AT = 100  # updates after which train.minutes becomes a number of updates, at the latest
STEP_SHARE = 0.92  # of train.minutes that goes into updates; the rest is for validation and checkpoints


def train(recipe: Recipe, folder: Path, resume: bool = False) -> Path:
    """Train as the recipe says, or go on exactly where a run stopped. Returns the folder of the best model."""
    run = prepare(recipe, folder, resume)
    config, progress = recipe.train, run.state.progress
    if progress.update == progress.updates or 0 < config.patience <= progress.since_best:
        say(f"nothing left to do: {folder} has ended after {progress.update:,} updates")
        return folder / "model"
    metrics = Metrics(folder, progress)
    batches = stream(encode_pairs(run.corpus.split.train, run.tokenizer), config, progress, run.tokenizer)
    done = False
    while not done:
        started = time.perf_counter()
        lr = lr_at(progress.update + 1, config, progress.updates)
        loss, tokens, norm = train_step(run, list(itertools.islice(batches, config.accumulate)), lr)
        progress.update += 1
        progress.tokens += tokens
        progress.seconds += time.perf_counter() - started
        plan_updates(config, progress)
        metrics.step(progress, loss, tokens, lr, norm)
        done = progress.update == progress.updates or out_of_time(config, progress)
        if done or progress.update % config.validate_every == 0:
            done = validate(run, metrics) or done
            run.state.save(folder / "checkpoints", run.tokenizer, run.info, config.keep)
    metrics.close()
    return folder / "model"


def train_step(run: Run, chunk: Sequence[Batch], lr: float) -> tuple[float, int, float]:
    """One update from one or more batches; returns summed loss (nats), target tokens and the gradient's norm."""
    tokens = sum(int((batch.tgt_out != run.tokenizer.pad_id).sum()) for batch in chunk)
    total = 0.0
    run.model.train()
    for batch in chunk:
        with run.autocast():
            loss = summed_loss(run.model, batch.to(run.device), run.recipe.train.label_smoothing)
        (loss / tokens).backward()  # type: ignore[no-untyped-call]
        total += loss.item()
    if not math.isfinite(total):
        raise UserError(f"the loss is {total} at update {run.state.progress.update + 1}: lower train.learning_rate")
    norm = nn.utils.clip_grad_norm_(run.model.parameters(), run.recipe.train.clip_norm)
    for group in run.state.optimiser.param_groups:
        group["lr"] = lr
    run.state.optimiser.step()
    run.state.optimiser.zero_grad()
    run.state.average.update(run.state.progress.update + 1)
    return total, tokens, norm.item()


def stream(
    pairs: Sequence[EncodedPair], config: TrainConfig, progress: Progress, tokenizer: Tokenizer
) -> Iterator[Batch]:
    """Batches without end, from the position in `progress`, which moves along."""
    lengths = [len(pair) for pair in pairs]
    while True:
        plan = plan_epoch(lengths, config.batch_tokens, config.seed, progress.epoch)
        for indices in plan[progress.batch :]:
            progress.batch += 1
            yield collate([pairs[index] for index in indices], tokenizer.pad_id, tokenizer.bos_id)
        progress.epoch, progress.batch = progress.epoch + 1, 0


def plan_updates(config: TrainConfig, progress: Progress) -> None:
    """Turn `train.minutes` into a number of updates, once, from the speed of the first ones.

    Until then the learning rate does not depend on the number of updates in all.
    """
    if progress.updates is None and config.minutes and progress.update >= min(PLAN_AT, max(config.warmup, 20)):
        per_update = progress.seconds / progress.update
        progress.updates = max(progress.update + 1, round(STEP_SHARE * config.minutes * 60 / per_update))
        say(f"{config.minutes:g} minutes at {1 / per_update:.2f} updates a second: {progress.updates:,} updates")


def out_of_time(config: TrainConfig, progress: Progress) -> bool:
    """Whether the machine has become so slow that the planned updates would overrun the budget by a tenth."""
    late = config.minutes is not None and progress.seconds > 1.1 * 60 * config.minutes
    if late:
        say(f"{config.minutes:g} minutes are over after {progress.update:,} of {progress.updates or 0:,} updates")
    return late
