"""Round after round, every player takes its turn while the others sleep; then what the turns say."""

import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from seq2seq.benchmark.players import Case, Player, PlayerError, Values

SETTLE = 0.2  # seconds before a turn, in which the threads of the one before fall asleep


@dataclass(frozen=True)
class Turn:
    """What one player did in one round."""

    player: str
    case: str
    round: int
    measured: Values
    disturbed: bool


@dataclass(frozen=True)
class Spread:
    """The median of some numbers, the least and the greatest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self | None:
        """None of nothing."""
        return cls(statistics.median(values), min(values), max(values)) if values else None


@dataclass
class Results:
    """All turns of a comparison."""

    players: list[Player]
    cases: list[Case]
    key: str  # of what is compared in `Turn.measured`
    less_is_better: bool = False
    turns: list[Turn] = field(default_factory=list)

    def of(self, player: Player, case: Case) -> list[Turn]:
        """The turns of one player in one case, in order."""
        return [turn for turn in self.turns if (turn.player, turn.case) == (player.label, case.label)]

    def values(self, player: Player, case: Case, key: str | None = None) -> list[float]:
        """One measurement of these turns, where it was made."""
        found = (turn.measured.get(key or self.key) for turn in self.of(player, case))
        return [value for value in found if value is not None]

    def ratios(self, player: Player, case: Case) -> list[float]:
        """How many times as fast as the first player it was, round by round."""
        first = {turn.round: turn.measured[self.key] for turn in self.of(self.players[0], case)}
        pairs = [(turn.measured[self.key], first[turn.round]) for turn in self.of(player, case) if turn.round in first]
        return [base / value if self.less_is_better else value / base for value, base in pairs]

    def as_json(self) -> dict[str, Any]:
        """Every number of every round, and the summary."""
        return {
            "measured": self.key,
            "players": [
                {"name": player.label, "facts": player.facts, "final": player.final, "error": player.error}
                for player in self.players
            ],
            "summary": [self._summary(player, case) for case in self.cases for player in self.players],
            "turns": [asdict(turn) for turn in self.turns],
        }

    def _summary(self, player: Player, case: Case) -> dict[str, Any]:
        spreads = {self.key: Spread.of(self.values(player, case)), "ratio": Spread.of(self.ratios(player, case))}
        return {"player": player.label, "case": case.label} | {
            name: None if spread is None else asdict(spread) for name, spread in spreads.items()
        }


def disturbed(measured: Values, threads: int | None) -> bool:
    """Whether something else had the processor: the turn got less of it than it has threads, and others worked.

    Where the system does not tell what others do, a third less than the threads is taken as a sign.
    """
    seconds, processor = measured.get("seconds"), measured.get("cpu_seconds")
    if not threads or not seconds or processor is None:
        return False
    missing = threads - processor / seconds
    others = measured.get("others")
    if others is None:
        return bool(missing > 0.35 * threads)
    return bool(missing > 0.1 * threads and others > 0.15)


def compare(
    players: list[Player],
    cases: list[Case],
    key: str,
    rounds: int | None,
    say: Callable[[str], None],
    less_is_better: bool = False,
) -> Results:
    """Let all players get ready, take turns, and finish; one that fails is told and left out from then on.

    Without a number of rounds they go on until every player says that it has finished.
    """
    results = Results(players, cases, key, less_is_better)
    try:
        for player in players:
            with allowed_to_fail(player, say):
                say(f"{player.label} gets ready")
                player.start()
        for number in range(1, rounds + 1) if rounds else itertools.count(1):
            for case in cases:
                play(results, number, case, say, rounds is None)
            say(f"round {number}: " + ", ".join(_last(results, player, number) for player in players))
            if all(player.finished or player.error for player in players):
                break
        for player in players:
            if player.error is None:
                with allowed_to_fail(player, say):
                    player.finish()
    finally:
        for player in players:
            player.close()
    return results


def play(results: Results, number: int, case: Case, say: Callable[[str], None], until_finished: bool) -> None:
    """One round of one case."""
    now = case
    for player in results.players:
        if player.error is None and not (until_finished and player.finished):
            with allowed_to_fail(player, say):
                turn = take_turn(player, number, now)
                results.turns.append(turn)
                now = now.after(turn.measured) if player.leads else now


def take_turn(player: Player, number: int, case: Case) -> Turn:
    """One turn, after a moment of rest."""
    time.sleep(SETTLE)
    measured = player.turn(number, case)
    threads = measured.get("threads", player.threads)
    return Turn(player.label, case.label, number, measured, disturbed(measured, threads))


@contextmanager
def allowed_to_fail(player: Player, say: Callable[[str], None]) -> Iterator[None]:
    """The others go on without a player that fails."""
    try:
        yield
    except PlayerError as error:
        player.error = str(error)
        say(f"{player.label} is out: {error}")


def _last(results: Results, player: Player, number: int) -> str:
    """What a player did last, for the person who waits."""
    own = [turn for turn in results.turns if turn.player == player.label and turn.round == number]
    return f"{player.label} " + (" ".join(f"{turn.measured[results.key]:.5g}" for turn in own) or "-")
