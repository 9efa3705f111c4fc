"""Contrast groups: questions of a data set that look alike but are not answered alike, and minimal pairs of the world.

Minimal pairs: one attribute of one object is changed, nothing else. A change *matters* where the question's program,
run on the changed scene, gives another answer; it is *idle* where the answer stays. Both are proved by the program: a
change after which the program has no answer (two objects where the question speaks of one) is not used. Positions,
camera and lamps stay; a change of shape or size must keep the rules of a legal scene, and every object in sight.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pfungst.core import Dataset, Example
from pfungst.core.flips import normalise
from pfungst.probes import measure
from pfungst.scores import same_answer
from pfungst.world import Program, RenderedImage, Scene, SceneImage, answer_text, is_legal, visible_pixels
from pfungst.world.constants import ATTRIBUTES, DEFAULT_HEIGHT, DEFAULT_WIDTH, MIN_VISIBLE_PIXELS, RADIUS
from pfungst.world.programs import evaluate
from pfungst.world.scene import relationships


@dataclass(frozen=True, slots=True)
class Member:
    """A question of a group: `q1i0` is the second question of the group, about its first image."""

    example: Example
    question: int
    image: int

    @property
    def name(self) -> str:
        return f"q{self.question}i{self.image}"


def published(data: Dataset, missing: frozenset[str] = frozenset()) -> Iterator[list[Member]]:
    """The contrast groups that the data set itself names; those with one right answer alone are none.

    Groups that a limit cut are left out, unless it cut all of them: half a group is easier to get right.
    """
    known = (e for e in data if e.contrast and e.target is not None and e.id not in missing)
    groups = measure.grouped(known, lambda example: example.contrast)
    sizes = Counter(e.contrast for e in data.whole if e.contrast and e.target is not None and e.id not in missing)
    uncut = [examples for name, examples in groups.items() if len(examples) >= sizes[name]]
    for examples in uncut or groups.values():
        members = _members(examples)
        if differ([member.example for member in members]):
            yield members


def same_question(data: Dataset, seed: int, missing: frozenset[str] = frozenset()) -> Iterator[list[Member]]:
    """Pairs of one question about two images with different right answers, in any data set. Each question is in one
    pair at most; who is paired with whom is drawn from the seed. The images need not look alike."""
    asked: dict[str, dict[str, list[Example]]] = {}
    for example in data.originals:
        if example.target is not None and example.image_id and example.id not in missing:
            answers = asked.setdefault(plain(example.question), {})
            answers.setdefault(normalise(example.target), []).append(example)
    rng = np.random.default_rng(seed)
    for answers in asked.values():
        buckets = sorted(answers.values(), key=len, reverse=True)
        shuffled = [[bucket[i] for i in rng.permutation(len(bucket))] for bucket in buckets]
        others = sum(map(len, shuffled[1:]))
        row = [example for bucket in (shuffled[0][:others], *shuffled[1:]) for example in bucket]
        half = len(row) // 2
        # no answer fills more than half of the row, so two examples half a row apart have two answers
        for first, second in zip(row[:half], row[half:]):
            if first.image_id != second.image_id and differ([first, second]):
                yield _members([first, second])


def differ(examples: Sequence[Example]) -> bool:
    """Whether the right answers are not all the same."""
    first, *others = (example.target or "" for example in examples)
    return any(not same_answer(first, other) for other in others)


def plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _members(examples: Sequence[Example]) -> list[Member]:
    """The questions of a group, numbered by question and by image in the order they come; each pair once."""
    questions: dict[str, int] = {}
    images: dict[str, int] = {}
    found: dict[tuple[int, int], Member] = {}
    for example in examples:
        question = questions.setdefault(plain(example.question), len(questions))
        image = images.setdefault(example.image_id, len(images))
        found.setdefault((question, image), Member(example, question, image))
    return list(found.values())


# --- minimal pairs of the world ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """One attribute of one object, changed."""

    object: int
    attribute: str
    before: str
    after: str
    answer: str
    """What the program says about the changed scene."""

    def __str__(self) -> str:
        return f"{self.attribute} of object {self.object}: {self.before} to {self.after}"


@dataclass(frozen=True, slots=True)
class Pair:
    """A scene, the change that matters, and an idle change of the same attribute where there is one."""

    scene: Scene
    matters: Change
    idle: Change | None


def minimal_pair(example: Example, seed: int) -> Pair | None:
    """The changes to show with an example of the world, drawn from the seed and its id; None where none will do."""
    if example.scene is None or example.program is None or example.target is None:
        return None
    scene = Scene.of(example.scene)
    found = list(_changes(scene, Program.of(example.program)))
    possible = [one for one in found if not example.choices or one.answer in example.choices]
    matter = [one for one in possible if not same_answer(one.answer, example.target)]
    idle = [one for one in possible if same_answer(one.answer, example.target)]
    name = int.from_bytes(hashlib.sha256(example.id.encode("utf-8", "surrogatepass")).digest()[:8], "big")
    rng = np.random.default_rng([seed, name])
    for change in _shuffled(matter, rng):
        if _shows(scene, change):
            alike = [one for one in idle if one.attribute == change.attribute]
            return Pair(scene, change, next((one for one in _shuffled(alike, rng) if _shows(scene, one)), None))
    return None


def changed(scene: Scene, change: Change) -> Scene:
    """The scene after a change. Positions and relations stay; an object of another size stands on the ground."""
    objects = list(scene.objects)
    word: dict[str, Any] = {change.attribute: change.after}
    one = replace(objects[change.object], **word)
    if change.attribute == "size":
        one = replace(one, coords=(one.coords[0], one.coords[1], RADIUS[change.after]))
    objects[change.object] = one
    made = replace(scene, objects=tuple(objects))
    if change.attribute == "size":
        made = replace(made.moved(made.positions), relationships=scene.relationships)
    return made


def drawn(scene: Scene, image: object) -> SceneImage:
    """The scene as an image, in the size that the example's own image has."""
    if isinstance(image, RenderedImage):
        size = image.size
    else:
        width, height = scene.extra.get("image_size") or (DEFAULT_WIDTH, DEFAULT_HEIGHT)
        size = int(width), int(height)
    return SceneImage(scene.to_json(), *size)


def _changes(scene: Scene, program: Program) -> Iterator[Change]:
    """Every change of one attribute after which the program has an answer."""
    relations: Mapping[str, Sequence[Sequence[int]]] = scene.relationships or relationships(scene)
    for attribute, values in ATTRIBUTES.items():
        for place, before in enumerate(scene.columns[attribute]):
            column = list(scene.columns[attribute])
            for after in values:
                if after == before:
                    continue
                column[place] = after
                value = evaluate(program, {**scene.columns, attribute: column}, relations).answer
                if value is not None and not isinstance(value, list):
                    yield Change(place, attribute, before, after, answer_text(value))


def _shuffled(changes: Sequence[Change], rng: np.random.Generator) -> Iterator[Change]:
    """The changes in random order, each attribute as likely to come first however many values it has."""
    by_attribute = list(measure.grouped(changes, lambda change: change.attribute).values())
    for at in rng.permutation(len(by_attribute)):
        some = by_attribute[at]
        yield from (some[i] for i in rng.permutation(len(some)))


def _shows(scene: Scene, change: Change) -> bool:
    """Whether the changed scene is a legal one in which every object can be seen, as far as the scene itself is."""
    if change.attribute in ("color", "material"):
        return True  # no outline moves
    after = changed(scene, change)
    if bool(is_legal(scene)) and not bool(is_legal(after)):
        return False
    least = min(MIN_VISIBLE_PIXELS, int(visible_pixels(scene).min()))
    return int(visible_pixels(after).min()) >= least
