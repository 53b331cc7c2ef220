"""One run in several processes, on one machine or more: torchrun starts them, torch.distributed joins them.

Only the first process (rank 0) reads the corpus and writes files; the others get from it what they need, so they may
run on machines that share no disk. The gradients of all processes are summed by DistributedDataParallel.
"""

import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.elastic.utils.store import barrier
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from seq2seq.training.metrics import say

Value = TypeVar("Value")
PATIENCE = timedelta(hours=2)  # how long a process waits for the others: rank 0 reads the corpus and validates


@dataclass(frozen=True)
class Group:
    """The processes of a run; by itself, a process is a group of one."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that reads and writes."""
        return self.rank == 0

    def total(self, *values: float) -> list[float]:
        """The sum of each value over all processes."""
        if self.size == 1:
            return list(values)
        summed = torch.tensor(values, dtype=torch.float64, device=_device())
        dist.all_reduce(summed)
        found: list[float] = summed.tolist()
        return found

    def share(self, make: Callable[[], Value]) -> Value:
        """What `make` returns in the first process, in all of them; an error there ends them all."""
        if self.size == 1:
            return make()
        message: list[Any] = [None, False]
        if self.first:
            try:
                message = [make(), True]
            finally:
                dist.broadcast_object_list(message, src=0)
        else:
            dist.broadcast_object_list(message, src=0)
        value, made = message
        if not made:
            raise SystemExit(1)  # the first process says why
        found: Value = value
        return found

    def collect(self, value: Value) -> list[Value]:
        """Every process's value, in order of rank, in the first process; nothing in the others."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        dist.gather_object(value, values if self.first else None)
        return values

    def parallel(self, module: nn.Module) -> nn.Module:
        """The module, its gradients averaged over the group in each backward pass outside `unsynchronised`."""
        if self.size == 1:
            return module
        return DistributedDataParallel(module, gradient_as_bucket_view=True)


def is_first() -> bool:
    """Whether this process, started by torchrun or not, is the one that speaks."""
    return not dist.is_torchelastic_launched() or os.environ["RANK"] == "0"


def unsynchronised(module: nn.Module, enabled: bool) -> AbstractContextManager[None]:
    """Where gradients are only added up in this process: all but the last batch of an update."""
    if enabled and isinstance(module, DistributedDataParallel):
        return module.no_sync()
    return nullcontext()


@contextmanager
def joined(cuda: bool) -> Iterator[Group]:
    """The group that torchrun has started this process in, else a group of one."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1 or not dist.is_torchelastic_launched():
        yield Group()
        return
    if cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    # Its functions take the group of the moment as a default when they are first imported. DistributedDataParallel
    # imports it too late: the group would outlive `destroy_process_group`, and gloo's threads could end Python's exit
    # with SIGABRT.
    importlib.import_module("torch.distributed.nn.functional")
    group = Group(int(os.environ["RANK"]), size)
    try:
        store, _, _ = next(rendezvous("env://", timeout=PATIENCE))
        dist.init_process_group(
            "nccl" if cuda else "gloo", store=store, rank=group.rank, world_size=size, timeout=PATIENCE
        )
        yield group
        # One that leaves while another still awaits its part of the last exchange could make that one wait for ever.
        barrier(store, size, "leaving", PATIENCE.total_seconds(), group.rank)
    except RuntimeError as error:
        if not _is_loss_of_a_process(error):
            raise
        # Said at once: torchrun is about to end this process, too.
        say(
            f"seq2seq: another of the {size} processes has died or cannot be reached, so process {group.rank} ends, "
            "too; go on from the last checkpoint with --resume"
        )
        raise SystemExit(1) from None
    dist.destroy_process_group()


def _is_loss_of_a_process(error: RuntimeError) -> bool:
    """Whether a collective failed. gloo raises a plain RuntimeError that names its source file or the connection."""
    signs = ("gloo", "connection closed", "connection reset", "broken pipe", "timed out")
    return isinstance(error, dist.DistError) or any(sign in str(error).lower() for sign in signs)


def _device() -> torch.device:
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")
