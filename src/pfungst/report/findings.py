"""The numbers of a run folder, as they stand in its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pfungst.core import PfungstError
from pfungst.core.run import read_numbers


def read_findings(run: Path, label: str = "") -> list[dict[str, Any]]:
    """The list in findings.json, or in findings-LABEL.json."""
    found: list[dict[str, Any]] = read_numbers(run, label)["findings"]
    return found


def read_judge(run: Path, label: str = "") -> dict[str, Any] | None:
    """What is to be known about the judge, in the form of a probe's findings; None where no judge was the metric."""
    found: dict[str, Any] | None = read_numbers(run, label).get("judge")
    return found


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
