"""How good the averaged weights are on the dev split, and the best of them kept."""

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import torch

from seq2seq.checkpoint import LoadedModel, save_model
from seq2seq.data.batching import collate
from seq2seq.data.cutting import cut
from seq2seq.data.encoding import encode_pairs
from seq2seq.data.splits import group_references
from seq2seq.evaluation import score
from seq2seq.insight.figures import curves_png
from seq2seq.insight.inspection import aligning_layer
from seq2seq.storage import write_file
from seq2seq.training.card import model_card
from seq2seq.training.metrics import Metrics, read_metrics, say
from seq2seq.training.objective import summed_loss
from seq2seq.training.record import summary
from seq2seq.training.run import Run
from seq2seq.translation.translator import Translator

Item = TypeVar("Item")
ALIGNED_PAIRS = 200  # dev pairs on which the layer that aligns best is found


def validate(run: Run, metrics: Metrics) -> None:
    """Measure the averaged weights on the dev split, and keep them if they are the best."""
    config, progress = run.recipe.train, run.state.progress
    started = time.perf_counter()
    with run.state.average.applied():
        run.model.eval()
        loss = dev_loss(run)
        values = {"dev_loss": loss, "dev_perplexity": math.exp(min(loss, 100))}
        if config.validation_sentences:
            values["dev_bleu"] = dev_bleu(run)
        merit = values.get("dev_bleu", 0.0) - 1e-6 * loss  # BLEU decides, and the loss where BLEU is equal
        progress.since_best += 1
        if progress.best is None or merit > progress.best:
            progress.best, progress.best_update, progress.since_best = merit, progress.update, 0
            keep(run, values)
    progress.seconds += time.perf_counter() - started
    metrics.write(progress, **values)
    curves = curves_png(read_metrics(metrics.path))
    for folder in filter(Path.is_dir, (run.folder, run.folder / "model")):
        write_file(folder / "curves.png", [curves])
    best = " (best so far)" if progress.since_best == 0 else ""
    say(f"update {progress.update:,}: " + ", ".join(f"{name} {value:.3f}" for name, value in values.items()) + best)


def keep(run: Run, values: dict[str, float]) -> None:
    """Write the weights in place as the run's model, with the attention that aligns best and a card."""
    info = run.info
    if info.alignment is None:
        found = aligning_layer(translator(run), spread(run.dev, ALIGNED_PAIRS))
        info = info.model_copy(update={"alignment": found})
    card = model_card(run.recipe, run.state.progress, values, summary(run.folder))
    save_model(run.folder / "model", run.model.state_dict(), run.tokenizer, info, card)


def translator(run: Run) -> Translator:
    """The model as it is, as a translator."""
    return Translator(LoadedModel(run.model, run.tokenizer, run.info))


@torch.inference_mode()
def dev_loss(run: Run) -> float:
    """Cross-entropy of the dev split in nats per target token, without smoothing."""
    pairs = sorted(encode_pairs(run.dev, run.tokenizer), key=len)
    total, tokens = 0.0, 0
    for indices in cut(range(len(pairs)), [len(pair) for pair in pairs], run.recipe.train.batch_tokens):
        chunk = [pairs[index] for index in indices]
        batch = collate(chunk, run.tokenizer.pad_id, run.tokenizer.bos_id).to(run.device)
        with run.autocast():
            total += summed_loss(run.model, batch, smoothing=0.0).item()
        tokens += sum(len(pair.tgt) for pair in chunk)
    return total / tokens


def dev_bleu(run: Run) -> float:
    """BLEU of greedy translations of some dev sentences, all their renderings as references."""
    examples = spread(group_references(run.dev), run.recipe.train.validation_sentences)
    results = translator(run).translate([example.source for example in examples], beam_size=1, attention=False)
    return score([result.text for result in results], [example.references for example in examples]).bleu


def spread(items: Sequence[Item], count: int) -> Sequence[Item]:
    """At most `count` items, evenly spaced: a corpus sorted by length must not be judged by its shortest sentences."""
    count = min(count, len(items))
    return [items[index * len(items) // count] for index in range(count)]
