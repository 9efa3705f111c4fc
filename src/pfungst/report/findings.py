"""The numbers of a run folder as they stand in its files, and their names as a person writes them: `noise.drop`,
`rephrase.cs4`, `noise.accuracy[third]`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pfungst.core import PfungstError
from pfungst.core.run import read_numbers

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def key(words: str) -> str:
    """What is compared: letters and digits only, so that `CS(4)`, `cs4` and `cs-4` are one name.

    The noise levels are called First, Second ...; `partition 3` is another way to say Third.
    """
    plain = re.sub(r"[\W_]+", "", words.casefold())
    return f"partition{_ORDINALS.index(plain) + 1}" if plain in _ORDINALS else plain


def slug(words: str) -> str:
    """A name as it is shown: `any-flip rate` -> `any-flip-rate`, `CS(4)` -> `cs4`."""
    return re.sub(r"[\W_]+", "-", re.sub(r"[()]", "", words.casefold())).strip("-")


def finding_name(probe: str, finding: Mapping[str, Any]) -> str:
    """`PROBE.FINDING`, with the condition in brackets where there is one."""
    condition = finding.get("condition") or ""
    return f"{probe}.{slug(finding['name'])}" + (f"[{condition}]" if condition else "")


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
