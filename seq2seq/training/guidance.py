"""Guided alignment (Garg et al. 2019): one head of cross-attention is taught which words belong together.

The links are between words, so they hold however the pieces of an epoch are cut. Shapes: B batch, T target length,
S source length, N links between pieces.
"""

import hashlib
import itertools
import math
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2seq.config import ModelConfig
from seq2seq.data.encoding import EncodedPair, Rows
from seq2seq.data.files import read_lines
from seq2seq.data.splits import Pair
from seq2seq.data.tokenizer import Tokenizer
from seq2seq.errors import UserError
from seq2seq.folder import AlignmentChoice
from seq2seq.model import MultiHeadAttention, Transformer
from seq2seq.translation.alignment import Words, ends_with_mark, merge_pieces
from seq2seq.translation.link_sets import read_links

MOST_WORDS = 2**16  # of a sentence
HEAD = 0
STEP: Literal["input"] = "input"


class Guide(Rows):
    """Word links of every training pair, a few bytes each.

    A row is what tells the words of the pair apart (see `_outline`), then i and j of every link; or empty.
    """

    def __init__(self) -> None:
        super().__init__(MOST_WORDS)

    @property
    def linked(self) -> int:
        """How many pairs have links."""
        return sum(length > 0 for length in self.lengths())

    def fingerprint(self) -> str:
        """A digest of all links."""
        return hashlib.sha256(self._ids.tobytes() + self._ends.tobytes()).hexdigest()

    def piece_links(self, index: int, pair: EncodedPair, tokenizer: Tokenizer) -> list[tuple[int, int]]:
        """Links (target piece, source piece) of a training pair as it is cut and varied in this epoch.

        None of a pair whose words are not those that were linked, since it was joined with another or some are hidden.
        """
        row = self[index]
        if not row or tokenizer.unk_id in pair.src:
            return []
        marked = int(pair.src[0] == tokenizer.bos_id)
        source, target = (merge_pieces(tokenizer.pieces(ids)) for ids in (pair.src[marked:-1], pair.tgt[:-1]))
        outline = _outline(source, target)
        if row[: len(outline)] != outline:
            return []
        links = row[len(outline) :]
        words = zip(links[::2], links[1::2], strict=True)
        return sorted((j, i + marked) for a, b in words for j in target.pieces[b] for i in source.pieces[a])


def read_guide(path: str, pairs: Iterable[Pair]) -> Guide:
    """Links of the pairs from a file of `source TAB target TAB links`, as `scripts/link.py` writes it."""
    known: dict[tuple[str, str], array[int]] = {}
    for number, line in enumerate(read_lines(Path(path)), 1):
        try:
            source, target, links = _cells(line)
            known[source, target] = _row(source, target, links)
        except UserError as error:
            raise UserError(f"{path}, line {number}: {error}") from None
    guide = Guide()
    for pair in pairs:
        guide.append(known.get(pair.without_tabs(), []))
    if not guide.linked:
        raise UserError(f"{path} has links of none of the training pairs: make it with scripts/link.py")
    return guide


def _cells(line: str) -> list[str]:
    cells = line.split("\t")
    if len(cells) != 3:
        raise UserError(f"{len(cells)} columns, not source, target and links")
    return cells


def _row(source: str, target: str, links: str) -> "array[int]":
    found, words = read_links(links), [words_of(text) for text in (source, target)]
    counts = [len(side.words) for side in words]
    if any(i >= counts[0] or j >= counts[1] for i, j in found):
        raise UserError(f"a link leads outside the {counts[0]} and {counts[1]} words")
    if max(counts) >= MOST_WORDS:
        raise UserError(f"a sentence has {max(counts):,} words: at most {MOST_WORDS - 1:,}")
    return array("H", [*_outline(*words), *itertools.chain.from_iterable(sorted(found))])


def _outline(source: Words, target: Words) -> list[int]:
    """How many words each side has and whether the last is a mark: links hold while this stays as it was."""
    sides = (source.words, target.words)
    return [*map(len, sides), *(int(ends_with_mark(words)) for words in sides)]


def words_of(text: str) -> Words:
    """The words that links count: split at spaces, outer punctuation apart."""
    return merge_pieces([text])


def guided_head(config: ModelConfig) -> AlignmentChoice:
    """The head that is taught: the first one of the last layer but one, where attention aligns best by itself.

    It learns at the `input` step, where it knows the word that it is to align (Chen et al. 2020, section 3).
    """
    return AlignmentChoice(layer=max(config.decoder_layers - 2, 0), head=HEAD, step=STEP, taught=True)


def link_loss(scores: Tensor, links: Tensor, step: str) -> Tensor:
    """Cross-entropy, in nats, of one head's attention against links, summed over the target pieces that have one.

    scores (B, T, S) before the softmax; links (N, 3): row of the batch, target piece, source piece. A piece with
    several links is to attend to them all alike.
    """
    batch, target, source = links.unbind(1)
    rows = batch * scores.size(1) + target
    count = torch.bincount(rows, minlength=scores.size(0) * scores.size(1))[rows]
    asked = target if step == "output" else target + 1  # `</s>` follows every target piece
    picked = scores.float().log_softmax(dim=-1)[batch, asked, source]
    return -(picked / count).sum()


@contextmanager
def head_scores(model: Transformer, layer: int, head: int) -> Iterator[list[Tensor]]:
    """Fills the list that it yields with the scores (B, T, S) of one head of cross-attention, at every pass inside."""
    attention: MultiHeadAttention = list(model.decoder)[layer].cross_attention
    seen: list[Tensor] = []
    width = attention.w_q.out_features // attention.heads
    own = slice(head * width, (head + 1) * width)

    def look(module: nn.Module, arguments: tuple[Tensor], options: dict[str, Any]) -> None:
        (x,), (k, _) = arguments, options["keys_values"]
        q = functional.linear(x, attention.w_q.weight[own], attention.w_q.bias[own])  # (B, T, K)
        seen.append(q @ k[:, head].transpose(1, 2) / math.sqrt(width) + options["mask"][:, 0])

    handle = attention.register_forward_pre_hook(look, with_kwargs=True)
    try:
        yield seen
    finally:
        handle.remove()
