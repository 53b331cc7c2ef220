"""Tiny models, a tiny corpus and a recipe for it, shared by the tests of model, search and training."""

import json
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn

from seq2seq.checkpoint import LoadedModel, save_model
from seq2seq.config import DataConfig, DecodeConfig, ModelConfig, Recipe, TokenizerConfig, TrainConfig
from seq2seq.data.splits import Pair
from seq2seq.data.tokenizer import BOS, EOS, PAD, Tokenizer
from seq2seq.folder import ModelInfo
from seq2seq.model import MultiHeadAttention, Transformer
from seq2seq.model.blocks import DecoderBlock, EncoderBlock
from seq2seq.translation.link_sets import write_links

AnyModule = TypeVar("AnyModule", bound=nn.Module)
VOCAB = 12  # of a model without a tokenizer: four special ids and eight words


def shape(**changes: Any) -> ModelConfig:
    """A model of two layers a side that runs in a millisecond."""
    values = {"d_model": 16, "heads": 2, "ffn": 24, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
    return ModelConfig(**(values | changes))


def randomise(module: AnyModule, seed: int = 0) -> AnyModule:
    """Move every parameter, so that biases and norms matter in a comparison too."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in module.parameters():
            weight.add_(0.3 * torch.randn(weight.shape, generator=generator).to(weight.dtype))
    return module


def random_model(vocab: int = VOCAB, seed: int = 0, dtype: torch.dtype = torch.float64, **changes: Any) -> Transformer:
    """A model with random weights everywhere, dropout off."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Transformer(shape(**changes), vocab, PAD)
    return randomise(model, seed).to(dtype).eval()


def random_words(rows: int, length: int, seed: int = 0) -> Tensor:
    """Rows of word ids without padding: source sentences that end with `</s>`."""
    words = torch.randint(EOS + 1, VOCAB, (rows, length), generator=torch.Generator().manual_seed(seed))
    words[:, -1] = EOS
    return words


def decoder_input(rows: int, length: int, seed: int = 1) -> Tensor:
    """Rows of word ids without padding that begin with `<s>`."""
    return random_words(rows, length, seed).roll(1, dims=1).index_fill(1, torch.tensor([0]), BOS)


# The same layers by torch.nn, with our weights.


def torch_attention(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    """torch's attention layer with the weights of ours."""
    width = ours.w_o.out_features
    return _copy_attention(ours, nn.MultiheadAttention(width, ours.heads, batch_first=True, dtype=torch.float64))


def _copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> nn.MultiheadAttention:
    projections = (ours.w_q, ours.w_k, ours.w_v)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([projection.weight for projection in projections]))
        theirs.in_proj_bias.copy_(torch.cat([projection.bias for projection in projections]))
    theirs.out_proj.load_state_dict(ours.w_o.state_dict())
    return theirs


def _layer_options(config: ModelConfig) -> dict[str, Any]:
    return {
        "d_model": config.d_model,
        "nhead": config.heads,
        "dim_feedforward": config.ffn,
        "dropout": 0.0,
        "activation": "relu",
        "norm_first": True,
        "batch_first": True,
        "dtype": torch.float64,
    }


def torch_encoder_block(ours: EncoderBlock, config: ModelConfig) -> nn.TransformerEncoderLayer:
    """torch's encoder layer with the weights of ours."""
    theirs = nn.TransformerEncoderLayer(**_layer_options(config))
    _copy_attention(ours.attention, theirs.self_attn)
    theirs.linear1.load_state_dict(ours.feed_forward.w_1.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.w_2.state_dict())
    theirs.norm1.load_state_dict(ours.attention_norm.state_dict())
    theirs.norm2.load_state_dict(ours.feed_forward_norm.state_dict())
    return theirs


def torch_decoder_block(ours: DecoderBlock, config: ModelConfig) -> nn.TransformerDecoderLayer:
    """torch's decoder layer with the weights of ours."""
    theirs = nn.TransformerDecoderLayer(**_layer_options(config))
    _copy_attention(ours.attention, theirs.self_attn)
    _copy_attention(ours.cross_attention, theirs.multihead_attn)
    theirs.linear1.load_state_dict(ours.feed_forward.w_1.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.w_2.state_dict())
    theirs.norm1.load_state_dict(ours.attention_norm.state_dict())
    theirs.norm2.load_state_dict(ours.cross_attention_norm.state_dict())
    theirs.norm3.load_state_dict(ours.feed_forward_norm.state_dict())
    return theirs


# Sixty sentence pairs, a tokenizer for them, and a recipe that trains on them in a second.

SUBJECTS = {
    "the cat": "le chat",
    "my brother": "mon frère",
    "the old king": "le vieux roi",
    "a dog": "un chien",
    "the baker": "le boulanger",
}
VERBS = {"sees": "voit", "wants": "veut", "finds": "trouve", "sells": "vend"}
OBJECTS = {"the apple": "la pomme", "a red ball": "un ballon rouge", "the bread": "le pain"}
PAIRS = [
    Pair(" ".join(words) + ".", " ".join([SUBJECTS[words[0]], VERBS[words[1]], OBJECTS[words[2]]]) + ".")
    for words in product(SUBJECTS, VERBS, OBJECTS)
]
DEV = PAIRS[5::10]
TRAIN = [pair for pair in PAIRS if pair not in DEV]


@cache
def tokenizer(vocab_size: int = 310, kind: Literal["unigram", "bpe"] = "unigram") -> Tokenizer:
    """Subwords learned from the sixty pairs."""
    config = TokenizerConfig(vocab_size=vocab_size, kind=kind)
    return Tokenizer.train((sentence for pair in PAIRS for sentence in pair), config)


def write_corpus(folder: Path) -> Path:
    """The pairs as `train.tsv` and `dev.tsv`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, pairs in (("train", TRAIN), ("dev", DEV)):
        (folder / f"{name}.tsv").write_text("".join("\t".join(pair) + "\n" for pair in pairs), encoding="utf-8")
    return folder


def write_word_links(folder: Path) -> Path:
    """Word links of the training pairs, as `scripts/link.py` writes them: a word with its like, mark with mark."""
    lines = []
    for pair in TRAIN:
        places = list(range(len(pair.source.split())))
        if pair.source.endswith("red ball."):  # the one place where the order differs: un ballon rouge
            places[-2:] = reversed(places[-2:])
        links = frozenset([*((i, j) for j, i in enumerate(places)), (len(places), len(places))])
        lines.append("\t".join((*pair, write_links(links))) + "\n")
    path = folder / "links.tsv"
    path.write_text("".join(lines), encoding="utf-8")
    return path


def tiny_recipe(corpus: Path, model: ModelConfig | None = None, **train: Any) -> Recipe:
    """A recipe over the corpus that `write_corpus` wrote."""
    values = {
        "updates": 30,
        "batch_tokens": 128,
        "learning_rate": 0.01,
        "warmup": 5,
        "precision": "float32",
        "ema": 0.8,
        "validate_every": 10,
        "validation_sentences": 0,
        "device": "cpu",
    }
    return Recipe(
        model=model or shape(encoder_layers=1, decoder_layers=1, dropout=0.1),
        tokenizer=TokenizerConfig(vocab_size=310),
        data=DataConfig(train=[str(corpus / "train.tsv")], dev=[str(corpus / "dev.tsv")]),
        train=TrainConfig(**(values | train)),
    )


def write_recipe(path: Path, recipe: Recipe) -> Path:
    """The recipe as a TOML file."""
    lines = []
    for name, values in recipe.model_dump(exclude_none=True).items():
        lines.append(f"[{name}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def model_info(config: ModelConfig, **changes: Any) -> ModelInfo:
    """`config.json` of an English-French model."""
    return ModelInfo(source="en", target="fr", model=config, **changes)


def loaded_model(seed: int = 0, decode: DecodeConfig | None = None, **changes: Any) -> LoadedModel:
    """A random model in float32 with the tokenizer of the sixty pairs."""
    model = random_model(len(tokenizer()), seed, torch.float32, **changes).requires_grad_(False)
    return LoadedModel(model, tokenizer(), model_info(model.config, decode=decode or DecodeConfig()))


def saved_model(folder: Path, seed: int = 0, decode: DecodeConfig | None = None, **changes: Any) -> Path:
    """The same as a model folder."""
    loaded = loaded_model(seed, decode, **changes)
    save_model(folder, loaded.model.state_dict(), loaded.tokenizer, loaded.info, card="# A card\n")
    return folder


def source_ids(pairs: list[Pair]) -> list[list[int]]:
    """Token ids of the sources, `</s>` last."""
    return [[*ids, EOS] for ids in tokenizer().encode_all([pair.source for pair in pairs])]
