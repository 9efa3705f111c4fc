"""The cases of a report: trials worth a look, sampled where there are too many to show, drawn as their probe sees them.

A case is a trial, the variants of one example with their answers, named after what became of the answer. A drawing
(noise levels, wordings, choice sets, moved objects) is a function (case, tools) -> Markup, named after its probe. A
probe without one gets a table of its variants. Third parties register theirs with the entry point group
`pfungst.drawings`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
from markupsafe import Markup

from pfungst.core import Dataset, Example, Findings, Image, PfungstError, Query, Run, read_config
from pfungst.core.files import jsonable
from pfungst.core.flips import CHANGED, FLIPS, KEPT_WITHOUT, STILL_WRONG, normalise
from pfungst.core.registry import Registry
from pfungst.probes import probe_again
from pfungst.probes.rephrase.results import VALIDATED
from pfungst.report.page import Thumbnail, Thumbnails, environment
from pfungst.world import render
from pfungst.world.renderers.plan import STILL, plan_view

KINDS = FLIPS[: FLIPS.index(STILL_WRONG) + 1]
"""What can be worth a look; the rest of FLIPS stayed as it should."""
PER_KIND = 24
"""Cases of one kind and probe in a report."""
MOST_TEXT = 1_200_000
"""Characters of all cases together; MOST_WORDS of one text in them."""
MOST_WORDS = 4000
MOST_VARIANTS = 40
"""Variants of a case that are shown."""


@dataclass(frozen=True)
class Case:
    """One trial, with all that is known about its answers."""

    probe: str
    kind: str
    """One of KINDS."""
    example_id: str
    clean: Mapping[str, Any]
    disturbed: Mapping[str, Any]
    """The variant that gives the case its kind; the clean one where nothing changed."""
    rows: tuple[Mapping[str, Any], ...]
    """The variants as they stand in trials/PROBE.parquet, the clean one first."""

    @property
    def loss(self) -> float:
        before, after = self.clean["score"], self.disturbed["score"]
        return 0.0 if before is None or after is None else float(before) - float(after)

    @property
    def size(self) -> int:
        """Characters it will take, about."""
        return sum(
            sum(min(MOST_WORDS, len(row[name] or "")) for name in ("question", "reply", "answer"))
            + sum(map(len, row["choices"] or ()))
            for row in self.rows
        )


@dataclass(frozen=True)
class Sample:
    """What a report shows of all there is."""

    cases: tuple[Case, ...]
    counts: Mapping[tuple[str, str], tuple[int, int]]
    """(probe, kind) -> shown, and all there are."""

    @property
    def total(self) -> int:
        return sum(count for _, count in self.counts.values())

    @property
    def complete(self) -> bool:
        return len(self.cases) == self.total


def sample_of(run: Run, per_kind: int = PER_KIND) -> Sample:
    """The cases of a run: of each probe and kind all, or `per_kind` of them.

    A trial is a case once, of the first of KINDS that became of its answer. What the probe itself points at comes
    first, the rest is drawn at random from the seed. Answers that are wrong and stay so are the same in all probes:
    they are taken from the control, or from the probe that asked about most.
    """
    findings = {one.probe: one for one in run.findings}
    told = {name: _Told.of(run, one) for name, one in findings.items()}
    controls = [name for name, one in findings.items() if one.role == "control"]
    base = max(controls or told, key=lambda name: told[name].trials, default="")
    rng = np.random.default_rng(run.config["seed"])
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    chosen: list[tuple[str, str, int, str]] = []
    for probe, one in told.items():
        for kind in KINDS:
            found = [(trial, variant, points) for trial, (of, variant, points) in one.best.items() if KINDS[of] == kind]
            if not found or (kind == STILL_WRONG and probe != base):
                continue
            order = rng.permutation(len(found))
            picked = sorted(order, key=lambda at, found=found: not found[at][2])[:per_kind]  # type: ignore[misc]
            chosen += [(probe, kind, found[at][0], found[at][1]) for at in sorted(picked)]
            counts[probe, kind] = (len(picked), len(found))
    kept, spent = [], 0
    for case in sorted(_read(run, chosen), key=lambda case: KINDS.index(case.kind)):
        spent += case.size
        if spent > MOST_TEXT:
            shown, total = counts[case.probe, case.kind]
            counts[case.probe, case.kind] = (shown - 1, total)
        else:
            kept.append(case)
    return Sample(tuple(kept), counts)


@dataclass(frozen=True)
class _Told:
    """What became of the answers of a probe."""

    trials: int
    best: Mapping[int, tuple[int, str, bool]]
    """Trial -> its kind, as a place in KINDS, the variant that shows it, and whether the probe points at it."""

    @classmethod
    def of(cls, run: Run, finding: Findings) -> _Told:
        named = {(one.example_id, one.variant) for one in finding.failures}
        columns = ("trial", "place", "role", "flip", "example_id", "variant", "score")
        parts = (part for _, part in run.parts(finding.probe, columns))
        rows = (row for part in parts for row in zip(*(column.to_pylist() for column in part.columns), strict=True))
        best: dict[int, tuple[int, str, bool]] = {}
        shared: dict[tuple[int, str, bool], tuple[int, str, bool]] = {}
        trials, alone = 0, -1
        for trial, place, role, flip, example_id, variant, score in rows:
            if not place:
                trials += 1
                if score is not None and score <= 0:  # asked once, and wrong
                    found, alone = (KINDS.index(STILL_WRONG), variant, False), trial
                    best[trial] = shared.setdefault(found, found)
                continue
            if alone == trial:
                del best[trial]
                alone = -1
            if flip not in KINDS or (role == "removes" and flip not in (KEPT_WITHOUT, CHANGED)):
                continue
            found = (KINDS.index(flip), variant, (example_id, variant) in named)
            before = best.get(trial)
            # The worst that became of it, and of equals the one that the probe points at.
            if before is None or (found[0], not found[2]) < (before[0], not before[2]):
                best[trial] = shared.setdefault(found, found)
        return cls(trials, best)


def _read(run: Run, chosen: Sequence[tuple[str, str, int, str]]) -> Iterator[Case]:
    """The chosen trials with all their columns."""
    for probe in dict.fromkeys(name for name, *_ in chosen):
        mine = {trial: (kind, variant) for name, kind, trial, variant in chosen if name == probe}
        for rows in run.trials([("trial", "in", list(mine))], probes=[probe]):
            kind, variant = mine[rows[0]["trial"]]
            told = [{name: value for name, value in jsonable(row).items() if name != "probe"} for row in rows]
            shown = told[:MOST_VARIANTS] + [row for row in told[MOST_VARIANTS:] if row["variant"] == variant]
            disturbed = next((row for row in shown if row["variant"] == variant), shown[0])
            yield Case(probe, kind, str(shown[0]["example_id"]), shown[0], disturbed, tuple(shown))


DRAWINGS = Registry(
    "drawing",
    "pfungst.drawings",
    {name: f"pfungst.report.cases:draw_{name}" for name in ("noise", "rephrase", "decoys", "game")},
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
        assert self.data is not None
        yield from made_again(read_config(self.run), probe, self.data, {case.example_id for case in cases})

    def _moved(self, cases: Sequence[Case]) -> Iterator[Query]:
        from pfungst.probes.game import Board, GameRules

        for case in cases:
            row, example = self.moves.get(case.example_id), self.examples.get(case.example_id)
            if row is not None and example is not None:
                yield Board.of(example, GameRules()).query(np.reshape(row["after"], (-1, 2)))

    @cached_property
    def moves(self) -> dict[str, dict[str, Any]]:
        """Example id -> the row of game/moves.parquet that fooled the player."""
        import pyarrow.compute as pc

        from pfungst.probes.game import fooled_rows, read_moves

        try:
            return {row["example_id"]: row for row in fooled_rows(read_moves(self.run).filter(pc.field("fooled")))}
        except PfungstError:
            return {}


def made_again(config: Mapping[str, Any], name: str, data: Dataset, ids: Collection[str]) -> Iterator[Query]:
    """The queries of a probe about some examples, made anew: its trials are a pure function of data and seed.

    None of a probe that would rank or search again, and none where the probe or its data have changed: a page does
    without.
    """
    settings = next((one["settings"] for one in config["probes"] if one["name"] == name), None)
    try:
        probe = None if settings is None else probe_again(name, settings)
        if probe is None or probe.has("prepare") or probe.searches:
            return
        data = probe.sees(data)
        if len(data) > MOST_ANEW:
            groups = {data_group(one) for one in data if one.id in ids} - {""}
            data = data.subset([one for one in data if one.id in ids or data_group(one) in groups])
        for trial in probe.trials(data, config["seed"]):
            if trial.example_id in ids:
                yield from (one.query for one in trial.variants)
    except (PfungstError, TypeError):
        return


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
    notes = json.loads(case.clean.get("notes") or "{}").get(VALIDATED, ())
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
    from pfungst.probes.game.rows import scene_after

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
    return environment().get_template("parts.html").module
