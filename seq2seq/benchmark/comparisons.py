"""What each subcommand compares: its contenders, its cases, its tables."""

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec

from seq2seq.benchmark import lengths, peak, training, translating
from seq2seq.benchmark.contenders import Contender, parse_contenders
from seq2seq.benchmark.players import Case, Cold, Outside, Player, Worker
from seq2seq.benchmark.rounds import Results, compare
from seq2seq.benchmark.tables import Column, Show, by_case, final, grid_table, list_table, number
from seq2seq.config import DataConfig, ModelConfig
from seq2seq.data.corpus import load_split
from seq2seq.data.lines import read_lines
from seq2seq.data.splits import Example, group_references
from seq2seq.errors import UserError
from seq2seq.folder import find_model, load_info

SENTENCE = "The old man is reading a book."  # of a cold start
Options = argparse.Namespace


@dataclass(frozen=True)
class Section:
    """One comparison, and how it is shown."""

    name: str
    title: str
    results: Results
    table: str
    remarks: Sequence[str] = ()


@dataclass(frozen=True)
class TestSet:
    """What is translated."""

    name: str
    sources: list[str]
    references: list[Sequence[str]] = field(default_factory=list)  # of each, if there are any


def everything(options: Options) -> Iterator[Section]:
    """The three that a user asks for first."""
    yield from train(options)
    yield from translate(options)
    yield from latency(options)


# Training


def train(options: Options) -> Iterator[Section]:
    """Target tokens a second, and what was learned by them."""
    names = options.contenders
    if names is None:
        names = ",".join(["ours", "ours:float32", "torch", *_installed("hf", "transformers")])
    contenders = parse_contenders(names, training.NAMES, training.PRECISIONS, options.threads)
    players: list[Player] = [Worker(contender, _training_job(contender, options)) for contender in contenders]
    key = "target_tokens_per_s"
    players += _peers(options, key, players)
    order = {"seconds": options.seconds} | ({"until": options.updates} if options.updates else {})
    rounds = None if options.updates else options.rounds
    results = compare(players, [Case("training", order, shared="updates")], key, rounds, options.say)
    data = " ".join(options.data or [options.dataset])
    title = f"Training: {options.size}, batches of {options.batch_tokens:,} padded tokens, {data}"
    columns = [
        ("GFLOP/s in products", _mean_of(results, "gflops")),
        ("tokens an update", _mean_of(results, "mean_tokens_per_step")),
        ("updates", final("updates", ",")),
        ("dev loss (nats a token)", final("dev_loss", ".3f")),
    ]
    chosen = [
        f"- {player.label} chose {player.facts['precision']}"
        for player in players
        if isinstance(player, Worker) and player.contender.precision in (None, "auto") and player.facts
        if player.contender.name == "ours"
    ]
    told = f"- a turn is {options.seconds:g} seconds of {players[0].label}, and the same updates of the others"
    yield Section("train", title, results, list_table(results, "target tokens/s", columns), [told, *chosen])


def _training_job(contender: Contender, options: Options) -> dict[str, object]:
    data = DataConfig(dataset="files", train=options.data) if options.data else DataConfig(dataset=options.dataset)
    vocab = options.vocab or (1500 if data.dataset == "sample" else 10_000)
    default = "auto" if contender.name == "ours" else "float32"
    recipe = training.make_recipe(data, options.size, vocab, options.batch_tokens, contender.precision or default)
    values = recipe.model_dump(mode="json")
    return {"task": "train", "name": contender.name, "recipe": values, "warm_up": options.warm_up}


def _mean_of(results: Results, key: str) -> Show:
    """A column with the mean of a measurement of all turns."""

    def show(player: Player, case: Case) -> str:
        values = results.values(player, case, key)
        return number(statistics.fmean(values)) if values else "–"

    return show


# Translating


def translate(options: Options) -> Iterator[Section]:
    """Sentences a second, many at once."""
    test = read_test_set(options)
    contenders = _translators(options)
    players: list[Player] = [Worker(one, _translating_job(one, test, options)) for one in contenders]
    key = "sentences_per_s"
    players += _peers(options, key, players)
    cases = [Case(f"beam {beam}", {"beam": beam}) for beam in options.beam_size]
    results = compare(players, cases, key, options.rounds, options.say)
    _score(results, test)
    columns: list[Column] = [("output tokens/s", _mean_of(results, "output_tokens_per_s"))]
    columns += [("BLEU", by_case("bleu", ".1f"))] if test.references else []
    columns.append((f"same text as {players[0].label}", by_case("agreement", ".1%")))
    title = f"Translating: {len(test.sources):,} sentences of {test.name}, {options.model or 'en-fr, bundled'}"
    yield Section("translate", title, results, list_table(results, "sentences/s", columns))


def latency(options: Options) -> Iterator[Section]:
    """One sentence at a time, and the whole command from a cold start."""
    test = read_test_set(options)
    contenders = _translators(options)
    players: list[Player] = [Worker(one, _translating_job(one, test, options)) for one in contenders]
    cases = [Case(f"beam {beam}", {"beam": beam, "alone": options.alone}) for beam in options.beam_size]
    warm = compare(players, cases, "milliseconds", options.rounds, options.say, less_is_better=True)
    columns = [(f"p{percent}", _percentile(warm, percent)) for percent in (50, 95)]
    table = list_table(warm, "ms a sentence", columns)
    title = f"Latency: one sentence at a time of {test.name}, {options.model or 'en-fr, bundled'}"
    commands: list[Player] = [
        Cold(one, _command(translating.ENGINES[one.name], options.model))
        for one in contenders
        if one.name in translating.ENGINES and one.precision is None
    ]
    yield Section("latency", title, warm, table)
    if commands:
        cold = compare(commands, [Case("cold")], "seconds", options.rounds, options.say, less_is_better=True)
        title = f'Latency: the whole process of `seq2seq translate "{SENTENCE}"`'
        yield Section("cold", title, cold, list_table(cold, "seconds"))


def read_test_set(options: Options) -> TestSet:
    """The sentences: a file's, or a corpus's test split, evenly spaced.

    The packaged sample has hardly any test sentences, so it gives those of its training split, and no references: the
    bundled model has learned from them.
    """
    if options.source is not None:
        sources = list(read_lines(options.source))
        references = [[line] for line in read_lines(options.reference)] if options.reference else [[]] * len(sources)
        if len(sources) != len(references):
            files = f"--source {options.source} has {len(sources)} lines, --reference {options.reference}"
            raise UserError(f"{files} has {len(references)}: they must be line-parallel")
        examples = [Example(*pair) for pair in zip(sources, map(tuple, references), strict=True)]
    elif options.reference is not None:
        raise UserError("--reference goes with --source; a --dataset has its own references")
    else:
        info = load_info(find_model(options.model))
        config = DataConfig(dataset=options.dataset, source=info.source, target=info.target)
        examples = group_references(load_split(config, "train" if options.dataset == "sample" else "test"))
    examples = [example for example in examples if example.source.strip()]
    if not examples:
        raise UserError("there is nothing to translate")
    count = min(options.sentences or len(examples), len(examples))
    chosen = [examples[index * len(examples) // count] for index in range(count)]
    scored = (options.source is None and options.dataset != "sample") or options.reference is not None
    name = str(options.source or options.dataset)
    return TestSet(name, [one.source for one in chosen], [one.references for one in chosen] if scored else [])


def _translators(options: Options) -> list[Contender]:
    names = options.contenders
    if names is None:
        names = ",".join(["ours", *_installed("ctranslate2", "ctranslate2")])
    return parse_contenders(names, translating.NAMES, translating.PRECISIONS, options.threads)


def _translating_job(contender: Contender, test: TestSet, options: Options) -> dict[str, object]:
    return {
        "task": "translate",
        "name": contender.name,
        "model": options.model,
        "precision": contender.precision,
        "sentences": test.sources,
        "beams": options.beam_size,
    }


def _score(results: Results, test: TestSet) -> None:
    """Put BLEU, and the share of sentences that are the first player's, in the place of the translations."""
    found = {player.label: player.final.pop("translations", {}) for player in results.players}
    first = found[results.players[0].label]
    for player in results.players:
        scores: dict[str, dict[str, float]] = {"bleu": {}, "agreement": {}}
        for beam, texts in found[player.label].items():
            label = f"beam {beam}"
            if test.references:
                from seq2seq.evaluation import score

                scores["bleu"][label] = score(texts, test.references).bleu
            if beam in first:
                scores["agreement"][label] = statistics.fmean(map(str.__eq__, texts, first[beam]))
        for case in results.cases:  # a peer tells its own BLEU
            told = results.values(player, case, "bleu")
            scores["bleu"] |= {case.label: told[-1]} if told else {}
        player.final |= scores


def _percentile(results: Results, percent: int) -> Show:
    """A column with a percentile over the sentences of all turns."""

    def show(player: Player, case: Case) -> str:
        times = sorted(time for turn in results.of(player, case) for time in turn.measured["times"])
        return number(times[min(len(times) - 1, len(times) * percent // 100)]) if times else "–"

    return show


def _command(engine: str, model: str | None) -> list[str]:
    """The command line of a cold start."""
    command = [sys.executable, "-m", "seq2seq", "translate", SENTENCE]
    command += ["--model", model] if model else []
    return command + (["--engine", engine] if engine != "torch" else [])


# Parts


def length(options: Options) -> Iterator[Section]:
    """Milliseconds a token and memory, by the length of the target."""
    contenders = [Contender(way, way, threads=options.threads) for way in lengths.WAYS]
    players: list[Player] = [
        Worker(one, {"task": "length", "way": one.name, "model": options.model, "rows": options.rows})
        for one in contenders
    ]
    cases = [Case(str(length), {"length": length}) for length in sorted(set(options.lengths))]
    results = compare(players, cases, "milliseconds", options.rounds, options.say, less_is_better=True)
    title = f"{options.rows} sentences at once, {lengths.SOURCE} source tokens, {options.model or 'en-fr, bundled'}"
    time = grid_table(results, "target tokens: ms a token")
    memory = grid_table(results, "target tokens: MB above the loaded model", "peak_mb")
    yield Section("length", f"Length of the target: {title}", results, f"{time}\n\n{memory}")


def peak_products(options: Options) -> Iterator[Section]:
    """GFLOP/s of products of matrices."""
    names = ",".join(peak.DTYPES) if options.contenders is None else options.contenders
    contenders = parse_contenders(names, tuple(peak.DTYPES), (), options.threads)
    players: list[Player] = [Worker(one, {"task": "peak", "precision": one.name}) for one in contenders]
    d_model, ffn = training.SIZES[options.size]
    cases = peak.products(ModelConfig(d_model=d_model, ffn=ffn), options.vocab, options.tokens)
    cases = [Case(case.label, {**case.order, "seconds": options.seconds}) for case in cases]
    results = compare(players, cases, "gflops", options.rounds, options.say)
    title = f"Products of matrices, the best of many, in GFLOP/s: {options.size} and squares"
    yield Section("peak", title, results, grid_table(results, "product"))


def _peers(options: Options, key: str, others: Sequence[Player]) -> list[Player]:
    """Outside commands."""
    players: list[Player] = []
    for text in options.peer:
        name, equals, command = text.partition("=")
        if not (name.strip() and equals and command.strip()):
            raise UserError(f"--peer {text!r} must read NAME=COMMAND")
        if name.strip() in (player.label for player in [*others, *players]):
            raise UserError(f"--peer {name.strip()}: another contender has this name")
        players.append(Outside(name.strip(), command, key, options.rounds, options.threads))
    return players


def _installed(contender: str, package: str) -> list[str]:
    """The contender, if its package is there."""
    return [contender] if find_spec(package) else []
