"""Where a player looks in the cases of its report, kept in `looks.json` of the run folder."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.core import Dataset, PfungstError, Query
from pfungst.core.files import write_json
from pfungst.core.images import as_rgb
from pfungst.core.types import LookingPlayer, reads_scenes
from pfungst.report.cases import Case, sample_of
from pfungst.report.drawings import Tools
from pfungst.report.thumbnails import Thumbnail

FILE = "looks.json"
MOST = 48
"""Cases whose maps are drawn, taken from the probes in turn."""
_LOGGER = logging.getLogger("pfungst")


def add_looks(run: Path, player: object, data: Dataset) -> None:
    """Note where a player that can tell looks, for cases that its report will show. Others have no such file."""
    if not isinstance(player, LookingPlayer):
        return
    sample = sample_of(run)
    tools = Tools(run, data=data)
    asked: dict[str, tuple[Mapping[str, Any], Query]] = {}
    for case in _in_turn(sample.cases)[:MOST]:
        for row in (case.clean, case.disturbed):
            image = tools.image(row, case, sample.cases)
            # Who reads scenes is asked about the one of the example alone: that of another image is not kept.
            own = row["image"] == case.clean["image"]
            if image is not None and (own or not reads_scenes(player)):
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
    weights = _weights(rows, maps)
    if weights:
        write_json(run / FILE, weights)


def _weights(rows: Sequence[Mapping[str, Any]], maps: Mapping[str, Any]) -> dict[str, Any]:
    from pfungst.report.attention import picture_weights

    drawn = {row["key"]: picture_weights(maps, at) for at, row in enumerate(rows)}
    return {key: np.round(weights, 2).tolist() for key, weights in drawn.items() if weights is not None}


def read_looks(run: Path) -> dict[str, Any]:
    """Key of an answer -> the weights over its image."""
    return read_kept(run / FILE)


def read_kept(path: Path) -> dict[str, Any]:
    """What is kept about answers, by their keys; nothing where there is no such file."""
    if not path.exists():
        return {}
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise PfungstError(f"{path} cannot be read ({error}). Delete it, or run the same command again.") from error
    return found


def draw_looks(
    case: Case, looks: Mapping[str, Any], tools: Tools, cases: Sequence[Case]
) -> list[tuple[str, Thumbnail]]:
    """The images of a case under the player's attention, before and after."""
    from pfungst.report.attention import overlay

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
