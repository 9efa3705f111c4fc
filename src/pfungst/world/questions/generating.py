"""Questions about scenes: templates filled in, answers balanced, wordings grouped, options for a multiple choice.

Answers are balanced by the rejection rule of the published generator: a data set where "yes" answers two questions in
three can be passed blind. Every family keeps count of its answers, and an answer that leads too far is refused until
others have caught up. `report` tells what a set of questions is made of, and how far a player gets without looking.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from random import Random
from typing import Any

from pfungst.core import DataError, PfungstError
from pfungst.world.constants import ATTRIBUTES, MAX_OBJECTS
from pfungst.world.programs import Program, answer, answer_text
from pfungst.world.questions.loading import load_templates
from pfungst.world.questions.search import Instance, find_instance
from pfungst.world.questions.tables import Tables
from pfungst.world.questions.template import MIXED, SOURCES, TRAIN, Template, TemplateSet, wordings
from pfungst.world.scene import Scene

REPHRASINGS = 3
"""Rephrasings of every question, as in VQA-Rephrasings (Cycle-Consistency for Robust VQA)."""
CHOICES = 4
"""Options where the kind of answer has that many: the target and three decoys, as in Visual7W."""
SECOND_FACTOR = 1.1
"""The most frequent answer may lead the second by this factor ..."""
MEDIAN_FACTOR, MEDIAN_FLOOR = 5.0, 5
"""... and the median, but at least 5, by this one. Both as in the published generator."""
RESET_EVERY = 250
"""Scenes after which counting starts anew, as in the published generator."""


def possible_answers(kind: str) -> tuple[str, ...]:
    """All answers of a kind (`bool`, `integer` or an attribute), as texts."""
    if kind == "bool":
        return ("yes", "no")
    if kind == "integer":
        return tuple(str(count) for count in range(MAX_OBJECTS + 1))
    return ATTRIBUTES[kind]


@dataclass
class AnswerCounts:
    """How often each answer of a family was given so far."""

    counts: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, answers: Iterable[str]) -> AnswerCounts:
        return cls(dict.fromkeys(answers, 0))

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def allows(self, answer: str) -> bool:
        """Whether one more of this answer keeps the balance."""
        count = self.counts.get(answer, 0)
        ranked = sorted(self.counts.values())
        second = ranked[-2] if len(ranked) > 1 else count
        median = max(ranked[len(ranked) // 2] if ranked else 0, MEDIAN_FLOOR)
        return count <= SECOND_FACTOR * second and count <= MEDIAN_FACTOR * median

    def add(self, answer: str) -> None:
        self.counts[answer] = self.counts.get(answer, 0) + 1


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
    published rule, see `AnswerCounts`), if a `relate` in it changes nothing, or if a constraint of the template fails.
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


@dataclass(frozen=True)
class Report:
    """Counts over originals, unless said otherwise: a rephrasing adds no new question."""

    questions: int
    """With rephrasings."""
    originals: int
    images: int
    kinds: Mapping[str, int]
    families: Mapping[str, int]
    """`KIND/FAMILY` -> count."""
    answers: Mapping[str, Mapping[str, int]]
    """Kind of answer (`bool`, `integer`, an attribute) -> answer -> count."""
    family_balance: float
    """Entropy of the families over its maximum: 1 where all occur equally often."""
    answer_balance: Mapping[str, float]
    """Entropy of the answers of a kind over its maximum."""
    blind: float
    """Accuracy of always giving the most frequent answer of the kind of answer."""
    blind_by_family: float
    """The same with the most frequent answer of the family: what knowing the answers, but no image, is worth."""
    group_sizes: Mapping[str, int]
    """Wordings a question -> number of questions."""
    phrasing_splits: Mapping[str, int]
    """`train` and `heldout` wordings, rephrasings counted."""
    phrasings: int
    """Different phrasings in use."""
    words: float
    """Mean length of a question, in words, rephrasings counted."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        lines = [
            f"{self.questions} questions: {self.originals} originals about {self.images} images, "
            f"{self.phrasings} phrasings, {self.words:.1f} words on average",
            f"wordings: {_listed(self.phrasing_splits)}; group sizes: {_listed(self.group_sizes)}",
            f"kinds: {_listed(self.kinds)}",
            f"families: {len(self.families)} in use, {min(self.families.values(), default=0)} to "
            f"{max(self.families.values(), default=0)} questions each, balance {self.family_balance:.3f}",
        ]
        for kind, counts in self.answers.items():
            lines.append(f"answers, {kind}: {_listed(counts)}; balance {self.answer_balance[kind]:.3f}")
        lines.append(f"blind: {self.blind:.3f} by kind of answer, {self.blind_by_family:.3f} by family")
        return "\n".join(lines)


def report(questions: Iterable[Question | Mapping[str, Any]]) -> Report:
    """Answer distributions, family balance, wordings and blind baselines of a set of questions."""
    listed = [one if isinstance(one, Question) else Question.from_json(one) for one in questions]
    sizes = Counter(one.group for one in listed)
    originals = [one for one in listed if one.index == one.group]
    families = Counter((one.kind, one.family) for one in originals)
    by_kind: dict[str, Counter[str]] = {}
    by_family: dict[tuple[str, int], Counter[str]] = {}
    for one in originals:
        by_kind.setdefault(one.answer_kind, Counter())[one.answer] += 1
        by_family.setdefault((one.kind, one.family), Counter())[one.answer] += 1
    answers = {kind: _in_order(counts, kind) for kind, counts in sorted(by_kind.items())}
    return Report(
        questions=len(listed),
        originals=len(originals),
        images=len({one.image_filename for one in listed}),
        kinds=dict(sorted(Counter(one.kind for one in originals).items())),
        families={f"{kind}/{family}": families[kind, family] for kind, family in sorted(families)},
        answers=answers,
        family_balance=_evenness(families.values()),
        answer_balance={kind: _evenness(counts.values()) for kind, counts in answers.items()},
        blind=_majority(by_kind.values(), len(originals)),
        blind_by_family=_majority(by_family.values(), len(originals)),
        group_sizes={str(size): count for size, count in sorted(Counter(sizes.values()).items())},
        phrasing_splits=dict(sorted(Counter(one.phrasing_split for one in listed).items())),
        phrasings=len({one.phrasing for one in listed}),
        words=sum(len(one.question.split()) for one in listed) / len(listed) if listed else 0.0,
    )


def _in_order(counts: Counter[str], kind: str) -> dict[str, int]:
    """All possible answers, those that never occur with 0, and any beyond them."""
    possible = dict.fromkeys((*possible_answers(kind), *sorted(counts)))
    return {answer: counts[answer] for answer in possible}


def _evenness(counts: Iterable[int]) -> float:
    """Shannon entropy over that of the uniform distribution on as many outcomes; 1 for a single outcome."""
    listed = list(counts)
    total = sum(listed)
    if len(listed) < 2 or total == 0:
        return 1.0
    entropy = -sum(count / total * math.log(count / total) for count in listed if count)
    return entropy / math.log(len(listed))


def _majority(groups: Iterable[Counter[str]], total: int) -> float:
    return sum(max(counts.values()) for counts in groups) / total if total else 0.0


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
