"""The numbers of a run folder, as they stand in its files."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pfungst.core import Finding, Findings, PfungstError
from pfungst.core.exam import labelled
from pfungst.core.shapes import shaped
from pfungst.core.stats import holm


def read_findings(run: Path, label: str = "") -> list[dict[str, Any]]:
    """The list in findings.json, or in findings-LABEL.json."""
    found: list[dict[str, Any]] = _read(run, label)["findings"]
    return found


def read_judge(run: Path, label: str = "") -> dict[str, Any] | None:
    """What is to be known about the judge, in the form of a probe's findings; None where no judge was the metric."""
    found: dict[str, Any] | None = _read(run, label).get("judge")
    return found


def _read(run: Path, label: str) -> dict[str, Any]:
    path = labelled(run / "findings.json", label)
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if any("p_holm" not in one for one in found["findings"]):  # written by an earlier version
            tests = [(one["drop"] or {}).get("p") for one in found["findings"]]
            for one, p in zip(found["findings"], holm([math.nan if p is None else p for p in tests]), strict=True):
                one["p_holm"] = None if math.isnan(p) else p
        found["findings"] = [
            shaped(one, Findings, f"findings[{number}]") for number, one in enumerate(found["findings"])
        ]
        if found.get("judge") is not None:
            found["judge"] = shaped(found["judge"], Findings, "judge")
        _check_parts([*found["findings"], *([found["judge"]] if found.get("judge") else [])])
    except FileNotFoundError:
        hint = "run `pfungst rescore` with that metric or matcher" if label else "run the exam to its end"
        raise PfungstError(f"{run} has no {path.name} yet: {hint}.") from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise PfungstError(f"{path} cannot be read ({error}). Run `pfungst rescore {run}`.") from error
    return found


def _check_parts(sections: Iterable[dict[str, Any]]) -> None:
    """A cell of a table that is an object is a finding; a series of a figure has as many values as places."""
    for section in sections:
        for table in section["tables"]:
            for row in table["rows"]:
                for cell in row:
                    if isinstance(cell, dict):
                        shaped(cell, Finding, f"{section['probe']}: a cell of {table['title']!r}")
        for figure in section["figures"]:
            for series in figure["series"]:
                sizes = {
                    len(series["x"]),
                    len(series["y"]),
                    *(len(series[end]) for end in ("low", "high") if series[end]),
                }
                if len(sizes) > 1:
                    raise ValueError(
                        f"{section['probe']}: {series['name']!r:.60} of {figure['title']!r:.60} is cut off"
                    )


def read_extras(run: Path, probe: str) -> dict[str, Any]:
    """What was added to a probe's findings beside findings.json: more tables, and albums of images by title."""
    return read_kept(run / probe / "extras.json") or {"tables": [], "albums": {}}


def read_kept(path: Path) -> dict[str, Any]:
    """What is kept in a file of its own, such as by the keys of answers; nothing where there is no such file."""
    if not path.exists():
        return {}
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise PfungstError(f"{path} cannot be read ({error}). Delete it, or run the same command again.") from error
    return found
