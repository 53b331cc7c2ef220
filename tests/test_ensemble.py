"""Several models that translate together: the mean of their probabilities decides."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small import saved_model, tokenizer

from seq2seq.checkpoint import load_model
from seq2seq.cli import main
from seq2seq.data.tokenizer import BOS, EOS
from seq2seq.errors import UserError
from seq2seq.translation.engine import open_engine
from seq2seq.translation.ensemble import Ensemble
from seq2seq.translation.torch_engine import TorchEngine
from seq2seq.translation.translator import Translator

TEXTS = ["The dog sleeps.", "We like the garden near the house.", "No."]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two models of different weights and shapes, and the same tokenizer."""
    root = tmp_path_factory.mktemp("ensemble")
    return [saved_model(root / "one", seed=1), saved_model(root / "two", seed=2, encoder_layers=1)]


def sources() -> list[list[int]]:
    return [[*tokenizer().encode(text), EOS] for text in TEXTS]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_model_beside_itself_translates_as_alone(folders, beam_size):
    model = load_model(folders[0])
    alone = TorchEngine(model).search(sources(), beam_size, 1.0)
    together = Ensemble([model, model, model]).search(sources(), beam_size, 1.0)
    for one, other in zip(alone, together, strict=True):
        assert [each.tokens for each in one] == [each.tokens for each in other]
        assert [each.score for each in one] == pytest.approx([each.score for each in other], rel=1e-5)


def test_the_mean_of_the_probabilities_decides_and_is_the_score(folders):
    models = [load_model(folder) for folder in folders]
    for source, [found] in zip(sources(), Ensemble(models).search(sources(), 1, 1.0), strict=True):
        tgt = torch.tensor([[BOS, *found.tokens[:-1]]])
        probabilities = [
            loaded.model.logits(loaded.model(torch.tensor([source]), tgt)[0]).softmax(-1) for loaded in models
        ]
        mean = torch.stack(probabilities).mean(0)
        free = len(found.tokens) - found.truncated  # a limit forces the last token
        assert mean.argmax(-1).tolist()[:free] == list(found.tokens)[:free]
        chosen = mean[range(len(found.tokens)), list(found.tokens)]
        assert found.log_probability == pytest.approx(chosen.log().sum().item(), rel=1e-5)
    alone = [TorchEngine(loaded).search(sources(), 1, 1.0) for loaded in models]
    assert alone[0] != alone[1]


def test_python_and_the_command_line_open_the_same_ensemble(folders, capsys):
    first, second = map(str, folders)
    expected = Translator.from_pretrained(first, ensemble=[second]).translate(TEXTS[0], beam_size=2)
    assert main(["translate", "--model", first, "--ensemble", second, TEXTS[0], "--beam-size", "2"]) == 0
    assert capsys.readouterr().out == expected.text + "\n"
    assert expected.attention.shape[0] == load_model(first).info.model.decoder_layers


def test_what_is_no_ensemble_is_refused(folders, tmp_path):
    other = saved_model(tmp_path / "other", seed=3)
    (other / "tokenizer.model").write_bytes(tokenizer(kind="bpe").model)
    with pytest.raises(UserError, match=r"other has another tokenizer than .*one: they are no ensemble"):
        open_engine(folders[0], "torch", ensemble=[other])
    turned = load_model(folders[1])
    turned = replace(turned, info=turned.info.model_copy(update={"source": "fr", "target": "en"}))
    with pytest.raises(UserError, match=r"two translates between other languages than .*one"):
        Ensemble([load_model(folders[0]), turned])
    with pytest.raises(UserError, match="engine 'ctranslate2' runs one model: an ensemble needs torch"):
        open_engine(folders[0], "ctranslate2", ensemble=[folders[1]])
    with pytest.raises(UserError, match="an ensemble is not one model"):
        Translator.from_pretrained(folders[0], ensemble=[folders[1]]).save_pretrained(tmp_path / "saved")
    assert not (tmp_path / "saved").exists()
