"""What attention costs: multiplications, memory and measured time, by length.

T target length, S source length, D d_model, K d_head, H heads, F feed-forward width, V vocabulary.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from seq2seq.config import ModelConfig
from seq2seq.insight.panels import Cell, Lines, Panel, Prose, Table
from seq2seq.insight.scene import Scene
from seq2seq.model import Transformer, attend, attend_fused

LENGTHS = (8, 16, 32, 64, 128, 256)
LONGEST = 32  # pieces that are decoded with and without the cache: the latter takes long
FLOAT = 4  # bytes


@dataclass(frozen=True)
class Cost:
    """Of one layer's self-attention by length, and of decoding a whole translation."""

    lengths: list[int]
    own: int  # the sentence's length in pieces, one of `lengths`
    products: list[int]  # of scores and mixing, all heads of one layer: O(T^2 d)
    newest: list[int]  # the same for the newest piece alone, the others' keys and values being kept: O(T d)
    table: list[int]  # bytes of the weights of all heads of one layer
    explicit: list[float]  # milliseconds, by the formula
    fused: list[float]  # by torch's kernel, which never holds the table
    decoded: list[int]  # lengths that were decoded
    cached: list[float]  # milliseconds for a whole translation of that length, with the cache
    recomputed: list[float]  # without


def attention_products(queries: int, keys: int, width: int) -> int:
    """Multiplications of Q K^T and A V together; width is that of all heads, H * K."""
    return 2 * queries * keys * width


def step_products(config: ModelConfig, vocabulary: int, prefix: int, source: int, *, cached: bool) -> int:
    """Multiplications of one decoding step for one hypothesis: the newest of `prefix` pieces, after `source` pieces.

    Without the cache the whole prefix runs again, and keys and values of the source are made anew; with it they are
    made at the first step.
    """
    width = config.heads * config.head_width
    queries = 1 if cached else prefix
    self_attention = 4 * queries * config.d_model * width + attention_products(queries, prefix, width)
    cross = 2 * queries * config.d_model * width + attention_products(queries, source, width)
    if not cached or prefix == 1:
        cross += 2 * source * config.d_model * width
    feed_forward = 2 * queries * config.d_model * config.ffn
    return config.decoder_layers * (self_attention + cross + feed_forward) + config.d_model * vocabulary


def cache_bytes(config: ModelConfig, pieces: int) -> int:
    """Keys and values of the decoder's self-attention for so many pieces, in float32."""
    return config.decoder_layers * 2 * pieces * config.heads * config.head_width * FLOAT


@torch.inference_mode()
def cost(scene: Scene) -> Cost:
    """Count and measure for the sentence at hand and for lengths up to the longest that is measured."""
    config = scene.model.config
    own = len(scene.sentence.source_tokens)
    lengths = sorted({own, *LENGTHS})
    width = config.heads * config.head_width
    decoded = sorted({min(len(scene.sentence.target_tokens), LONGEST), LONGEST // 4, LONGEST})
    explicit, fused = zip(*(_attention_times(config, length) for length in lengths), strict=True)
    cached, recomputed = zip(
        *(_decoding_times(scene.model, scene.trace.memory, length) for length in decoded), strict=True
    )
    return Cost(
        lengths=lengths,
        own=own,
        products=[attention_products(length, length, width) for length in lengths],
        newest=[attention_products(1, length, width) for length in lengths],
        table=[FLOAT * config.heads * length**2 for length in lengths],
        explicit=list(explicit),
        fused=list(fused),
        decoded=decoded,
        cached=list(cached),
        recomputed=list(recomputed),
    )


def _attention_times(config: ModelConfig, length: int) -> tuple[float, float]:
    """Milliseconds of the formula and of the kernel for one sentence."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, config.heads, length, config.head_width, generator=generator) for _ in range(3))
    return _milliseconds(lambda: attend(q, k, v)), _milliseconds(lambda: attend_fused(q, k, v))


def _milliseconds(call: Callable[[], object], tries: int = 5) -> float:
    """The quickest of some calls: what disturbs one can only make it slower."""
    times = []
    for _ in range(tries):
        started = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - started))
    return min(times)


def _decoding_times(model: Transformer, memory: Tensor, length: int) -> tuple[float, float]:
    """Milliseconds of writing `length` pieces by the decoder, with the cache and without."""
    tokens = torch.full((1, length), model.pad_id + 1)
    mask = torch.zeros(1, 1, 1, memory.size(1))

    def with_cache() -> None:
        state = model.start_from(memory, mask)
        for place in range(length):
            model.step(tokens[:, place], state)

    def without() -> None:
        for place in range(1, length + 1):
            model.logits(model.decode(tokens[:, :place], memory, mask)[:, -1])

    return _milliseconds(with_cache, 2), _milliseconds(without, 1)


def panels(found: Cost) -> list[Panel]:
    """Counted and measured, by length."""
    rows: list[list[Cell]] = [
        [f"{length} (this sentence)" if length == found.own else str(length), *counts]
        for length, *counts in zip(
            found.lengths, found.products, found.newest, found.table, found.explicit, found.fused, strict=True
        )
    ]
    return [
        Prose(
            "Scores and mixing take 2 T² d multiplications for a whole sentence of T pieces. With keys and values "
            "kept, the newest piece takes 2 T d. One layer, all heads; times are the quickest of some calls on this "
            "machine, and of a single one for translations without the cache. Projections, feed-forward layers and the "
            "vocabulary come on top: “Decoding” counts them, too. Without the cache more than "
            f"{LONGEST} pieces take too long to be measured here."
        ),
        Table(
            "One layer of self-attention by length",
            [
                "pieces",
                "multiplications, O(T² d)",
                "of the newest piece, O(T d)",
                "bytes of the weights",
                "formula, ms",
                "fused kernel, ms",
            ],
            rows,
        ),
        Lines(
            "Multiplications by length",
            "pieces",
            "multiplications",
            [float(length) for length in found.lengths],
            {"whole sentence": list(map(float, found.products)), "newest piece": list(map(float, found.newest))},
            logarithmic=True,
        ),
        Table(
            "Writing a translation of that many pieces, decoder only, one hypothesis",
            ["pieces", "with the cache, ms", "without, ms", "times"],
            [
                [pieces, with_cache, without, round(without / with_cache, 1)]
                for pieces, with_cache, without in zip(found.decoded, found.cached, found.recomputed, strict=True)
            ],
        ),
    ]
