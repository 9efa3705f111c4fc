"""A run as lists show it, from its files; whatever is in them, a list of runs must not break."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pfungst.core import PfungstError
from pfungst.report.findings import read_findings
from pfungst.web.runs import RESCAN_SECONDS, RunFolder, State, state_of
from pfungst.web.site import Site


@dataclass(frozen=True)
class RunCard:
    """A run as lists show it."""

    id: str
    name: str
    player: str
    data: str
    fingerprint: str
    examples: int
    metric: str
    state: State
    answers: int
    unread: int
    findings: tuple[dict[str, Any], ...]
    problem: str = ""
    label: str = ""
    """Of a second reading, see `RunFolder`."""

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
        about = (str(data["name"]), str(data.get("fingerprint", "")), int(data["examples"]), str(data["metric"]))
    except (PfungstError, KeyError, TypeError, ValueError) as error:
        told = str(error) if isinstance(error, PfungstError) else "Its exam.json is not the configuration of an exam."
        return RunCard(run.id, run.name, run.name, "–", "", 0, "", State("unfinished"), count, 0, (), told, run.label)
    findings, problem, unread = _findings(run)
    problem = " ".join(part for part in (problem, site.index.problem(run)) if part)
    return RunCard(run.id, run.name, player, about[0], about[1], about[2], about[3],
                   state_of(run, live=not site.links.static), count, unread, findings, problem, run.label)  # fmt: skip


def _findings(run: RunFolder) -> tuple[tuple[dict[str, Any], ...], str, int]:
    """Findings, what is wrong with them, and how many replies could not be read."""
    file = run.file(run.read_as("findings.json"))
    if file is None:
        return (), "", 0
    status = file.stat()
    return _read_findings(run, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=512)
def _read_findings(run: RunFolder, size: int, modified: int) -> tuple[tuple[dict[str, Any], ...], str, int]:
    try:
        found = read_findings(run.path, run.label)
        unread = json.loads((run.path / run.read_as("findings.json")).read_bytes()).get("unread") or {}
        return tuple(found), "", sum(int(count) for count in unread.values())
    except (PfungstError, ValueError, TypeError, AttributeError, RecursionError):
        return (), "Its findings.json cannot be read: `pfungst rescore` makes it anew.", 0
