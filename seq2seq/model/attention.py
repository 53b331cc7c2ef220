"""Scaled dot-product attention, several heads of it, and the cache that makes generation linear.

Shapes: B batch, H heads, T queries, S keys, D d_model, K d_head.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

FORMULA_UP_TO = {torch.float32: 64, torch.bfloat16: 512}  # keys, up to which the formula beats the kernel on a CPU
FEW_NUMBERS = 4096  # of all queries together, below which the kernel's lower overhead counts


@dataclass(frozen=True)
class AttentionTrace:
    """Everything one attention layer computed for one batch, in the letters of the formula."""

    Q: Tensor  # (B, H, T, K) queries
    K: Tensor  # (B, H, S, K) keys
    V: Tensor  # (B, H, S, K) values
    S: Tensor  # (B, H, T, S) scores, scaled and masked
    A: Tensor  # (B, H, T, S) weights, each row sums to 1
    O: Tensor  # (B, H, T, K) A V, before the output projection  # noqa: E741


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_head) + M) V  (Vaswani et al. 2017, equation 1).

    q (B, H, T, K); k, v (B, H, S, K); mask broadcasts to (B, H, T, S), 0 where allowed and -inf where forbidden.
    Returns the output (B, H, T, K), the scores and the weights (B, H, T, S).
    """
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))  # (B, H, T, S)
    if mask is not None:
        scores = scores + mask.to(scores.dtype)
    weights = scores.softmax(dim=-1)
    return weights @ v, scores, weights


def attend_fused(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The same formula as one kernel that never stores the weights; for training and decoding."""
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=None if mask is None else mask.to(q.dtype))


def attend_fastest(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The formula by whichever of the two is the faster, by the measurements of docs/performance.md.

    On a CPU torch's kernel is made for long sequences: up to some hundred keys plain products beat it, up to
    fivefold in bfloat16. For a handful of queries the kernel has less overhead.
    """
    longest = FORMULA_UP_TO.get(q.dtype, 0) if q.device.type == "cpu" and q.numel() >= FEW_NUMBERS else 0
    return attend(q, k, v, mask)[0] if k.size(-2) <= longest else attend_fused(q, k, v, mask)


@dataclass
class KVCache:
    """Keys and values of the target positions decoded so far, (rows, H, length, K); grows by one a step."""

    k: Tensor | None = None
    v: Tensor | None = None

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add the newest positions and return all of them."""
        self.k = k if self.k is None else torch.cat([self.k, k], dim=2)
        self.v = v if self.v is None else torch.cat([self.v, v], dim=2)
        return self.k, self.v

    def select(self, rows: Tensor) -> None:
        """Keep these rows, in this order: beams change places and finished sentences leave."""
        if self.k is not None and self.v is not None:
            self.k, self.v = self.k.index_select(0, rows), self.v.index_select(0, rows)


class MultiHeadAttention(nn.Module):
    """MultiHead(X) = Concat(head_1 .. head_H) W_O, each head with projections of its own (section 3.2.2)."""

    def __init__(self, d_model: int, heads: int, d_head: int) -> None:
        super().__init__()
        self.heads = heads
        self.w_q = nn.Linear(d_model, heads * d_head)
        self.w_k = nn.Linear(d_model, heads * d_head)
        self.w_v = nn.Linear(d_model, heads * d_head)
        self.w_o = nn.Linear(heads * d_head, d_model)

    def split(self, x: Tensor) -> Tensor:
        """(B, L, H*K) -> (B, H, L, K)."""
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """What the attended side offers: memory (B, S, D) -> keys and values (B, H, S, K)."""
        k, v = self._project_in(memory, self.w_k, self.w_v)
        return k, v

    def _project_in(self, x: Tensor, *projections: nn.Linear) -> list[Tensor]:
        """Several projections of x (B, L, D): (B, H, L, K) each. In training as one product, which is quicker."""
        if not torch.is_grad_enabled():
            return [self.split(projection(x)) for projection in projections]
        weight = torch.cat([projection.weight for projection in projections])
        bias = torch.cat([projection.bias for projection in projections])
        return [self.split(part) for part in functional.linear(x, weight, bias).chunk(len(projections), dim=-1)]

    def forward(
        self,
        x: Tensor,
        keys_values: tuple[Tensor, Tensor] | None = None,
        mask: Tensor | None = None,
        cache: KVCache | None = None,
    ) -> Tensor:
        """Queries from x (B, T, D); keys and values from x itself, or as given. Returns (B, T, D)."""
        if keys_values is None:
            q, k, v = self._project_in(x, self.w_q, self.w_k, self.w_v)
        else:
            q, (k, v) = self.split(self.w_q(x)), keys_values
        if cache is not None:
            k, v = cache.append(k, v)
        return self.project(attend_fastest(q, k, v, mask))

    def project(self, o: Tensor) -> Tensor:
        """Concatenate the heads and project: (B, H, T, K) -> (B, T, D)."""
        return self.w_o(o.transpose(1, 2).flatten(-2))  # type: ignore[no-any-return]

    def trace(
        self, x: Tensor, keys_values: tuple[Tensor, Tensor] | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, AttentionTrace]:
        """As forward, by the explicit formula; also returns every quantity in it."""
        q = self.split(self.w_q(x))
        k, v = self.keys_values(x) if keys_values is None else keys_values
        o, scores, weights = attend(q, k, v, mask)
        return self.project(o), AttentionTrace(Q=q, K=k, V=v, S=scores, A=weights, O=o)


def padding_mask(real: Tensor) -> Tensor:
    """real (B, S), True at tokens and False at padding -> additive mask (B, 1, 1, S)."""
    mask = torch.zeros(real.shape, dtype=torch.get_default_dtype(), device=real.device)
    return mask.masked_fill(~real, -math.inf)[:, None, None, :]


def causal_mask(length: int, device: torch.device | None = None) -> Tensor:
    """M[i, j] = 0 for j <= i, -inf for j > i: no position sees the future. (T, T)."""
    return torch.full((length, length), -math.inf, device=device).triu(diagonal=1)
