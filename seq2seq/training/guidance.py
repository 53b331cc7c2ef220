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
from typing import Any, Literal, NamedTuple

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
OUTLINE = 4  # numbers that `_outline` gives
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

    def piece_links(
        self, index: int, pair: EncodedPair, tokenizer: Tokenizer, partner: int | None = None
    ) -> list[tuple[int, int]]:
        """Links (target piece, source piece) of a training pair as it is cut and varied in this epoch.

        Pieces of a target word without a link are linked with the source's `</s>`, which stands for no word (the NULL
        of Brown et al. 1993). `partner` is the number of the pair that was joined to this one. No links at all of a
        pair whose words are not those that were linked, since a name has become longer or some are hidden.
        """
        marked = int(pair.src[0] == tokenizer.bos_id)
        sides = pair.src[marked:-1], pair.tgt[:-1]
        source, target = (merge_pieces(tokenizer.pieces(ids), clitics_apart=True) for ids in sides)
        links = None if tokenizer.unk_id in pair.src else self._fitting(_outline(source, target), index, partner)
        if not links:
            return []
        linked = {b for _, b in links}
        end = len(pair.src) - 1
        nothing = [(j, end) for b, pieces in enumerate(target.pieces) if b not in linked for j in pieces]
        return sorted(nothing + [(j, i + marked) for a, b in links for j in target.pieces[b] for i in source.pieces[a]])

    def _fitting(self, outline: list[int], index: int, partner: int | None) -> list[tuple[int, int]] | None:
        """Links of words, if the words of a varied pair are those that were linked, perhaps but for the final marks."""
        known = self._known(index)
        if known and partner is not None:
            known = known.followed_by(self._known(partner))
        if known and known.outline != outline:
            known = known.without_final_marks()
        return known.links if known and known.outline == outline else None

    def _known(self, index: int) -> "_Linked | None":
        row = self[index]
        outline, links = row[:OUTLINE], row[OUTLINE:]
        return _Linked(outline, list(zip(links[::2], links[1::2], strict=True))) if links else None


class _Linked(NamedTuple):
    """A pair's outline and the links (source word, target word) of its words."""

    outline: list[int]
    links: list[tuple[int, int]]

    def followed_by(self, other: "_Linked | None") -> "_Linked | None":
        """Two pairs as two sentences of one text."""
        if other is None:
            return None
        (i, j, *_), (more_i, more_j, *marks) = self.outline, other.outline
        return _Linked([i + more_i, j + more_j, *marks], [*self.links, *((a + i, b + j) for a, b in other.links)])

    def without_final_marks(self) -> "_Linked | None":
        """The pair without the marks that end both its sides."""
        i, j, *marks = self.outline
        kept = [(a, b) for a, b in self.links if a < i - 1 and b < j - 1]
        return _Linked([i - 1, j - 1, 0, 0], kept) if all(marks) else None


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
    """The words that links count: split at spaces; outer punctuation and clitics apart (`l'` `ami`, `do` `n't`)."""
    return merge_pieces([text], clitics_apart=True)


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
