"""The scores of a run while it trains are those that the user measures afterwards, by whatever door."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from small import DEV, PAIRS, shape, tiny_recipe
from trainings import prepared, rows, small_and_quiet

from seq2seq import Translator
from seq2seq.cli import main
from seq2seq.evaluation import score
from seq2seq.training.loop import train
from seq2seq.training.validation import dev_bleu, dev_loss


@pytest.fixture(scope="module")
def learned(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that has learned enough to score."""
    folder = tmp_path_factory.mktemp("runs") / "learned"
    model = shape(d_model=32, ffn=64, encoder_layers=1, decoder_layers=1)
    recipe = tiny_recipe(
        corpus, model=model, updates=70, warmup=20, batch_tokens=512, validate_every=35, validation_sentences=100
    )
    with small_and_quiet():
        train(recipe, folder)
    return folder


@pytest.fixture(scope="module")
def bleu(learned: Path) -> float:
    """The best score of the run, as it wrote it down."""
    best = max(row["dev_bleu"] for row in rows(learned) if "dev_bleu" in row)
    assert 10 < best < 100
    return best


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The dev sentences and their references."""
    folder = tmp_path_factory.mktemp("dev")
    for name, side in (("source", 0), ("reference", 1)):
        (folder / name).write_text("".join(pair[side] + "\n" for pair in DEV), encoding="utf-8")
    return folder / "source", folder / "reference"


def test_evaluate_gives_the_number_of_the_validation(learned, bleu, files, capsys):
    source, reference = map(str, files)
    model = ["--model", str(learned / "model"), "--beam-size", "1"]
    assert main(["evaluate", *model, "--source", source, "--reference", reference, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bleu"] == pytest.approx(bleu, abs=1e-6)


def test_score_and_sacrebleus_command_give_it_too(learned, bleu, files, tmp_path, capsys):
    source, reference = map(str, files)
    output = str(tmp_path / "output")
    model = ["--model", str(learned / "model"), "--beam-size", "1"]
    assert main(["translate", *model, "--input", source, "--output", output]) == 0
    assert main(["score", "--hypothesis", output, "--reference", reference, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bleu"] == pytest.approx(bleu, abs=1e-6)
    command = [sys.executable, "-m", "sacrebleu", reference, "-i", output, "-b", "-w", "6"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert float(found) == pytest.approx(bleu, abs=1e-6)


def test_the_python_door_gives_it_too(learned, bleu):
    translator = Translator.from_pretrained(learned / "model")
    texts = [result.text for result in translator.translate([pair.source for pair in DEV], beam_size=1)]
    assert score(texts, [(pair.target,) for pair in DEV]).bleu == pytest.approx(bleu, abs=1e-6)


def test_what_is_validated_is_what_is_saved(corpus, tmp_path):
    """In half precision: a model is not chosen by a score that its file does not have."""
    run = prepared(tiny_recipe(corpus, validation_sentences=100), tmp_path / "run")
    with torch.no_grad():
        for weight in run.state.average.weights:
            weight.add_(1e-5)  # what half precision does not hold
    with run.state.average.applied():
        assert all(torch.equal(weight, weight.half().float()) for weight in run.model.parameters())
    assert run.model.embedding.weight.abs().sum() > 0


@pytest.mark.parametrize("tokens", [16, 64, 4096])
def test_the_dev_loss_does_not_depend_on_the_size_of_a_batch(corpus, tmp_path, tokens):
    run = prepared(tiny_recipe(corpus), tmp_path / "run")
    run.model.eval()
    expected = dev_loss(run)
    run.recipe = run.recipe.model_copy(update={"train": run.recipe.train.model_copy(update={"batch_tokens": tokens})})
    assert dev_loss(run) == pytest.approx(expected, rel=1e-6)


def test_every_rendering_of_a_dev_sentence_is_a_reference(corpus, tmp_path, monkeypatch):
    from seq2seq.training import validation

    seen = []
    monkeypatch.setattr(
        validation, "score", lambda texts, references: seen.append(references) or score(texts, references)
    )
    run = prepared(tiny_recipe(corpus, validation_sentences=100), tmp_path / "run")
    run.dev = [*run.dev, run.dev[0]._replace(target=PAIRS[0].target)]
    run.model.eval()
    dev_bleu(run)
    assert seen[0][0] == (DEV[0].target, PAIRS[0].target)
    assert len(seen[0]) == len(DEV)
