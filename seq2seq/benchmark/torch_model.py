"""torch's own Transformer as its tutorial uses it: the contender that every machine with torch has."""

import math

import torch
from torch import Tensor, nn

from seq2seq.config import ModelConfig

MOST = 1024  # positions


class TorchModel(nn.Module):
    """`nn.Transformer` (post-norm) between one tied embedding; sinusoidal positions, added."""

    def __init__(self, config: ModelConfig, vocab_size: int, pad_id: int, eos_id: int) -> None:
        super().__init__()
        self.pad_id, self.scale = pad_id, math.sqrt(config.d_model)
        self.embedding = nn.Embedding(vocab_size, config.d_model, padding_idx=pad_id)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        self.dropout = nn.Dropout(config.dropout)
        self.core = nn.Transformer(
            config.d_model,
            config.heads,
            config.encoder_layers,
            config.decoder_layers,
            config.ffn,
            config.dropout,
            batch_first=True,
        )
        self.core.encoder.use_nested_tensor = False  # a prototype, says its warning
        for weight in self.core.parameters():
            if weight.dim() > 1:
                nn.init.xavier_uniform_(weight)
        position = torch.arange(MOST)[:, None] / 10_000 ** (torch.arange(0, config.d_model, 2) / config.d_model)
        self.register_buffer("positions", torch.cat([position.sin(), position.cos()], dim=1))

    def embed(self, tokens: Tensor) -> Tensor:
        """(B, L) -> (B, L, D)."""
        positions = self.get_buffer("positions")[: tokens.size(1)]
        return self.dropout(self.embedding(tokens) * self.scale + positions)  # type: ignore[no-any-return]

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """src (B, S), tgt (B, T) -> scores (B, T, V)."""
        padding = src == self.pad_id
        future = torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool).triu(diagonal=1)
        hidden = self.core(
            self.embed(src),
            self.embed(tgt),
            tgt_mask=future,
            src_key_padding_mask=padding,
            tgt_key_padding_mask=tgt == self.pad_id,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return hidden @ self.embedding.weight.T  # type: ignore[no-any-return]
