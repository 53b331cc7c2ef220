"""Contenders that translate: many sentences at once for throughput, or one at a time for latency."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from seq2seq.benchmark.machine import Stopwatch
from seq2seq.data.tokenizer import Tokenizer
from seq2seq.folder import TOKENIZER, find_model
from seq2seq.translation.translator import Translator

NAMES = ("ours", "ctranslate2", "ct2-by-hand")
PRECISIONS = ("float32", "bfloat16", "int8")
ENGINES = {"ours": "torch", "ctranslate2": "ctranslate2"}
FIRST_CALL = 8  # sentences of a first call, which is not measured
Values = dict[str, Any]
Translate = Callable[[Sequence[str], int], list[str]]  # sentences, beam size -> translations


def open_contender(name: str, model: str | None, precision: str | None) -> Translate:
    """A contender by its name, in a precision that it has."""
    if name == "ct2-by-hand":
        from seq2seq.benchmark.by_hand import open_by_hand

        return open_by_hand(model, precision or "float32")
    return _through_translator(Translator.from_pretrained(model, ENGINES[name], precision))


def _through_translator(translator: Translator) -> Translate:
    def translate(sentences: Sequence[str], beam: int) -> list[str]:
        return [found.text for found in translator.translate(sentences, beam_size=beam, attention=False)]

    return translate


class Translating:
    """One contender, its first call done."""

    def __init__(
        self, name: str, model: str | None, precision: str | None, sentences: list[str], beams: list[int]
    ) -> None:
        self.sentences = sentences
        self.translate = open_contender(name, model, precision)
        self.count = _token_counter(model)
        self.found: dict[int, list[str]] = {}  # beam -> the latest translations
        for beam in beams:
            self.translate(sentences[:FIRST_CALL], beam)
        self.facts: Values = {"threads": torch.get_num_threads(), "sentences": len(sentences)}

    def turn(self, order: Values) -> Values:
        """All sentences at once; with `alone`, that many of them one at a time, others in every round."""
        return self._alone(order) if order.get("alone") else self._together(order["beam"])

    def _together(self, beam: int) -> Values:
        with Stopwatch() as watch:
            self.found[beam] = self.translate(self.sentences, beam)
        tokens = self.count(self.found[beam])
        rates = {
            "sentences_per_s": len(self.sentences) / watch.seconds,
            "output_tokens": tokens,
            "output_tokens_per_s": tokens / watch.seconds,
        }
        return watch.measured() | rates

    def _alone(self, order: Values) -> Values:
        start, count = (order["round"] - 1) * order["alone"], order["alone"]
        times = []
        with Stopwatch() as watch:
            for index in range(start, start + count):
                before = time.perf_counter()
                self.translate([self.sentences[index % len(self.sentences)]], order["beam"])
                times.append(1000 * (time.perf_counter() - before))
        return watch.measured() | {"milliseconds": statistics.median(times), "times": times}

    def finish(self) -> Values:
        """The translations, by beam, to be scored."""
        return {"translations": {str(beam): texts for beam, texts in self.found.items()}}


def _token_counter(model: str | None) -> Callable[[Sequence[str]], int]:
    """Counts tokens by the model's own pieces, `</s>` included: the same count for every contender."""
    tokenizer = Tokenizer.load(find_model(model) / TOKENIZER)
    return lambda texts: sum(len(tokenizer.encode(text)) + 1 for text in texts)
