"""A model folder's weights in the file format of CTranslate2, by numpy alone: neither torch nor CTranslate2 is asked.

CTranslate2's own converter imports torch, and a translator that does without torch is to start without it. The names
and the format are those of its `TransformerSpec`; a test holds both converters' models equal.
"""

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from seq2seq.data.tokenizer import Tokenizer
from seq2seq.errors import UserError
from seq2seq.folder import (
    CTRANSLATE2,
    ORIGIN,
    TOKENIZER,
    ModelInfo,
    copy_files,
    fingerprint,
    load_info,
    misfit,
    read_weights,
    refuse_existing,
)
from seq2seq.storage import replacing

MODEL, SETTINGS, VOCABULARY = "model.bin", "config.json", "shared_vocabulary.json"
QUANTIZATIONS = ("float32", "int8")
POSITIONS = 1024  # at least; more if the model may read or write more
BINARY_VERSION, SPECIFICATION, REVISION = 6, "TransformerSpec", 7
TYPES = ("float32", "int8", "int16", "int32")  # as the format numbers them

Array = NDArray[Any]
Weights = NDArray[np.float32]


def export(model: Path, output: Path, quantization: str = "float32") -> None:
    """Write a copy of a model folder that also holds what CTranslate2 reads, whole or not at all."""
    refuse_existing(output)
    info = load_info(model)
    files = convert(model, info, Tokenizer.load(model / TOKENIZER), quantization)
    files[ORIGIN] = fingerprint(model, info).encode()
    with replacing(output) as temporary:
        copy_files(model, temporary)
        (temporary / CTRANSLATE2).mkdir()
        for name, content in files.items():
            (temporary / CTRANSLATE2 / name).write_bytes(content)


def convert(model: Path, info: ModelInfo, tokenizer: Tokenizer, quantization: str = "float32") -> dict[str, bytes]:
    """The files of a CTranslate2 model, by name."""
    if quantization not in QUANTIZATIONS:
        raise UserError(f"quantization {quantization!r} is not one of {', '.join(QUANTIZATIONS)}")
    variables = _Conversion(model, info, len(tokenizer)).variables()
    if quantization == "int8":
        variables = _quantized(variables)
    tied = "decoder/embeddings/weight"
    aliases = {"encoder/embeddings_0/weight": tied, "decoder/projection/weight": tied}
    aliases["decoder/position_encodings/encodings"] = "encoder/position_encodings/encodings"
    pieces = tokenizer.pieces(range(len(tokenizer)))
    settings = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "decoder_start_token": "<s>"}
    return {
        MODEL: _binary(variables, aliases),
        SETTINGS: json.dumps(settings | {"add_source_bos": False, "add_source_eos": False}, indent=2).encode(),
        VOCABULARY: json.dumps(pieces, indent=0).encode(),
    }


class _Conversion:
    """Our names and shapes to CTranslate2's: every weight is taken once, and none may be left."""

    def __init__(self, folder: Path, info: ModelInfo, vocabulary: int) -> None:
        self.weights = {name: weight.astype(np.float32) for name, weight in read_weights(folder, load_file).items()}
        self.folder, self.shape, self.decode, self.vocabulary = folder, info.model, info.decode, vocabulary
        self.found: dict[str, Array] = {}

    def variables(self) -> dict[str, Array]:
        """All variables of the model, ours to theirs."""
        shape = self.shape
        self.found["decoder/embeddings/weight"] = self._take("embedding.weight", self.vocabulary, shape.d_model)
        longest = int(self.decode.max_length_ratio * self.decode.max_source_tokens) + 10
        positions = max(POSITIONS, self.decode.max_source_tokens, longest)
        self.found["encoder/position_encodings/encodings"] = sinusoids(positions, shape.d_model)
        for stack, layers in (("encoder", shape.encoder_layers), ("decoder", shape.decoder_layers)):
            self.found[f"{stack}/num_heads"] = np.array(shape.heads, np.int16)
            self._norm(f"{stack}/layer_norm", f"{stack}_norm")
            for layer in range(layers):
                self._layer(f"{stack}/layer_{layer}", f"{stack}.{layer}", crossed=stack == "decoder")
        for name, weight in sorted(self.weights.items()):
            raise misfit(self.folder, name, weight.shape, None)
        return self.found

    def _layer(self, theirs: str, ours: str, crossed: bool) -> None:
        self._attention(f"{theirs}/self_attention", f"{ours}.attention", ["qkv", "o"])
        if crossed:
            self._attention(f"{theirs}/attention", f"{ours}.cross_attention", ["q", "kv", "o"])
        self._norm(f"{theirs}/ffn/layer_norm", f"{ours}.feed_forward_norm")
        widths = (self.shape.d_model, self.shape.ffn)
        self._linear(f"{theirs}/ffn/linear_0", [f"{ours}.feed_forward.w_1"], *widths)
        self._linear(f"{theirs}/ffn/linear_1", [f"{ours}.feed_forward.w_2"], *reversed(widths))

    def _attention(self, theirs: str, ours: str, groups: list[str]) -> None:
        """Projections, those of one input stacked; a head may have any width."""
        self._norm(f"{theirs}/layer_norm", f"{ours}_norm")
        self.found[f"{theirs}/head_dim"] = np.array(self.shape.head_width, np.int32)
        inner = self.shape.heads * self.shape.head_width
        for index, group in enumerate(groups):
            widths = (inner, self.shape.d_model) if group == "o" else (self.shape.d_model, inner)
            self._linear(f"{theirs}/linear_{index}", [f"{ours}.w_{letter}" for letter in group], *widths)

    def _linear(self, theirs: str, ours: list[str], inner: int, outer: int) -> None:
        self.found[f"{theirs}/weight"] = np.concatenate([self._take(f"{name}.weight", outer, inner) for name in ours])
        self.found[f"{theirs}/bias"] = np.concatenate([self._take(f"{name}.bias", outer) for name in ours])

    def _norm(self, theirs: str, ours: str) -> None:
        self.found[f"{theirs}/gamma"] = self._take(f"{ours}.weight", self.shape.d_model)
        self.found[f"{theirs}/beta"] = self._take(f"{ours}.bias", self.shape.d_model)

    def _take(self, name: str, *shape: int) -> Weights:
        weight = self.weights.pop(name, None)
        if weight is None or weight.shape != shape:
            raise misfit(self.folder, name, None if weight is None else weight.shape, shape)
        return weight


def sinusoids(length: int, d_model: int) -> Weights:
    """The positions of `seq2seq.model.blocks.sinusoids`, sine and cosine by turns. (length, D)."""
    position = np.arange(length, dtype=np.float32)[:, None]
    frequency = np.exp(np.arange(0, d_model, 2, dtype=np.float32) * np.float32(-math.log(10_000.0) / d_model))
    angle = position * frequency  # (length, D/2)
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(length, d_model)


def _quantized(variables: Mapping[str, Array]) -> dict[str, Array]:
    """Matrices as whole numbers from -127 to 127 with one scale a row."""
    found = dict(variables)
    for name, weight in variables.items():
        if name.endswith("/weight"):
            largest = np.abs(weight).max(axis=1)
            scale = (127 / np.where(largest == 0, 127, largest)).astype(np.float32)
            found[name] = np.rint(weight * scale[:, None]).astype(np.int8)
            found[f"{name}_scale"] = scale
    return found


def _binary(variables: Mapping[str, Array], aliases: Mapping[str, str]) -> bytes:
    """`model.bin`: little-endian, every variable with its name, shape, type and bytes."""
    parts = [struct.pack("<I", BINARY_VERSION), _string(SPECIFICATION), struct.pack("<II", REVISION, len(variables))]
    for name, value in sorted(variables.items()):
        kind = TYPES.index(value.dtype.name)
        parts += [_string(name), struct.pack(f"<B{value.ndim}IBI", value.ndim, *value.shape, kind, value.nbytes)]
        parts.append(value.tobytes())
    parts.append(struct.pack("<I", len(aliases)))
    for alias, name in sorted(aliases.items()):
        parts += [_string(alias), _string(name)]
    return b"".join(parts)


def _string(text: str) -> bytes:
    return struct.pack("<H", len(text) + 1) + text.encode() + b"\0"
