"""Heads (sections 11 and 12): all of them on one screen, and what each does over a test split.

The survey over the split is made once, by `scripts/heads.py`, and lies in the model folder as `heads.json`.
"""

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field

from seq2seq import evaluation
from seq2seq.config import Section, validate
from seq2seq.data.splits import Example
from seq2seq.errors import UserError
from seq2seq.folder import HEADS, WEIGHTS, fingerprint
from seq2seq.insight.panels import Cell, Panel, Prose, SmallMaps, Table
from seq2seq.insight.scene import KINDS, Kind, Scene, attention_of
from seq2seq.model import MultiHeadAttention
from seq2seq.translation import alignment
from seq2seq.translation.aligner import STEPS
from seq2seq.translation.alignment import merge_pieces
from seq2seq.translation.result import SentenceTranslation
from seq2seq.translation.translator import Translator

BATCH = 64  # sentences that are laid open together
Weights = NDArray[np.floating[Any]]


class HeadFacts(Section):
    """What one head does, on the mean over the queries of a split."""

    kind: Kind
    layer: int = Field(ge=0)
    head: int = Field(ge=0)
    entropy: float = Field(ge=0, description="bits of a row of weights")
    previous: float = Field(ge=0, le=1, description="weight on the position before the query's")
    same: float = Field(ge=0, le=1, description="weight on the query's own position")
    next: float = Field(ge=0, le=1, description="weight on the position after the query's")
    mark: float = Field(ge=0, le=1, description="weight on </s> of the source; in decoder self-attention on <s>")
    agreement: float | None = Field(None, ge=0, le=1, description="cross-attention: share of the model's word links")
    bleu_lost: float = Field(description="BLEU of the model less BLEU without this head")


class Survey(Section):
    """All heads of a model over a split."""

    model: str = Field(description="fingerprint of the weights that were surveyed")
    split: str
    sentences: int = Field(ge=1)
    beam_size: int = Field(ge=1)
    bleu: float
    heads: list[HeadFacts]


def load_survey(translator: Translator) -> Survey | None:
    """The survey in a model's folder, if it has one that was made of these very weights."""
    folder = translator.engine.folder
    if folder is None or not (folder / HEADS).is_file() or not (folder / WEIGHTS).is_file():
        return None
    path = folder / HEADS
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    found = validate(Survey, values, str(path))
    return found if found.model == fingerprint(folder, translator.info) else None


def survey(
    translator: Translator,
    examples: Sequence[Example],
    split: str,
    watch: Callable[[list[HeadFacts]], Iterable[HeadFacts]] = iter,
) -> Survey:
    """Look at every head over a split. For the torch engine in float32, which searches with the weights that are shown.

    Statistics are of the model's own greedy translations; BLEU is that of greedy search. `watch` goes through the
    heads while BLEU is measured without each, which takes as long as translating the split.
    """
    sources = [example.source for example in examples]
    references = [example.references for example in examples]
    results = translator.translate(sources, beam_size=1)
    folder = translator.engine.folder
    if folder is None:
        raise UserError("this model lies in no folder, so what is measured could not be kept with it")
    model = fingerprint(folder, translator.info)
    facts = statistics(translator, [sentence for result in results for sentence in result.sentences])
    whole = evaluation.score_subset([result.text for result in results], references).bleu
    found = [
        fact.model_copy(update={"bleu_lost": round(whole - _bleu_without(translator, fact, sources, references), 2)})
        for fact in watch(facts)
    ]
    return Survey(model=model, split=split, sentences=len(examples), beam_size=1, bleu=round(whole, 2), heads=found)


def _bleu_without(
    translator: Translator, fact: HeadFacts, sources: Sequence[str], references: evaluation.References
) -> float:
    with without_head(attention_of(translator.engine.model, fact.kind, fact.layer), fact.head):
        texts = [result.text for result in translator.translate(sources, beam_size=1, attention=False)]
    return evaluation.score_subset(texts, references).bleu


@contextmanager
def without_head(attention: MultiHeadAttention, head: int) -> Iterator[None]:
    """Take one head out: what it says no longer reaches the output projection (Michel et al. 2019, section 2)."""
    weight = attention.w_o.weight
    width = weight.size(1) // attention.heads
    columns = slice(head * width, (head + 1) * width)
    kept = weight[:, columns].detach().clone()
    with torch.no_grad():
        weight[:, columns] = 0
    try:
        yield
    finally:
        with torch.no_grad():
            weight[:, columns] = kept


@torch.inference_mode()
def statistics(translator: Translator, sentences: Sequence[SentenceTranslation]) -> list[HeadFacts]:
    """Where every head looks, on the mean over all queries of some translations."""
    engine, config = translator.engine, translator.engine.model.config
    sizes = {"encoder": config.encoder_layers, "decoder": config.decoder_layers, "cross": config.decoder_layers}
    totals = {kind: np.zeros((layers, config.heads, 6)) for kind, layers in sizes.items()}
    for start in range(0, len(sentences), BATCH):
        batch = sentences[start : start + BATCH]
        trace = engine.trace([one.source_ids for one in batch], [one.target_ids for one in batch])
        for kind, layers in (("encoder", trace.encoder), ("decoder", trace.decoder), ("cross", trace.cross)):
            for layer, found in enumerate(layers):
                totals[kind][layer] += _batch_sums(kind, found.A.cpu().numpy(), batch)
    agreements = _agreements(sentences, config.decoder_layers, config.heads)
    return [
        _facts(kind, layer, head, totals[kind][layer, head], agreements[layer][head] if kind == "cross" else None)
        for kind in KINDS
        for layer in range(sizes[kind])
        for head in range(config.heads)
    ]


def _batch_sums(kind: str, weights: Weights, batch: Sequence[SentenceTranslation]) -> Weights:
    """(B, H, T, S) of a padded batch -> (H, 6): the sums of `_sums`, and how many queries they are of."""
    total = np.zeros((weights.shape[1], 6))
    for row, sentence in enumerate(batch):
        source, target = len(sentence.source_ids), len(sentence.target_ids)
        asking, answering = (source if kind == "encoder" else target), (target if kind == "decoder" else source)
        total[:, :5] += _sums(weights[row, :, :asking, :answering], mark=0 if kind == "decoder" else answering - 1)
        total[:, 5] += asking
    return total


def _sums(weights: Weights, mark: int) -> Weights:
    """(H, T, S) -> (H, 5): entropy, weight on the position before, the same, the one after, and the mark, summed."""
    logarithms = np.log2(np.where(weights > 0, weights, 1))
    near = [np.diagonal(weights, offset, axis1=1, axis2=2).sum(axis=1) for offset in (-1, 0, 1)]
    return np.stack([-(weights * logarithms).sum(axis=(1, 2)), *near, weights[:, :, mark].sum(axis=1)], axis=1)


def _facts(kind: Kind, layer: int, head: int, sums: Weights, agreement: float | None) -> HeadFacts:
    entropy, previous, same, following, mark = (round(float(value), 4) for value in sums[:5] / max(sums[5], 1))
    return HeadFacts(
        kind=kind, layer=layer, head=head, entropy=entropy, previous=previous, same=same, next=following, mark=mark,
        agreement=None if agreement is None else round(agreement, 4), bleu_lost=0.0,
    )  # fmt: skip


def _agreements(sentences: Sequence[SentenceTranslation], layers: int, heads: int) -> list[list[float]]:
    """Share of the model's word links that each head of cross-attention has, read at the step where it has more."""
    common = np.zeros((len(STEPS), layers, heads))
    links = 0
    for sentence in sentences:
        wanted = {(link.source, link.target) for link in sentence.alignment}
        links += len(wanted)
        source, target = (merge_pieces(side[:-1]) for side in (sentence.source_tokens, sentence.target_tokens))
        for (n, step), layer, head in itertools.product(enumerate(STEPS), range(layers), range(heads)):
            found = alignment.word_links(sentence.piece_attention(layer, head), source, target, step)
            common[n, layer, head] += len(wanted & {(link.source, link.target) for link in found})
    shares: list[list[float]] = (common.max(axis=0) / max(links, 1)).tolist()
    return shares


def panels(scene: Scene, found: Survey | None) -> list[Panel]:
    """Every head's map for this sentence, and the survey if the model has one."""
    shown: list[Panel] = []
    for kind, name in KINDS.items():
        layers = scene.attentions(kind)
        rows, columns = scene.labels(kind)
        names = [
            f"layer {layer}, head {head}" for layer in range(len(layers)) for head in range(scene.model.config.heads)
        ]
        weights = torch.cat([layer.A[0] for layer in layers]).cpu().numpy()  # (L * H, T, S)
        shown.append(SmallMaps(f"{name.capitalize()}: rows ask, columns answer", names, weights, rows, columns))
    if found is None:
        return [
            *shown,
            Prose(
                "What each head does over a test split has not been measured for this model: see `scripts/heads.py`."
            ),
        ]
    return [*shown, *survey_panels(found)]


def survey_panels(found: Survey) -> list[Panel]:
    """The survey as a table, and what stands out in it."""
    rows: list[list[Cell]] = [
        [
            KINDS[fact.kind], fact.layer, fact.head, round(fact.entropy, 2),
            *(f"{100 * share:.0f} %" for share in (fact.previous, fact.same, fact.next, fact.mark)),
            "" if fact.agreement is None else f"{100 * fact.agreement:.0f} %", f"{round(fact.bleu_lost, 1) + 0.0:+.1f}",
        ]
        for fact in found.heads
    ]  # fmt: skip
    worst = max(found.heads, key=lambda fact: fact.bleu_lost)
    idle = sum(1 for fact in found.heads if abs(fact.bleu_lost) < 0.1)
    return [
        Prose(
            f"Over {found.split} ({found.sentences:,} sentences, greedy, BLEU {found.bleu:.1f}): most is lost "
            f"without {KINDS[worst.kind]}, layer {worst.layer}, head {worst.head} ({worst.bleu_lost:.1f} BLEU); "
            f"{idle} of {len(found.heads)} heads change BLEU by less than 0.1."
        ),
        Prose(
            "Entropy says how widely a row of weights is spread: 0 bits for a single piece, 3 bits as for eight of "
            "equal weight. Previous, same and next are the shares of the weight on the piece before, at and after the "
            "place of the one that asks (in cross-attention: places of the source counted as those of the "
            "translation). Agreement is the share of the model's word links that are this head's, too, read where it "
            "has more of them: where a word is predicted, or has just been read. Self-attention has none."
        ),
        Table(
            "What each head does, on the mean over all queries; the mark is </s> of the source, or <s> in "
            "decoder self-attention",
            [
                "attention",
                "layer",
                "head",
                "entropy, bits",
                "previous",
                "same",
                "next",
                "mark",
                "agrees with the links",
                "BLEU lost without it",
            ],
            rows,
        ),
    ]
