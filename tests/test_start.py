"""A run that starts from a model: its weights, its tokenizer, and what is no start."""

import pytest
import torch
from small import saved_model, shape, tiny_recipe
from trainings import prepared, state_of

from seq2seq.checkpoint import load_model
from seq2seq.errors import UserError
from seq2seq.training import validation
from seq2seq.training.distributed import Group
from seq2seq.training.loop import train
from seq2seq.training.run import find_checkpoint, prepare

pytestmark = pytest.mark.usefixtures("quiet")
curves_png = validation.curves_png


def test_a_run_starts_from_the_weights_and_the_tokenizer_of_a_model(unbroken, corpus, tmp_path):
    model = load_model(unbroken / "model")
    run = prepared(tiny_recipe(corpus, init=str(unbroken / "model")), tmp_path / "run")
    assert run.tokenizer.model == model.tokenizer.model
    for name, weight in model.model.state_dict().items():
        assert torch.equal(run.model.state_dict()[name], weight)
    average = dict(zip(dict(run.model.named_parameters()), run.state.average.weights, strict=True))
    assert all(torch.equal(average[name], weight) for name, weight in model.model.named_parameters())


def test_a_run_with_fewer_layers_starts_from_the_first_ones(corpus, tmp_path):
    deep = saved_model(tmp_path / "deep")
    recipe = tiny_recipe(corpus, model=shape(encoder_layers=1, decoder_layers=2), init=str(deep))
    found, weights = prepared(recipe, tmp_path / "run").model.state_dict(), load_model(deep).model.state_dict()
    assert all(torch.equal(weight, weights[name]) for name, weight in found.items())
    assert {name for name in weights.keys() - found.keys() if not name.startswith("encoder.1.")} == set()


def test_a_resumed_run_does_not_start_from_it_again(unbroken, corpus, tmp_path):
    recipe = tiny_recipe(corpus, init=str(unbroken / "model"), updates=20)
    train(recipe, tmp_path / "run")
    before = state_of(tmp_path / "run", 20)["model"]
    progress = find_checkpoint(recipe, tmp_path / "run", resume=True, resume_from=None)
    assert progress is not None
    found = prepare(recipe, tmp_path / "run", Group(), resume=True).model.state_dict()
    assert all(torch.equal(found[name], weight) for name, weight in before.items())


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"d_model": 18}, r"^model\.d_model = 18, but train\.init = '.*' has 16$"),
        ({"encoder_layers": 2}, r"^model\.encoder_layers = 2, but train\.init = '.*' has 1$"),
        ({"dropout": 0.3}, None),
    ],
)
def test_a_model_of_another_shape_is_no_start(unbroken, corpus, tmp_path, model, message):
    layers = {"encoder_layers": 1, "decoder_layers": 1}
    recipe = tiny_recipe(corpus, model=shape(**(layers | model)), init=str(unbroken / "model"))
    if message is None:
        prepared(recipe, tmp_path / "run")
        return
    with pytest.raises(UserError, match=message):
        prepared(recipe, tmp_path / "run")


def test_a_start_that_is_no_model_is_refused(corpus, tmp_path):
    with pytest.raises(UserError, match="no-such-model"):
        prepared(tiny_recipe(corpus, init="no-such-model"), tmp_path / "run")
