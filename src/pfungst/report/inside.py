"""What a player can still tell about the cases of its report: where it looks, and what it was sent, word for word.

Both are kept in the run folder. The trials hold questions and choices; a player that chats puts them into a prompt of
its own, and probes may say how.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from pfungst.core import Asker, Dataset, Image, Player, Query, Run
from pfungst.core.files import write_json
from pfungst.core.images import as_rgb
from pfungst.core.types import as_player
from pfungst.report.attention import overlay, picture_weights
from pfungst.report.cases import MOST_WORDS, Case, sample_of
from pfungst.report.drawings import Tools
from pfungst.report.thumbnails import Thumbnail

LOOKS, PROMPTS = "looks.json", "prompts.json"
"""Files: key of an answer -> the weights over its image, and what the player was sent for it."""
MOST_LOOKS = 48
"""Cases whose maps are drawn, taken from the probes in turn."""
MOST_PROMPTS = 1_000_000
"""Characters of all prompts that are kept: a report must stay small."""
_LOGGER = logging.getLogger("pfungst")


def add_looks(run: Path, player: Player, data: Dataset) -> None:
    """Note where a player that can tell looks, for cases that its report will show. Others have no such file."""
    player = as_player(player)
    if not player.has("look"):
        return
    sample = sample_of(Run.open(run))
    tools = Tools(run, data=data)
    asked: dict[str, tuple[Mapping[str, Any], Query]] = {}
    for case in _in_turn(sample.cases)[:MOST_LOOKS]:
        for row in (case.clean, case.disturbed):
            image = tools.image(row, case, sample.cases)
            # Who reads scenes is asked about the one of the example alone: that of another image is not kept.
            own = row["image"] == case.clean["image"]
            if image is not None and (own or not player.reads_scenes):
                scene = tools.examples[case.example_id].scene if own else None
                query = Query(row["question"], image, tuple(row["choices"] or ()), scene)
                asked.setdefault(row["key"], (row, query))
    if not asked:
        return
    rows, queries = zip(*asked.values(), strict=True)
    try:
        maps = player.look(queries)
    except Exception as error:  # of a player: the exam is finished, and its report must not be lost
        _LOGGER.warning(f"The report has no attention maps: {error}.")
        return
    drawn = {row["key"]: picture_weights(maps, at) for at, row in enumerate(rows)}
    found = {key: np.round(weights, 2).tolist() for key, weights in drawn.items() if weights is not None}
    if found:
        write_json(run / LOOKS, found)


def draw_looks(
    case: Case, looks: Mapping[str, Any], tools: Tools, cases: Sequence[Case]
) -> list[tuple[str, Thumbnail]]:
    """The images of a case under the player's attention, before and after."""
    found: dict[str, tuple[str, Thumbnail]] = {}
    for row in (case.clean, case.disturbed):
        if row["key"] not in looks or row["key"] in found or tools.images.room <= 0:
            continue
        seen = tools.image(row, case, cases)
        if seen is not None:
            picture = as_rgb(seen).copy()
            picture.thumbnail((320, 320))
            image = tools.images.of(f"look {row['key']}", overlay(picture, np.asarray(looks[row["key"]], np.float64)))
            if image is not None:
                found[row["key"]] = (f"where it looks, {row['variant']}: {row['answer'] or '(no answer)'}", image)
    return list(found.values())


def _in_turn(cases: Sequence[Case]) -> list[Case]:
    """The cases, one of each probe in turn."""
    probes = list(dict.fromkeys(case.probe for case in cases))
    place = dict.fromkeys(probes, 0)
    order = []
    for case in cases:
        order.append((place[case.probe], probes.index(case.probe)))
        place[case.probe] += 1
    return [case for _, case in sorted(zip(order, cases, strict=True), key=lambda one: one[0])]


def add_prompts(run: Path, player: Player, data: Dataset) -> None:
    """Note what a player that can tell was sent, for cases that its report will show. Others have no such file."""
    player = as_player(player)
    if not player.has("prompt"):
        return
    cases = sample_of(Run.open(run)).cases
    asker = Asker(player)
    wanted = {row["key"]: row for case in cases for row in (case.clean, case.disturbed)}
    found: dict[str, str] = {}
    length = 0
    for query in _queries(wanted, found, cases, Tools(run, data=data)):
        query = asker.visible(query)
        key = query.key(asker.fingerprint)
        if key in wanted and key not in found and length < MOST_PROMPTS:
            found[key] = player.prompt(query)[:MOST_WORDS]
            length += len(found[key])
    if found:
        write_json(run / PROMPTS, found)


def _queries(
    wanted: Mapping[str, Mapping[str, Any]], found: Mapping[str, str], cases: Sequence[Case], tools: Tools
) -> Iterator[Query]:
    """The queries behind these rows. Where a probe says how to ask, which rows do not tell, it makes them anew."""
    for row in wanted.values():
        # The key of a query needs no more of an image than its digest.
        image = cast(Image, SimpleNamespace(digest=row["image"])) if row["image"] else None
        yield Query(row["question"], image, tuple(row["choices"] or ()), take=row["take"])
    for probe in dict.fromkeys(case.probe for case in cases):
        mine = [case for case in cases if case.probe == probe]
        if any(row["key"] not in found for case in mine for row in (case.clean, case.disturbed)):
            yield from tools.queries(probe, mine)
