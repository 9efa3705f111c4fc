"""The report card: one line per probe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pfungst.report.blindness import blindness, told

CARD_COLUMNS = ("probe", "clean", "disturbed", "drop", "p", "n", "verdict")


def number(value: float | None, unit: str = "%") -> str:
    """A number for people: fractions in percent, unknown ones as a dash."""
    if value is None or value != value:
        return "–"
    if unit == "%":
        return f"{100 * value:.1f}%"
    return f"{value:.3g}{' ' + unit if unit else ''}"


def format_finding(finding: Mapping[str, Any] | None) -> str:
    """`71.2% [69.8, 72.5]` from a finding as it stands in findings.json."""
    if finding is None:
        return "–"
    unit = finding.get("unit", "%")
    text = number(finding["value"], unit)
    if finding.get("low") is None or finding.get("high") is None:
        return text
    low, high = (number(finding[name], unit).removesuffix("%") for name in ("low", "high"))
    return f"{text} [{low}, {high}]"


def join_words(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def format_p(value: float | None) -> str:
    if value is None or value != value:
        return "–"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def format_cell(cell: Any) -> str:
    """A table cell: a finding, a number, or words."""
    if isinstance(cell, Mapping):
        return format_finding(cell)
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return str(cell)


def card_rows(findings: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Rows under CARD_COLUMNS, from the list in findings.json. The control comes first: drops are read against it."""
    ordered = sorted(findings, key=lambda one: one["probe"] != "control")
    blind = blindness(findings)
    return [
        (
            one["probe"],
            format_finding(one["clean"]),
            format_finding(one["disturbed"]),
            format_finding(one["drop"]),
            format_p((one["drop"] or {}).get("p")),
            str((one["drop"] or one["clean"] or {}).get("n", "–")),
            told(one, blind),
        )
        for one in ordered
    ]
