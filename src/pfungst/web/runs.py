"""The run folders that are shown, how far each is, and a run as lists show it.

A name in a URL is looked up here and never becomes part of a path, so no URL leads out of the folders that were named
on the command line. Links inside them are not followed out either. Whatever is in the files of a run, a list of runs
must not break.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfungst.api import slug
from pfungst.core import PfungstError, read_config
from pfungst.core.progress import PROGRESS_FILE
from pfungst.core.run import missing_trials, read_numbers
from pfungst.core.spec import labelled
from pfungst.report.card import how_many

if TYPE_CHECKING:
    from pfungst.web.site import Site

RESCAN_SECONDS = 1.0
QUIET_SECONDS = 60.0
"""An exam that has told nothing for so long may have been killed."""
_DEEPEST = 4
_MOST_FOLDERS = 20_000


class NotHere(PfungstError):
    """A run, example or image that is not there."""

    status = 404


@dataclass(frozen=True)
class RunFolder:
    """One run folder, as it was first read or as `pfungst rescore` read it again."""

    id: str
    """Its name in URLs: letters, digits, dots, dashes."""
    path: Path
    name: str
    """Its name for people: the path below the folder that was named."""
    label: str = ""
    """Of a second reading by another metric or matcher; empty for the first."""

    def read_as(self, name: str) -> str:
        """The file or folder of this name that belongs to this reading."""
        return labelled(Path(name), self.label).name

    def file(self, *parts: str) -> Path | None:
        """A file of the run; None where it is not there, or is a link that leads out of the run folder."""
        path = self.path.joinpath(*parts)
        try:
            real, home = path.resolve(strict=True), self.path.resolve(strict=True)
        except (OSError, RuntimeError):  # RuntimeError: links in a circle, in Python 3.11 and 3.12
            return None
        return path if real.is_file() and real.is_relative_to(home) else None

    def trials(self) -> list[Path]:
        """The files of trials, one a probe."""
        folder = self.read_as("trials")
        try:
            names = sorted(entry.name for entry in (self.path / folder).iterdir())
        except OSError:
            return []
        files = [self.file(folder, name) for name in names if name.endswith(".parquet") and not name.startswith(".")]
        return [file for file in files if file is not None]

    def config(self) -> dict[str, Any]:
        if self.file("exam.json") is None:
            raise NotHere(f"The run {self.name} has no exam.json.")
        return read_config(self.path)


@dataclass(frozen=True)
class State:
    """How far a run is."""

    state: str
    """`running`, `quiet` (it has told nothing for a while), `finished` or `unfinished`."""
    what: str = ""
    done: int = 0
    total: int = 0


class Runs:
    """The runs below some folders, each followed by its second readings; looked up again at most once a second."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = tuple(roots)
        self._lock = threading.Lock()
        self._found: dict[str, RunFolder] = {}
        self._at = -1e9

    def all(self) -> list[RunFolder]:
        with self._lock:
            if time.monotonic() - self._at > RESCAN_SECONDS:
                self._found = {run.id: run for run in _scan(self._roots)}
                self._at = time.monotonic()
            return list(self._found.values())

    def get(self, name: str) -> RunFolder:
        for run in self.all():
            if run.id == name:
                return run
        raise NotHere("There is no such run. It may have been moved or deleted.")

    def refresh(self) -> None:
        """Look again at the next call."""
        self._at = -1e9


def state_of(run: RunFolder, live: bool = True) -> State:
    """How far a run is, from the files that an exam keeps. Not live: for a copy, in which nothing goes on."""
    finished = run.file(run.read_as("findings.json")) is not None
    told = None if run.label or not live else run.file(PROGRESS_FILE)
    if told is None:
        return State("finished" if finished else "unfinished")
    try:
        age = max(0.0, time.time() - told.stat().st_mtime)
        known = json.loads(told.read_bytes())
        what, done, total = str(known["what"]), int(known["done"]), int(known["total"])
    except (OSError, ValueError, KeyError, TypeError):
        return State("finished" if finished else "unfinished")
    return State("running" if age < QUIET_SECONDS else "quiet", what, done, total)


def _scan(roots: Sequence[Path]) -> list[RunFolder]:
    found: dict[Path, list[RunFolder]] = {}
    names: set[str] = set()
    seen = 0
    for root in roots:
        waiting = [(root, 0)]
        while waiting and seen < _MOST_FOLDERS:
            folder, depth = waiting.pop()
            seen += 1
            if (folder / "exam.json").is_file():
                real = folder.resolve()
                if real not in found:
                    name = folder.name or real.name if folder == root else folder.relative_to(root).as_posix()
                    found[real] = [RunFolder(_id(name, str(real), names), folder, name)]
                    for label in _labels(folder):
                        id_ = _id(f"{name} {label}", f"{real} {label}", names)
                        found[real].append(RunFolder(id_, folder, name, label))
                continue
            if depth < _DEEPEST:
                waiting += [(child, depth + 1) for child in _folders(folder)]
    return [run for some in sorted(found.values(), key=lambda some: some[0].name) for run in some]


def _labels(folder: Path) -> list[str]:
    """Of the second readings of a run: each has findings and trials of its own."""
    try:
        names = sorted(file.name for file in folder.glob("findings-?*.json"))
    except OSError:
        return []
    labels = [name.removeprefix("findings-").removesuffix(".json") for name in names]
    return [label for label in labels if (folder / f"trials-{label}").is_dir()]


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(
            child
            for child in folder.iterdir()
            if child.is_dir() and not child.is_symlink() and not child.name.startswith(".")
        )
    except OSError:
        return []


def _id(name: str, path: str, taken: set[str]) -> str:
    made = slug(name)
    if made in taken or made != name:
        made = f"{made[:40]}-{hashlib.sha256(path.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    taken.add(made)
    return made


@dataclass(frozen=True)
class RunCard:
    """A run as lists show it."""

    id: str
    name: str
    player: str
    data: str
    fingerprint: str
    asked: str
    """How many questions, in words."""
    metric: str
    state: State
    answers: int
    unread: int
    findings: tuple[dict[str, Any], ...]
    problem: str = ""
    label: str = ""
    """Of a second reading, see `RunFolder`."""
    missing: str = ""
    """How many trials are left out because asking failed, in a sentence."""

    @property
    def card(self) -> dict[str, dict[str, Any]]:
        return {one["probe"]: one for one in self.findings}


def told_apart(cards: Iterable[RunCard]) -> dict[str, str]:
    """Names of runs by their ids: the player, and the folder too where another folder has the same player."""
    folders: dict[str, set[str]] = {}
    cards = list(cards)
    for card in cards:
        folders.setdefault(card.player, set()).add(card.name)
    return {card.id: f"{card.player} ({card.name})" if len(folders[card.player]) > 1 else card.player for card in cards}


def card_of(site: Site, run: RunFolder) -> RunCard:
    """What is known about a run; a damaged one says what is wrong with it. Looked at again after a second."""
    at, card = site.cards.get(run.id, (-1e9, None))
    if card is None or time.monotonic() - at > RESCAN_SECONDS:
        card = _card(site, run)
        site.cards[run.id] = (time.monotonic(), card)
    found: RunCard = card
    return found


def _card(site: Site, run: RunFolder) -> RunCard:
    count = sum(facet.count for facet in site.index.facets(run))
    try:
        config = run.config()
        player, data = str(config["player"]["name"]), config["data"]
        player = f"{player} ({run.label})" if run.label else player
        about = (str(data["name"]), str(data.get("fingerprint", "")), how_many(config), str(data["metric"]))
    except (PfungstError, KeyError, TypeError, ValueError) as error:
        told = str(error) if isinstance(error, PfungstError) else "Its exam.json is not the configuration of an exam."
        return RunCard(run.id, run.name, run.name, "–", "", "", "", State("unfinished"), count, 0, (), told, run.label)
    findings, problem, unread, missing = _findings(run)
    problem = " ".join(part for part in (problem, site.index.problem(run)) if part)
    return RunCard(run.id, run.name, player, about[0], about[1], about[2], about[3],
                   state_of(run, live=not site.links.static), count, unread, findings, problem, run.label,
                   missing)  # fmt: skip


def _findings(run: RunFolder) -> tuple[tuple[dict[str, Any], ...], str, int, str]:
    """Findings, what is wrong with them, how many replies could not be read, and that trials are missing."""
    file = run.file(run.read_as("findings.json"))
    if file is None:
        return (), "", 0, ""
    status = file.stat()
    return _read_findings(run, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=512)
def _read_findings(run: RunFolder, size: int, modified: int) -> tuple[tuple[dict[str, Any], ...], str, int, str]:
    try:
        numbers = read_numbers(run.path, run.label)
        unread = numbers.get("unread") or {}
        count = sum(int(count) for count in unread.values())
        return tuple(numbers["findings"]), "", count, missing_trials(numbers)
    except (PfungstError, ValueError, TypeError, AttributeError, RecursionError):
        return (), "Its findings.json cannot be read: `pfungst rescore` makes it anew.", 0, ""
