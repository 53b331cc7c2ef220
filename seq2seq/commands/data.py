"""`seq2seq data`."""

import argparse
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seq2seq.config import DataConfig

from seq2seq.commands.common import OutputPath, check_folder, declare, write_lines
from seq2seq.errors import UserError
from seq2seq.storage import write_text


def add_data(commands: Any) -> None:
    """Declare `seq2seq data`."""
    parser = declare(
        commands,
        "data",
        data,
        "say what is in a corpus and what cleaning would drop, before any training",
        "seq2seq data corpus.en corpus.de --target-language de",
    )
    parser.add_argument(
        "files",
        nargs="+",
        metavar="CONFIG|FILE",
        help="a TOML recipe, or two line-parallel text files, or one .tsv, .csv, .jsonl, .parquet or .tmx (also .gz)",
    )
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="override a setting")
    parser.add_argument("--source-language", metavar="CODE", help="of files (default: en)")
    parser.add_argument("--target-language", metavar="CODE", help="of files (default: fr)")
    parser.add_argument("--json", action="store_true", help="the report as one JSON object")
    parser.add_argument("--output", action=OutputPath, metavar="DIR", help="write data.txt and data.json there, too")


def data(options: argparse.Namespace) -> None:
    """`seq2seq data`."""
    config = _config(options)
    if options.output is not None:
        check_folder(options.output)
    from seq2seq.data.corpus import examine

    corpus = examine(config)
    text, values = corpus.report.as_text(), json.dumps(corpus.report.as_json(), indent=2, ensure_ascii=False)
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
        write_text(options.output / "data.txt", text + "\n")
        write_text(options.output / "data.json", values + "\n")
    write_lines(iter((values if options.json else text).split("\n")), None)
    if not corpus.split.train:
        raise UserError("no training pair is left after cleaning")


def _config(options: argparse.Namespace) -> "DataConfig":
    """The data section of the recipe, or one made of the files."""
    from seq2seq.config import DataConfig, load_recipe, validate

    if any(name.endswith(".toml") for name in options.files):
        if len(options.files) > 1 or options.source_language or options.target_language:
            raise UserError("a recipe stands alone: it names its files and languages; --set changes them")
        return load_recipe(options.files[0], options.set).data
    if options.set:
        raise UserError("--set goes with a recipe")
    languages = {"source": options.source_language or "en", "target": options.target_language or "fr"}
    return validate(DataConfig, {"dataset": "files", "train": options.files, **languages}, "seq2seq data")
