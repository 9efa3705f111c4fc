"""What a model was sent, word for word, in the cases of its report; kept in `prompts.json` of the run folder.

The trials hold questions and choices. A player that chats puts them into a prompt of its own, and probes may say how.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pfungst.core import Asker, Dataset, Image, Player, Query
from pfungst.core.files import write_json
from pfungst.core.types import PromptedPlayer
from pfungst.report.cases import MOST_WORDS, Case, sample_of
from pfungst.report.drawings import Tools
from pfungst.report.looking import read_kept

FILE = "prompts.json"
MOST = 1_000_000
"""Characters of all prompts that are kept: a report must stay small."""


@dataclass(frozen=True)
class _Seen:
    """An image of which only the digest is known, which is all that the key of a query needs."""

    digest: str


def add_prompts(run: Path, player: Player, data: Dataset) -> None:
    """Note what a player that can tell was sent, for cases that its report will show. Others have no such file."""
    if not isinstance(player, PromptedPlayer):
        return
    cases = sample_of(run).cases
    asker = Asker(player)
    wanted = {row["key"]: row for case in cases for row in (case.clean, case.disturbed)}
    found: dict[str, str] = {}
    length = 0
    for query in _queries(wanted, found, cases, Tools(run, data=data)):
        query = asker.visible(query)
        key = query.key(asker.fingerprint)
        if key in wanted and key not in found and length < MOST:
            found[key] = player.prompt(query)[:MOST_WORDS]
            length += len(found[key])
    if found:
        write_json(run / FILE, found)


def _queries(
    wanted: Mapping[str, Mapping[str, Any]], found: Mapping[str, str], cases: Sequence[Case], tools: Tools
) -> Iterator[Query]:
    """The queries behind these rows. Where a probe says how to ask, which rows do not tell, it makes them anew."""
    for row in wanted.values():
        image = cast(Image, _Seen(row["image"])) if row["image"] else None
        yield Query(row["question"], image, tuple(row["choices"] or ()), take=row["take"])
    for probe in dict.fromkeys(case.probe for case in cases):
        mine = [case for case in cases if case.probe == probe]
        if any(row["key"] not in found for case in mine for row in (case.clean, case.disturbed)):
            yield from tools.queries(probe, mine)


def read_prompts(run: Path) -> dict[str, str]:
    """Key of an answer -> what the player was sent for it."""
    return read_kept(run / FILE)
