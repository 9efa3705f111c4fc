"""The first screen: all probes in one figure, and the result in two sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pfungst.core.types import POINTS
from pfungst.report.card import blindness, format_finding, join_words, number, or_nan
from pfungst.report.plots import Scale, dot, line, short, steps, svg, text, tick, ticks, whisker

COLUMNS = ("probe", "clean", "clean low", "clean high", "disturbed", "disturbed low", "disturbed high",
           "drop", "drop low", "drop high", "p (Holm)", "n")  # fmt: skip
TITLE = "Accuracy, clean and disturbed"
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Row:
    """One probe of the summary."""

    probe: str
    clean: Mapping[str, Any]
    disturbed: Mapping[str, Any] | None
    drop: Mapping[str, Any] | None
    removes: bool
    """Whether the probe takes the evidence away: there a large drop is as it should be."""
    p: float = math.nan
    """Of the drop, corrected by Holm over the drops of all probes, or of all conditions."""
    is_control: bool = False
    """Whether nothing is disturbed: the control, or a condition that repeats the clean one."""

    @property
    def lost(self) -> bool:
        """Whether a disturbance that keeps the right answer costs accuracy, beyond chance."""
        keeps = self.drop is not None and not (self.removes or self.is_control)
        return keeps and ((self.drop or {})["value"] or 0.0) > 0 and self.p < SIGNIFICANT


def summary_rows(findings: Sequence[Mapping[str, Any]], again: Sequence[str] = ()) -> list[Row]:
    """The probes that measured something: the control first, those that take evidence away last.

    Conditions that somebody else made are rows of their own. again: those of them that repeat the clean one.
    """
    rows: list[Row] = []
    for one in findings:
        if one["clean"] is None or one["clean"]["value"] is None:
            continue
        apart = _conditions(one, again) if one["probe"] == "conditions" else []
        whole = Row(one["probe"], one["clean"], one["disturbed"], one["drop"], one["role"] == "removes",
                    or_nan(one["p_holm"]), is_control=one["role"] == "control")  # fmt: skip
        rows += apart or [whole]
    rows.sort(key=lambda row: (not row.is_control, row.removes))
    return rows


def _conditions(one: Mapping[str, Any], again: Sequence[str]) -> list[Row]:
    """A row for each condition whose accuracy and drop the findings have."""
    scores = {row["condition"]: row for row in one["rows"] if row["name"] == "accuracy"}
    drops = {row["condition"]: row for row in one["rows"] if row["name"] == "drop"}
    # The mean over all of them stands among the rows too; each alone says more.
    names = [row["condition"] for row in one["rows"] if row["name"] == "answers changed"]
    found = []
    for name in names:
        if name in scores and name in drops:
            drop = drops[name]
            # An earlier version kept the corrected one alone, as p.
            p = drop["p"] if drop["p_holm"] is None else drop["p_holm"]
            found.append(Row(name, one["clean"], scores[name], drop, False, or_nan(p), name in again))
    return found


def verdict(name: str, rows: Sequence[Row], findings: Sequence[Mapping[str, Any]]) -> str:
    """The result in two sentences: what disturbances cost, and what it rests on. A third says where a player is stable
    because it is blind."""
    if not rows:
        return "No probe of this run measured an accuracy. The numbers of each probe are below."
    base = max(rows, key=lambda row: (row.is_control, row.clean["n"]))
    first = f"{name} scores {format_finding(base.clean)} on {base.clean['n']:,} questions"
    kept = [row for row in rows if row.drop is not None and not row.is_control and not row.removes]
    lost = sorted((row for row in kept if row.lost), key=lambda row: -(row.drop or {})["value"])
    if lost:
        first += f" and loses {format_finding(lost[0].drop)} under {lost[0].probe}"
        others = [row.probe for row in lost[1:]]
        first += f"; {join_words(others)} cost{'s' if len(others) == 1 else ''} accuracy too." if others else "."
    elif kept:
        several = f"none of the {len(kept)} disturbances costs it accuracy"
        first += f", and {several if len(kept) > 1 else f'{kept[0].probe} costs it no accuracy'} beyond chance"
        reach = max(kept, key=lambda row: (row.drop or {}).get("high") or -1.0)
        high = (reach.drop or {}).get("high") or 0.0
        fits = f", though a loss of up to {number(high, POINTS)} under {reach.probe} fits the data"
        first += f"{fits if high > 0 else ''}."
    else:
        first += "."
    blind = blindness(findings) if kept and not lost else ""
    return f"{first} {_foundation(rows, findings)} {blind}".rstrip()


def _foundation(rows: Sequence[Row], findings: Sequence[Mapping[str, Any]]) -> str:
    """What the first sentence has to be read against."""
    parts = [
        f"with the evidence taken away ({row.probe}, {row.disturbed['condition']}) it still scores "
        f"{format_finding(row.disturbed)}"
        for row in rows
        if row.removes and row.disturbed is not None and row.disturbed["value"] is not None
    ][:1]
    recorded = [one for one in findings if one["probe"] == "conditions"]
    every = [row for one in recorded for row in one["rows"] if row["name"] == "all of group" and row["n"]]
    parts += [f"all its answers to a question are right in {format_finding(row)}" for row in every]
    controls = {row.probe for row in rows if row.is_control}
    again = controls | {one["clean"]["condition"] for one in recorded if one["clean"]}
    changed = [
        row
        for one in findings
        for row in one["rows"]
        if row["name"] == "answers changed" and (one["role"] == "control" or row["condition"] in again)
    ]
    if changed:
        parts.append(f"asked again it changes {format_finding(changed[0])} of its answers")
    elif controls or recorded:
        parts.append("these are recorded answers, one per question, so sampling noise is unknown")
    else:
        parts.append("the control did not run, so sampling noise is unknown")
    told = join_words(parts)
    return f"{told[0].upper()}{told[1:]}."


def table_rows(rows: Sequence[Row]) -> list[list[Any]]:
    """The numbers of the figure, under COLUMNS."""

    def three(one: Mapping[str, Any] | None) -> list[Any]:
        return [None, None, None] if one is None else [one["value"], one.get("low"), one.get("high")]

    return [
        [row.probe, *three(row.clean), *three(row.disturbed), *three(row.drop), None if row.p != row.p else row.p,
         row.clean["n"]]
        for row in rows
    ]  # fmt: skip


def draw_wide(rows: Sequence[Row]) -> str:
    """Two panels: accuracy from clean to disturbed, and the drop with its interval."""
    left = min(240.0, max(124.0, 8.6 * max(len(row.probe) for row in rows) + 12))
    middle, from_, to, width = 540.0, 604.0, 860.0, 1040.0
    high = 34.0
    places, bottom = _places(rows, 64.0, high)
    accuracy = Scale((0.0, 1.0), (left, middle))
    ends = [
        value for row in rows if row.drop for value in (row.drop.get("low"), row.drop.get("high"), row.drop["value"])
    ]
    low, most, step = ticks(*_limits(ends))
    drop = Scale((low, most), (from_, to))
    parts = [text(left, 18, "accuracy: ○ clean, ● disturbed, 95% interval", kind="strong"),
             text(from_, 18, "drop in points, 95% interval", kind="strong")]  # fmt: skip
    for value in steps(0.0, 1.0, 0.2):
        parts.append(line(accuracy(value), 34, accuracy(value), bottom, "grid" if value else "axis"))
        parts.append(text(accuracy(value), bottom + 18, tick(value, 0.2, "%"), "middle"))
    for value in steps(low, most, step):
        parts.append(line(drop(value), 34, drop(value), bottom, "grid" if value else "axis"))
        parts.append(text(drop(value), bottom + 18, tick(value, step, POINTS), "middle"))
    parts += _headings(rows, places, 0.0)
    for row, y in zip(rows, places, strict=True):
        parts.append(text(0, y + 4, short(row.probe, 0.82 * (left - 12)), kind="strong"))  # bold is wider
        parts += _dumbbell(row, y, accuracy)
        parts += _drop(row, y, drop)
        if row.drop is not None:
            parts.append(text(width, y + 4, _value(row.drop), "end", "value"))
    return svg(width, bottom + 28, _spoken(rows), parts, "wide")


def draw_narrow(rows: Sequence[Row]) -> str:
    """The same for a phone: one panel, the drop in figures."""
    width, high = 380.0, 54.0
    places, bottom = _places(rows, 58.0, high)
    accuracy = Scale((0.0, 1.0), (8.0, width - 14))
    parts = [text(0, 16, "accuracy: ○ clean, ● disturbed", kind="strong")]
    for value in steps(0.0, 1.0, 0.25):
        parts.append(line(accuracy(value), 28, accuracy(value), bottom, "grid" if value else "axis"))
        anchor = "start" if value == 0 else "end" if value == 1 else "middle"
        parts.append(text(accuracy(value) + (-8 if value == 0 else 14 if value == 1 else 0), bottom + 18,
                          tick(value, 0.25, "%"), anchor))  # fmt: skip
    parts += _headings(rows, places, 22.0, 14.0)
    for row, y in zip(rows, places, strict=True):
        parts.append(text(14, y - 14, short(row.probe, 170), kind="strong"))
        if row.drop is not None:
            parts.append(text(width, y - 14, f"drop {_value(row.drop)}", "end", "value"))
        parts += _dumbbell(row, y + 4, accuracy)
    return svg(width, bottom + 26, _spoken(rows), parts, "narrow")


def _value(drop: Mapping[str, Any]) -> str:
    """A drop where there is little room."""
    return f"0 of {drop['n']:,} scores changed" if drop.get("changed") == 0 else format_finding(drop)


def _places(rows: Sequence[Row], top: float, high: float) -> tuple[list[float], float]:
    """The height of every row; those that take evidence away stand apart, under a heading."""
    places, y = [], top
    for at, row in enumerate(rows):
        y += 26 if row.removes and at and not rows[at - 1].removes else 0
        places.append(y)
        y += high
    return places, y - high / 2 + 4


def _headings(rows: Sequence[Row], places: Sequence[float], lift: float, left: float = 0.0) -> list[str]:
    for at, row in enumerate(rows):
        if row.removes and at and not rows[at - 1].removes:
            return [text(left, places[at] - 22 - lift, "without evidence")]
    return []


def _dumbbell(row: Row, y: float, scale: Scale) -> list[str]:
    clean, parts = scale(row.clean["value"]), []
    if row.disturbed is None or row.disturbed["value"] is None:
        return [*_interval(row.clean, y, scale), dot(clean, y, 7, "clean", f"clean {format_finding(row.clean)}")]
    place = scale(row.disturbed["value"])
    parts.append(line(clean, y, place, y, "join"))
    parts += _interval(row.disturbed, y, scale)
    parts.append(dot(clean, y, 7, "clean", f"clean {format_finding(row.clean)}"))
    parts.append(dot(place, y, 5, _colour(row), f"disturbed {format_finding(row.disturbed)}"))
    return parts


def _drop(row: Row, y: float, scale: Scale) -> list[str]:
    if row.drop is None or row.drop["value"] is None:
        return []
    return [
        *_interval(row.drop, y, scale),
        dot(scale(row.drop["value"]), y, 5, _colour(row), f"drop {format_finding(row.drop)}"),
    ]


def _interval(one: Mapping[str, Any], y: float, scale: Scale) -> list[str]:
    if one.get("low") is None or one.get("high") is None:
        return []
    return [whisker((scale(one["low"]), y), (scale(one["high"]), y))]


def _colour(row: Row) -> str:
    """Red where a disturbance costs accuracy beyond chance, grey for the control, blue otherwise."""
    return "f6" if row.is_control else "f1" if row.lost else "f0"


def _limits(values: Sequence[float | None]) -> tuple[float, float]:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return (min(known), max(known)) if known else (0.0, 1.0)


def _spoken(rows: Sequence[Row]) -> str:
    """What the figure shows, for those who cannot see it."""
    told = [
        f"{row.probe}: {number(row.clean['value'])} clean"
        + ("" if row.disturbed is None else f", {number(row.disturbed['value'])} disturbed")
        for row in rows
    ]
    return f"{TITLE}. {'; '.join(told)}."
