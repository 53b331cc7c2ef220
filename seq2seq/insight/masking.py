"""The causal mask (section 10): what it forbids, what the decoder does under it, and how it cheats without it."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seq2seq.insight.heatmap import HeatMap
from seq2seq.insight.panels import Panel, Prose, Table
from seq2seq.insight.scene import Scene
from seq2seq.model import Transformer
from seq2seq.model.attention import causal_mask


@dataclass(frozen=True)
class Masking:
    """One decoder layer's self-attention with the mask and, in a copy of it, without."""

    layer: int
    head: int
    read: list[str]  # pieces that the decoder reads
    predicted: list[str]  # the piece that each of them is to predict
    allowed: NDArray[np.float32]  # (T, T) 1 where a piece may look
    masked: NDArray[np.float32]  # (T, T) weights of the head
    unmasked: NDArray[np.float32]  # (T, T) its weights without the mask
    honest: list[float]  # log-probability of each predicted piece, in nats
    cheating: list[float]  # the same, where the layer sees the future

    @property
    def looks_ahead(self) -> float:
        """Mean weight on pieces that a row may not see, without the mask."""
        return float(np.triu(self.unmasked, k=1).sum(axis=1).mean())


@torch.inference_mode()
def masking(scene: Scene, layer: int, head: int) -> Masking:
    """Run the decoder over the translation with the mask, and again with one layer that has none."""
    scene.check(layer, head, "decoder")
    tokens = torch.tensor(scene.sentence.target_ids)
    tgt = torch.tensor([[scene.translator.tokenizer.bos_id, *scene.sentence.target_ids[:-1]]])
    hidden, weights = decode_unmasked(scene.model, tgt, scene.trace.memory, layer)
    read, _ = scene.labels("decoder")
    return Masking(
        layer=layer,
        head=head,
        read=read,
        predicted=scene.sentence.target_tokens,
        allowed=(causal_mask(len(read)) == 0).float().numpy(),
        masked=scene.trace.decoder[layer].A[0, head].numpy(),
        unmasked=weights[0, head].numpy(),
        honest=_log_probabilities(scene.model, scene.trace.hidden[0], tokens),
        cheating=_log_probabilities(scene.model, hidden[0], tokens),
    )


def decode_unmasked(model: Transformer, tgt: Tensor, memory: Tensor, layer: int) -> tuple[Tensor, Tensor]:
    """The decoder's output (B, T, D) where one layer sees the future, and that layer's weights (B, H, T, T)."""
    x, causal = model.embed(tgt), causal_mask(tgt.size(1), tgt.device)
    seen = None
    for number, block in enumerate(model.decoder):
        mask = None if number == layer else causal
        x, trace, _ = block.trace(x, block.cross_attention.keys_values(memory), mask, None)
        seen = trace.A if number == layer else seen
    assert seen is not None
    return model.decoder_norm(x), seen


def _log_probabilities(model: Transformer, hidden: Tensor, tokens: Tensor) -> list[float]:
    found: list[float] = model.logits(hidden).log_softmax(dim=-1).gather(1, tokens[:, None])[:, 0].tolist()
    return found


def panels(found: Masking) -> list[Panel]:
    """What is allowed, the weights with and without the mask, and what it does to the predictions."""
    where = f"decoder self-attention, layer {found.layer}, head {found.head}"
    gain = sum(found.cheating) - sum(found.honest)
    return [
        HeatMap(
            found.allowed, found.read, found.read, "Allowed (1) and forbidden: M is 0 where allowed and −∞ where not"
        ),
        HeatMap(found.masked, found.read, found.read, f"{where}, with the mask"),
        HeatMap(found.unmasked, found.read, found.read, f"{where}, without it"),
        Prose(
            f"Without the mask this head puts {100 * found.looks_ahead:.0f} % of its weight on what it may not see. "
            f"With the mask taken from all heads of layer {found.layer} the translation becomes "
            f"{'more' if gain > 0 else 'less'} probable, by {abs(gain):.2f} nats: the model has been trained under the "
            "mask and was never shown what to do with what it sees there. Trained without it, a decoder could copy the "
            "next piece instead of predicting it."
        ),
        Table(
            "Log-probability of each piece, in nats",
            ["has read", "is to predict", "with the mask", "without", "change"],
            [
                [read, piece, with_mask, without, without - with_mask]
                for read, piece, with_mask, without in zip(
                    found.read, found.predicted, found.honest, found.cheating, strict=True
                )
            ],
        ),
    ]
