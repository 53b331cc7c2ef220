"""What runs the model: token ids in, hypotheses and attention out. Each engine is imported when it is asked for."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from seq2seq.data.tokenizer import Tokenizer
from seq2seq.errors import UserError
from seq2seq.folder import ModelInfo, find_model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from seq2seq.model import ModelTrace, Transformer
    from seq2seq.translation.constrained import Constraints

PRECISIONS = {"torch": ("float32", "bfloat16"), "ctranslate2": ("float32", "int8")}  # by engine


@dataclass(frozen=True)
class Hypothesis:
    """One translation as token ids; `</s>` is the last of them and is counted in length and score."""

    tokens: tuple[int, ...]
    log_probability: float  # sum over tokens, natural logarithm
    score: float  # log_probability / length ** alpha  (Wu et al. 2016, section 7, simplified)
    truncated: bool  # `</s>` was forced because the length limit was reached


class Engine(ABC):
    """A model that searches. Threads may share it."""

    info: ModelInfo
    tokenizer: Tokenizer
    folder: Path | None  # that the model was loaded from

    @property
    @abstractmethod
    def model(self) -> "Transformer":
        """The weights in torch."""

    @abstractmethod
    def search(self, sources: Sequence[Sequence[int]], beam_size: int, alpha: float) -> list[list[Hypothesis]]:
        """Hypotheses per source (ids with `</s>`), best first, in the order given."""

    @abstractmethod
    def constrained(
        self, source: Sequence[int], wanted: "Constraints", beam_size: int, alpha: float
    ) -> list[Hypothesis]:
        """Hypotheses within constraints, best first; none if the phrases do not fit into the longest translation."""

    @abstractmethod
    def attention(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> "list[NDArray[np.float32]]":
        """Cross-attention (layers, heads, T, S) of a forced pass over each pair."""

    @abstractmethod
    def likelihood(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> "list[NDArray[np.float32]]":
        """Log-probability (T,) of every target token, in nats, in a forced pass over each pair of ids with `</s>`."""

    @abstractmethod
    def trace(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> "ModelTrace":
        """A forced pass over pairs of ids (both with `</s>`), every attention laid open; row t predicts target t."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the model as a new model folder."""

    def limit(self, source: Sequence[int]) -> int:
        """The longest translation of a source, `</s>` included."""
        return int(self.info.decode.max_length_ratio * len(source)) + 10


def open_engine(
    name: str | Path | None,
    engine: str,
    precision: str | None = None,
    ensemble: Sequence[str | Path] = (),
    rerank: str | Path | None = None,
) -> Engine:
    """The model of a folder, a bundled name or a hub id, in one of the engines; with `ensemble`, it and more models.

    Without a precision, float32, or that of an exported model. `rerank` is a model of the other direction.
    """
    if rerank is not None:
        from seq2seq.translation.reranking import Reranked

        return Reranked(open_engine(name, engine, precision, ensemble), open_engine(rerank, "torch"))
    if engine not in PRECISIONS:
        raise UserError(f"engine {engine!r} is not one of {', '.join(PRECISIONS)}")
    if precision not in (None, *PRECISIONS[engine]):
        raise UserError(f"precision {precision!r} is not one of {', '.join(PRECISIONS[engine])}, which {engine} has")
    if engine == "torch":
        from seq2seq.checkpoint import load_model
        from seq2seq.translation.torch_engine import TorchEngine

        if ensemble:
            from seq2seq.translation.ensemble import Ensemble

            return Ensemble([load_model(one) for one in (name, *ensemble)], precision or "float32")
        return TorchEngine(load_model(name), precision or "float32")
    if ensemble:
        raise UserError(f"engine {engine!r} runs one model: an ensemble needs torch")
    from seq2seq.translation.ctranslate2_engine import CTranslate2Engine

    return CTranslate2Engine(find_model(name), precision)
