"""Hugging Face's Marian of the same shape, with random weights: transformers is imported here alone."""

from torch import Tensor, nn

from seq2seq.config import ModelConfig
from seq2seq.errors import UserError


class Marian(nn.Module):
    """MarianMTModel behind the interface of the other contenders."""

    def __init__(self, model: nn.Module, pad_id: int) -> None:
        super().__init__()
        self.model, self.pad_id = model, pad_id

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """src (B, S), tgt (B, T) -> scores (B, T, V)."""
        found = self.model(
            input_ids=src, attention_mask=(src != self.pad_id).long(), decoder_input_ids=tgt, use_cache=False
        )
        return found.logits  # type: ignore[no-any-return]


def make_marian(config: ModelConfig, vocab_size: int, pad_id: int, eos_id: int) -> Marian:
    """Post-norm, tied embeddings, sinusoidal positions, ReLU, as its translation models have them."""
    try:
        import transformers  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise UserError("hf needs transformers, which is not installed: pip install transformers") from None
    settings = transformers.MarianConfig(
        vocab_size=vocab_size,
        decoder_vocab_size=vocab_size,
        d_model=config.d_model,
        encoder_layers=config.encoder_layers,
        decoder_layers=config.decoder_layers,
        encoder_attention_heads=config.heads,
        decoder_attention_heads=config.heads,
        encoder_ffn_dim=config.ffn,
        decoder_ffn_dim=config.ffn,
        activation_function="relu",
        dropout=config.dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        init_std=config.d_model**-0.5,
        scale_embedding=True,
        max_position_embeddings=1024,
        pad_token_id=pad_id,
        eos_token_id=eos_id,
        forced_eos_token_id=eos_id,
        decoder_start_token_id=pad_id,
    )
    return Marian(transformers.MarianMTModel(settings), pad_id)
