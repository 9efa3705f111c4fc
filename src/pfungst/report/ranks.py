"""The critical-difference view: runs by mean rank, joined where no two of them differ."""

from __future__ import annotations

from collections.abc import Sequence

from pfungst.report.svg import LETTER, Scale, dot, line, short, steps, svg, text

WIDTH, ROW = 640.0, 26.0
STEPS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


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
    for number, group in enumerate(groups):
        rows = [order.index(at) for at in group]
        x = side + 12 * number + 10
        parts.append(
            f'<line class="l1" stroke-linecap="round" x1="{x:.1f}" y1="{top + min(rows) * ROW + 6:.1f}" '
            f'x2="{x:.1f}" y2="{top + (max(rows) + 1) * ROW - 6:.1f}"/>'
        )
    parts.append(text((left + right) / 2, bottom + 34, "mean rank, 1 is best", "middle"))
    spoken = f"{title}. " + "; ".join(f"{names[at]} {ranks[at]:.2f}" for at in order)
    return svg(WIDTH, bottom + 42, spoken, parts)
