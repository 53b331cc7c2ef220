"""The chapter's model: attention, blocks, Transformer. Imports torch and the configuration, nothing else."""

from seq2seq.model.attention import AttentionTrace, KVCache, MultiHeadAttention, attend, attend_fused
from seq2seq.model.transformer import DecoderState, ModelTrace, Transformer

__all__ = [
    "AttentionTrace",
    "DecoderState",
    "KVCache",
    "ModelTrace",
    "MultiHeadAttention",
    "Transformer",
    "attend",
    "attend_fused",
]
