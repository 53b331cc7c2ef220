"""Contenders that train: ours by the package's own step, and others on the same batches in the same order."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2seq.benchmark.machine import Stopwatch
from seq2seq.config import DataConfig, ModelConfig, Recipe, TokenizerConfig, TrainConfig, validate
from seq2seq.data.batching import Batch, collate
from seq2seq.data.cutting import cut
from seq2seq.data.encoding import encode_pairs
from seq2seq.errors import UserError
from seq2seq.memory import keep_freed_memory
from seq2seq.training.distributed import Group
from seq2seq.training.loop import Part, stream, train_step
from seq2seq.training.objective import lr_at, summed_loss
from seq2seq.training.run import Run, prepare

SIZES = {"tiny": (128, 256), "small": (256, 1024)}  # d_model, ffn; 4 heads, 4 + 4 layers
NAMES = ("ours", "torch", "hf")
PRECISIONS = ("auto", "float32", "bfloat16")
Values = dict[str, Any]


def make_recipe(data: DataConfig, size: str, vocab_size: int, batch_tokens: int, precision: str) -> Recipe:
    """What all contenders train: the settings that the peers in the field are compared by."""
    d_model, ffn = SIZES[size]
    settings = {
        "batch_tokens": batch_tokens,
        "learning_rate": 2e-3,
        "warmup": 500,
        "schedule": "inverse_sqrt",
        "precision": precision,
        "device": "cpu",
    }
    return Recipe(
        model=ModelConfig(d_model=d_model, ffn=ffn, dropout=0.3),
        tokenizer=validate(TokenizerConfig, {"vocab_size": vocab_size}, "--vocab"),
        data=data,
        train=validate(TrainConfig, settings, "train"),
    )


def product_flops(config: ModelConfig, vocab_size: int, sources: int, targets: int) -> int:
    """Floating-point operations that an update cannot do without: two a weight and token forward, twice that backward.

    Those between queries and keys, some hundredths of them, are left out; so is padding.
    """
    width, inner = config.d_model, config.heads * config.head_width
    feed_forward, projection = 2 * width * config.ffn, width * inner
    a_source = config.encoder_layers * (4 * projection + feed_forward) + config.decoder_layers * 2 * projection
    a_target = config.decoder_layers * (6 * projection + feed_forward) + vocab_size * width
    return 6 * (sources * a_source + targets * a_target)


class Learner(Protocol):
    """A model that learns from batches."""

    @property
    def model(self) -> nn.Module:
        """What learns."""

    @property
    def precision(self) -> str:
        """Of its products of matrices."""

    def step(self, part: Part, lr: float) -> float:
        """One update; its summed loss in nats."""

    def loss(self, batch: Batch) -> Tensor:
        """Summed cross-entropy in nats, unsmoothed."""


class Ours:
    """The package as its users run it: optimiser, clipping, averaged weights and all."""

    def __init__(self, run: Run) -> None:
        self.run, self.model, self.precision = run, run.model, run.state.progress.precision

    def step(self, part: Part, lr: float) -> float:
        """See Learner."""
        total, _, _ = train_step(self.run, [part], lr)
        self.run.state.progress.update += 1
        return total

    def loss(self, batch: Batch) -> Tensor:
        """See Learner."""
        return summed_loss(self.run.model, batch, smoothing=0.0)


class Plain:
    """The loop that a tutorial shows, around any module that gives scores (B, T, V) for src and tgt_in."""

    def __init__(self, model: nn.Module, config: TrainConfig, pad_id: int) -> None:
        self.model, self.config, self.pad_id = model, config, pad_id
        self.precision = "bfloat16" if config.precision == "bfloat16" else "float32"
        self.optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)

    def step(self, part: Part, lr: float) -> float:
        """See Learner."""
        self.model.train()
        for group in self.optimiser.param_groups:
            group["lr"] = lr
        with torch.autocast("cpu", torch.bfloat16, enabled=self.precision == "bfloat16"):
            loss = self._loss(part.batch, self.config.label_smoothing) / part.tokens
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip_norm)
        self.optimiser.step()
        return loss.item() * part.tokens

    def loss(self, batch: Batch) -> Tensor:
        """See Learner."""
        return self._loss(batch, smoothing=0.0)

    def _loss(self, batch: Batch, smoothing: float) -> Tensor:
        scores = self.model(batch.src, batch.tgt_in)  # (B, T, V)
        return functional.cross_entropy(
            scores.flatten(0, 1),
            batch.tgt_out.flatten(),
            ignore_index=self.pad_id,
            label_smoothing=smoothing,
            reduction="sum",
        )


def make_learner(name: str, run: Run) -> Learner:
    """A contender by its name, on the data and the vocabulary of a run."""
    if name == "ours":
        return Ours(run)
    maker: Callable[[ModelConfig, int, int, int], nn.Module]
    if name == "torch":
        from seq2seq.benchmark.torch_model import TorchModel as maker  # noqa: N813
    else:
        from seq2seq.benchmark.marian import make_marian as maker
    ids = run.tokenizer.pad_id, run.tokenizer.eos_id
    return Plain(maker(run.recipe.model, len(run.tokenizer), *ids), run.recipe.train, run.tokenizer.pad_id)


class Training:
    """One contender, its first updates done."""

    def __init__(self, name: str, recipe: Values, warm_up: int) -> None:
        asked = Recipe.model_validate(recipe)
        if name != "ours" and asked.train.precision == "auto":
            raise UserError(f"{name} has no precision auto: say float32 or bfloat16")
        if name == "ours":
            keep_freed_memory()  # as `train` does, and for ours alone: the others run as they come
        with tempfile.TemporaryDirectory() as folder:  # of the run's record, which nobody reads
            self.run = prepare(asked, Path(folder), Group())
        self.learner = make_learner(name, self.run)
        self.batches = stream(self.run)
        self.updates = 0
        self.facts: Values = {
            "precision": self.learner.precision,
            "threads": torch.get_num_threads(),
            "parameters": sum(weight.numel() for weight in self.learner.model.parameters()),
            "pairs": len(self.run.train),
            "dev_pairs": len(self.run.dev),
            "vocabulary": len(self.run.tokenizer),
        }
        self.turn({"updates": warm_up})

    def turn(self, order: Values) -> Values:
        """Whole updates for some seconds, or some number of them; at most until `until` of them are done."""
        most = min(order.get("updates", float("inf")), order.get("until", float("inf")) - self.updates)
        loss, tokens, sources, done = 0.0, 0, 0, 0
        with Stopwatch() as watch:
            while done < most and watch.elapsed < order.get("seconds", float("inf")):
                part = next(self.batches)
                loss += self.learner.step(part, lr_at(self.updates + 1, self.run.recipe.train, None))
                sources += int((part.batch.src != self.run.tokenizer.pad_id).sum())
                tokens, done, self.updates = tokens + part.tokens, done + 1, self.updates + 1
        flops = product_flops(self.run.recipe.model, len(self.run.tokenizer), sources, tokens)
        return watch.measured() | {
            "updates": done,
            "tokens": tokens,
            "target_tokens_per_s": tokens / watch.seconds,
            "gflops": flops / watch.seconds / 1e9,
            "mean_tokens_per_step": tokens / max(done, 1),
            "loss": loss / max(tokens, 1),
            "finished": self.updates >= order.get("until", float("inf")),
        }

    @torch.no_grad()
    def finish(self) -> Values:
        """Cross-entropy of the dev split in nats per target token, unsmoothed, by the weights as they are, in float32.

        Of ours also by the averaged weights, which a run would keep.
        """
        self.learner.model.eval()
        found = {"updates": self.updates, "dev_loss": self._dev_loss()}
        if isinstance(self.learner, Ours):
            with self.run.state.average.applied():
                found["dev_loss_averaged"] = self._dev_loss()
        return found

    def _dev_loss(self) -> float:
        loss, tokens = 0.0, 0
        for batch in self._dev_batches():
            loss += self.learner.loss(batch).item()
            tokens += int((batch.tgt_out != self.run.tokenizer.pad_id).sum())
        return loss / tokens

    def _dev_batches(self) -> Iterator[Batch]:
        tokenizer = self.run.tokenizer
        pairs = sorted(encode_pairs(self.run.dev, tokenizer), key=len)
        for rows in cut(range(len(pairs)), list(map(len, pairs)), self.run.recipe.train.batch_tokens):
            yield collate([pairs[row] for row in rows], tokenizer.pad_id, tokenizer.bos_id)
