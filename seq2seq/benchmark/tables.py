"""Markdown tables of what was measured, with medians and ranges, ready for a page of the docs."""

from collections.abc import Callable, Sequence
from typing import Any

from seq2seq.benchmark.players import Case, Player
from seq2seq.benchmark.rounds import Results, Spread

NOTHING = "–"
Show = Callable[[Player, Case], str]  # what stands in a cell
Column = tuple[str, Show]  # below a title


def number(value: float) -> str:
    """Three or more digits: 12,345, 123, 12.3, 1.23."""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}"


def shown(spread: Spread | None) -> str:
    """Median and range."""
    if spread is None:
        return NOTHING
    if spread.low == spread.high:
        return number(spread.median)
    return f"{number(spread.median)} ({number(spread.low)}–{number(spread.high)})"


def markdown(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; the first column is left-aligned, the others right."""
    rule = ["---", *["---:"] * (len(titles) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (titles, rule, *rows))


def list_table(results: Results, title: str, columns: Sequence[Column] = ()) -> str:
    """A row a player and case: the rate, the paired ratio to the first player, the cores that it used, and more."""
    first = results.players[0].label
    cases = ["case"] if len(results.cases) > 1 else []
    titles = ["contender", *cases, title, f"times as fast as {first}", "cores used", *[name for name, _ in columns]]
    rows = []
    for case in results.cases:
        for player in results.players:
            cells = [player.label, *[case.label for _ in cases], shown(Spread.of(results.values(player, case)))]
            cells += [shown(Spread.of(results.ratios(player, case))), _cores(results, player, case)]
            rows.append(cells + [show(player, case) for _, show in columns])
    return markdown(titles, rows)


def grid_table(results: Results, corner: str, key: str | None = None) -> str:
    """A row a case, a column a player; one measurement, the compared one by default."""
    rows = [
        [case.label, *[shown(Spread.of(results.values(player, case, key))) for player in results.players]]
        for case in results.cases
    ]
    return markdown([corner, *[player.label for player in results.players]], rows)


def _cores(results: Results, player: Player, case: Case) -> str:
    used = [
        turn.measured["cpu_seconds"] / turn.measured["seconds"]
        for turn in results.of(player, case)
        if turn.measured.get("cpu_seconds") is not None and turn.measured.get("seconds")
    ]
    spread = Spread.of(used)
    return NOTHING if spread is None else f"{spread.median:.2f}"


def final(name: str, form: str) -> Show:
    """A column of what a player measured after its turns."""

    def show(player: Player, case: Case) -> str:
        value = player.final.get(name)
        return NOTHING if value is None else format(value, form)

    return show


def by_case(name: str, form: str) -> Show:
    """The same of what it measured for each case."""

    def show(player: Player, case: Case) -> str:
        value = player.final.get(name, {}).get(case.label)
        return NOTHING if value is None else format(value, form)

    return show


def notes(results: Results) -> list[str]:
    """What a reader of the table must know: who fell out, and which turns were disturbed."""
    lines = [f"{player.label} is out: {player.error}" for player in results.players if player.error]
    for player in results.players:
        own = [turn for turn in results.turns if turn.player == player.label]
        bad = sorted({turn.round for turn in own if turn.disturbed})
        if bad:
            rounds = ", ".join(map(str, bad))
            lines.append(f"{player.label}: something else had the processor in round {rounds} of {own[-1].round}")
    return [f"- {line}" for line in [f"{results.turns[-1].round} round(s)", *lines]]


def header(facts: dict[str, Any]) -> str:
    """What was measured on, and how."""
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    load = " ".join(f"{value:g}" for value in facts["load"])
    lines = [
        f"{facts['machine']}; {facts['memory_gb']:g} GB; {' '.join(facts['flags']) or 'flags unknown'}",
        f"{versions}; {facts['threads']} threads; preloaded: {facts['preload'] or 'nothing'}",
        f"{facts['date']}; load average at the start {load}",
        "medians, with the least and the greatest of the rounds",
    ]
    return "\n".join(f"- {line}" for line in lines)
