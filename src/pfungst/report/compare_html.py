"""compare.html: many runs on one page, self-contained, in the style of the report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.core import Dataset
from pfungst.core.files import jsonable, write_atomic
from pfungst.report.card import few_images, format_finding, format_p, join_words, number
from pfungst.report.cases import MOST_WORDS
from pfungst.report.compare import Column, Leaderboard, shared_ids
from pfungst.report.page import FigureBlock, TableBlock, Thumbnails, drawn_block, figure_block, render, table_block
from pfungst.report.plots import LETTER, Scale, dot, line, short, steps, svg, text
from pfungst.report.profile import harness_pairs

PER_PAIR = 12
"""Examples shown for each column, pair of runs and direction."""
MOST_CASES = 400
MOST_PAIRS = 28
"""Pairs in a table; beyond it every run stands against the best one only."""
MOST_NAMED = 5
"""Runs named in a sentence."""
WIDTH, ROW = 640.0, 26.0
STEPS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Of the drawing of ranks: its width and the height of a run in pixels, and distances of its grid lines."""


def write_comparison(board: Leaderboard, out: str | Path, data: Dataset | None = None, seed: int = 0) -> Path:
    """Write the comparison as one HTML file. `data` brings the images of the cases."""
    names = [run.name for run in board.runs]
    images = Thumbnails()
    cases, total = _cases(board, seed)
    examples = {example.id: example for example in data or ()}
    for case in cases:
        example = examples.get(case["id"])
        case["image"] = images.of(case["image_id"] or case["id"], example.image if example else None)
    several = len(names) > 2
    paired = [column for column in board.columns if column.pairs]
    html = render(
        "compare.html",
        names=names,
        data=board.runs[0].run.config["data"]["name"],
        reading=board.runs[0].run.label or board.runs[0].run.config["data"]["metric"],
        verdict=verdict(board),
        board=_board_block(board),
        columns=board.columns,
        drop_text=drop_text,
        figure=_figure(board, names),
        ranks=[_rank_block(column, names) for column in paired] if several else [],
        pairs=[_pair_block(column, names) for column in paired],
        harnesses=_harness_block(board),
        cases=cases,
        total=total,
        images=images.all(),
        folders=[(run.name, str(run.path)) for run in board.runs],
        options=sorted({case["column"] for case in cases}),
    )
    path = Path(out)
    write_atomic(path, html)
    return path


def verdict(board: Leaderboard) -> str:
    """Who leads, and how surely, in two sentences."""
    names = [run.name for run in board.runs]
    clean = board.columns[0]
    best = clean.scores[clean.best]
    level = [at for at, score in enumerate(clean.scores) if at == clean.best or score.value == best.value]
    tied = [name for at, name in enumerate(names) if at not in level and clean.ties_with_best(at)]
    verb = "leads" if len(level) == 1 else "lead"
    first = (
        f"{_few([names[at] for at in level])} {verb} with {format_finding(jsonable(best))} on {clean.name} questions"
    )
    if tied:
        first += f", not significantly ahead of {_few(tied)}."
    else:
        first += ", significantly ahead of every other." if len(level) < len(names) else "."
    disturbed = [one for one in board.columns[1:] if one.role == "keeps" and one.pairs]
    if not disturbed:
        return first
    leads = [one.name for one in disturbed if one.best != clean.best and not one.ties_with_best(clean.best)]
    if leads:
        return f"{first} Under {join_words(leads)} another run is significantly better."
    if len(level) > 1:
        return f"{first} Under no disturbance is another run significantly better."
    kept = [one.name for one in disturbed if one.best == clean.best]
    told = (
        f"It has the best score under {join_words(kept)} too" if kept else "It has the best score under no disturbance"
    )
    return f"{first} {told}, and under none is another run significantly better."


def _few(names: Sequence[str]) -> str:
    """Names in a sentence; of many the first ones."""
    rest = len(names) - MOST_NAMED
    return join_words([*names[:MOST_NAMED], f"{rest} others"] if rest > 1 else names)


def too_few(board: Leaderboard) -> str:
    """`few_images` for the intervals of a leaderboard."""
    shown = [one for column in board.columns for one in (*column.scores, *(pair.difference for pair in column.pairs))]
    return few_images(jsonable(shown))


def board_rows(board: Leaderboard) -> tuple[list[str], list[list[Any]]]:
    """The leaderboard as a table: columns, and a row a run with findings as cells."""
    rows = [[run.name, *(jsonable(column.scores[at]) for column in board.columns)] for at, run in enumerate(board.runs)]
    return ["run", *(column.name for column in board.columns)], rows


def _board_block(board: Leaderboard) -> TableBlock:
    columns, rows = board_rows(board)
    note = (
        "Accuracy with 95% intervals, on the questions that all runs have. Marked: the best of a column, and what is "
        "not significantly worse (paired test, Holm over the pairs of a column). Below each accuracy: from the same "
        "run's clean score on the very questions of that column, and the drop. " + control_note(board)
    )
    note = " ".join(filter(None, [note, *board.notes, too_few(board)]))
    return table_block("Leaderboard", columns, rows, "compare", note)


def drop_text(column: Column, at: int) -> str:
    """From which clean score on the same questions a run falls to which, and by how much; empty in the clean column."""
    if not column.drops or column.drops[at] is None:
        return ""
    before, after, drop = (jsonable(some[at]) for some in (column.starts, column.scores, column.drops))
    return f"{number(before['value'])} to {number(after['value'])}: {format_finding(drop)}"


def control_note(board: Leaderboard) -> str:
    """What the same questions cost when they are asked once more: every drop is read against it."""
    told = [
        f"{column.name}: {', '.join(f'{run.name} {drop_text(column, at)}' for at, run in enumerate(board.runs))} "
        f"(n = {column.n})"
        for column in board.controls
    ]
    if not told:
        return "No run asked the same question twice: how much of a drop is noise is unknown."
    return f"The same questions once more, to read every drop against: {'; '.join(told)}."


def _figure(board: Leaderboard, names: Sequence[str]) -> FigureBlock:
    series = [
        {
            "name": name,
            "x": [column.name for column in board.columns],
            **{
                place: [jsonable(getattr(column.scores[at], end)) for column in board.columns]
                for place, end in (("y", "value"), ("low", "low"), ("high", "high"))
            },
        }
        for at, name in enumerate(names)
    ]
    kind = "bar" if len(board.columns) * len(names) <= 40 else "line"
    return figure_block(
        {"title": "Accuracy by probe", "kind": kind, "series": series, "x_label": "", "y_label": "accuracy"}, "compare"
    )


def _rank_block(column: Column, names: Sequence[str]) -> FigureBlock:
    title = f"Mean rank, {column.name}"
    drawing = draw_ranks(title, names, column.ranks, column.groups)
    rows = [[name, rank] for name, rank in zip(names, column.ranks, strict=True)]
    return drawn_block(
        title, (drawing,), ("run", "mean rank"), rows, "compare", f"Friedman test: p {_p(column.friedman)}."
    )


def draw_ranks(title: str, names: Sequence[str], ranks: Sequence[float], groups: Sequence[Sequence[int]]) -> str:
    """SVG of mean ranks, one row a run, the best on top. A bar joins runs of which no two differ significantly.

    It says what a critical-difference diagram says, with room for long names. groups: neighbours in rank.
    """
    order = sorted(range(len(ranks)), key=lambda at: ranks[at])
    side = min(260.0, max(len(name) for name in names) * (LETTER + 0.8) + 6)
    left, right, top = side + 12 * len(groups) + 16, WIDTH - 52, 12.0
    bottom = top + ROW * len(order)
    step = next((one for one in STEPS if (max(ranks) - min(ranks)) / one <= 6), 10.0)
    low, high = (min(ranks) // step) * step, -(-max(ranks) // step) * step
    axis = Scale((low, high if high > low else low + step), (left, right))
    parts = []
    for value in steps(low, axis.high, step):
        parts.append(line(axis(value), top - 4, axis(value), bottom, "grid"))
        parts.append(text(axis(value), bottom + 16, f"{value:.4g}", "middle"))
    for place, at in enumerate(order):
        y = top + (place + 0.5) * ROW
        parts.append(text(0, y + 4, short(names[at], side), kind="strong"))
        parts.append(line(left, y, axis(ranks[at]), y, "grid"))
        parts.append(dot(axis(ranks[at]), y, 5, "f0", f"{names[at]}: mean rank {ranks[at]:.2f}"))
        parts.append(text(axis(ranks[at]) + 10, y + 4, f"{ranks[at]:.2f}", kind="value"))
    for at, group in enumerate(groups):
        rows = [order.index(at) for at in group]
        x = side + 12 * at + 10
        parts.append(
            f'<line class="l1" stroke-linecap="round" x1="{x:.1f}" y1="{top + min(rows) * ROW + 6:.1f}" '
            f'x2="{x:.1f}" y2="{top + (max(rows) + 1) * ROW - 6:.1f}"/>'
        )
    parts.append(text((left + right) / 2, bottom + 34, "mean rank, 1 is best", "middle"))
    spoken = f"{title}. " + "; ".join(f"{names[at]} {ranks[at]:.2f}" for at in order)
    return svg(WIDTH, bottom + 42, spoken, parts)


def _p(value: float) -> str:
    told = format_p(value)
    return told.replace("<", "< ") if told.startswith("<") else f"= {told}"


def _pair_block(column: Column, names: Sequence[str]) -> TableBlock:
    pairs = column.pairs
    note = "First minus second on the same questions; p: by the interval; p (Holm): corrected over the pairs."
    if len(pairs) > MOST_PAIRS:
        pairs = tuple(one for one in pairs if column.best in (one.first, one.second))
        note += " Only pairs with the best run are shown; p (Holm) is over all."
    rows = [[names[one.first], names[one.second], jsonable(one.difference),
             format_p(one.p), format_p(one.p_holm), "yes" if one.differs else "no"] for one in pairs]  # fmt: skip
    columns = ["first", "second", "difference", "p", "p (Holm)", "significant"]
    return table_block(f"Paired differences, {column.name}", columns, rows, "compare", note)


def _harness_block(board: Leaderboard) -> TableBlock | None:
    """Who is ahead under how many harnesses; None where no run has the probe protocol."""
    pairs = harness_pairs(board.runs)
    if not pairs:
        return None
    rows = [[one.first, one.second, jsonable(one.difference),
             f"{100 * one.least:+.1f} to {100 * one.most:+.1f}",
             f"{one.ahead} ({one.surely_ahead})", f"{one.behind} ({one.surely_behind})", one.harnesses]
            for one in pairs]  # fmt: skip
    columns = ["first", "second", "mean difference", "points, from to", "first ahead", "second ahead", "harnesses"]
    note = (
        "The same two runs under every harness of the probe protocol; in brackets: significantly, Holm over harnesses."
    )
    return table_block("Order by harness", columns, rows, "compare", note)


def _cases(board: Leaderboard, seed: int) -> tuple[list[dict[str, Any]], int]:
    """Examples on which runs disagree, sampled by column, pair and direction; and how many there are."""
    rng = np.random.default_rng(seed)
    chosen: dict[tuple[str, str, str], tuple[Column, str]] = {}
    total = 0
    for column in board.columns:
        places = _places(board, column)
        total += len(places)
        for a, b in permutations(range(len(board.runs)), 2):
            some = [(place, right) for place, right in places.items() if right[a] == "1" and right[b] == "0"]
            for at in rng.permutation(len(some))[:PER_PAIR]:
                place, right = some[at]
                chosen.setdefault((column.name, *place), (column, right))
    kept = [(column, variant, key, right) for (_, variant, key), (column, right) in chosen.items()]
    if len(kept) > MOST_CASES:
        kept = [kept[at] for at in sorted(rng.permutation(len(kept))[:MOST_CASES])]
    return [_told(board, *one) for one in kept], total


def _places(board: Leaderboard, column: Column) -> dict[tuple[str, str], str]:
    """Variant and example -> which runs are right there: `1`, `0`, or `?` where the truth is unknown; where they
    disagree."""
    found = {}
    rows = [run.rows(column.probe) for run in board.runs]
    for variant in column.variants:
        for key in shared_ids(board.runs, column.probe, variant):
            scores = [row[variant][key]["score"] for row in rows]
            right = "".join("?" if score != score else "1" if score > 0 else "0" for score in scores)
            if "1" in right and "0" in right:
                found[variant, key] = right
    return found


def _told(board: Leaderboard, column: Column, variant: str, key: str, right: str) -> dict[str, Any]:
    rows: list[Mapping[str, Any]] = [run.rows(column.probe)[variant][key] for run in board.runs]
    asked = [row["question"] for row in rows]
    return {
        "id": key,
        "image_id": rows[0]["image_id"],
        "column": column.name,
        "variant": variant,
        "right": right,
        "question": asked[0][:MOST_WORDS] or "(no question)",
        "target": next((row["target"] for row in rows if row["target"] is not None), None),
        "answers": [
            {
                "name": run.name,
                "answer": row["answer"][:MOST_WORDS],
                "score": None if math.isnan(row["score"]) else row["score"],
                "unread": row["unread"],
                "asked": row["question"][:MOST_WORDS] if row["question"] != asked[0] else "",
            }
            for run, row in zip(board.runs, rows, strict=True)
        ],
    }
