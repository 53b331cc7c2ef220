"""The engine for servers: the search by CTranslate2, which is written in C++. It needs no torch, and imports none.

CTranslate2 gives no attention layer by layer, so the forced pass stays torch's, loaded when it is first asked for.
"""

import json
import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2seq.data.cutting import cut
from seq2seq.data.tokenizer import Tokenizer
from seq2seq.errors import UserError, first_line
from seq2seq.folder import CONFIG, CTRANSLATE2, ORIGIN, TOKENIZER, WEIGHTS, copy_folder, fingerprint, load_info
from seq2seq.translation.engine import Engine, Hypothesis

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from seq2seq.model import ModelTrace, Transformer
    from seq2seq.translation.constrained import Constraints
    from seq2seq.translation.torch_engine import TorchEngine

BATCH_TOKENS = 1024  # source tokens that one processor decodes together
NO_PENALTY = 1e-30  # with 0 CTranslate2 stops by another rule: when the likeliest hypothesis has ended


class CTranslate2Engine(Engine):
    """What `seq2seq export` wrote, or else any model folder, converted to float32 while it is loaded."""

    folder: Path

    def __init__(self, folder: Path, precision: str | None = None) -> None:
        self.folder, self.info = folder, load_info(folder)
        self.precision = precision or "default"  # as CTranslate2 calls that of the file
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
            self._check_origin(exported / ORIGIN)
            name, files = str(exported), None
        else:
            from seq2seq.translation.conversion import convert

            name, files = str(self.folder), convert(self.folder, self.info, self.tokenizer)
        try:
            # In another thread, since CTranslate2 sets OpenMP's number of threads for the one that opens a model: after
            # that, torch would have one thread here, too.
            with ThreadPoolExecutor(1) as aside:
                options = {"compute_type": self.precision, "inter_threads": self.processors, "intra_threads": 1}
                return aside.submit(library.Translator, name, files=files, **options).result()
        except (RuntimeError, ValueError) as error:
            raise UserError(f"{name} is damaged: {first_line(error)}: export the model again") from None

    def _check_vocabulary(self, path: Path) -> None:
        try:
            pieces = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UserError(f"{path.parent} is damaged: {first_line(error)}: export the model again") from None
        if pieces != self._pieces:
            raise UserError(f"{path} does not fit {TOKENIZER}: export the model again")

    def _check_origin(self, path: Path) -> None:
        """Refuse an export that lies beside other weights than it was made from, where there are any."""
        if not (self.folder / WEIGHTS).is_file():
            return
        if not path.is_file() or path.read_text(encoding="utf-8") != fingerprint(self.folder, self.info):
            raise UserError(f"{path.parent} was made from another {WEIGHTS} or {CONFIG}: export the model again")

    def search(self, sources: Sequence[Sequence[int]], beam_size: int, alpha: float) -> list[list[Hypothesis]]:
        """See Engine. CTranslate2 knows one length limit a call: what comes to its own limit is searched again."""
        if not sources:
            return []
        limits = [self.limit(source) for source in sources]
        results = self._search(sources, beam_size, alpha, limits)
        late = [index for index, found in enumerate(results) if self._is_late(found, limits[index])]
        if not late:
            return results
        cut_off = [sources[index] for index in late]
        if beam_size == 1:  # what a greedy search would have found with less room is the beginning of what it found
            again = [[_shortened(results[index][0], limits[index] - 1)] for index in late]
        else:
            again = self._each(cut_off, beam_size, alpha, [limits[index] - 1 for index in late])
        for index, hypotheses in zip(late, self._ended(cut_off, again, beam_size, alpha), strict=True):
            results[index] = hypotheses
        return results

    def _is_late(self, hypotheses: list[Hypothesis], limit: int) -> bool:
        """Whether one came to its limit, but for a single one that ended just there of itself."""
        longest = max(len(hypothesis.tokens) for hypothesis in hypotheses)
        return longest > limit or (longest == limit and (len(hypotheses) > 1 or hypotheses[0].truncated))

    def _search(
        self, sources: Sequence[Sequence[int]], beam_size: int, alpha: float, limits: Sequence[int]
    ) -> list[list[Hypothesis]]:
        """Hypotheses per source. Each batch is a call of its own, with the greatest of its limits.

        So a sentence that finds no end runs no longer than those in its batch may.
        """
        lengths = [len(source) for source in sources]
        order = sorted(range(len(sources)), key=lengths.__getitem__, reverse=True)
        batches = list(cut(order, lengths, self._batch_tokens(sum(lengths))))
        begun = [
            self._begin([sources[i] for i in batch], beam_size, alpha, max(limits[i] for i in batch))
            for batch in batches
        ]
        results: list[list[Hypothesis]] = [[] for _ in sources]
        for batch, found in zip(batches, begun, strict=True):
            for index, future in zip(batch, found, strict=True):
                results[index] = self._hypotheses(future.result(), alpha)
        return results

    def _each(
        self, sources: Sequence[Sequence[int]], beam_size: int, alpha: float, limits: Sequence[int]
    ) -> list[list[Hypothesis]]:
        """As `_search`, with the very limit of every source: those of one limit together."""
        results: list[list[Hypothesis]] = [[] for _ in sources]
        for limit in set(limits):
            chosen = [index for index, own in enumerate(limits) if own == limit]
            found = self._search([sources[i] for i in chosen], beam_size, alpha, [limit] * len(chosen))
            for index, hypotheses in zip(chosen, found, strict=True):
                results[index] = hypotheses
        return results

    def _begin(self, sources: Sequence[Sequence[int]], beam_size: int, alpha: float, limit: int) -> list[Any]:
        """Have a batch searched by the next thread that is free; its results to come, one a source.

        Hypotheses have at most `limit` tokens; where the limit cut one, it is without `</s>`.
        """
        begun: list[Any] = self._translator.translate_batch(
            self._written(sources),
            beam_size=beam_size,
            num_hypotheses=beam_size,
            length_penalty=alpha or NO_PENALTY,
            max_decoding_length=limit,
            max_input_length=0,  # no limit: the Translator has cut what is too long
            return_scores=True,
            return_end_token=True,
            asynchronous=True,
        )
        return begun

    def _batch_tokens(self, total: int) -> int:
        """The size of batches that are alike, at most BATCH_TOKENS, and as many for each processor."""
        rounds = math.ceil(total / (self.processors * BATCH_TOKENS))
        return math.ceil(total / (self.processors * rounds))

    def _hypotheses(self, result: Any, alpha: float) -> list[Hypothesis]:
        return [self._hypothesis(*pair, alpha) for pair in zip(result.hypotheses, result.scores, strict=True)]

    def _hypothesis(self, pieces: list[str], score: float, alpha: float) -> Hypothesis:
        tokens = tuple(map(self._ids.__getitem__, pieces))
        return Hypothesis(tokens, score * len(tokens) ** alpha, score, tokens[-1] != self.tokenizer.eos_id)

    def _ended(
        self, sources: Sequence[Sequence[int]], found: list[list[Hypothesis]], beam_size: int, alpha: float
    ) -> list[list[Hypothesis]]:
        """Hypotheses per source, best first, `</s>` forced upon those that the limit cut."""
        cut = [(row, hypothesis) for row, several in enumerate(found) for hypothesis in several if hypothesis.truncated]
        ended = [[hypothesis for hypothesis in several if not hypothesis.truncated] for several in found]
        written = self._written([sources[row] for row, _ in cut])
        targets = self._written([hypothesis.tokens for _, hypothesis in cut])
        scores = self._translator.score_batch(written, targets, max_input_length=0) if cut else []
        goes_on = [True] * len(cut) if beam_size == 1 else self._goes_on(written, targets)
        for (row, hypothesis), scored, truncated in zip(cut, scores, goes_on, strict=True):
            tokens, total = (*hypothesis.tokens, self.tokenizer.eos_id), sum(scored.log_probs)
            ended[row].append(Hypothesis(tokens, total, total / len(tokens) ** alpha, truncated))
        return [sorted(several, key=lambda hypothesis: -hypothesis.score) for several in ended]

    def _goes_on(self, sources: list[list[str]], targets: list[list[str]]) -> list[bool]:
        """Whether a translation would go on after its last token; if not, nothing is cut off where it must end."""
        if not targets:
            return []
        found = self._translator.translate_batch(
            sources,
            targets,
            beam_size=1,
            max_decoding_length=max(map(len, targets)) + 1,
            max_input_length=0,
            return_end_token=True,
        )
        following = [result.hypotheses[0][len(target)] for result, target in zip(found, targets, strict=True)]
        return [self._ids[piece] != self.tokenizer.eos_id for piece in following]

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

    def constrained(
        self, source: Sequence[int], wanted: "Constraints", beam_size: int, alpha: float
    ) -> list[Hypothesis]:
        """See Engine."""
        return self._torch.constrained(source, wanted, beam_size, alpha)

    def attention(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> "list[NDArray[np.float32]]":
        """See Engine."""
        return self._torch.attention(sources, targets)

    def likelihood(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> "list[NDArray[np.float32]]":
        """See Engine."""
        return self._torch.likelihood(sources, targets)

    def trace(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> "ModelTrace":
        """See Engine."""
        return self._torch.trace(sources, targets)

    def save(self, folder: Path) -> None:
        """See Engine; what was converted stays behind."""
        copy_folder(self.folder, folder)


def _shortened(hypothesis: Hypothesis, length: int) -> Hypothesis:
    """Its first tokens, whose score is not known."""
    return replace(hypothesis, tokens=hypothesis.tokens[:length], truncated=True)


def _library() -> Any:
    try:
        import ctranslate2
    except ImportError:
        raise UserError('engine "ctranslate2" is not installed: pip install "seq2seq[fast]"') from None
    return ctranslate2


def _processors() -> int:
    """Processors that this process may use, or as many as OMP_NUM_THREADS, which all of torch heeds, allows."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
