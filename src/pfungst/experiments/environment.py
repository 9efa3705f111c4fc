"""What a run was made with: versions, machine, time. Kept as run.json beside its results."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

from pfungst.core.files import read_json, write_json

PACKAGES = ("numpy", "torch", "transformers")
"""Whose versions may change a number."""


@contextmanager
def noted(folder: Path, *, device: str = "cpu") -> Iterator[None]:
    """Write FOLDER/run.json when the work inside is done; the seconds of a continued run are added up."""
    from pfungst import __version__

    file = folder / "run.json"
    before = read_json(file) if file.exists() else {}
    code = _code(before)
    began, started = perf_counter(), datetime.now(UTC)
    yield
    seconds = before.get("seconds", 0) + perf_counter() - began
    first = before.get("started", started.strftime("%Y-%m-%d %H:%M UTC"))
    made_with = {
        "pfungst": __version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "device": _gpu(device) or _processor(),
        "packages": {name: version(name) for name in PACKAGES if find_spec(name) is not None},
        **code,
    }
    write_json(file, {**made_with, "started": first, "seconds": round(seconds, 1)})


def git(folder: Path, *words: str) -> str:
    """What git says, or nothing where there is no git."""
    try:
        utc = {**os.environ, "TZ": "UTC"}
        done = subprocess.run(["git", *words], cwd=folder, env=utc, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def changed_code() -> bool:
    """Whether the package is under version control and has changes that are not committed."""
    return bool(git(Path(__file__).parent.parent, "status", "--porcelain", "--", "."))


def _code(before: dict[str, Any]) -> dict[str, Any]:
    """The commit that the run began from, and others that it was continued from. Nothing where that is unknown: for
    code that is not under version control, such as an installed package, and runs that began without a note."""
    home = Path(__file__).parent.parent
    if not git(home, "ls-files", "__init__.py") or (before and "commit" not in before):
        return {}
    now = git(home, "rev-parse", "HEAD")
    changed = changed_code() or before.get("uncommitted_changes", False)
    first, *later = dict.fromkeys([before.get("commit", now), *before.get("later_commits", ()), now])
    return {"commit": first, "uncommitted_changes": changed, **({"later_commits": later} if later else {})}


def _gpu(device: str) -> str:
    torch = sys.modules.get("torch")
    if torch is None or not str(device).startswith("cuda") or not torch.cuda.is_available():
        return ""
    return str(torch.cuda.get_device_name(device))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()
