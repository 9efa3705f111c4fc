"""The numbers of a game: who was fooled, tests, curves, rarity. The tables of the paper over several runs: `tables.py`.

`fooled` is the share of the questions that were right and are wrong, twice, on a scene that the verifier finds fair.
The adversary shows the scene that fooled the player and leaves all others as they stand: accuracy drops by that share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np

from pfungst.core import Figure, Finding, Series, Table
from pfungst.core.stats import Interval, interval_of
from pfungst.core.types import BEYOND
from pfungst.probes.game.rows import BoardSummary, Round
from pfungst.probes.game.rules import GameSettings
from pfungst.probes.measure import difference, finding, grouped

LEVELS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
"""Query budgets of the success curve."""
UNIFORM = "uniform"
"""Name of the control that moves at random."""
POINTS_OF_CURVE = 20
"""Of the convergence figure."""


Curve: TypeAlias = Sequence[Mapping[str, float]]


@dataclass(frozen=True)
class RunNumbers:
    """One mini-game in numbers, all between 0 and 1."""

    run: int
    game: int
    size: int
    before: float
    """Accuracy on the scenes as they stood."""
    after: float
    """before - fooled: accuracy once the adversary has moved what it could, and left alone what it could not."""
    fooled: float
    """Questions that were right and are wrong now; the paper's accuracy drop."""
    changed: float
    """Questions whose answer changed; the paper's consistency drop."""
    queries: int
    one_scene: float = math.nan
    """Accuracy on the one scene of each question that the adversary committed itself to, and `one_before` on the same
    questions as they stood. Unlike `fooled` this counts answers that came out right as well."""
    one_before: float = math.nan
    scenes: float = math.nan
    """Accuracy on all scenes the adversary asked about, the mean over questions of the mean over their scenes; `late`
    on the last quarter of each question's, and `scenes_before` on the same questions as they stood."""
    late: float = math.nan
    scenes_before: float = math.nan

    @property
    def relative(self) -> float:
        """(X - Y) / X of Table 2; NaN where nothing was right before."""
        return self.fooled / self.before if self.before else math.nan


@dataclass(frozen=True)
class Result:
    """What a game found out about one player and one adversary at one size, for tables over several runs."""

    player: str
    settings: GameSettings
    rounds: tuple[Round, ...]
    """The finished mini-games in which a question was answered."""
    adversary: str = ""
    """Its name in tables."""

    @cached_property
    def runs(self) -> tuple[RunNumbers, ...]:
        return tuple(map(numbers_of, self.rounds))

    @cached_property
    def boards(self) -> tuple[BoardSummary, ...]:
        """What became of every question that the player answered as it stood, in the order played."""
        return tuple(board for played in self.rounds for board in played.answered)

    @property
    def curves(self) -> tuple[Curve, ...]:
        """The state of every mini-game after each of its steps."""
        return tuple(played.curve for played in self.rounds)

    @property
    def about(self) -> str:
        """What the adversary says of itself."""
        return str(self.rounds[0].notes.get("adversary", "")) if self.rounds else ""

    @property
    def size(self) -> int:
        return self.settings.size

    @property
    def control(self) -> Result | None:
        """What came of the same questions in the hands of an adversary that moves at random, by the same rules; None
        where the adversary has no such control."""
        if any(board.uniform is None for board in self.boards):
            return None
        rounds = tuple(
            Round(None, tuple(board.uniform for board in played.answered if board.uniform is not None), (), {}, 0,
                  run=played.run, game=played.game)
            for played in self.rounds
        )  # fmt: skip
        return replace(self, rounds=rounds, adversary=f"{UNIFORM} ({self.adversary or self.settings.adversary})")

    @property
    def missing(self) -> int:
        """Mini-games that are not finished."""
        return self.settings.seeds - len(self.rounds)

    @property
    def counts(self) -> dict[str, int]:
        """What happened that a reader must know: invalid moves by enforcer, questions without a legal move ..."""
        rounds, boards = self.rounds, self.boards
        counts = {
            "mini-games": len(rounds),
            "mini-games that are missing": self.missing,
            "samples of questions": len({played.game for played in rounds}),
            "questions": len(boards),
            "without relate": sum(not board.relates for board in boards),
            "no legal move found": sum(board.legal_moves == 0 for board in boards),
            "moved scenes asked about": sum(board.queries for board in boards),
            "out of draws before out of queries": sum(board.out_of_draws for board in boards),
            "queries without an answer": sum(played.failed for played in rounds),
            "questions without an answer": sum(played.unanswered for played in rounds),
            "nonsense answers": sum(played.nonsense for played in rounds),
            "fooled": sum(board.fooled_after is not None for board in boards),
            "fooled, not confirmed": sum(board.confirmed is False for board in boards),
            "fooled, not verified": sum(board.verified is False for board in boards),
        }
        for played in rounds:
            for name, count in played.illegal.items():
                counts[f"refused: {name}"] = counts.get(f"refused: {name}", 0) + count
        left_out: Mapping[str, int] = rounds[0].notes.get("left out", {}) if rounds else {}
        return counts | {f"left out: {reason}": count for reason, count in left_out.items()}

    def average(self, name: str) -> float:
        """Mean of a number over the mini-games that have it, NaN where none has."""
        return _mean(value for value in (getattr(run, name) for run in self.runs) if not math.isnan(value))

    @property
    def worst(self) -> RunNumbers:
        """The mini-game with the largest relative drop; repeated samples are averaged first, as in the paper."""
        means = []
        for game, some in grouped(self.runs, attrgetter("game")).items():
            shares = {
                name: float(np.mean([getattr(run, name) for run in some]))
                for name in ("before", "after", "fooled", "changed")
            }
            means.append(
                RunNumbers(some[0].run, game, some[0].size, **shares, queries=sum(run.queries for run in some))
            )
        return max(means, key=lambda one: (-1.0 if math.isnan(one.relative) else one.relative, -one.game))

    def p_value(self, name: str) -> float:
        """One-sided one-sample t-test that the mean of `fooled` or `changed` is above zero (appendix A.11)."""
        return t_test([getattr(run, name) for run in self.runs])


def t_test(values: Sequence[float]) -> float:
    """p-value of H0: mean = 0 against mean > 0. Without spread it is 1 for a mean of 0, else 0; NaN for one value."""
    numbers = np.asarray(values, dtype=np.float64)
    if len(numbers) < 2:
        return math.nan
    if np.ptp(numbers) == 0.0:
        return 0.0 if numbers[0] > 0 else 1.0
    from scipy.special import stdtr  # scipy.stats takes seconds to load

    score = numbers.mean() / (numbers.std(ddof=1) / math.sqrt(len(numbers)))
    return float(stdtr(len(numbers) - 1, -score))


def is_won(board: BoardSummary) -> bool:
    """Fooled by a scene that the verifier finds fair, and wrong again when asked about it again."""
    return board.fooled_after is not None and board.confirmed is not False and board.verified is not False


def is_changed(board: BoardSummary) -> bool:
    fooled_only = board.fooled_after is not None and board.fooled_after == board.changed_after
    return is_won(board) if fooled_only else board.changed_after is not None


def numbers_of(played: Round) -> RunNumbers:
    """A round in numbers."""
    boards = played.answered
    n = len(boards)
    before = sum(one.right for one in boards) / n
    fooled = sum(is_won(one) for one in boards) / n
    changed = sum(is_changed(one) for one in boards) / n
    shown, asked = _having(boards, "one_scene"), _having(boards, "scenes")
    return RunNumbers(
        played.run,
        played.game,
        len(boards),
        before,
        before - fooled,
        fooled,
        changed,
        sum(one.queries for one in boards),
        *(_mean(getattr(one, name) for one in shown) for name in ("one_scene", "right")),
        *(_mean(getattr(one, name) for one in asked) for name in ("scenes", "late", "right")),
    )


def _mean(values: Iterable[Any]) -> float:
    numbers = [float(value) for value in values]
    return float(np.mean(numbers)) if numbers else math.nan


def _share(
    name: str, boards: Sequence[BoardSummary], value: Callable[[BoardSummary], Any], p: float | None = None
) -> Finding:
    """The mean of a value over boards."""
    test = "" if p is None else "one-sided t-test over mini-games"
    images = [board.image_id for board in boards]
    return finding(name, interval_of([float(value(board)) for board in boards], images), p=p, test=test)


def _having(boards: Sequence[BoardSummary], name: str) -> list[BoardSummary]:
    return [board for board in boards if getattr(board, name) is not None]


def rows_of(result: Result) -> dict[str, Finding]:
    """The game's own numbers, by a short name; those beside the control only where there is one."""
    boards = result.boards
    fooled, changed = result.p_value("fooled"), result.p_value("changed")
    again, fair, shown, asked = (_having(boards, name) for name in ("again", "verified", "one_scene", "scenes"))
    return {
        "fooled": _share("fooled", boards, is_won, fooled),
        "changed": _share("answers changed", boards, is_changed, changed),
        "control": _share("answers changed, same scene twice", again, lambda board: not board.again),
        "verified": _share("fooling scenes the verifier finds fair", fair, attrgetter("verified")),
        "one scene": _share("drop on one scene per question", shown, lambda board: board.right - bool(board.one_scene)),
        "scenes": _share("accuracy on all scenes asked about", asked, attrgetter("scenes")),
        "late": _share("accuracy on the last quarter of each question's scenes", asked, attrgetter("late")),
        **search_rows(boards),
        **control_rows(result),
    }


SEARCH = {
    "draws": "moves drawn",
    "legal_draws": "legal moves drawn",
    "queries": "different legal scenes asked about",
    "updates": "updates",
}
"""How much an adversary tried on a question: fields of `BoardSummary`, and their names."""


def search_rows(boards: Sequence[BoardSummary]) -> dict[str, Finding]:
    """How much was tried on a question, by the fields of `SEARCH`, and where there is a policy its updates and its
    `entropy`; nothing where an earlier version played."""
    boards = _having(_having(boards, "draws"), "old_answer")
    if not boards:
        return {}
    images = [board.image_id for board in boards]
    rows = {}
    for field, name in SEARCH.items():
        counts = [float(getattr(board, field)) for board in boards]
        rows[field] = finding(name, interval_of(counts, images), unit="")
    if with_policy := _having(boards, "entropy"):
        name = "entropy of the policy in the end, of a uniform one's"
        rows["entropy"] = _share(name, with_policy, attrgetter("entropy"))
    else:
        del rows["updates"]
    return rows


def control_rows(result: Result) -> dict[str, Finding]:
    """What the control does, and how much more the adversary does on the same questions."""
    control = result.control
    pairs = [(ours, ours.uniform) for ours in result.boards if ours.uniform is not None]
    if control is None or not pairs:
        return {}
    images = [ours.image_id for ours, _ in pairs]
    first, second = ([float(is_won(board)) for board in some] for some in zip(*pairs, strict=True))
    boards = [uniform for _, uniform in pairs]
    return {
        "uniform": _share("fooled by a uniform policy", boards, is_won),
        "beyond": difference(BEYOND, first, second, images, 0, "uniform policy"),
        **{f"uniform {name}": replace(row, condition="uniform policy") for name, row in search_rows(boards).items()},
    }


def search_table(rows: Mapping[str, Finding]) -> Table:
    """How much the adversary tried, beside its control; rows as of `rows_of`."""
    columns = ("", "adversary", *(["uniform policy"] if "uniform" in rows else []))
    shown = tuple(
        (rows[name].name, rows[name], *([rows[f"uniform {name}"]] if "uniform" in rows else []))
        for name in (*SEARCH, "entropy")
        if name in rows
    )
    note = "Moves drawn: refused and repeated ones too."
    if "entropy" in rows:
        note += " A policy of little entropy draws the same few moves again."
    return Table("How much was tried on a question", columns, shown, note)


def type_table(boards: Sequence[BoardSummary]) -> Table:
    """Sensitivity by question type (Figure 8)."""
    rows = []
    for kind in sorted({board.question_type for board in boards}):
        some = [board for board in boards if board.question_type == kind]
        shares = (
            _share("accuracy", some, attrgetter("right")),
            _share("fooled", _right(some), is_won),
            _share("changed", some, is_changed),
        )
        rows.append((kind or "unknown", len(some), *shares))
    columns = ("question type", "questions", "accuracy before", "fooled, of those right", "answers changed")
    return Table("Sensitivity by question type", columns, tuple(rows), "Figure 8 of the paper.")


def _right(boards: Sequence[BoardSummary]) -> list[BoardSummary]:
    return [board for board in boards if board.right]


def _fooled_series(x: Sequence[Any], shares: Sequence[Finding | Interval]) -> Series:
    return Series("fooled", tuple(x), *(tuple(map(attrgetter(part), shares)) for part in ("value", "low", "high")))


def type_figure(boards: Sequence[BoardSummary]) -> Figure:
    """Sensitivity by question type, as a histogram (Figure 8)."""
    right = _right(boards)
    kinds = sorted({one.question_type for one in right})
    shares = [_share("fooled", [one for one in right if one.question_type == kind], is_won) for kind in kinds]
    series = _fooled_series([kind or "unknown" for kind in kinds], shares)
    return Figure("Sensitivity by question type", "bar", (series,), "question type", "fooled, of those right")


def rarity_table(boards: Sequence[BoardSummary]) -> Table:
    """How rare fooling scenes are: F / 49^N (appendix B.3), and their share of the legal scenes that were tried."""
    rows = []
    for objects, some in sorted(grouped(_right(boards), attrgetter("objects")).items()):
        found, tried = sum(board.fooling for board in some), sum(board.legal_moves for board in some)
        share = found / tried if tried else math.nan
        rows.append((objects, len(some), found, rarity(found / len(some), objects), share))
    columns = ("objects N", "questions", "fooling scenes found F", "F / 49^N per question",
               "share of legal scenes tried")  # fmt: skip
    note = "F is what was found, so F / 49^N is a lower bound; the last column depends on where the adversary looks."
    return Table("Rarity of fooling scenes", columns, tuple(rows), note)


def rarity(found: float, objects: int) -> float:
    """F / 49^N of appendix B.3."""
    return found / 49.0**objects


def budget_figure(boards: Sequence[BoardSummary]) -> Figure:
    """Success against query budget: share of the questions that were right and are fooled within so many queries.

    Questions fooled later, or never, count as not fooled; levels beyond what any question was asked are left out.
    """
    right = _right(boards)
    most = max((one.queries for one in right), default=0)
    levels = [level for level in LEVELS if level <= max(most, LEVELS[0])]
    images = [one.image_id for one in right]
    shares = [
        interval_of([float(is_won(one) and (one.fooled_after or 0) <= level) for one in right], images)
        for level in levels
    ]
    series = _fooled_series(levels, shares)
    return Figure("Success against query budget", "line", (series,), "queries per question", "fooled, of those right")


def convergence_figure(adversaries: Mapping[str, Sequence[Curve]]) -> Figure:
    """Share fooled over the queries of a mini-game: mean and one standard deviation over mini-games (Figure 9).

    adversaries: the curves of the mini-games of each.
    """
    most = max((int(curve[-1]["queries"]) for curves in adversaries.values() for curve in curves if curve), default=0)
    grid = np.unique(np.linspace(0, most, POINTS_OF_CURVE).astype(int))
    series = []
    for name, curves in adversaries.items():
        lines = []
        for curve in curves:
            x = [0, *(point["queries"] for point in curve)]
            y = [0.0, *(point["fooled"] for point in curve)]
            lines.append(np.asarray(y)[np.searchsorted(x, grid, side="right") - 1])
        mean, spread = np.mean(lines, axis=0), np.std(lines, axis=0)
        low, high = np.clip(mean - spread, 0, 1), np.clip(mean + spread, 0, 1)
        series.append(Series(name, *(tuple(values.tolist()) for values in (grid, mean, low, high))))
    return Figure("Convergence", "line", tuple(series), "queries of the mini-game", "share of questions fooled so far")


def distribution_figure(runs: Sequence[RunNumbers]) -> Figure:
    """How often each share of fooled questions was reached (Figures 10 and 11)."""
    edges = np.linspace(0, 1, 11)
    counts, _ = np.histogram([one.fooled for one in runs], edges)
    names = tuple(f"{int(100 * low)}-{int(100 * high)}%" for low, high in pairwise(edges))
    share = tuple((counts / max(1, len(runs))).tolist())
    return Figure(
        "Distribution over mini-games", "bar", (Series("mini-games", names, share),), "questions fooled",
        "share of mini-games",
    )  # fmt: skip
