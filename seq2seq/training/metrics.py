"""What a run says while it goes on: progress bar, `metrics.jsonl`, TensorBoard if installed, picture of the curves."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from tqdm import tqdm

from seq2seq.storage import write_text
from seq2seq.training.state import Progress

LOG_EVERY = 50  # updates between two lines on training


def say(message: str) -> None:
    """One line to the person who waits."""
    tqdm.write(message, file=sys.stderr)


class Metrics:
    """Sinks for the numbers of a run. On resume, lines from after the checkpoint are dropped: they will come again."""

    def __init__(self, folder: Path, progress: Progress) -> None:
        self.path = folder / "metrics.jsonl"
        lines = [line for line in read_metrics(self.path) if line["update"] <= progress.update]
        write_text(self.path, "".join(json.dumps(line) + "\n" for line in lines))
        interval = 0.5 if sys.stderr.isatty() else 30.0
        self._bar = tqdm(total=progress.updates, initial=progress.update, unit="update", mininterval=interval)
        self._board = _tensorboard(folder, progress.update + 1)

    def step(self, progress: Progress, loss: float, tokens: int, lr: float, norm: float) -> None:
        """Count one update: its summed loss in nats and its target tokens."""
        summed, seen, since = progress.since_log
        progress.since_log = (summed + loss, seen + tokens, since)
        self._bar.total = progress.updates
        self._bar.update()
        if progress.update % LOG_EVERY == 0:
            rate = (seen + tokens) / max(progress.seconds - since, 1e-9)
            mean = (summed + loss) / (seen + tokens)
            self._bar.set_postfix(loss=f"{mean:.3f}", tokens_per_second=f"{rate:,.0f}", refresh=False)
            self.write(progress, loss=mean, learning_rate=lr, gradient_norm=norm, tokens_per_second=rate)
            progress.since_log = (0.0, 0, progress.seconds)

    def write(self, progress: Progress, **values: float) -> None:
        """One line of `metrics.jsonl`, flushed at once."""
        row = {"update": progress.update, "epoch": progress.epoch, "seconds": round(progress.seconds, 2)}
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(row | {name: round(value, 6) for name, value in values.items()}) + "\n")
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(name, value, progress.update)

    def flush(self) -> None:
        """Bring all lines to the disk: a checkpoint must not outlive the lines before it."""
        with self.path.open("rb") as stream:
            os.fsync(stream.fileno())

    def close(self) -> None:
        """Finish the bar and the board."""
        self._bar.close()
        if self._board is not None:
            self._board.close()


class NoMetrics(Metrics):
    """What the other processes of a run say: nothing."""

    def __init__(self) -> None:
        pass

    def step(self, progress: Progress, loss: float, tokens: int, lr: float, norm: float) -> None:
        """Nothing."""

    def flush(self) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The complete lines of a `metrics.jsonl`; a last line cut off by a crash is ignored."""
    rows: list[dict[str, Any]] = []
    for line in path.read_text(encoding="utf-8").split("\n") if path.is_file() else []:
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows


def _tensorboard(folder: Path, first: int) -> Any:
    """TensorBoard's writer, if it is installed; what it wrote from update `first` on is taken back."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder / "tensorboard"), purge_step=first)
