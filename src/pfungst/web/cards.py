"""A run as lists show it, from its files; whatever is in them, a list of runs must not break."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pfungst.core import PfungstError
from pfungst.report.findings import read_findings
from pfungst.web.runs import RESCAN_SECONDS, RunFolder, State, state_of
from pfungst.web.site import Site

_HEADLINE = ("clean", "disturbed", "drop")


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


def card_of(site: Site, run: RunFolder) -> RunCard:
    """What is known about a run; a damaged one says what is wrong with it. Looked at again after a second."""
    at, card = site.cards.get(run.id, (-1e9, None))
    if card is None or time.monotonic() - at > RESCAN_SECONDS:
        card = _card(site, run)
        site.cards[run.id] = (time.monotonic(), card)
    found: RunCard = card
    return found


def _card(site: Site, run: RunFolder) -> RunCard:
    try:
        config = run.config()
        player, data = str(config["player"]["name"]), config["data"]
        player = f"{player} ({run.label})" if run.label else player
        about = (str(data["name"]), str(data.get("fingerprint", "")), int(data["examples"]), str(data["metric"]))
    except (PfungstError, KeyError, TypeError, ValueError) as error:
        told = str(error) if isinstance(error, PfungstError) else "Its exam.json is not the configuration of an exam."
        return RunCard(run.id, run.name, run.name, "–", "", 0, "", State("unfinished"), 0, 0, (), told, run.label)
    facets = site.index.facets(run)
    findings, problem, unread = _findings(run)
    problem = " ".join(part for part in (problem, site.index.problem(run)) if part)
    count = sum(facet.count for facet in facets)
    return RunCard(run.id, run.name, player, about[0], about[1], about[2], about[3], state_of(run), count, unread,
                   findings, problem, run.label)  # fmt: skip


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
        if not all(_is_findings(one) for one in found):
            return (), "Its findings.json is not one of this version: run `pfungst rescore`.", 0
        unread = json.loads((run.path / run.read_as("findings.json")).read_bytes()).get("unread") or {}
        return tuple(map(_complete, found)), "", sum(int(count) for count in unread.values())
    except (PfungstError, ValueError, TypeError, AttributeError, RecursionError):
        return (), "Its findings.json cannot be read.", 0


def _is_findings(one: Any) -> bool:
    """Whether this has the shape that pages rely on."""
    if not isinstance(one, Mapping) or not isinstance(one.get("probe"), str):
        return False
    lists = all(isinstance(one.get(name), list) for name in ("rows", "figures"))
    headline = all(name in one and (one[name] is None or _is_finding(one[name])) for name in _HEADLINE)
    return lists and headline and isinstance(one.get("verdict"), str) and all(map(_is_finding, one["rows"]))


def _complete(one: Mapping[str, Any]) -> dict[str, Any]:
    """The findings of a probe with every field that pages show; earlier versions wrote fewer."""

    def whole(number: Mapping[str, Any]) -> dict[str, Any]:
        return {"value": None, "low": None, "high": None, "p": None, "condition": "", "unit": "%", **number}

    headline = {name: whole(one[name]) if one[name] else None for name in _HEADLINE}
    return {"tables": [], "failures": [], **one, **headline, "rows": [whole(number) for number in one["rows"]]}


def _is_finding(one: Any) -> bool:
    if not isinstance(one, Mapping) or not isinstance(one.get("name"), str) or not isinstance(one.get("n"), int):
        return False
    numbers = all(isinstance(one.get(name), int | float | None) for name in ("value", "low", "high", "p"))
    return numbers and all(isinstance(one.get(name, ""), str) for name in ("condition", "unit"))
