"""The contrast probe: where the right answer changes, the player's must change with it.

The other probes change what does not matter and count every change of the answer as a fault; a player that always says
the same looks perfectly robust to them. This one asks for the opposite. Its groups come from the data set
(NaturalBench, MMVP, HallusionBench, MME, complementary pairs of VQA v2 ...), or are made in the world, where one
attribute of one object is changed so that the question's program gives another answer.

Contrast sets: Evaluating Models' Local Decision Boundaries via Contrast Sets. Question, image and group accuracy:
NaturalBench: Evaluating Vision-Language Models on Natural Adversarial Samples.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Literal

from pfungst.core import (
    Answer,
    AnsweredTrial,
    Dataset,
    Example,
    Failure,
    Figure,
    Finding,
    Findings,
    Probe,
    ProbeError,
    Series,
    Table,
    Trial,
    Variant,
)
from pfungst.core.flips import alike
from pfungst.core.types import POINTS
from pfungst.probes import measure
from pfungst.probes.contrast import people
from pfungst.probes.contrast.groups import Member, changed, drawn, minimal_pair, published, same_question
from pfungst.probes.contrast.overlap import Units
from pfungst.probes.measure import known_right, mean_known
from pfungst.scores import same_answer

IDLE = "idle"
"""The variant in which something was changed that does not matter."""
IMAGE, QUESTION = "another image", "another question"
"""What differs between two members of a group."""
BLIND = 0.75
"""A player is called blind if it says the same about two images at least so often, by the lower 95% bound."""
_NAME = re.compile(r"q(\d+)i(\d+)")
_YES_NO = frozenset({"yes", "no"})

DIFFERS = (
    "everything but what decides: the members of the group look alike, and their right answers are not all the same"
)
ONE_QUESTION = "the question: it is asked about two images, and its right answer differs"
ONE_OBJECT = (
    "the question and the scene but for one attribute of one object, after which the question's program gives another "
    "answer (q0i1) or the same one (idle)"
)


@dataclass(frozen=True)
class Contrast(Probe):
    """Questions whose right answers differ: question, image and group accuracy, and how often it says the same."""

    by: Literal["any", "data", "world", "question"] = "any"
    """Where groups come from: the data set's own (`data`), one object changed (`world`), the same question about two
    images in any data set (`question`), or the first of `data` and `world` that is available (`any`)."""
    missing: tuple[str, ...] = ()
    """Ids of examples that were not answered."""
    name: str = "contrast"
    role = "changes"

    def finds(self, data: Dataset) -> bool:
        """Whether there is anything to contrast."""
        return next(self._groups(data, 0), None) is not None or self._made(data)

    def check_data(self, data: Dataset) -> None:
        """Raises ProbeError where there is nothing to contrast."""
        if not self.finds(data):
            told = {
                "any": f"{data.name} has neither contrast groups nor scenes and programs to make them from. To pair "
                "the same question about two images, say contrast:by=question.",
                "data": f"{data.name} names no groups whose right answers differ.",
                "world": f"no example of {data.name} has a scene and a program.",
                "question": f"{data.name} asks no question about two images with different right answers.",
            }
            raise ProbeError(f"The probe contrast found nothing to contrast: {told[self.by]}")

    def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
        self.check_data(data)
        found = False
        for members in self._groups(data, seed):
            found = True
            yield _trial(members, ONE_QUESTION if self.by == "question" else DIFFERS)
        if found or not self._made(data):
            return
        for example in data.originals:
            if (trial := _made(example, seed)) is not None:
                found = True
                yield trial
        if not found:
            raise ProbeError(
                f"The probe contrast found no change of one object in the scenes of {data.name} that changes an answer."
            )

    def findings(self, trials: Sequence[AnsweredTrial], seed: int) -> Findings:
        return read(self.name, trials)

    def _groups(self, data: Dataset, seed: int) -> Iterator[list[Member]]:
        if self.by == "question":
            yield from same_question(data, seed, frozenset(self.missing))
        elif self.by != "world":
            yield from published(data, frozenset(self.missing))

    def _made(self, data: Dataset) -> bool:
        """Whether groups may be made from scenes."""
        return self.by in ("any", "world") and any(one.scene is not None and one.program is not None for one in data)


def _trial(members: Sequence[Member], keeps: str) -> Trial:
    return Trial(
        members[0].example.id,
        tuple(
            Variant(one.name, measure.clean_query(one.example), one.example.id, one.example.target) for one in members
        ),
        keeps,
        {"images": [one.example.image_id for one in members], "group": members[0].example.contrast, **_people(members)},
    )


def _people(members: Sequence[Member]) -> dict[str, list[dict[str, int]]]:
    """What the annotators of a question about two images said of each; nothing for other groups."""
    said = [people.answers_of(one.example) for one in members]
    pair = len(members) == 2 and members[0].question == members[1].question
    return {"people": said} if pair and all(said) else {}


def _made(example: Example, seed: int) -> Trial | None:
    """The example, its scene changed so that the answer changes, and, where there is one, an idle change."""
    pair = minimal_pair(example, seed)
    if pair is None:
        return None
    clean = measure.clean_query(example)
    # both images must come from one renderer, or they would differ in more than the object
    clean = replace(clean, image=drawn(pair.scene, example.image), scene=pair.scene.to_json())
    variants = [Variant("q0i0", clean, target=example.target)]
    for name, change in (("q0i1", pair.matters), (IDLE, pair.idle)):
        if change is not None:
            after = changed(pair.scene, change)
            query = replace(clean, image=drawn(after, example.image), scene=after.to_json())
            variants.append(Variant(name, query, target=change.answer, role="keeps" if name == IDLE else ""))
    notes = {"change": asdict(pair.matters), **({"idle": asdict(pair.idle)} if pair.idle is not None else {})}
    return Trial(example.id, tuple(variants), ONE_OBJECT, notes)


# --- answers, read ----------------------------------------------------------------------------------------------------
#
# As NaturalBench counts: a *question* is right if it is answered right about all its images, an *image* if all
# questions about it are, a *group* if all of it is. Chance is what guessing among the answers offered gives: the
# product over the members of 1 / choices, or 1/2 where the right answer is yes or no. It is unknown where a question is
# open.


@dataclass(frozen=True, slots=True)
class Said:
    """A member of a group and what was answered."""

    name: str
    question: int
    image: int
    target: str
    choices: tuple[str, ...]
    answer: Answer
    score: float

    @property
    def chance(self) -> float:
        if self.choices:
            return 1 / len(self.choices)
        return 0.5 if self.target.strip().lower() in _YES_NO else math.nan


@dataclass(frozen=True, slots=True)
class Group:
    """A trial and the members of its group."""

    trial: AnsweredTrial
    members: list[Said]
    images: tuple[str, ...]

    @classmethod
    def of(cls, trial: AnsweredTrial) -> Group:
        images = tuple(dict.fromkeys(image for image in trial.trial.notes.get("images", ()) if image))
        return cls(trial, members_of(trial), images or (measure.cluster(trial),))


Unit = tuple[float, float, int]
"""Right or wrong, what chance gives, and the group (by number)."""


def read(name: str, trials: Sequence[AnsweredTrial]) -> Findings:
    """The findings of answered contrast trials."""
    groups = [Group.of(trial) for trial in trials]
    units = Units.of([group.images for group in groups])
    singles = [(one.score, one.chance, at) for at, group in enumerate(groups) for one in group.members]
    single = _against_chance("accuracy", singles, units)
    by_question = _against_chance("question accuracy", _parts(groups, lambda one: one.question), units)
    by_image = _against_chance("image accuracy", _parts(groups, lambda one: one.image), units)
    by_group = _against_chance("group accuracy", _parts(groups, _whole), units)
    same = [_same(groups, what, units) for what in (IMAGE, QUESTION)]
    idle = _idle(groups, units)
    ceiling = people.ceiling([group.trial.trial.notes for group in groups], units)
    measured = [one for one in (single, by_question, by_image, by_group) if one[0].n]
    known = [one for one in (*same, *idle) if one.n]
    rows = (*(one for pair in measured for one in pair if not math.isnan(one.value)), *known, *ceiling)
    tables = (_accuracies(measured), _stable(known), *([people.table(ceiling)] if ceiling else []), *_by_kind(groups))
    # group accuracy is no accuracy under a disturbance: there is no drop to speak of
    return Findings(
        name, rows, _verdict(single[0], by_group, same, idle) + people.sentence(ceiling), single[0], by_group[0], None,
        tables, (_figure(measured),), _worst(groups),
    )  # fmt: skip


def members_of(trial: AnsweredTrial) -> list[Said]:
    """The members of the group that a trial asked about; an idle change is none."""
    found = []
    for variant, answer, score in zip(trial.trial.variants, trial.answers, trial.scores, strict=True):
        if place := _NAME.fullmatch(variant.name):
            target = trial.example.target if variant.target is None else variant.target
            choices = variant.query.choices
            found.append(Said(variant.name, int(place[1]), int(place[2]), target or "", choices, answer, score))
    return found


def contrasts(members: Sequence[Said], what: str) -> list[tuple[Said, Said]]:
    """The pairs of members that must be answered differently and differ in one thing: the image, or the question.

    Two questions about one image count where one answer could be right to both: both yes or no, or the same choices.
    """
    pairs = []
    for first, second in combinations(members, 2):
        if same_answer(first.target, second.target):
            continue
        if what == IMAGE:
            fits = first.question == second.question and first.image != second.image
        else:
            yes_no = {first.target.strip().lower(), second.target.strip().lower()} <= _YES_NO
            comparable = yes_no or (first.choices and set(first.choices) == set(second.choices))
            fits = bool(comparable) and first.image == second.image and first.question != second.question
        if fits:
            pairs.append((first, second))
    return pairs


def _against_chance(name: str, found: Sequence[Unit], units: Units) -> tuple[Finding, Finding]:
    """The share of units that are right, tested against what guessing gives, and that."""
    values, chances = [one[0] for one in found], [one[1] for one in found]
    some = units.pick([one[2] for one in found])
    right = measure.finding(name, some.mean(values))
    known = [chance for value, chance in zip(values, chances, strict=True) if value == value and chance == chance]
    known = known if len(known) == right.n else []  # the chance level of some would be taken for that of all
    chance = Finding("chance", mean_known(known), len(known), condition=name, how="guessing among the answers offered")
    if known:
        above = some.difference(values, chances)
        right = replace(right, p=above.p, how=f"{right.how}; p: the same, of the difference from chance")
    return right, chance


def _parts(groups: Sequence[Group], part: Callable[[Said], int]) -> list[Unit]:
    """Every part of a group (a question, an image, the whole) with two members or more."""
    units = []
    for at, group in enumerate(groups):
        parts = measure.grouped(group.members, part).values()
        units += [
            (known_right([one.score for one in some], all), math.prod(one.chance for one in some), at)
            for some in parts
            if len(some) > 1
        ]
    return units


def _whole(one: Said) -> int:
    """All members are one part."""
    return 0


def _same(groups: Sequence[Group], what: str, units: Units) -> Finding:
    """How often two members that must be answered differently get the same answer."""
    pairs = [
        (alike(first.answer, second.answer), at)
        for at, group in enumerate(groups)
        for first, second in contrasts(group.members, what)
    ]
    interval = units.pick([at for _, at in pairs]).mean([same for same, _ in pairs])
    return measure.finding("same answer", interval, what)


def _idle(groups: Sequence[Group], units: Units) -> list[Finding]:
    """What becomes of an answer when something changes that does not matter, and how much more often it changes when it
    must: 0 for a player that does not see the difference, 1 for one that sees nothing else."""
    having = [at for at, group in enumerate(groups) if group.trial.trial.variants[-1].name == IDLE]
    said = [groups[at].trial for at in having]
    kept = [alike(trial.answers[0], trial.of(IDLE)[0]) for trial in said]
    moved = [alike(trial.answers[0], trial.answers[1]) for trial in said]
    some = units.pick(having)
    sees = some.difference(kept, moved)
    stays = measure.finding("same answer", some.mean(kept), IDLE)
    return [stays, measure.finding("sensitivity", sees, unit=POINTS)]


# --- in words and tables ----------------------------------------------------------------------------------------------


def _verdict(single: Finding, group: tuple[Finding, Finding], same: Sequence[Finding], idle: Sequence[Finding]) -> str:
    told = (
        f"One at a time, {measure.with_interval(single)} of the questions are answered right; all of a group in "
        f"{measure.with_interval(group[0])}"
    )
    told += "." if math.isnan(group[1].value) else f" (chance: {measure.percent(group[1].value)})."
    image, question = same
    if image.n:
        told += (
            " Where the right answer changes with the image, the answer stays the same in "
            f"{measure.with_interval(image)}."
        )
    if idle[0].n:
        told += f" Where a change does not matter, it stays the same in {measure.with_interval(idle[0])}."
    if question.n:
        told += (
            " Of two questions about one image with different answers, both get the same answer in "
            f"{measure.with_interval(question)}."
        )
    return told + blindness(image)


def blindness(same: Finding) -> str:
    """What a high share of unchanged answers means for every other probe; empty where it is not high."""
    if same.at_least >= BLIND:
        return " It says the same whatever it sees: where other probes find it stable, that is not robustness."
    if same.low > 0.5:
        return (
            " More often than not it says the same whatever it sees: keep that in mind where other probes find it "
            "stable."
        )
    return ""


def _accuracies(measured: Sequence[tuple[Finding, Finding]]) -> Table:
    told = {
        "accuracy": "one question",
        "question accuracy": "a question about all its images",
        "image accuracy": "all questions about an image",
        "group accuracy": "the whole group",
    }
    rows = tuple(
        (told[one.name], one, "" if math.isnan(chance.value) else chance, "" if one.p is None else one.p, one.n)
        for one, chance in measured
    )
    return Table(
        "Right",
        ("what", "right", "chance", "p against chance", "n"),
        rows,
        "A player that never looks gets no question right about two images with different answers.",
    )


def _stable(known: Sequence[Finding]) -> Table:
    told = {
        IMAGE: "the same question, another image, another right answer",
        QUESTION: "another question on the same image, another right answer",
        IDLE: "the same question, a change that does not matter",
    }
    rows = tuple((told.get(one.condition, "how much more often it changes when it must"), one, one.n) for one in known)
    return Table(
        "Says the same",
        ("pair", "same answer", "n"),
        rows,
        "A player that sees changes its answer where the right one changes, and keeps it where a change does not "
        "matter. One that always says the same looks stable everywhere.",
    )


def _by_kind(groups: Sequence[Group]) -> list[Table]:
    """The same by what was changed and by the type of question, where there are several."""
    tables = []
    for title, kind in (("what was changed", _changed), ("type of question", _type)):
        kinds = measure.grouped(groups, kind)
        if 1 < len(kinds) <= 60:
            rows = []
            for name, some in sorted(kinds.items()):
                units = Units.of([group.images for group in some])
                right, chance = _against_chance("group accuracy", _parts(some, _whole), units)
                same = _same(some, IMAGE, units)
                rows.append((name or "unknown", right, chance if chance.n else "", same if same.n else "", len(some)))
            tables.append(Table(f"By {title}", (title, "whole group", "chance", "same answer", "n"), tuple(rows)))
    return tables


def _changed(group: Group) -> str:
    change: Mapping[str, object] = group.trial.trial.notes.get("change", {})
    return str(change.get("attribute", ""))


def _type(group: Group) -> str:
    return group.trial.example.question_type or group.trial.example.answer_type


def _figure(measured: Sequence[tuple[Finding, Finding]]) -> Figure:
    names = tuple(one.name for one, _ in measured)
    series = [measure.series("right", names, [one for one, _ in measured])]
    if any(not math.isnan(chance.value) for _, chance in measured):
        series.append(Series("chance", names, tuple(chance.value for _, chance in measured)))
    return Figure("Right, one at a time and together", "bar", tuple(series), y_label="accuracy")


def _worst(groups: Sequence[Group]) -> tuple[Failure, ...]:
    """Pairs that got the same answer where the right ones differ, one of them right."""
    found = []
    for group in groups:
        for first, second in (*contrasts(group.members, IMAGE), *contrasts(group.members, QUESTION)):
            if alike(first.answer, second.answer) == 1.0 and first.score != second.score:
                wrong = min(first, second, key=lambda one: one.score)
                found.append(Failure(group.trial.example.id, wrong.name, abs(first.score - second.score)))
                break
    return tuple(sorted(found, key=lambda failure: -failure.loss)[: measure.WORST])
