"""What a run writes down while it goes on."""

import json
from dataclasses import asdict

import pytest

from seq2seq.training import metrics as metrics_module
from seq2seq.training.metrics import Metrics, read_metrics, say
from seq2seq.training.state import Progress


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """A line on training every two updates, and no TensorBoard."""
    monkeypatch.setattr(metrics_module, "LOG_EVERY", 2)
    monkeypatch.setattr(metrics_module, "_tensorboard", lambda folder, first: None)


def run(metrics: Metrics, progress: Progress, losses: list[float]) -> None:
    """Updates of ten target tokens and half a second each."""
    for loss in losses:
        progress.update += 1
        progress.seconds += 0.5
        metrics.step(progress, loss, 10, lr=0.1 * progress.update, norm=3.0)


def test_a_line_holds_the_mean_loss_per_token_since_the_last_one(tmp_path):
    progress = Progress(updates=5)
    metrics = Metrics(tmp_path, progress)
    run(metrics, progress, [40.0, 20.0, 10.0, 30.0, 99.0])
    metrics.close()
    common = {"epoch": 0, "gradient_norm": 3.0, "tokens_per_second": 20.0}
    assert read_metrics(tmp_path / "metrics.jsonl") == [
        {"update": 2, "seconds": 1.0, "loss": 3.0, "learning_rate": 0.2, **common},
        {"update": 4, "seconds": 2.0, "loss": 2.0, "learning_rate": 0.4, **common},
    ]


def test_a_line_after_a_resume_counts_the_updates_from_before_it(tmp_path):
    progress = Progress(updates=2)
    metrics = Metrics(tmp_path, progress)
    run(metrics, progress, [40.0])
    metrics.close()
    resumed = Progress(**asdict(progress))
    metrics = Metrics(tmp_path, resumed)
    run(metrics, resumed, [20.0])
    metrics.close()
    assert read_metrics(tmp_path / "metrics.jsonl")[0]["loss"] == 3.0


def test_a_line_is_on_disk_as_soon_as_it_is_written(tmp_path):
    metrics = Metrics(tmp_path, Progress())
    metrics.write(Progress(update=3, epoch=1, seconds=1.239), dev_loss=2.0, dev_bleu=7.1234567)
    line = (tmp_path / "metrics.jsonl").read_text(encoding="utf-8")
    assert json.loads(line) == {"update": 3, "epoch": 1, "seconds": 1.24, "dev_loss": 2.0, "dev_bleu": 7.123457}
    metrics.close()


def test_lines_from_after_the_checkpoint_are_dropped_on_resume(tmp_path):
    rows = [{"update": update, "loss": 1.0} for update in (2, 4, 4, 6, 8)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    Metrics(tmp_path, Progress(update=4)).close()
    assert read_metrics(tmp_path / "metrics.jsonl") == rows[:3]


def test_a_new_run_begins_with_no_lines(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"update": 2}\n', encoding="utf-8")
    Metrics(tmp_path, Progress()).close()
    assert read_metrics(tmp_path / "metrics.jsonl") == []


def test_a_last_line_that_a_crash_cut_off_is_ignored(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"update": 2, "loss": 1.5}\n{"update": 4, "lo', encoding="utf-8")
    assert read_metrics(path) == [{"update": 2, "loss": 1.5}]


def test_a_file_that_is_not_there_has_no_lines(tmp_path):
    assert read_metrics(tmp_path / "metrics.jsonl") == []


class Board:
    """Stands for TensorBoard's writer."""

    def __init__(self) -> None:
        self.scalars: list[tuple[str, float, int]] = []
        self.closed = False

    def add_scalar(self, name: str, value: float, update: int) -> None:
        self.scalars.append((name, value, update))

    def close(self) -> None:
        self.closed = True


def test_tensorboard_gets_the_same_numbers_if_it_is_installed(tmp_path, monkeypatch):
    board = Board()
    monkeypatch.setattr(metrics_module, "_tensorboard", lambda folder, first: board)
    metrics = Metrics(tmp_path, Progress())
    metrics.write(Progress(update=3), dev_loss=2.0, dev_bleu=7.0)
    metrics.close()
    assert board.scalars == [("dev_loss", 2.0, 3), ("dev_bleu", 7.0, 3)]
    assert board.closed


def test_messages_go_to_standard_error(capsys):
    say("update 3: dev_loss 2.000")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "update 3: dev_loss 2.000\n"
