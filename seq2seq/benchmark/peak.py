"""The processor's peak in products of matrices, measured: what no step can be faster than."""

from typing import Any

import torch
from torch.nn import functional

from seq2seq.benchmark.machine import Stopwatch
from seq2seq.benchmark.players import Case
from seq2seq.config import ModelConfig
from seq2seq.errors import UserError

SQUARES = (256, 512, 1024, 2048)
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
Values = dict[str, Any]


def products(config: ModelConfig, vocab_size: int, tokens: int) -> list[Case]:
    """Squares, and the model's own products, (rows, inner) by (inner, columns), for a batch of some tokens."""
    width, ffn, heads = config.d_model, config.ffn, config.heads * config.head_width
    own = {
        "attention": (tokens, width, heads),
        "feed-forward in": (tokens, width, ffn),
        "feed-forward out": (tokens, ffn, width),
        "scores": (tokens, width, vocab_size),
    }
    cases = {f"{size} square": (size, size, size) for size in SQUARES}
    return [_case(label, *shape) for label, shape in (own | cases).items()]


def _case(label: str, rows: int, inner: int, columns: int) -> Case:
    return Case(f"{label} {rows} x {inner} x {columns}", {"shape": [rows, inner, columns]})


class Products:
    """One precision, in one process."""

    def __init__(self, precision: str) -> None:
        if precision not in DTYPES:
            raise UserError(f"peak: {precision!r} is not one of {', '.join(DTYPES)}")
        self.dtype = DTYPES[precision]
        self.facts: Values = {"precision": precision, "threads": torch.get_num_threads()}

    @torch.inference_mode()
    def turn(self, order: Values) -> Values:
        """One product again and again for some seconds; the best time counts."""
        rows, inner, columns = order["shape"]
        x, weight = torch.rand(rows, inner).to(self.dtype), torch.rand(columns, inner).to(self.dtype)
        functional.linear(x, weight)
        times: list[float] = []
        with Stopwatch() as watch:
            while not times or watch.elapsed < order["seconds"]:
                before = watch.elapsed
                functional.linear(x, weight)
                times.append(watch.elapsed - before)
        best = 2 * rows * inner * columns / min(times) / 1e9
        return watch.measured() | {"gflops": best, "products": len(times), "best_seconds": min(times)}

    def finish(self) -> Values:
        """Nothing more."""
        return {}
