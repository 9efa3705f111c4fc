"""Cases as their probe sees them: noise levels, wordings, choice sets, moved objects.

A drawing is a function (case, tools) -> Markup, named after its probe. A probe without one gets a table of its
variants. Third parties register theirs with the entry point group `pfungst.drawings`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
from markupsafe import Markup

from pfungst.core import Dataset, Example, Image, PfungstError, Query, read_config
from pfungst.core.flips import normalise
from pfungst.core.registry import Registry
from pfungst.core.types import as_probe
from pfungst.probes import PROBES
from pfungst.probes.game.board import Board
from pfungst.probes.game.rows import fooled_rows, read_moves, scene_after
from pfungst.probes.game.rules import GameRules
from pfungst.probes.rephrase.validated import NOTE
from pfungst.report.cases import Case
from pfungst.report.page import environment
from pfungst.report.thumbnails import Thumbnail, Thumbnails
from pfungst.world import render
from pfungst.world.renderers.plan import STILL, plan_view

DRAWINGS = Registry(
    "drawing",
    "pfungst.drawings",
    {name: f"pfungst.report.drawings:draw_{name}" for name in ("noise", "rephrase", "decoys", "game")},
)
_SENTENCE = re.compile(r"[^?.!]+[?.!]*")
_TURN = re.compile(r".+, turn \d+")


MOST_ANEW = 2000
"""Examples of a data set from which variants are made anew as in the exam; of a larger one, from those needed alone."""
MOST_SEEN = 4
"""Images of one case."""


@dataclass(frozen=True)
class Tools:
    """What a drawing may use."""

    run: Path
    images: Thumbnails = field(default_factory=Thumbnails)
    data: Dataset | None = None
    _kept: dict[str, dict[str, Image]] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def examples(self) -> Mapping[str, Example]:
        return {example.id: example for example in self.data or ()}

    def seen(self, case: Case, cases: Sequence[Case]) -> list[tuple[str, Thumbnail]]:
        """The images that the variants of a case showed, where they differ: the clean one first.

        A run keeps what was said, not what was drawn: the probe makes its variants anew, and an image counts if its
        digest is the one that the answer was given to. `cases`: all of the page, to make a probe's variants once.
        """
        digests = list(dict.fromkeys(row["image"] for row in (case.clean, case.disturbed, *case.rows) if row["image"]))
        if len(digests) < 2 or self.data is None:
            return []
        made = self._made(case.probe, cases)
        names = {row["image"]: f"{row['variant']}: {row['answer'] or '(no answer)'}" for row in reversed(case.rows)}
        found = [(names[one], self.images.of(one, made[one])) for one in digests if one in made][:MOST_SEEN]
        return [(name, image) for name, image in found if image is not None]

    def image(self, row: Mapping[str, Any], case: Case, cases: Sequence[Case]) -> Image | None:
        """The image that a variant of a case showed; None where there was none, or where it cannot be had again."""
        example = self.examples.get(case.example_id)
        if example is None or not row["image"]:
            return None
        return example.image if row["image"] == case.clean["image"] else self._made(case.probe, cases).get(row["image"])

    def _made(self, probe: str, cases: Sequence[Case]) -> dict[str, Image]:
        """Digest -> image of the variants of a probe's cases."""
        if probe not in self._kept:
            mine = [case for case in cases if case.probe == probe]
            wanted = {row["image"] for case in mine for row in case.rows}
            self._kept[probe] = {}
            for query in self.queries(probe, mine):
                if query.image is not None and query.image.digest in wanted:
                    self._kept[probe].setdefault(query.image.digest, query.image)
        return self._kept[probe]

    def queries(self, probe: str, cases: Sequence[Case]) -> Iterator[Query]:
        """The queries of a probe's cases, made anew; none of a probe that would rank again, and of a game those that
        fooled the player."""
        if probe == "game":
            yield from self._moved(cases)
            return
        config = read_config(self.run)
        settings = next(one["settings"] for one in config["probes"] if one["name"] == probe)
        ids = {case.example_id for case in cases}
        assert self.data is not None
        data = self.data
        if len(data) > MOST_ANEW:
            groups = {data_group(self.examples[one]) for one in ids if one in self.examples} - {""}
            data = data.subset([one for one in data if one.id in ids or data_group(one) in groups])
        try:
            maker = as_probe(PROBES.get(probe)(**settings))
            if maker.has("prepare") or maker.searches:
                return
            for trial in maker.trials(data, config["seed"]):
                if trial.example_id in ids:
                    yield from (one.query for one in trial.variants)
        except (PfungstError, TypeError):
            return  # a probe of another version, or data that are no longer there: the page does without

    def _moved(self, cases: Sequence[Case]) -> Iterator[Query]:
        for case in cases:
            row, example = self.moves.get(case.example_id), self.examples.get(case.example_id)
            if row is not None and example is not None:
                yield Board.of(example, GameRules()).query(np.reshape(row["after"], (-1, 2)))

    @cached_property
    def moves(self) -> dict[str, dict[str, Any]]:
        """Example id -> the row of game/moves.parquet that fooled the player."""
        import pyarrow.compute as pc

        try:
            return {row["example_id"]: row for row in fooled_rows(read_moves(self.run).filter(pc.field("fooled")))}
        except PfungstError:
            return {}


def data_group(example: Example) -> str:
    """The group whose members an example is asked together with, empty for none."""
    return example.contrast or example.group


def draw_case(case: Case, tools: Tools) -> Any:
    """Markup of what the variants did to the answer."""
    name = case.probe
    known = name in DRAWINGS.builtin or name in DRAWINGS.others()
    return (DRAWINGS.get(name) if known else draw_variants)(case, tools)


def draw_variants(case: Case, tools: Tools) -> Any:
    return _macros().variants(case)


def draw_noise(case: Case, tools: Tools) -> Any:
    """The noise levels, with the questions that were appended."""
    start = case.clean["question"]
    appended = [
        _SENTENCE.findall(row["question"][len(start) :].strip()) if row["question"].startswith(start) else None
        for row in case.rows
    ]
    return _macros().noise(case, appended)


def draw_rephrase(case: Case, tools: Tools) -> Any:
    """A group of wordings with its answers, and with what people say about the rephrasings where they were asked."""
    notes = json.loads(case.clean.get("notes") or "{}").get(NOTE, ())
    return _macros().rephrase(case, notes if any(notes) else ())


def draw_decoys(case: Case, tools: Tools) -> Any:
    """The choice sets side by side."""
    sets, turns = [], []
    for row in case.rows:
        if _TURN.fullmatch(row["variant"]):
            turns.append(row)
            continue
        said, target = normalise(row["answer"]), normalise(row["target"] or "")
        choices = [
            {"text": one, "target": normalise(one) == target, "chosen": normalise(one) == said}
            for one in row["choices"] or ()
        ]
        sets.append({"name": row["variant"], "row": row, "choices": choices})
    return _macros().decoys(sets, turns)


def draw_game(case: Case, tools: Tools) -> Any:
    """The scene before and after, and from above with an arrow for each moved object."""
    row = tools.moves.get(case.example_id)
    if row is None:
        return draw_variants(case, tools)
    scene = json.loads(row["scene"])
    before, after = (_places(row[name]) for name in ("before", "after"))
    scenes = {"before": scene, "after": scene_after(row)}
    drawn = {words: _rendered(tools, f"{case.example_id} {words}", one) for words, one in scenes.items()}
    pictures = [(words, image) for words, image in drawn.items() if image is not None]
    count = sum(math.dist(*pair) > STILL for pair in zip(before, after, strict=True))
    moved = f"{count} of {len(before)} object{'s' if len(before) != 1 else ''} moved"
    plan = Markup(plan_view(scenes["after"], 300, moved_from=scene))
    return _macros().game(pictures, plan, moved) + draw_variants(case, tools)


def _places(numbers: Sequence[float]) -> list[tuple[float, float]]:
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _rendered(tools: Tools, key: str, scene: Mapping[str, Any]) -> Any:
    if tools.images.room <= 0:
        return None
    return tools.images.of(key, PIL.Image.fromarray(render(scene, 320, 240)))


def _macros() -> Any:
    return environment().get_template("drawings.html").module
