"""`seq2seq translate`: line n of the output belongs to line n of the input."""

import argparse
import itertools
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seq2seq.translation.result import Translation
    from seq2seq.translation.translator import Translator

from seq2seq.commands.common import (
    CHUNK,
    OutputPath,
    declare,
    engine_option,
    model_option,
    open_translator,
    search_options,
    write_lines,
)
from seq2seq.errors import UserError


def add_translate(commands: Any) -> None:
    """Declare `seq2seq translate`."""
    parser = declare(
        commands,
        "translate",
        translate,
        "translate text: arguments, a file, or stdin; line n of the output belongs to line n of the input",
        'seq2seq translate "The old man is reading a book."\n  seq2seq translate < english.txt > french.txt',
    )
    parser.add_argument("text", nargs="*", metavar="TEXT", help="text to translate (default: stdin)")
    model_option(parser)
    engine_option(parser)
    parser.add_argument("--input", type=Path, metavar="FILE", help="read lines from a file")
    parser.add_argument("--output", action=OutputPath, metavar="FILE", help="write to a file; it appears when complete")
    search_options(parser)
    parser.add_argument("--n-best", type=int, default=1, metavar="N", help="lines of: n TAB rank TAB score TAB text")
    parser.add_argument(
        "--format",
        default="text",
        metavar="F",
        help="text (default), or html: the input is one page, and so is the output",
    )
    parser.add_argument(
        "--glossary",
        type=Path,
        metavar="FILE",
        help="words to translate so: JSON, or lines of term TAB translation",
    )
    parser.add_argument(
        "--json", action="store_true", help="one JSON object per input line: words, alignment, confidence"
    )


def translate(options: argparse.Namespace) -> None:
    """`seq2seq translate`."""
    from seq2seq.translation.glossary import read_glossary

    if options.text and options.input:
        raise UserError("give TEXT or --input, not both")
    if options.format == "html" and options.n_best > 1:
        raise UserError(f"--n-best {options.n_best}: a page has one translation")
    lines = _input_page(options) if options.format == "html" else _input_lines(options)
    glossary = read_glossary(options.glossary) if options.glossary else None
    translator = open_translator(options)
    confidence = options.json and _is_sure(translator)
    size = 1 if not options.text and not options.input and sys.stdin.isatty() else CHUNK
    numbers = itertools.count(1)

    def output() -> Iterator[str]:
        while chunk := list(itertools.islice(lines, size)):
            results = translator.translate(
                chunk,
                beam_size=options.beam_size,
                n_best=options.n_best,
                length_penalty=options.length_penalty,
                format=options.format,
                glossary=glossary,
                attention=options.json,
                confidence=confidence,
            )
            for result in results:
                yield from _format(result, next(numbers), options)

    write_lines(output(), options.output)


def _is_sure(translator: "Translator") -> bool:
    """Whether it can say how sure to be; where it has a rule and cannot, a line says why."""
    if translator.info.confidence is None:
        return False
    if translator.why_unsure:
        print(f"seq2seq: no confidence: {translator.why_unsure}", file=sys.stderr)
    return translator.why_unsure is None


def _input_lines(options: argparse.Namespace) -> Iterator[str]:
    from seq2seq.data.files import decode_lines, read_lines

    if options.text:
        return (line.removesuffix("\r") for text in options.text for line in text.split("\n"))
    if options.input is None and sys.stdin is None:
        raise UserError("stdin is closed: give TEXT or --input")
    return read_lines(options.input) if options.input else decode_lines(sys.stdin.buffer, "stdin")


def _input_page(options: argparse.Namespace) -> Iterator[str]:
    """The input whole, but for the end of its last line, which every line of the output has; each TEXT is a page."""
    from seq2seq.data.lines import decode_whole, opened

    if options.text:
        yield from options.text
    elif options.input:
        with opened(options.input) as stream:
            yield decode_whole(stream, str(options.input)).removesuffix("\n")
    elif sys.stdin is None:
        raise UserError("stdin is closed: give TEXT or --input")
    else:
        yield decode_whole(sys.stdin.buffer, "stdin").removesuffix("\n")


def _format(result: "Translation", number: int, options: argparse.Namespace) -> Iterator[str]:
    if options.json:
        yield json.dumps(_as_json(result, options.n_best), ensure_ascii=False)
    elif options.n_best > 1:
        for rank, alternative in enumerate(result.best(options.n_best), 1):
            yield f"{number}\t{rank}\t{alternative.score:.4f}\t{alternative.text}"
    else:
        yield result.text
    if result.truncated:
        print(f"seq2seq: line {number}: the translation was cut at the length limit", file=sys.stderr)


def _as_json(result: "Translation", n_best: int) -> dict[str, Any]:
    return {
        "source": result.source,
        "translation": result.text,
        "truncated": result.truncated,
        "alternatives": [asdict(alternative) for alternative in result.best(n_best)],
        "sentences": [
            {
                "source": sentence.source,
                "translation": sentence.text,
                "score": sentence.score,
                "source_words": sentence.source_words,
                "target_words": sentence.target_words,
                "alignment": [link._asdict() for link in sentence.alignment],
                "glossary": [term._asdict() for term in sentence.terms],
                "confidence": sentence.confidence and sentence.confidence._asdict(),
            }
            for sentence in result.sentences
        ],
    }
