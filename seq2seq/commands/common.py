"""What several subcommands share: declaring a command, common options, reading and writing lines."""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seq2seq.config import DataConfig
    from seq2seq.data.splits import Example
    from seq2seq.folder import ModelInfo
    from seq2seq.translation.translator import Translator

from seq2seq import storage
from seq2seq.errors import UserError

CHUNK = 2048  # input lines that are translated together

Command = Callable[[argparse.Namespace], None]


def declare(commands: Any, name: str, run: Command, summary: str, example: str) -> argparse.ArgumentParser:
    """Add a subcommand with a summary and an example."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def model_option(parser: argparse.ArgumentParser) -> None:
    """--model."""
    parser.add_argument("--model", metavar="M", help="model folder, bundled name or hub id (default: en-fr, bundled)")


def engine_option(parser: argparse.ArgumentParser) -> None:
    """--engine, --precision, --ensemble and --rerank."""
    parser.add_argument("--engine", default="torch", metavar="E", help="torch (default) or ctranslate2, the faster")
    parser.add_argument(
        "--precision", metavar="P", help="float32 (default), bfloat16 with torch, int8 with ctranslate2"
    )
    parser.add_argument(
        "--ensemble",
        action="append",
        default=[],
        metavar="M",
        help="one more model, whose probabilities are averaged with --model's; give it again for another",
    )
    parser.add_argument(
        "--rerank",
        metavar="M",
        help="a model of the other direction, as fr-en: it has a say in which translation is the best",
    )


def open_translator(options: argparse.Namespace) -> "Translator":
    """The translator that --model, --engine, --precision, --ensemble and --rerank ask for."""
    from seq2seq.translation.translator import Translator

    return Translator.from_pretrained(
        options.model, options.engine, options.precision, options.ensemble, options.rerank
    )


def search_options(parser: argparse.ArgumentParser) -> None:
    """--beam-size and --length-penalty."""
    parser.add_argument("--beam-size", type=int, metavar="N", help="hypotheses kept; 1 is greedy")
    parser.add_argument("--length-penalty", type=float, metavar="A", help="score = log-probability / length ** A")


def dataset_option(parser: argparse.ArgumentParser) -> None:
    """--dataset."""
    names = "a recipe (my.toml), sample, tatoeba (default), multi30k or hub:OWNER/NAME"
    parser.add_argument("--dataset", default="tatoeba", metavar="NAME", help=names)


def split_options(parser: argparse.ArgumentParser, split: str = "test") -> None:
    """--dataset, --split and --limit."""
    dataset_option(parser)
    parser.add_argument("--split", default=split, choices=("dev", "test"), help=f"default: {split}")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N sentences")


def load_examples(options: argparse.Namespace, info: "ModelInfo") -> "tuple[list[Example], str]":
    """The sentences that --dataset, --split and --limit ask for, and what they are in words."""
    if options.limit is not None and options.limit < 1:
        raise UserError(f"--limit {options.limit} must be at least 1")
    examples, _ = read_split(options.dataset, options.split, info)
    part = "" if options.limit is None else f"the first {options.limit} sentences of "
    return examples[: options.limit], f"{part}the {options.split} split of {options.dataset}"


def read_split(dataset: str, split: str, info: "ModelInfo") -> "tuple[list[Example], DataConfig]":
    """A split of what --dataset names, a recipe or a corpus, in the languages of a model."""
    from seq2seq.config import DataConfig, load_recipe
    from seq2seq.data.corpus import load_split
    from seq2seq.data.splits import group_references

    if dataset == "files":
        raise UserError("--dataset 'files' names no file: give a recipe (my.toml), or --source and --reference")
    if dataset.endswith(".toml"):
        config = load_recipe(dataset).data
        if (config.source, config.target) != (info.source, info.target):
            languages = f"{config.source}-{config.target}, the model {info.source}-{info.target}"
            raise UserError(f"--dataset {dataset} is {languages}")
    else:
        config = DataConfig(dataset=dataset, source=info.source, target=info.target)
    try:
        examples = group_references(load_split(config, split))
    except UserError as error:  # said of a recipe, where `files` is one more kind of data
        raise UserError(str(error).replace("data.dataset = ", "--dataset ").replace(" files,", "")) from None
    if not examples:
        raise UserError(f"--split {split!r} of {dataset} is empty")
    return examples, config


class OutputPath(argparse.Action):
    """A path to write to; never an empty one, which a script's unset variable is and `Path` takes for this folder."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        """Keep it as a path."""
        if not values:
            raise UserError(f"{option_string} '' is empty: name where to write")
        setattr(namespace, self.dest, Path(values))


def write_lines(lines: Iterator[str], path: Path | None) -> None:
    """Lines to stdout as they come, or to a file that appears when it is complete."""
    encoded = (line.encode("utf-8", "replace") + b"\n" for line in lines)
    if path is None:
        if sys.stdout is None:
            raise UserError("stdout is closed, so there is nowhere to write to")
        for line in encoded:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        return
    write_file(encoded, path)


def write_file(chunks: Iterable[bytes], path: Path) -> None:
    """Bytes to a file that appears when it is complete."""
    path = path.resolve()  # through a link, the file that it leads to is replaced and not the link
    check_parent(path)
    if path.exists() and not path.is_file():  # a pipe or a device is written to, not replaced
        with path.open("wb") as stream:
            stream.writelines(chunks)
        return
    storage.write_file(path, chunks)


def check_parent(path: Path, option: str = "--output") -> None:
    """Refuse an output file that could not be written, before any work is done."""
    if not path.parent.is_dir():
        raise UserError(f"{option} {path}: folder {path.parent} does not exist")
    if path.is_dir():
        raise UserError(f"{option} {path} is a folder, not a file")


def check_folder(path: Path, option: str = "--output") -> None:
    """Refuse an output folder that could not be made, before any work is done."""
    if found := storage.obstacle(path):
        raise UserError(f"{option} {path}: {found} is a file, not a folder")
