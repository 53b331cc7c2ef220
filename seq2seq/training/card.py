"""The card of a model that a run has made: what it learned from, how, what it scored on dev, and how to use it."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from seq2seq import __version__
from seq2seq.config import DataConfig, Recipe
from seq2seq.evaluation import bleu_settings
from seq2seq.training.state import Progress

DATA_NOTES = {
    "tatoeba": "Sentence pairs of the Tatoeba project (https://tatoeba.org) as packed by manythings.org/anki, "
    "licence CC-BY 2.0 FR.",
    "multi30k": "Multi30k (Elliott et al. 2016): captions of Flickr30k images, for non-commercial research and "
    "education only; so is this model.",
    "sample": "The sample packaged with seq2seq, about 1,500 sentence pairs: enough to see it learn, not to use it.",
}
# As the hub writes licences; whoever trains on other data knows its licence and adds it.
LICENCES = {
    "tatoeba": {"license": "cc-by-2.0"},
    "multi30k": {"license": "other", "license_name": "non-commercial-research-and-education"},
}
HUB_METRICS = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER", "perplexity": "Perplexity"}
PLACE = "OWNER/NAME"  # a model does not know where it will lie

Record = Mapping[str, Any]


def model_card(recipe: Recipe, progress: Progress, scores: dict[str, float], record: Record | None = None) -> str:
    """Markdown for the model folder's `README.md`; `record` is what the run wrote down of itself, as far as known."""
    record = record or {}
    front = yaml.safe_dump(front_matter(recipe, scores), sort_keys=False)
    parts = [
        f"---\n{front}---\n\n# {_code(_languages(recipe))} translation model",
        _what(recipe),
        _use(recipe),
        _data(recipe, progress, record),
        _training(recipe, progress, record),
        _scores(scores),
        _limits(recipe),
        f"## Recipe\n\n```json\n{json.dumps(recipe.model_dump(mode='json'), indent=2, ensure_ascii=False)}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def front_matter(recipe: Recipe, scores: Mapping[str, float]) -> dict[str, Any]:
    """What the Hugging Face hub reads: languages, licence, task, results."""
    data = recipe.data
    values: dict[str, Any] = {
        "language": [data.source, data.target],
        "library_name": "seq2seq",
        "pipeline_tag": "translation",
        "tags": ["translation", "seq2seq", "transformer", "encoder-decoder", "safetensors"],
        **_licence(data, recipe.train.init is None),
    }
    if data.dataset.startswith("hub:"):
        values["datasets"] = [data.dataset.removeprefix("hub:")]
    results = list(_results(recipe, scores))
    if results:
        values["metrics"] = sorted({metric["type"] for result in results for metric in result["metrics"]})
        values["model-index"] = [{"name": f"seq2seq {_languages(recipe)}", "results": results}]
    return values


def _licence(data: DataConfig, known: bool) -> dict[str, str]:
    """The licence of the data, the narrowest where a mixture has several; none if that of a part is not known.

    `known` is false where the run started from a model, which learned from who knows what.
    """
    parts = (data.dataset, *data.extra)
    if "multi30k" in parts:
        return LICENCES["multi30k"]
    return LICENCES.get(data.dataset, {}) if known and all(part in LICENCES for part in parts) else {}


def _results(recipe: Recipe, scores: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    """One result for each split that a score is of; names of scores are SPLIT_METRIC."""
    dataset = recipe.data.dataset.removeprefix("hub:")
    for split in dict.fromkeys(name.partition("_")[0] for name in scores):
        metrics = [
            {"type": kind, "name": f"{label} ({split})", "value": round(float(scores[f"{split}_{kind}"]), 4)}
            for kind, label in HUB_METRICS.items()
            if math.isfinite(scores.get(f"{split}_{kind}", math.nan))
        ]
        if metrics:
            yield {
                "task": {"type": "translation", "name": f"Translation {_languages(recipe)}"},
                "dataset": {"type": dataset, "name": dataset, "split": split},
                "metrics": metrics,
            }


def _languages(recipe: Recipe) -> str:
    return f"{recipe.data.source}-{recipe.data.target}"


def _what(recipe: Recipe) -> str:
    model = recipe.model
    return (
        f"An encoder-decoder Transformer ({model.encoder_layers} + {model.decoder_layers} layers, width "
        f"{model.d_model}, {model.heads} heads, {recipe.tokenizer.vocab_size:,} subword pieces) that translates from "
        f"{_code(recipe.data.source)} to {_code(recipe.data.target)}. Made with seq2seq {__version__}. Weights are in "
        "safetensors, half precision; nothing in this folder is a pickle."
    )


def _use(recipe: Recipe) -> str:
    return f"""## Use

Instead of `{PLACE}`, the model's name on the hub, the path of this folder does as well.

```sh
seq2seq translate --model {PLACE} < input.txt > output.txt
seq2seq evaluate --model {PLACE} --source test.src --reference test.ref
```

```python
from seq2seq import Translator

translator = Translator.from_pretrained("{PLACE}")
print(translator.translate("One sentence, or a whole text.").text)
```

Search: beam {recipe.decode.beam_size}, length penalty {recipe.decode.length_penalty:g}."""


def _data(recipe: Recipe, progress: Progress, record: Record) -> str:
    data = recipe.data
    named = f"{_code(data.dataset)}: {', '.join(map(_code, data.train)) or 'a dataset of the hub'}."
    parts = [f"## Data\n\n{DATA_NOTES.get(data.dataset, named)}"]
    if data.extra:
        parts.append(f"Further training pairs: {', '.join(map(_code, data.extra))}.")
        parts += [DATA_NOTES[name] for name in data.extra if name in DATA_NOTES and name != data.dataset]
    if recipe.train.init is not None:
        parts.append(f"The run started from the weights of {_code(recipe.train.init)}, and so from its data, too.")
    report = record.get("data")
    rows = list(_leaves(report)) if isinstance(report, Mapping) else []
    if rows:
        parts.append(_table(("measure", "value"), rows))
    if progress.data:
        parts.append(f"Fingerprint of the training and dev pairs (SHA-256): {_code(progress.data)}")
    return "\n\n".join(parts)


def _leaves(values: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """The single values of nested dicts, each with the words that lead to it."""
    for name, value in values.items():
        here = (*path, str(name).replace("_", " "))
        if isinstance(value, Mapping):
            yield from _leaves(value, here)
        elif isinstance(value, bool | str):
            yield ", ".join(here), str(value)
        elif isinstance(value, int | float):
            yield ", ".join(here), f"{value:,}"


def _training(recipe: Recipe, progress: Progress, record: Record) -> str:
    spent = f"{progress.update:,} updates, {progress.tokens:,} target tokens, {progress.seconds / 60:.0f} minutes"
    known = {"seed": recipe.train.seed} | {name: value for name, value in record.items() if value is not None}
    rows = [("spent", spent), ("precision", progress.precision)]
    rows += [(name, str(known[name])) for name in ("seed", "processes", "threads", "machine") if name in known]
    versions = record.get("versions") or {}
    if versions:
        rows.append(("versions", ", ".join(f"{name} {version}" for name, version in versions.items())))
    git = record.get("git") or {}
    if git.get("commit"):
        rows.append(
            ("commit", str(git["commit"]) + (" with changes that were not committed" if git.get("dirty") else ""))
        )
    return f"## Training\n\n{_table(('', ''), rows)}\n\n![Loss and BLEU while training](curves.png)"


def _scores(scores: Mapping[str, float]) -> str:
    if not scores:
        return "## Scores\n\nNone were measured."
    rows = [(name.replace("_", " "), f"{value:.3f}") for name, value in scores.items()]
    text = f"## Scores\n\n{_table(('measure', 'value'), rows)}"
    if any(name.endswith("_bleu") for name in scores):
        text += (
            "\n\nBLEU is that of greedy translations of some dev sentences while training, with every rendering of a "
            f"sentence as a reference (sacrebleu, {_code(bleu_settings())}). By it this model was chosen among those "
            "of its run; what it is worth is for a test set to say: `seq2seq evaluate`."
        )
    return text


def _limits(recipe: Recipe) -> str:
    return (
        "## Limits\n\nThe model knows the words, the subjects and the tone of its data and no others. It translates "
        "sentence by sentence and sees nothing of the sentences around; sentences over "
        f"{recipe.decode.max_source_tokens} pieces are translated in parts. It may leave out, repeat or invent, "
        "above all in what is unlike its data, and says so nowhere. The biases of the data are its own. Do not rely "
        "on it where a wrong translation does harm."
    )


def _table(head: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    lines = [head, ("---", "---"), *((_cell(name), _cell(value)) for name, value in rows)]
    return "\n".join(f"| {name} | {value} |" for name, value in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{' '.join(text.split()).replace('`', chr(39))}`"
