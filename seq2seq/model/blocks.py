"""Positions, dropout, feed-forward layer, encoder block and decoder block (pre-norm).

Shapes: B batch, S source length, T target length, D d_model.
"""

import math
from collections.abc import Iterator
from typing import Generic, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2seq.config import ModelConfig
from seq2seq.model.attention import AttentionTrace, KVCache, MultiHeadAttention

KeysValues = tuple[Tensor, Tensor]
Block = TypeVar("Block", bound=nn.Module)


def sinusoids(length: int, d_model: int, start: int = 0) -> Tensor:
    """P[p, 2i] = sin(p / 10000^(2i/D)), P[p, 2i+1] = cos(same)  (Vaswani et al. 2017, section 3.5). (length, D)."""
    position = torch.arange(start, start + length, dtype=torch.float32)[:, None]
    frequency = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float32) * (-math.log(10_000.0) / d_model))
    angle = position * frequency  # (length, D/2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)


class Dropout(nn.Module):
    """Dropout whose CPU path draws eight bytes per random number.

    torch draws one CPU random number per element, a third of a small model's training step. Here a byte decides, so
    the rate is rounded to the next 1/256, and what is kept is scaled by the exact inverse. The numbers still come
    from torch's default generator: saving its state is enough to go on exactly.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.threshold = min(round(rate * 256), 255)  # bytes below it are dropped

    def forward(self, x: Tensor) -> Tensor:
        """x of any shape; the identity outside of training."""
        if not self.training or self.rate == 0:
            return x
        if x.device.type != "cpu":
            return functional.dropout(x, self.rate)
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        kept = words.view(torch.uint8)[: x.numel()].view(x.shape) >= self.threshold
        return x * kept.to(x.dtype).mul_(256 / (256 - self.threshold))


class FeedForward(nn.Module):
    """FFN(x) = W_2 max(0, W_1 x + b_1) + b_2, at every position alike (section 3.3)."""

    def __init__(self, d_model: int, ffn: int) -> None:
        super().__init__()
        self.w_1 = nn.Linear(d_model, ffn)
        self.w_2 = nn.Linear(ffn, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., D)."""
        return self.w_2(self.w_1(x).relu())  # type: ignore[no-any-return]


class EncoderBlock(nn.Module):
    """X <- X + MHA(LN(X)); X <- X + FFN(LN(X))."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(config.d_model, config.heads, config.head_width)
        self.feed_forward = FeedForward(config.d_model, config.ffn)
        self.attention_norm = nn.LayerNorm(config.d_model)
        self.feed_forward_norm = nn.LayerNorm(config.d_model)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """x (B, S, D) -> (B, S, D)."""
        x = x + self.dropout(self.attention(self.attention_norm(x), mask=mask))
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))  # type: ignore[no-any-return]

    def trace(self, x: Tensor, mask: Tensor | None) -> tuple[Tensor, AttentionTrace]:
        """As forward without dropout; also returns what self-attention computed."""
        attended, trace = self.attention.trace(self.attention_norm(x), mask=mask)
        x = x + attended
        return x + self.feed_forward(self.feed_forward_norm(x)), trace


class DecoderBlock(nn.Module):
    """X <- X + MHA(LN(X)), causal; X <- X + MHA(LN(X), memory); X <- X + FFN(LN(X))."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(config.d_model, config.heads, config.head_width)
        self.cross_attention = MultiHeadAttention(config.d_model, config.heads, config.head_width)
        self.feed_forward = FeedForward(config.d_model, config.ffn)
        self.attention_norm = nn.LayerNorm(config.d_model)
        self.cross_attention_norm = nn.LayerNorm(config.d_model)
        self.feed_forward_norm = nn.LayerNorm(config.d_model)
        self.dropout = Dropout(config.dropout)

    def forward(
        self, x: Tensor, memory: KeysValues, causal: Tensor | None, mask: Tensor | None, cache: KVCache | None = None
    ) -> Tensor:
        """x (B, T, D); memory: this layer's cross-attention keys and values, (N, H, S, K) each.

        While a beam is decoded B = N * beam: the beams of a sentence become further queries to the same memory,
        so that it is neither copied nor reordered.
        """
        x = x + self.dropout(self.attention(self.attention_norm(x), mask=causal, cache=cache))
        queries = self.cross_attention_norm(x)
        grouped = queries.reshape(memory[0].size(0), -1, queries.size(-1))  # (N, beam * T, D)
        attended = self.cross_attention(grouped, keys_values=memory, mask=mask).reshape(x.shape)
        x = x + self.dropout(attended)
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))  # type: ignore[no-any-return]

    def trace(
        self, x: Tensor, memory: KeysValues, causal: Tensor | None, mask: Tensor | None
    ) -> tuple[Tensor, AttentionTrace, AttentionTrace]:
        """As forward without dropout; also returns what self-attention and cross-attention computed."""
        attended, self_trace = self.attention.trace(self.attention_norm(x), mask=causal)
        x = x + attended
        attended, cross_trace = self.cross_attention.trace(self.cross_attention_norm(x), memory, mask)
        x = x + attended
        return x + self.feed_forward(self.feed_forward_norm(x)), self_trace, cross_trace


class Stack(nn.ModuleList, Generic[Block]):
    """Blocks of one kind, one after the other: a ModuleList that tells the type of its members."""

    def __iter__(self) -> Iterator[Block]:
        return cast(Iterator[Block], super().__iter__())
