"""Ablations: a recipe, and what becomes of its score when one thing in it is changed.

Every run is of its own folder and ends before the next begins, so the same call goes on where it was interrupted.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import Field

from seq2seq import evaluation
from seq2seq.checkpoint import LoadedModel, load_model
from seq2seq.config import DecodeConfig, Recipe, Section, load_recipe, read_toml, validate
from seq2seq.data.corpus import load_split
from seq2seq.data.splits import Example, group_references
from seq2seq.errors import UserError
from seq2seq.folder import find_model, load_info
from seq2seq.training.loop import train
from seq2seq.training.metrics import read_metrics, say
from seq2seq.training.run import check_shape
from seq2seq.translation.translator import Translator

AS_IT_IS = "the recipe"


class Plan(Section):
    """A file of ablations: the time that each run has, and the rows of the table."""

    minutes: float | None = Field(None, gt=0, description="of training, the same for every row; none: as the recipe")
    base: list[str] = Field([], description="settings that all rows share, beside those of the recipe")
    rows: dict[str, list[str]] = Field(min_length=1, description="name of a row: the settings that it changes")


@dataclass(frozen=True)
class Trial:
    """A row of the table before it is run: what its model is trained by and where, and how that is searched."""

    name: str
    recipe: Recipe
    folder: Path
    decode: DecodeConfig


@dataclass(frozen=True)
class Outcome:
    """What a trial came to on the dev split; `p_value` by paired bootstrap of BLEU against the recipe as it is."""

    name: str
    parameters: int
    updates: int
    dev_loss: float  # nats a piece
    bleu: float
    moses: float | None  # None where Moses does not know the language
    chrf: float
    p_value: float | None


def load_trials(recipe: Path, plan: Path, output: Path) -> list[Trial]:
    """All trials of a plan, each validated before the first one is run; the first is the recipe as it is."""
    asked = validate(Plan, read_toml(plan, str(plan)), str(plan))
    shared = asked.base + ([] if asked.minutes is None else [f"train.minutes={asked.minutes}"])
    base = load_recipe(recipe, shared)
    trials = {output / "as-it-is": Trial(AS_IT_IS, base, output / "as-it-is", base.decode)}
    for name, changes in asked.rows.items():
        changed = load_recipe(recipe, shared + changes)
        check_start(changed)
        folder = output / re.sub(r"\W+", "-", name).strip("-")
        if folder == output:
            raise UserError(f"{plan}: {name!r} has no letter or digit, so no folder can be named after it")
        if folder in trials:
            raise UserError(f"{plan}: {name!r} and {trials[folder].name!r} would share the folder {folder}")
        trained = changed.model_copy(update={"decode": base.decode})
        trials[folder] = Trial(name, trained, output / "as-it-is" if trained == base else folder, changed.decode)
    return list(trials.values())


def check_start(recipe: Recipe) -> None:
    """Refuse a start from a model that the recipe's does not fit, before the rows above it are trained."""
    if recipe.train.init is not None:
        check_shape(recipe, load_info(find_model(recipe.train.init)))


def ablate(trials: Sequence[Trial]) -> Iterator[Outcome]:
    """Train what is not trained yet, and score each trial on the dev split as soon as its model is there."""
    examples: list[Example] | None = None
    baseline: list[str] = []
    for trial in trials:
        say(f"{trial.name}: {trial.folder}")
        train(trial.recipe, trial.folder, resume=trial.folder.is_dir())
        examples = examples or group_references(load_split(trial.recipe.data, "dev"))
        model = load_model(trial.folder / "model")
        hypotheses = translate(model, trial.decode, [example.source for example in examples])
        baseline = baseline or hypotheses
        size = sum(weight.numel() for weight in model.model.parameters())
        yield score(trial, size, hypotheses, baseline, examples)


def translate(model: LoadedModel, decode: DecodeConfig, sources: Sequence[str]) -> list[str]:
    """The sources by a model, searched as `decode` says."""
    translator = Translator(replace(model, info=model.info.model_copy(update={"decode": decode})))
    return [result.text for result in translator.translate(sources, attention=False)]


def score(
    trial: Trial, size: int, hypotheses: Sequence[str], baseline: Sequence[str], examples: Sequence[Example]
) -> Outcome:
    """Scores of a trial, and how sure its difference from the baseline is."""
    references = [example.references for example in examples]
    scores = evaluation.score_subset(hypotheses, references)
    p_value = None
    if list(hypotheses) != list(baseline):
        p_value = evaluation.compare(baseline, hypotheses, references)[0].bootstrap.p_value
    validations = [row for row in read_metrics(trial.folder / "metrics.jsonl") if "dev_loss" in row]
    best = max(validations, key=lambda row: (row.get("dev_bleu", 0.0), -row["dev_loss"]))  # whose model is kept
    return Outcome(
        name=trial.name,
        parameters=size,
        updates=validations[-1]["update"],
        dev_loss=best["dev_loss"],
        bleu=scores.bleu,
        moses=moses_bleu(hypotheses, references, trial.recipe.data.target),
        chrf=scores.chrf,
        p_value=p_value,
    )


def moses_bleu(hypotheses: Sequence[str], references: evaluation.References, language: str) -> float | None:
    """BLEU on Moses' tokens; None where Moses does not know the language."""
    try:
        return evaluation.moses_bleu(hypotheses, references, language).bleu
    except UserError:
        return None
