"""The paper's tables over several runs with the game, in its layouts.

Columns are named as in the paper: its "accuracy drop" is `fooled` here, its "consistency drop" `changed`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from operator import attrgetter
from pathlib import Path
from typing import Any

from pfungst.core import Figure, PfungstError, Table, read_config
from pfungst.core.stats import interval_of
from pfungst.probes.game.results import (
    SEARCH,
    Result,
    budget_figure,
    convergence_figure,
    distribution_figure,
    is_won,
    search_rows,
    type_figure,
)
from pfungst.probes.game.rows import ROUNDS, BoardSummary, read_round
from pfungst.probes.game.rules import BASELINE, GameSettings
from pfungst.probes.measure import P_COLUMNS, corrected, difference, grouped, mean, p_cells

_T_TEST = "One-sided t-test over mini-games, H0: no drop; no test with a single one."


def read_result(folder: Path) -> Result:
    """The result of a run with a finished game, computed again from its mini-games."""
    config = read_config(folder)
    settings = next((probe["settings"] for probe in config["probes"] if probe["name"] == "game"), None)
    if settings is None:
        names = ", ".join(probe["name"] for probe in config["probes"])
        raise PfungstError(f"{folder} is a run without the game; its probes are: {names}.")
    if "draws" not in settings and settings["preset"] == "paper":  # an earlier version, which called the places so
        settings = {**settings, "preset": "paper-places"}
    game = GameSettings(**{name: value for name, value in settings.items() if name != "name"})
    files = [folder / "game" / ROUNDS / f"round-{number:05d}.parquet" for number in range(game.seeds)]
    rounds = [played for played in (read_round(file) for file in files if file.exists()) if played.answered]
    if not rounds:
        raise PfungstError(f"{folder} has no finished mini-game yet.")
    part = f" ({len(rounds)} of {game.seeds} mini-games)" if len(rounds) < game.seeds else ""
    return Result(config["player"]["name"] + part, game, tuple(rounds), game.adversary)


def apart(results: Sequence[Result]) -> list[Result]:
    """The same, where an adversary played with several budgets with all but the smallest in its name, and by several
    rules with all but the first."""
    results = [one if _rules(one) == _rules(results[0]) else _named(one, f"({_rules(one)})") for one in results]
    budgets: dict[tuple[str, int, str], set[float]] = {}
    for one in results:
        budgets.setdefault((one.player, one.size, one.adversary), set()).add(_budget(one))
    least = {name: min(found) for (_, _, name), found in budgets.items() if len(found) > 1}
    return [
        replace(one, adversary=f"{one.adversary}, {one.settings.budget or 'its own number of'} queries")
        if _budget(one) > least.get(one.adversary, math.inf)
        else one
        for one in results
    ]


def with_controls(results: Sequence[Result]) -> list[Result]:
    """Each result with that of its control behind it, where it has one."""
    return [each for one in results for each in (one, one.control) if each is not None]


def _rules(one: Result) -> str:
    return one.settings.preset + " ood" * one.settings.ood


def _named(one: Result, more: str) -> Result:
    return replace(one, adversary=f"{one.adversary} {more}")


def _budget(one: Result) -> float:
    return math.inf if one.settings.budget is None else one.settings.budget


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _relative(before: float, after: float) -> str:
    return f"{_percent(after)} ({-100 * (1 - after / before):.1f}%)" if before else f"{_percent(after)} (-)"


def _by_player(results: Sequence[Result]) -> list[tuple[str, int, dict[str, Result]]]:
    """Rows of the tables: player and size, with one result an adversary."""
    rows: dict[tuple[str, int], dict[str, Result]] = {}
    for one in results:
        row = rows.setdefault((one.player, one.size), {})
        if one.adversary in row:
            raise PfungstError(
                f"Two runs are of {one.player} against {one.adversary} in mini-games of {one.size} with the same "
                "number of queries: give only one of them."
            )
        row[one.adversary] = one
    return [(player, size, found) for (player, size), found in rows.items()]


def table_2(
    results: Sequence[Result],
    dataset: Mapping[str, float] | None = None,
    columns: Mapping[str, str] | None = None,
) -> Table:
    """Table 2: average accuracy after manipulation, and the worst mini-game.

    dataset: accuracy of each player on the whole data set. Without it the accuracy on the mini-games' own questions
    stands there, which makes the drop a paired one.
    columns: adversary -> heading; `a2c` is the paper's State-Input and `a2c-pixel` its Pixel-Input.
    """
    heads = dict(columns or {"a2c": "State-Input", "a2c-pixel": "Pixel-Input"})
    heads.update({one.adversary: one.adversary for one in results if one.adversary not in heads})
    heads = {name: head for name, head in heads.items() if any(one.adversary == name for one in results)}
    rows = []
    for player, size, found in _by_player(results):
        clean = (dataset or {}).get(player)
        first = next(iter(found.values()))
        shown = clean if clean is not None else first.average("before")
        played = [found.get(name) for name in heads]
        average = [_drop(one, "before", "after", clean) for one in played]
        before = [_percent(one.worst.before) for one in played if one is not None]
        worst = ["" if one is None else _relative(one.worst.before, one.worst.after) for one in played]
        rows.append((player, size, _percent(shown), *average, " / ".join(before), *worst))
    names = tuple(heads.values())
    titles = (
        "Model", "Mini-game size", "Model dataset performance", *(f"Average Accuracy, {name}" for name in names),
        "Model Mini-game performance", *(f"Maximal Accuracy, {name}" for name in names),
    )  # fmt: skip
    return Table("Results of the games (Table 2)", titles, tuple(rows), "Drops are (X - Y) / X, as in the paper.")


def table_4(results: Sequence[Result], adversary: str = "a2c") -> Table:
    """Table 4 (`a2c`, state input) and Table 5 (`a2c-pixel`): average drops with p-values of the t-test."""
    rows = [
        (
            one.player,
            one.size,
            f"{-100 * one.average('changed'):.1f}",
            f"{-100 * one.average('fooled') / one.average('before'):.1f}" if one.average("before") else "",
            *("" if math.isnan(p) else f"{p:.3f}" for p in (one.p_value("changed"), one.p_value("fooled"))),
        )
        for one in results
        if one.adversary == adversary
    ]
    columns = (
        "Model",
        "Mini-game size",
        "Consistency Drop %",
        "Accuracy Drop %",
        "p Consistency Drop",
        "p Accuracy Drop",
    )
    number = {"a2c": "Table 4", "a2c-pixel": "Table 5"}.get(adversary, adversary)
    return Table(f"Average drops ({number})", columns, tuple(rows), _T_TEST)


def table_b1(results: Sequence[Result]) -> Table:
    """Appendix B.1: accuracy before and after on the mini-game with the largest drop."""
    names = list(dict.fromkeys(one.adversary for one in results))
    rows = []
    for player, size, found in _by_player(results):
        before = [_percent(found[name].worst.before) if name in found else "" for name in names]
        after = [_percent(found[name].worst.after) if name in found else "" for name in names]
        rows.append((player, size, *before, *after))
    columns = ("Model", "Mini-game size", *(f"Original ({n})" for n in names), *(f"Manipulated ({n})" for n in names))
    return Table("Mini-games of maximal drop (B.1)", columns, tuple(rows))


def table_b3(results: Sequence[Result]) -> Table:
    """Appendix B.3: every adversary beside the random scene generator."""
    names = list(dict.fromkeys(one.adversary for one in results))
    others = [name for name in names if name != BASELINE] if BASELINE in names else []
    rows = []
    for player, size, found in _by_player(results):
        cells = [_drop(found.get(name), "before", "after") for name in names]
        spent = [f"{found[n].average('queries') / size:.0f}" if n in found else "" for n in names]
        once = [_drop(found.get(name), "one_before", "one_scene") for name in names]
        every = [_drop(found.get(name), "scenes_before", "scenes") for name in names]
        baseline = found.get(BASELINE)
        best = [_beside(found.get(name), baseline, _after) for name in others]
        beside = [_beside(found.get(name), baseline, attrgetter("one_scene")) for name in others]
        rows.append((player, size, *cells, " / ".join(spent), *once, *every, *best, *beside))
    columns = (
        "Model",
        "Mini-game size",
        *(f"{name}: accuracy (drop)" for name in names),
        "queries per question",
        *(f"{name}: accuracy on one scene (drop)" for name in names),
        *(f"{name}: accuracy on all its scenes (drop)" for name in names),
        *(f"one scene, {name} less the best of {BASELINE}'s queries" for name in others),
        *(f"one scene, {name} less {BASELINE}" for name in others),
    )
    note = (
        "One scene: the one the adversary would show if it had a single try (rsg: a random legal one). Questions that "
        "come out right there count for the player: the drop is what the adversary knows. All its scenes: the mean "
        "over those it asked about in the search. An adversary that asked before it chose its one scene is to be "
        f"compared with the best of {BASELINE}'s queries: what {BASELINE} would show if it kept what fooled. "
        "Differences are of the same questions, with intervals over images."
    )
    return Table("Adversaries side by side (B.3)", columns, tuple(rows), note)


def table_controls(results: Sequence[Result]) -> Table:
    """Every adversary beside its uniform policy and beside the others, random legal scenes among them."""
    pairs = []
    for _, _, found in _by_player(results):
        pairs += [(one, one.control) for one in found.values() if one.control is not None]
        pairs += combinations(found.values(), 2)
    pairs, shares = _fooled_by(pairs)
    cells = tuple(
        (one.player, one.size, one.adversary, other.adversary, *row)
        for (one, other), row in zip(pairs, shares, strict=True)
    )
    columns = ("Model", "Mini-game size", "adversary", "beside", "fooled", "fooled by the other", "difference",
               *P_COLUMNS)  # fmt: skip
    note = (
        "Of the questions both played, right or wrong before; differences with intervals over images. The uniform "
        f"policy may draw and ask as much as its adversary, by the same rules. {BASELINE}: random legal scenes, with "
        "the queries of its own game."
    )
    return Table("Adversaries beside their controls", columns, cells, note)


def table_sizes(results: Sequence[Result]) -> Table:
    """Every adversary in mini-games of other sizes than the smallest, beside that."""
    every = grouped(with_controls(results), lambda one: (one.player, one.adversary)).values()
    pairs = [(one, some[0]) for some in (sorted(same, key=attrgetter("size")) for same in every) for one in some[1:]]
    pairs, shares = _fooled_by(pairs)
    cells = tuple(
        (one.player, one.adversary, f"{other.size}, {one.size}", *row)
        for (one, other), row in zip(pairs, shares, strict=True)
    )
    columns = ("Model", "adversary", "Mini-game sizes", "fooled in the larger", "fooled in the smaller", "difference",
               *P_COLUMNS)  # fmt: skip
    note = "Of the questions played in both; a question played several times counts by its mean. Intervals over images."
    return Table("Sizes side by side", columns, cells, note)


Pair = tuple[Result, Result]


def _fooled_by(pairs: Sequence[Pair]) -> tuple[list[Pair], list[tuple[Any, ...]]]:
    """The pairs that have questions in common; for each the share that both fool, and the difference, tested."""
    kept, shares, changes = [], [], []
    for one, other in pairs:
        ours, theirs = _by_question(one, is_won), _by_question(other, is_won)
        both = [name for name in ours if name in theirs]
        if both:
            images = [image for image, _ in both]
            first, second = [ours[name] for name in both], [theirs[name] for name in both]
            kept.append((one, other))
            shares.append((mean("fooled", first, images, 0), mean("fooled", second, images, 0)))
            changes.append(difference("difference", first, second, images, 0))
    rows = [(*pair, change, *p_cells(change)) for pair, change in zip(shares, corrected(changes), strict=True)]
    return kept, rows


def table_search(results: Sequence[Result]) -> Table:
    """How much every adversary tried on a question."""
    names = (*SEARCH, "entropy")
    rows = []
    for one in results:
        tried = search_rows(one.boards)
        spent = sum(board.out_of_draws for board in one.boards)
        rows.append((one.player, one.size, one.adversary, *(tried.get(name) for name in names), spent))
    columns = ("Model", "Mini-game size", "adversary", *SEARCH.values(), "entropy of the policy in the end",
               "out of draws before out of queries")  # fmt: skip
    return Table("How much was tried on a question", columns, tuple(rows), "Entropy: as a share of a uniform policy's.")


def _drop(found: Result | None, before: str, after: str, clean: float | None = None) -> str:
    """The average `after` and how far it is below the average `before`, or below `clean`; empty where there is none."""
    if found is None or math.isnan(found.average(after)):
        return ""
    return _relative(found.average(before) if clean is None else clean, found.average(after))


def _beside(found: Result | None, baseline: Result | None, shown: Callable[[BoardSummary], bool | None]) -> str:
    """Accuracy on the one scene of an adversary less that on what the baseline shows, on questions both played."""
    if found is None or baseline is None:
        return ""
    ours, theirs = _by_question(found, attrgetter("one_scene")), _by_question(baseline, shown)
    both = [name for name in ours if name in theirs]
    if not both:
        return ""
    change = interval_of([ours[name] - theirs[name] for name in both], [name[0] for name in both], bounds=(-1.0, 1.0))
    points = f"{100 * change.value:+.1f}"
    return points if math.isnan(change.low) else f"{points} [{100 * change.low:.1f}, {100 * change.high:.1f}]"


def _after(one: BoardSummary) -> bool:
    """Whether the player was right on what the adversary shows after all its queries: the scene that fooled it, or the
    original."""
    return one.right and not is_won(one)


def _by_question(found: Result, right: Callable[[BoardSummary], bool | None]) -> dict[tuple[str, str], float]:
    """Where this is known, by (image, question); the mean where a question was played several times."""
    known: dict[tuple[str, str], list[bool]] = {}
    for one in found.boards:
        outcome = right(one)
        if outcome is not None:
            known.setdefault((one.image_id, one.example_id), []).append(outcome)
    return {name: sum(some) / len(some) for name, some in known.items()}


def budget_table(results: Sequence[Result]) -> Table:
    """Success against query budget: share of the questions right before that are fooled within n queries."""
    curves = []
    for one in results:
        line = budget_figure(one.boards).series[0]
        curves.append((one, dict(zip(line.x, line.y, strict=True))))
    levels = sorted({level for _, curve in curves for level in curve})
    rows = tuple(
        (one.player, one.adversary, one.size, *(f"{100 * curve[n]:.1f}%" if n in curve else "" for n in levels))
        for one, curve in curves
    )
    columns = ("Model", "Adversary", "Mini-game size", *(f"within {level}" for level in levels))
    return Table("Success against query budget", columns, rows, "Of the questions that were right before.")


def figures_8_to_11(results: Sequence[Result]) -> list[Figure]:
    """Figure 8, Figures 10 and 11 (the paper's two adversaries) and success against budget for each adversary, and
    Figure 9 for each player."""
    drawings: tuple[Callable[[Result], Figure], ...] = (
        lambda one: type_figure(one.boards),
        lambda one: distribution_figure(one.runs),
        lambda one: budget_figure(one.boards),
    )
    found = []
    for draw in drawings:
        for name in dict.fromkeys(one.adversary for one in results):
            drawn = {one.player: draw(one) for one in results if one.adversary == name}
            first = next(iter(drawn.values()))
            series = tuple(replace(figure.series[0], name=player) for player, figure in drawn.items())
            found.append(replace(first, title=f"{first.title} ({name})", series=series))
    for player in dict.fromkeys(one.player for one in results):
        figure = convergence_figure({one.adversary: one.curves for one in results if one.player == player})
        found.append(replace(figure, title=f"{figure.title} against {player}"))
    return found
