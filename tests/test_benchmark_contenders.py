"""Who competes in the benchmark: contenders by name, and the models of others that are trained."""

import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch
from benchmarks import TRAIN, cells
from torch import nn

from seq2seq.benchmark.command import main
from seq2seq.benchmark.contenders import Contender, parse_contenders
from seq2seq.benchmark.torch_model import TorchModel
from seq2seq.benchmark.training import product_flops
from seq2seq.config import ModelConfig


def test_contenders_are_read(tmp_path, monkeypatch):
    library = tmp_path / "libfast.so"
    library.touch()
    monkeypatch.setenv("LD_PRELOAD", "")
    text = f"ours, ours:bfloat16:threads=3,torch:preload={library}:preload={library},torch:preload=none"
    ours, precise, loaded, bare = parse_contenders(text, ("ours", "torch"), ("float32", "bfloat16"), 2)
    assert ours == Contender("ours", "ours", None, 2, None)
    assert precise == Contender("ours:bfloat16:threads=3", "ours", "bfloat16", 3, None)
    assert loaded.label == "torch:preload=libfast.so:preload=libfast.so"
    assert loaded.environment()["LD_PRELOAD"] == f"{library}:{library}"
    assert bare.environment()["LD_PRELOAD"] == ""
    assert precise.environment()["OMP_NUM_THREADS"] == "3"


@pytest.mark.usefixtures("here")
def test_hugging_faces_model_gets_our_shape_and_batches(capsys, monkeypatch):
    class Model(nn.Module):
        """As much of MarianMTModel as is used."""

        def __init__(self, config):
            super().__init__()
            self.embedding = nn.Embedding(config.vocab_size, config.d_model, config.pad_token_id)

        def forward(self, input_ids, attention_mask, decoder_input_ids, use_cache):
            source = (self.embedding(input_ids) * attention_mask[..., None]).sum(dim=1, keepdim=True)
            return SimpleNamespace(logits=(self.embedding(decoder_input_ids) + source) @ self.embedding.weight.T)

    library = ModuleType("transformers")
    library.MarianConfig, library.MarianMTModel = SimpleNamespace, Model
    monkeypatch.setitem(sys.modules, "transformers", library)
    assert main(["train", *TRAIN, "--contenders", "hf"]) == 0
    assert cells(capsys.readouterr().out, "hf")[2] == "1.00"


def test_torchs_model_sees_neither_padding_nor_the_future():
    config = ModelConfig(d_model=16, heads=2, ffn=32, encoder_layers=1, decoder_layers=1, dropout=0.0)
    model = TorchModel(config, 20, 0, 3).eval()
    with torch.no_grad():
        src, tgt = torch.tensor([[5, 6, 3]]), torch.tensor([[2, 7, 8]])
        scores = model(src, tgt)
        padded = model(torch.tensor([[5, 6, 3, 0, 0]]), torch.tensor([[2, 7, 8, 0]]))[:, :3]
        changed = model(src, torch.tensor([[2, 7, 9]]))
    torch.testing.assert_close(padded, scores)
    torch.testing.assert_close(changed[:, :2], scores[:, :2])
    assert not torch.equal(changed[:, 2], scores[:, 2])


def test_the_operations_of_an_update_counted_by_hand():
    shape = ModelConfig(d_model=4, heads=2, d_head=3, ffn=5, encoder_layers=1, decoder_layers=2)
    # a layer of attention has four matrices of 4 x 6, a feed-forward layer two of 4 x 5
    a_source = (4 * 24 + 40) + 2 * 2 * 24  # the encoder's layer; keys and values of two cross-attentions
    a_target = 2 * (4 * 24 + 2 * 24 + 40) + 7 * 4  # self-attention, q and o of cross-attention; 7 pieces
    assert product_flops(shape, 7, sources=3, targets=2) == 6 * (3 * a_source + 2 * a_target)
