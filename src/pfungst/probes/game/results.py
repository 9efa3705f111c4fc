"""The numbers of a game: who was fooled, tests, curves, rarity. The tables of the paper over several runs: `tables.py`.

`fooled` is the share of the questions that were right and are wrong, twice, on a scene that the verifier finds fair.
The adversary shows the scene that fooled the player and leaves all others as they stand: accuracy drops by that share.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from pfungst.core import Figure, Finding, Series, Table
from pfungst.core.stats import bootstrap
from pfungst.probes.game.rows import BoardSummary, Round
from pfungst.probes.game.settings import GameSettings
from pfungst.probes.measure import finding

LEVELS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
"""Query budgets of the success curve."""


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
    runs: tuple[RunNumbers, ...]
    boards: tuple[BoardSummary, ...]
    """What became of every question, in the order played."""
    counts: Mapping[str, int]
    """What happened that a reader must know: invalid moves by enforcer, questions without a legal move ..."""
    about: str = ""
    """What the adversary says of itself."""
    failed: tuple[str, ...] = ()
    """Mini-games that could not be finished, and why."""
    adversary: str = ""
    """Its name in tables."""

    @property
    def size(self) -> int:
        return self.settings.size

    def average(self, name: str) -> float:
        """Mean of a number over the mini-games that have it, NaN where none has."""
        values = [value for value in (getattr(one, name) for one in self.runs) if not math.isnan(value)]
        return float(np.mean(values)) if values else math.nan

    @property
    def worst(self) -> RunNumbers:
        """The mini-game with the largest relative drop; repeated samples are averaged first, as in the paper."""
        games = {one.game: [x for x in self.runs if x.game == one.game] for one in self.runs}
        means = []
        for game, some in games.items():
            before, after, fooled, changed = (
                float(np.mean([getattr(one, name) for one in some]))
                for name in ("before", "after", "fooled", "changed")
            )
            queries = sum(one.queries for one in some)
            means.append(RunNumbers(some[0].run, game, some[0].size, before, after, fooled, changed, queries))
        return max(means, key=lambda one: (-1.0 if math.isnan(one.relative) else one.relative, -one.game))

    def p_value(self, name: str) -> float:
        """One-sided one-sample t-test that the mean of `fooled` or `changed` is above zero (appendix A.11)."""
        return t_test([getattr(one, name) for one in self.runs])


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
    """A round in numbers. Questions the player could not answer at all are left out."""
    boards = [one for one in played.boards if one.old_answer is not None]
    n = max(1, len(boards))
    before = sum(one.right for one in boards) / n
    fooled = sum(is_won(one) for one in boards) / n
    changed = sum(is_changed(one) for one in boards) / n
    shown = [one for one in boards if one.one_scene is not None]
    asked = [one for one in boards if one.scenes is not None]
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


def result_of(player: str, rounds: Sequence[Round], settings: GameSettings) -> Result:
    """All numbers of a game, from its finished mini-games."""
    return Result(
        player,
        settings,
        tuple(numbers_of(played) for played in rounds),
        tuple(board for played in rounds for board in played.boards),
        happened(rounds),
        str(rounds[0].notes.get("adversary", "")) if rounds else "",
        adversary=settings.adversary,
    )


def happened(rounds: Sequence[Round]) -> dict[str, int]:
    """What a reader must know, counted."""
    boards = [board for played in rounds for board in played.boards]
    counts = {
        "mini-games": len(rounds),
        "samples of questions": len({played.game for played in rounds}),
        "questions": len(boards),
        "without relate": sum(not board.relates for board in boards),
        "no legal move found": sum(board.legal_moves == 0 and board.old_answer is not None for board in boards),
        "moved scenes asked about": sum(board.queries for board in boards),
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


def _share(name: str, boards: Sequence[BoardSummary], values: Sequence[float], p: float | None = None) -> Finding:
    test = "" if p is None else "one-sided t-test over mini-games"
    return finding(name, bootstrap(values, [one.image_id for one in boards]), p=p, test=test)


def rows_of(rounds: Sequence[Round]) -> dict[str, Finding]:
    """The game's own numbers, by a short name."""
    told = [board for played in rounds for board in played.boards if board.old_answer is not None]
    runs = [numbers_of(played) for played in rounds]
    again = [board for board in told if board.again is not None]
    verified = [board for board in told if board.verified is not None]
    shown = [board for board in told if board.one_scene is not None]
    asked = [board for board in told if board.scenes is not None]
    fooled, changed = (t_test([getattr(run, name) for run in runs]) for name in ("fooled", "changed"))
    return {
        "fooled": _share("fooled", told, [float(is_won(board)) for board in told], fooled),
        "changed": _share("answers changed", told, [float(is_changed(board)) for board in told], changed),
        "control": _share("answers changed, same scene twice", again, [1.0 - bool(board.again) for board in again]),
        "verified": _share(
            "fooling scenes the verifier finds fair", verified, [float(bool(board.verified)) for board in verified]
        ),
        "one scene": _share(
            "drop on one scene per question",
            shown,
            [float(board.right) - float(bool(board.one_scene)) for board in shown],
        ),
        "scenes": _share("accuracy on all scenes asked about", asked, [float(board.scenes or 0.0) for board in asked]),
        "late": _share(
            "accuracy on the last quarter of each question's scenes",
            asked,
            [float(board.late or 0.0) for board in asked],
        ),
    }


def tables_of(rounds: Sequence[Round]) -> tuple[Table, ...]:
    return type_table([board for played in rounds for board in played.boards]), rarity_table(rounds)


def figures_of(rounds: Sequence[Round], runs: Sequence[RunNumbers]) -> tuple[Figure, ...]:
    boards = [board for played in rounds for board in played.boards]
    return budget_figure(boards), type_figure(boards), convergence_figure(rounds), distribution_figure(runs)


def type_table(boards: Sequence[BoardSummary]) -> Table:
    """Sensitivity by question type (Figure 8)."""
    kinds = sorted({one.question_type for one in boards})
    rows = []
    for kind in kinds:
        some = [one for one in boards if one.question_type == kind and one.old_answer is not None]
        right = [one for one in some if one.right]
        rows.append(
            (
                kind or "unknown",
                len(some),
                _share("accuracy", some, [float(one.right) for one in some]),
                _share("fooled", right, [float(is_won(one)) for one in right]),
                _share("changed", some, [float(is_changed(one)) for one in some]),
            )
        )
    columns = ("question type", "questions", "accuracy before", "fooled, of those right", "answers changed")
    return Table("Sensitivity by question type", columns, tuple(rows), "Figure 8 of the paper.")


def type_figure(boards: Sequence[BoardSummary]) -> Figure:
    """Sensitivity by question type, as a histogram (Figure 8)."""
    right = [one for one in boards if one.right]
    kinds = tuple(sorted({one.question_type for one in right}))
    spans = []
    for kind in kinds:
        some = [one for one in right if one.question_type == kind]
        spans.append(_share("fooled", some, [float(is_won(one)) for one in some]))
    series = Series(
        "fooled", tuple(kind or "unknown" for kind in kinds), tuple(s.value for s in spans),
        tuple(s.low for s in spans), tuple(s.high for s in spans),
    )  # fmt: skip
    return Figure("Sensitivity by question type", "bar", (series,), "question type", "fooled, of those right")


def rarity_table(rounds: Sequence[Round]) -> Table:
    """How rare fooling scenes are: F / 49^N (appendix B.3), and their share of the legal scenes that were tried."""
    by_size: dict[int, list[BoardSummary]] = {}
    for one in (board for played in rounds for board in played.boards if board.right):
        by_size.setdefault(one.objects, []).append(one)
    rows = []
    for objects, some in sorted(by_size.items()):
        found, tried = sum(one.fooling for one in some), sum(one.legal_moves for one in some)
        rows.append(
            (objects, len(some), found, rarity(found / len(some), objects), found / tried if tried else math.nan)
        )
    columns = (
        "objects N",
        "questions",
        "fooling scenes found F",
        "F / 49^N per question",
        "share of legal scenes tried",
    )
    note = "F is what was found, so F / 49^N is a lower bound; the last column depends on where the adversary looks."
    return Table("Rarity of fooling scenes", columns, tuple(rows), note)


def rarity(found: float, objects: int, cells: int = 49) -> float:
    """F / 49^N of appendix B.3."""
    return found / float(cells) ** objects


def success_by_budget(boards: Sequence[BoardSummary], levels: Sequence[int] = LEVELS) -> list[tuple[int, float]]:
    """Share of the questions that were right and are fooled within so many queries. Questions fooled later, or never,
    count as not fooled; levels beyond what any question was asked are left out."""
    right = [one for one in boards if one.right]
    most = max((one.queries for one in right), default=0)
    curve: list[tuple[int, float]] = []
    for level in levels:
        if level > most and curve:
            break
        won = sum(is_won(one) and (one.fooled_after or 0) <= level for one in right)
        curve.append((level, won / len(right) if right else math.nan))
    return curve


def budget_figure(boards: Sequence[BoardSummary]) -> Figure:
    """Success against query budget."""
    levels = [level for level, _ in success_by_budget(boards)]
    right = [one for one in boards if one.right]
    spans = [
        bootstrap(
            [float(is_won(b) and (b.fooled_after or 0) <= n) for b in right], [b.image_id for b in right], draws=500
        )
        for n in levels
    ]
    series = Series(
        "fooled",
        tuple(levels),
        tuple(s.value for s in spans),
        tuple(s.low for s in spans),
        tuple(s.high for s in spans),
    )
    return Figure("Success against query budget", "line", (series,), "queries per question", "fooled, of those right")


def convergence_figure(rounds: Sequence[Round], points: int = 20) -> Figure:
    """Share fooled over the queries of a mini-game: mean and one standard deviation over mini-games (Figure 9)."""
    most = max((int(one.curve[-1]["queries"]) for one in rounds if one.curve), default=0)
    grid = np.unique(np.linspace(0, most, points).astype(int))
    lines = []
    for one in rounds:
        x = [0, *(point["queries"] for point in one.curve)]
        y = [0.0, *(point["fooled"] for point in one.curve)]
        at = np.searchsorted(x, grid, side="right") - 1
        lines.append(np.asarray(y)[at])
    mean, spread = np.mean(lines, axis=0), np.std(lines, axis=0)
    low, high = np.clip(mean - spread, 0, 1), np.clip(mean + spread, 0, 1)
    series = Series("fooled", *(tuple(values.tolist()) for values in (grid, mean, low, high)))
    return Figure("Convergence", "line", (series,), "queries of the mini-game", "share of questions fooled so far")


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
