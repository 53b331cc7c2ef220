"""The engine for servers: the search by CTranslate2, which is written in C++. It needs no torch, and imports none.

CTranslate2 gives no attention layer by layer, so the forced pass stays torch's, loaded when it is first asked for.
"""

import json
import math
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2seq.data.tokenizer import Tokenizer
from seq2seq.errors import UserError, first_line
from seq2seq.folder import CTRANSLATE2, TOKENIZER, copy_folder, load_info
from seq2seq.translation.engine import Engine, Hypothesis

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from seq2seq.model import ModelTrace, Transformer
    from seq2seq.translation.torch_engine import TorchEngine

BATCH_TOKENS = 1024  # source tokens that one processor decodes together
NO_PENALTY = 1e-30  # with 0 CTranslate2 stops by another rule: when the likeliest hypothesis has ended


class CTranslate2Engine(Engine):
    """What `seq2seq export` wrote, or else any model folder, converted to float32 while it is loaded."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.info = folder, load_info(folder)
        self.tokenizer = Tokenizer.load(folder / TOKENIZER)
        self.processors = _processors()
        self._pieces = self.tokenizer.pieces(range(len(self.tokenizer)))
        self._ids = {piece: index for index, piece in enumerate(self._pieces)}
        self._translator = self._load()

    def _load(self) -> Any:
        """One translator that works on as many batches at a time as there are processors."""
        library = _library()
        exported = self.folder / CTRANSLATE2
        if exported.is_dir():
            self._check_vocabulary(exported / "shared_vocabulary.json")
            name, files = str(exported), None
        else:
            from seq2seq.translation.conversion import convert

            name, files = str(self.folder), convert(self.folder, self.info, self.tokenizer)
        try:
            return library.Translator(name, files=files, inter_threads=self.processors, intra_threads=1)
        except (RuntimeError, ValueError) as error:
            raise UserError(f"{name} is damaged: {first_line(error)}: export the model again") from None

    def _check_vocabulary(self, path: Path) -> None:
        try:
            pieces = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UserError(f"{path.parent} is damaged: {first_line(error)}: export the model again") from None
        if pieces != self._pieces:
            raise UserError(f"{path} does not fit {TOKENIZER}: export the model again")

    def search(self, sources: Sequence[Sequence[int]], beam_size: int, alpha: float) -> list[list[Hypothesis]]:
        """See Engine. CTranslate2 knows one length limit a call: what comes to its own limit is searched again."""
        if not sources:
            return []
        limits = [self.limit(source) for source in sources]
        results = self._search(sources, beam_size, alpha, max(limits))
        late: dict[int, list[int]] = {}  # limit -> sentences that reached it
        for index, (hypotheses, limit) in enumerate(zip(results, limits, strict=True)):
            if any(len(hypothesis.tokens) >= limit for hypothesis in hypotheses):
                late.setdefault(limit, []).append(index)
        for limit, indices in late.items():
            again = self._search([sources[index] for index in indices], beam_size, alpha, limit - 1)
            for index, hypotheses in zip(indices, again, strict=True):
                results[index] = self._ended(sources[index], hypotheses, alpha)
        return results

    def _search(
        self, sources: Sequence[Sequence[int]], beam_size: int, alpha: float, limit: int
    ) -> list[list[Hypothesis]]:
        """Hypotheses of at most `limit` tokens; where the limit cut one, it is without `</s>` and truncated."""
        found = self._translator.translate_batch(
            self._written(sources),
            beam_size=beam_size,
            num_hypotheses=beam_size,
            length_penalty=alpha or NO_PENALTY,
            max_decoding_length=limit,
            max_input_length=0,  # no limit: the Translator has cut what is too long
            max_batch_size=self._batch_tokens(sum(map(len, sources))),
            batch_type="tokens",
            return_scores=True,
            return_end_token=True,
        )
        return [
            [self._hypothesis(*pair, alpha) for pair in zip(result.hypotheses, result.scores, strict=True)]
            for result in found
        ]

    def _batch_tokens(self, total: int) -> int:
        """The size of batches that are alike, at most BATCH_TOKENS, and as many for each processor."""
        rounds = math.ceil(total / (self.processors * BATCH_TOKENS))
        return math.ceil(total / (self.processors * rounds))

    def _hypothesis(self, pieces: list[str], score: float, alpha: float) -> Hypothesis:
        tokens = tuple(map(self._ids.__getitem__, pieces))
        return Hypothesis(tokens, score * len(tokens) ** alpha, score, tokens[-1] != self.tokenizer.eos_id)

    def _ended(self, source: Sequence[int], hypotheses: list[Hypothesis], alpha: float) -> list[Hypothesis]:
        """Hypotheses of one source, `</s>` forced upon those that the limit cut, best first."""
        cut = [hypothesis.tokens for hypothesis in hypotheses if hypothesis.truncated]
        whole = [hypothesis for hypothesis in hypotheses if not hypothesis.truncated]
        if not cut:
            return hypotheses
        sources, targets = self._written([source] * len(cut)), self._written(cut)
        scores = self._translator.score_batch(sources, targets, max_input_length=0)
        longest = len(cut[0]) + 1  # of the same length all: they were cut at one limit
        nexts = self._translator.translate_batch(
            sources, targets, beam_size=1, max_decoding_length=longest, max_input_length=0, return_end_token=True
        )
        for tokens, scored, following in zip(cut, scores, nexts, strict=True):
            total = sum(scored.log_probs)
            # Where `</s>` would have come next of itself, nothing was cut off.
            truncated = self._ids[following.hypotheses[0][-1]] != self.tokenizer.eos_id
            length = len(tokens) + 1
            whole.append(Hypothesis((*tokens, self.tokenizer.eos_id), total, total / length**alpha, truncated))
        return sorted(whole, key=lambda hypothesis: -hypothesis.score)

    def _written(self, rows: Sequence[Sequence[int]]) -> list[list[str]]:
        """Ids as the pieces that CTranslate2 takes and gives."""
        return [[self._pieces[index] for index in row] for row in rows]

    # What only torch can tell.

    @cached_property
    def _torch(self) -> "TorchEngine":
        from seq2seq.checkpoint import load_model
        from seq2seq.translation.torch_engine import TorchEngine

        return TorchEngine(load_model(self.folder))

    @property
    def model(self) -> "Transformer":
        """See Engine."""
        return self._torch.model

    def attention(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> "list[NDArray[np.float32]]":
        """See Engine."""
        return self._torch.attention(sources, targets)

    def trace(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> "ModelTrace":
        """See Engine."""
        return self._torch.trace(sources, targets)

    def save(self, folder: Path) -> None:
        """See Engine; what was converted stays behind."""
        copy_folder(self.folder, folder)


def _library() -> Any:
    try:
        import ctranslate2
    except ImportError:
        raise UserError('engine "ctranslate2" is not installed: pip install "seq2seq[fast]"') from None
    return ctranslate2


def _processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
