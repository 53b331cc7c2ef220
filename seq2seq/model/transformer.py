"""The encoder-decoder Transformer: embeddings and positions in, two stacks, scores over the vocabulary out.

Shapes: B batch, S source length, T target length, D d_model, V vocabulary.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from seq2seq.config import ModelConfig
from seq2seq.model.attention import AttentionTrace, KVCache, causal_mask, padding_mask
from seq2seq.model.blocks import DecoderBlock, Dropout, EncoderBlock, KeysValues, Stack, sinusoids


@dataclass(frozen=True)
class ModelTrace:
    """A forward pass laid open: one AttentionTrace per layer of each kind of attention."""

    encoder: list[AttentionTrace]
    decoder: list[AttentionTrace]
    cross: list[AttentionTrace]
    memory: Tensor  # (B, S, D) the encoder's output
    hidden: Tensor  # (B, T, D) the decoder's output
    encoder_states: list[Tensor]  # (B, S, D) H = X + P, then what each block made of it, before the last norm
    decoder_states: list[Tensor]  # (B, T, D) the same of the decoder


@dataclass
class DecoderState:
    """What decoding one token at a time needs to remember: N sentences, N * beam rows."""

    memory: list[KeysValues]  # per layer, cross-attention keys and values (N, H, S, K), computed once
    mask: Tensor  # (N, 1, 1, S)
    caches: list[KVCache]  # per layer, self-attention over the prefix
    position: int = 0

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """Keep these rows (and, if sentences have finished, these sentences) in this order."""
        for cache in self.caches:
            cache.select(rows)
        if sentences is not None:
            self.memory = [(k.index_select(0, sentences), v.index_select(0, sentences)) for k, v in self.memory]
            self.mask = self.mask.index_select(0, sentences)


class Transformer(nn.Module):
    """Pre-norm encoder-decoder; source, target and output share one embedding matrix (Press and Wolf 2017)."""

    def __init__(self, config: ModelConfig, vocab_size: int, pad_id: int = 0) -> None:
        super().__init__()
        self.config = config
        self.pad_id = pad_id
        self.embedding = nn.Embedding(vocab_size, config.d_model, padding_idx=pad_id)
        self.dropout = Dropout(config.dropout)
        self.encoder = Stack[EncoderBlock](EncoderBlock(config) for _ in range(config.encoder_layers))
        self.decoder = Stack[DecoderBlock](DecoderBlock(config) for _ in range(config.decoder_layers))
        self.encoder_norm = nn.LayerNorm(config.d_model)
        self.decoder_norm = nn.LayerNorm(config.d_model)
        self._initialise()

    def _initialise(self) -> None:
        """Embeddings of variance 1/D (1 after scaling), Xavier matrices, zero biases.

        What writes into the residual stream starts smaller, by 1/sqrt(number of writers), so that its variance
        does not grow with depth.
        """
        nn.init.normal_(self.embedding.weight, std=self.config.d_model**-0.5)
        with torch.no_grad():
            self.embedding.weight[self.pad_id].zero_()
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        for stack, writers in ((self.encoder, 2), (self.decoder, 3)):
            for name, weight in stack.named_parameters():
                if name.endswith(("w_o.weight", "w_2.weight")):
                    weight.data.div_(math.sqrt(writers * len(stack)))

    def embed(self, tokens: Tensor, start: int = 0) -> Tensor:
        """H = X + P: tokens (B, L) at positions start, start+1, ... -> (B, L, D)."""
        x = self.embedding(tokens) * math.sqrt(self.config.d_model)
        positions = sinusoids(tokens.size(1), self.config.d_model, start).to(x.device, x.dtype)
        return self.dropout(x + positions)  # type: ignore[no-any-return]

    def source_mask(self, src: Tensor) -> Tensor:
        """Additive mask (B, 1, 1, S) that hides padding."""
        return padding_mask(src != self.pad_id)

    def encode(self, src: Tensor) -> Tensor:
        """src (B, S) -> memory (B, S, D)."""
        x, mask = self.embed(src), self.source_mask(src)
        for block in self.encoder:
            x = block(x, mask)
        return self.encoder_norm(x)  # type: ignore[no-any-return]

    def decode(self, tgt: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        """Teacher forcing: tgt (B, T) begins with <s>; memory (B, S, D) and its mask -> hidden (B, T, D)."""
        x, causal = self.embed(tgt), causal_mask(tgt.size(1), tgt.device)
        for block in self.decoder:
            x = block(x, block.cross_attention.keys_values(memory), causal, mask)
        return self.decoder_norm(x)  # type: ignore[no-any-return]

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """src (B, S), tgt (B, T) -> hidden (B, T, D); row t predicts the token after tgt[:, t]."""
        return self.decode(tgt, self.encode(src), self.source_mask(src))

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores over the vocabulary by the tied embedding: (..., D) -> (..., V)."""
        return hidden @ self.embedding.weight.T

    def start(self, src: Tensor) -> DecoderState:
        """Encode src (N, S) and prepare to decode it token by token."""
        return self.start_from(self.encode(src), self.source_mask(src))

    def start_from(self, memory: Tensor, mask: Tensor) -> DecoderState:
        """Prepare to decode what is encoded already: memory (N, S, D) and its mask (N, 1, 1, S)."""
        keys_values = [block.cross_attention.keys_values(memory) for block in self.decoder]
        return DecoderState(keys_values, mask, [KVCache() for _ in self.decoder])

    def step(self, tokens: Tensor, state: DecoderState) -> Tensor:
        """Feed the newest token of every row, (N * beam,) -> logits of the next one, (N * beam, V)."""
        x = self.embed(tokens[:, None], start=state.position)
        for block, memory, cache in zip(self.decoder, state.memory, state.caches, strict=True):
            x = block(x, memory, None, state.mask, cache)
        state.position += 1
        return self.logits(self.decoder_norm(x)[:, -1])

    def trace(self, src: Tensor, tgt: Tensor) -> ModelTrace:
        """The forward pass by the explicit formula (no dropout), with every attention layer's quantities."""
        mask = self.source_mask(src)
        encoder_states, encoder_traces = self.trace_encoder(src)
        memory = self.encoder_norm(encoder_states[-1])
        states, causal = [self.embed(tgt)], causal_mask(tgt.size(1), tgt.device)
        decoder_traces, cross_traces = [], []
        for block in self.decoder:
            keys_values = block.cross_attention.keys_values(memory)
            x, self_trace, cross_trace = block.trace(states[-1], keys_values, causal, mask)
            states.append(x)
            decoder_traces.append(self_trace)
            cross_traces.append(cross_trace)
        hidden = self.decoder_norm(states[-1])
        return ModelTrace(encoder_traces, decoder_traces, cross_traces, memory, hidden, encoder_states, states)

    def trace_encoder(self, src: Tensor) -> tuple[list[Tensor], list[AttentionTrace]]:
        """As encode: the state that enters the first block and the one that leaves each, and a trace a layer."""
        states, mask, traces = [self.embed(src)], self.source_mask(src), []
        for block in self.encoder:
            x, trace = block.trace(states[-1], mask)
            states.append(x)
            traces.append(trace)
        return states, traces
