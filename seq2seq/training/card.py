"""The card of a model that a run has made: what it learned from, how, and what it scored on dev."""

import json

from seq2seq import __version__
from seq2seq.config import Recipe
from seq2seq.training.state import Progress

DATA_NOTES = {
    "tatoeba": "Sentence pairs of the Tatoeba project (https://tatoeba.org) as packed by manythings.org/anki, "
    "licence CC-BY 2.0 FR.",
    "multi30k": "Multi30k (Elliott et al. 2016): captions of Flickr30k images, for non-commercial research and "
    "education only; so is this model.",
    "sample": "The sample packaged with seq2seq, about 1,500 sentence pairs: enough to see it learn, not to use it.",
}


def model_card(recipe: Recipe, progress: Progress, scores: dict[str, float]) -> str:
    """Markdown for the model folder's `README.md`."""
    data = DATA_NOTES.get(recipe.data.dataset, f"`{recipe.data.dataset}`: {recipe.data.train or 'a hub dataset'}.")
    measured = "\n".join(f"| {name.replace('_', ' ')} | {value:.3f} |" for name, value in scores.items())
    return f"""# {recipe.data.source}-{recipe.data.target} translation model

Trained with seq2seq {__version__}: {progress.update:,} updates, {progress.tokens:,} target tokens,
{progress.seconds / 60:.0f} minutes.

**Data.** {data}

**Scores** on the dev split while training (BLEU by greedy search on some of its sentences; scores of the test split
come from `seq2seq evaluate`):

| measure | value |
|---|---|
{measured}

**Recipe**

```json
{json.dumps(recipe.model_dump(mode="json"), indent=2, ensure_ascii=False)}
```
"""
