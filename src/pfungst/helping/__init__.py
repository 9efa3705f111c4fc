"""What helps with the tool itself: skeletons for parts of your own; what is installed and what is cached
(`pfungst.helping.machine`)."""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from string import Template

from pfungst.core.errors import PfungstError, UsageError
from pfungst.core.files import write_atomic
from pfungst.helping.machine import Checked, Kept, clear, diagnose, kept

__all__ = ["KINDS", "Checked", "Kept", "clear", "diagnose", "kept", "write_skeleton"]

_TEXTS = Path(__file__).with_name("skeletons")


@dataclass(frozen=True)
class Skeleton:
    """What differs from kind to kind."""

    group: str
    """The entry point group."""
    attribute: str
    """What the entry point names."""
    about: str
    check: str
    """The command that checks it."""
    use: str
    """A command that uses it."""


KINDS = {
    "player": Skeleton(
        "pfungst.players", "make", "A model that answers questions about images, for Pfungst.",
        "pfungst check player $name", "pfungst examine $name --limit 20",
    ),
    "probe": Skeleton(
        "pfungst.probes", "Probe", "A disturbance that must not change an answer, for Pfungst.",
        "pfungst check probe $name", "pfungst examine rn-state --limit 20 --probe $name",
    ),
    "metric": Skeleton(
        "pfungst.metrics", "score", "A way to score answers, for Pfungst.",
        "pfungst check metric $name", "pfungst examine rn-state --limit 20 --metric $name",
    ),
    "data": Skeleton(
        "pfungst.datasets", "read", "A data set of questions about images, for Pfungst.",
        "pfungst data check $name:FOLDER", "pfungst examine MODEL --data $name:FOLDER",
    ),
}  # fmt: skip


def write_skeleton(kind: str, name: str, out: Path | None = None) -> list[Path]:
    """Write the package to `out` (a folder called `name` unless it is given); the files that were written."""
    if kind not in KINDS:
        raise UsageError(f"There is no skeleton for {kind!r}. There are: {', '.join(KINDS)}.")
    package = _package(kind, name)
    folder = out if out is not None else Path(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PfungstError(f"{folder} already exists. Choose another name, or another folder with --out.")
    skeleton = KINDS[kind]
    words = {"name": name, "package": package, "kind": kind, "group": skeleton.group,
             "attribute": skeleton.attribute, "about": skeleton.about}  # fmt: skip
    words |= {"check": Template(skeleton.check).substitute(words), "use": Template(skeleton.use).substitute(words)}
    files = {
        "pyproject.toml": "pyproject.toml",
        "README.md": "README.md",
        f"src/{package}/__init__.py": f"{kind}.py",
        f"tests/test_{package}.py": f"test_{kind}.py",
        "tests/test_entry_point.py": "test_entry_point.py",
    }
    for path, text in files.items():
        content = Template((_TEXTS / f"{text}.txt").read_text("utf-8")).substitute(words)
        write_atomic(folder / path, content.encode())
    write_atomic(folder / "src" / package / "py.typed", b"")
    return [folder / path for path in files]


def _package(kind: str, name: str) -> str:
    """The Python name of a part, or a sentence why it cannot be called that."""
    package = name.replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", name) or keyword.iskeyword(package):
        raise UsageError(f"A {kind} cannot be called {name!r}: use small letters, digits and hyphens, as in my-{kind}.")
    if name in _taken(kind):
        raise UsageError(
            f"Pfungst already has a {kind} called {name!r}, which would be found first. Choose another name."
        )
    if find_spec(package) is not None:
        raise UsageError(f"Python already has a module {package!r}, which would be hidden. Choose another name.")
    return package


def _taken(kind: str) -> Collection[str]:
    """The names of our own parts."""
    from pfungst.data import FORMATS
    from pfungst.models.names import TABLE
    from pfungst.players.resolving import PLAYERS
    from pfungst.probes import PROBES
    from pfungst.scores import METRICS
    from pfungst.scores.metrics import JUDGES

    names: dict[str, Collection[str]] = {
        "player": {*PLAYERS.builtin, *TABLE},
        "probe": PROBES.builtin,
        "metric": {*METRICS, *JUDGES},
        "data": FORMATS.builtin,
    }
    return names[kind]
