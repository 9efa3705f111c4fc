"""Stable because it is blind: what the probes that take the image seriously say about the stability in all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

STABLE = 0.05
"""A player counts as stable under a probe if its accuracy falls by no more than this."""
BLIND = 0.75
"""... and as blind if it says the same about two images with different right answers at least so often, by the lower
95% bound (the same number as in `pfungst.probes.contrast`)."""
_OTHERS = frozenset({"control", "blind", "contrast"})
"""Probes whose drop is no measure of stability."""


def blindness(findings: Sequence[Mapping[str, Any]]) -> str:
    """Why stability is no robustness here, in a sentence; empty where nothing says so.

    findings: the list in findings.json.
    """
    rows = {(one["probe"], row["name"], row.get("condition", "")): row for one in findings for row in one["rows"]}
    same = rows.get(("contrast", "same answer", "another image"))
    if same is not None and _known(same.get("at_least")) >= BLIND:
        return (
            f"Stable because it is blind: where the right answer changes with the image, it says the same in "
            f"{100 * same['value']:.1f}% of the pairs (contrast)."
        )
    gain = rows.get(("blind", "gain", "question only"))
    if gain is not None and _known(gain.get("high")) <= STABLE and _known(gain.get("low")) <= 0:
        return "Stable, but nothing shows that it looks: without the image it does as well (blind)."
    return ""


def told(one: Mapping[str, Any], blind: str) -> str:
    """The verdict of a probe; where the player is stable under it because it is blind, that too."""
    drop = one["drop"] or {}
    stable = one["probe"] not in _OTHERS and _known(drop.get("value")) <= STABLE
    return f"{one['verdict']} {blind}" if blind and stable else str(one["verdict"])


def _known(value: Any) -> float:
    """A number of a finding; NaN, which no comparison holds for, where it is unknown."""
    return float("nan") if value is None else float(value)
