"""The optional dependencies: what each is for, and which of its packages are missing here."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires, version

EXTRAS = {
    "torch": "the networks of the zoo, `train`, `harden`, and the LASSO on a GPU",
    "photos": "models of the zoo that look at photographs (`NAME-vqa2`, `NAME-daquar`)",
    "hf": "models and data sets of Hugging Face (`hf:MODEL`)",
    "game": "adversaries that learn (`a2c`), and the game as a Gymnasium environment",
    "web": "the explorer and the live game (`pfungst serve`)",
    "study": "studies with people (`pfungst study`)",
    "postgres": "studies kept in PostgreSQL",
    "ray": "work spread over a cluster (`--on ray`)",
    "inspect": "models of inspect_ai as players (`inspect:PROVIDER/MODEL`)",
    "lmms": "models of lmms-eval as players (`lmms:NAME`)",
    "xlsx": "tables and logs in Excel files",
    "zstd": "logs compressed with zstd, such as new ones of inspect_ai",
    "meteor": "the synonyms and paraphrases of the text metric METEOR",
    "minilm": "the sentence encoder `minilm`, with its weights in the package",
    "sentence-transformers": "any sentence encoder of sentence-transformers",
}
"""Extra -> what it adds. Those for work on Pfungst itself (dev, docs, bench) are not for users."""

_REQUIREMENT = re.compile(r"\s*(?P<name>[\w.-]+)\s*(\[[^\]]*\])?\s*(?P<bounds>[^;]*?)\s*(;(?P<marker>.*))?$")
_EXTRA = re.compile(r"""extra\s*==\s*["'](?P<extra>[^"']+)["']""")


def missing(extra: str = "") -> list[str]:
    """The requirements of an extra that are not met here, as they are written; "" means those of the package itself."""
    found = [(installed(name), lowest, told) for name, lowest, told in requirements(extra)]
    return [told for version, lowest, told in found if version is None or numbers(version) < numbers(lowest)]


def requirements(extra: str = "") -> list[tuple[str, str, str]]:
    """Package, lowest version ("" for any) and the requirement as it is written."""
    found = []
    for line in requires("pfungst") or ():
        match = _REQUIREMENT.match(line)
        if match is None:
            continue
        marker = match["marker"] or ""
        of = _EXTRA.search(marker)
        if (of["extra"] if of else "") == extra:
            lowest = re.search(r"[>=]=\s*([\w.]+)", match["bounds"])
            found.append((match["name"], lowest[1] if lowest else "", line.partition(";")[0].strip()))
    return found


def installed(package: str) -> str | None:
    """The version that is installed, without importing it."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def numbers(text: str) -> tuple[int, ...]:
    """The release of a version: 2.13.0+cpu -> (2, 13)."""
    release = re.match(r"\d+(\.\d+)*", text)
    parts = [int(part) for part in release[0].split(".")] if release else []
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)
