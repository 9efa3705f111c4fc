"""Where a player looks in the cases of its report, kept in `looks.json` of the run folder."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pfungst.core import Dataset, Example, PfungstError, Query
from pfungst.core.files import write_json
from pfungst.core.images import as_rgb
from pfungst.core.types import LookingPlayer
from pfungst.report.cases import Case, sample_of
from pfungst.report.thumbnails import Thumbnail, Thumbnails

FILE = "looks.json"
MOST = 48
"""Cases whose maps are drawn, taken from the probes in turn."""
_LOGGER = logging.getLogger("pfungst")


def add_looks(run: Path, player: object, data: Dataset) -> None:
    """Note where a player that can tell looks, for cases that its report will show. Others have no such file."""
    if not isinstance(player, LookingPlayer):
        return
    sample = sample_of(run)
    examples = {example.id: example for example in data}
    rows = [
        row
        for case in _in_turn(sample.cases)[:MOST]
        for row in (case.clean, case.disturbed)
        if _saw_its_own(row, case) and case.example_id in examples and examples[case.example_id].image is not None
    ]
    rows = list({row["key"]: row for row in rows}.values())
    if not rows:
        return
    queries = [_query(row, examples[row["example_id"]]) for row in rows]
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
    case: Case, looks: Mapping[str, Any], example: Example | None, images: Thumbnails
) -> list[tuple[str, Thumbnail]]:
    """The image of a case under the player's attention: before, and after where it saw the same image."""
    from pfungst.report.attention import overlay

    if example is None or example.image is None or images.room <= 0:
        return []
    found: dict[str, tuple[str, Thumbnail]] = {}
    for row in (case.clean, case.disturbed):
        if row["key"] in looks and row["key"] not in found:
            picture = as_rgb(example.image).copy()
            picture.thumbnail((320, 320))
            image = images.of(f"look {row['key']}", overlay(picture, np.asarray(looks[row["key"]], np.float64)))
            if image is not None:
                found[row["key"]] = (f"where it looks, {row['variant']}: {row['answer'] or '(no answer)'}", image)
    return list(found.values())


def _saw_its_own(row: Mapping[str, Any], case: Case) -> bool:
    return bool(row["image"]) and row["image"] == case.clean["image"]


def _query(row: Mapping[str, Any], example: Example) -> Query:
    return Query(row["question"], example.image, tuple(row["choices"] or ()), example.scene)


def _in_turn(cases: Sequence[Case]) -> list[Case]:
    """The cases, one of each probe in turn."""
    probes = list(dict.fromkeys(case.probe for case in cases))
    place = dict.fromkeys(probes, 0)
    order = []
    for case in cases:
        order.append((place[case.probe], probes.index(case.probe)))
        place[case.probe] += 1
    return [case for _, case in sorted(zip(order, cases, strict=True), key=lambda one: one[0])]
