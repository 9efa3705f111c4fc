"""Questions about scenes: templates filled in, answers balanced, wordings grouped, options for a multiple choice."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from random import Random
from typing import Any

from pfungst.core import DataError, PfungstError
from pfungst.world.constants import ATTRIBUTES, MAX_OBJECTS
from pfungst.world.programs import Program, answer, answer_text
from pfungst.world.questions.balance import RESET_EVERY, AnswerCounts, possible_answers
from pfungst.world.questions.loading import load_templates
from pfungst.world.questions.search import Instance, find_instance
from pfungst.world.questions.tables import Tables
from pfungst.world.questions.template import TRAIN, Template, TemplateSet
from pfungst.world.questions.wording import MIXED, SOURCES, wordings
from pfungst.world.scene import Scene

REPHRASINGS = 3
"""Rephrasings of every question, as in VQA-Rephrasings (Cycle-Consistency for Robust VQA)."""
CHOICES = 4
"""Options where the kind of answer has that many: the target and three decoys, as in Visual7W."""
_KEYS = {"index": "question_index", "kind": "template_kind", "family": "question_family_index"}
"""Fields of a question that its dictionary calls otherwise."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question about one scene, with its program and all that is known about how it was made."""

    index: int
    """Number in its data set, the published `question_index`."""
    question: str
    answer: str
    """As the released files spell it: yes, no, 3, rubber."""
    program: tuple[Mapping[str, Any], ...]
    image_index: int
    image_filename: str
    split: str
    kind: str
    """Kind of question: `zero_hop` ... `comparison`; the name of the template file."""
    family: int
    """Place of the template in its file, the published `question_family_index`."""
    answer_kind: str
    """`bool`, `integer`, or the attribute asked for."""
    phrasing: str
    """Id of the phrasing."""
    phrasing_split: str
    """`train` or `heldout`."""
    group: int
    """Index of the question this is a wording of; its own index for an original."""
    choices: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The published dictionary; the keys after `question_index` are ours."""
        return {
            "split": self.split,
            "image_filename": self.image_filename,
            "image_index": self.image_index,
            "image": self.image_filename.rpartition(".")[0],
            "question": self.question,
            "program": [dict(node) for node in self.program],
            "answer": self.answer,
            "template_filename": f"{self.kind}.json",
            "question_family_index": self.family,
            "question_index": self.index,
            "template_kind": self.kind,
            "answer_kind": self.answer_kind,
            "phrasing": self.phrasing,
            "phrasing_split": self.phrasing_split,
            "group": self.group,
            "choices": list(self.choices),
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Question:
        """Read back what `to_json` wrote."""
        try:
            values = {name: record[_KEYS.get(name, name)] for name in cls.__slots__}
            return cls(**values | {name: tuple(values[name]) for name in ("program", "choices")})
        except (KeyError, TypeError) as error:
            raise DataError(f"This is not a question made by pfungst: it lacks {error}.") from error


def generate(
    scenes: Iterable[Scene | Mapping[str, Any]],
    per_scene: int | Sequence[int] = 10,
    *,
    rephrasings: int = 0,
    phrasings: str = MIXED,
    templates: TemplateSet | str | PathLike[str] | None = None,
    split: str | None = None,
    seed: int = 0,
    start: int = 0,
) -> Iterator[Question]:
    """Ask questions about scenes; the same arguments give the same questions.

    Parameters
    ----------
    scenes : `Scene`s or published dictionaries
    per_scene : originals a scene (one number, or one for each scene); fewer where a scene does not carry so many
    rephrasings : further wordings of every original. They have its program, hence its answer, and all texts of a group
        differ.
    phrasings : where these are drawn from: `train`, `heldout` or `mixed`. Originals are always worded as in `train`, so
        that the difference measures the wording.
    templates : folder of template files, by default our own
    split : written into the questions; by default the scene's own
    start : number of the first scene, for a part of a larger set: cut at multiples of 250 scenes, the parts have the
        questions of the whole (numbered from 0 in each)

    Families take turns, the least asked first. An instance is refused if its answer would unbalance its family (the
    published rule, see `balance`), if a `relate` in it changes nothing, or if a constraint of the template fails.
    Counting starts anew every 250 scenes. Every answer is checked with `pfungst.world.answer`.
    """
    families = templates if isinstance(templates, TemplateSet) else load_templates(templates)
    check_phrasings(families, phrasings, rephrasings)
    index = 0
    asked = _nothing_asked(families)
    for number, given in enumerate(scenes, start):
        scene = Scene.of(given)
        wanted = per_scene if isinstance(per_scene, int) else per_scene[number - start]
        if number % RESET_EVERY == 0:
            asked = _nothing_asked(families)
        rng = Random(hashlib.sha256(f"questions {seed} {split} {number}".encode()).digest())
        image_index = int(scene.extra.get("image_index", 0))
        image = str(scene.extra.get("image_filename", f"{image_index:06d}.png"))
        for template, instance in _instances(scene, families, wanted, asked, rng):
            said = wordings(template, instance.values, families.synonyms, rng, 1, TRAIN)
            said += wordings(template, instance.values, families.synonyms, rng, rephrasings, phrasings, said)
            program = tuple(instance.program.to_json())
            choices = choices_for(
                instance.answer, template.answer_kind, scene, f"{image} {template.key} {instance.program.nodes}"
            )
            for own_index, (phrasing, text) in enumerate(said, index):
                yield Question(
                    own_index,
                    text,
                    instance.answer,
                    program,
                    image_index,
                    image,
                    str(scene.extra.get("split", "")) if split is None else split,
                    template.kind,
                    template.index,
                    template.answer_kind,
                    phrasing.id,
                    phrasing.split,
                    index,
                    choices,
                )
            index += len(said)


def check_phrasings(families: TemplateSet, phrasings: str, rephrasings: int) -> None:
    """Refuse settings under which no rephrasings could be drawn."""
    if phrasings not in SOURCES:
        raise PfungstError(f"Phrasings are drawn from {', '.join(SOURCES)}, not from {phrasings!r}.")
    if rephrasings < 0:
        raise PfungstError(f"The number of rephrasings cannot be negative: {rephrasings}.")
    for template in families.templates:
        if not template.of_split(TRAIN):
            raise DataError.at(template.file, f"template {template.index}", "it has no phrasing of the split train.")
        if rephrasings and phrasings != MIXED and not template.of_split(phrasings):
            raise DataError.at(
                template.file,
                f"template {template.index}",
                f"it has no {phrasings} phrasings to draw rephrasings from.",
                "Draw them from `mixed`, or add some to the template.",
            )


def _nothing_asked(families: TemplateSet) -> dict[tuple[str, int], AnswerCounts]:
    """Family -> how often each answer was given, to keep families and answers in balance."""
    return {one.key: AnswerCounts.of(possible_answers(one.answer_kind)) for one in families.templates}


def _instances(
    scene: Scene, families: TemplateSet, wanted: int, asked: dict[tuple[str, int], AnswerCounts], rng: Random
) -> Iterator[tuple[Template, Instance]]:
    tables = Tables(scene, rng)
    programs: set[Program] = set()
    while wanted > 0:
        before = wanted
        # Shuffled first: among families asked equally often none comes first by its name.
        order = rng.sample(families.templates, len(families.templates))
        order.sort(key=lambda one: asked[one.key].total)
        for template in order:
            if wanted == 0:
                return
            instance = _instance(template, tables, asked[template.key], programs, rng)
            if instance is None:
                continue
            asked[template.key].add(instance.answer)
            programs.add(instance.program)
            wanted -= 1
            yield template, instance
        if wanted == before:
            return


def _instance(
    template: Template, tables: Tables, counts: AnswerCounts, programs: set[Program], rng: Random
) -> Instance | None:
    prefer = None
    if template.answer_kind == "bool" and len(set(counts.counts.values())) == 1:
        # At a tie the search would take whichever answer is more common in scenes, every time.
        prefer = rng.choice(("yes", "no"))
    found = find_instance(
        template,
        tables,
        rng,
        lambda answer, program: counts.allows(answer) and program not in programs,
        prefer,
    )
    if found is not None:
        true = answer(found.program, tables.scene)
        if true is None or answer_text(true) != found.answer:
            raise PfungstError(
                f"Template {template.index} of {template.file} gave the answer {found.answer} where the program "
                f"gives {true}: please report this."
            )
    return found


def choices_for(answer: str, kind: str, scene: Scene, seed: str) -> tuple[str, ...]:
    """The options for one question, the target among them, in an order fixed by `seed`.

    - `bool`, `size`, `material`, `shape`: all there are (2, 2, 2, 3)
    - `color`: the target and three others, those of objects in the scene first
    - `integer`: four counts in a row, the target at a random place among them

    All phrasings of one question should be given the same `seed`, so that they differ in their wording alone.
    """
    rng = Random(hashlib.sha256(f"choices {seed}".encode()).digest())
    if kind == "integer":
        target = int(answer)
        lowest = target - rng.randrange(min(CHOICES, target + 1))
        lowest = min(lowest, max(MAX_OBJECTS, target) - CHOICES + 1)
        options = [str(lowest + step) for step in range(CHOICES)]
    elif kind == "color":
        shown = {one.color for one in scene.objects}
        others = [color for color in ATTRIBUTES["color"] if color != answer]
        rng.shuffle(others)
        others.sort(key=lambda color: color not in shown)
        options = [answer, *others[: CHOICES - 1]]
    else:
        options = list(possible_answers(kind))
    rng.shuffle(options)
    return tuple(options)
