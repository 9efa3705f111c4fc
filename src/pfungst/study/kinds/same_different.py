"""Same or different: the human experiment of Measuring CLEVRness (appendix B.5, Figures 27 and 28).

A person sees a scene before and after the adversary's move, with the question, answers it on both, and says whether the
answer is the same. Three conditions, from the run of a game: scenes that fooled the player (the answer is the same),
scenes that the adversary tried and that fooled nobody (control; the same), and legal scenes in which the answer is
another.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from pfungst.core import Example, Image, PfungstError, Table
from pfungst.probes.game import fooled_rows, read_moves, read_result
from pfungst.probes.game.board import Board
from pfungst.probes.game.enforcers import Enforcers
from pfungst.probes.game.layouts import fair_layouts
from pfungst.probes.game.rows import image_of, scene_after
from pfungst.probes.game.rules import GameRules
from pfungst.study.items import TRAINING, BadAnswer, Content, Field, Item
from pfungst.study.kinds import Kind, Made, Outcome, checks, intervals, named, practised, sample, share
from pfungst.study.settings import StudySettings
from pfungst.world.constants import ATTRIBUTES
from pfungst.world.programs import answer_text
from pfungst.world.questions.generating import possible_answers

FOOLED, CONTROL, CHANGED = "fooled", "control", "changed"
SAME = (("same", "The same"), ("different", "Different"), ("unsure", "I cannot tell"))
_TRIES = 200
"""Legal layouts among which one with another answer is looked for."""


@dataclass(frozen=True)
class SameDifferent(Kind):
    """Pairs of scenes before and after the adversary's move: is the answer the same?"""

    per_condition: int = 10
    """Items of each of the three conditions (appendix B.5: 20 items, half and half)."""
    training: int = 3
    """Training items, with feedback."""

    name: ClassVar[str] = "same-different"
    title: ClassVar[str] = "Same or different?"
    instructions: ClassVar[str] = (
        "You see two images of the same objects, and a question. Between the first image and the second some objects "
        "were moved. Answer the question for the first image, then say whether the answer is the same for the second. "
        "Objects are cubes, spheres or cylinders; large or small; of rubber (matte) or metal (shiny); gray, red, "
        "blue, green, brown, purple, cyan or yellow. “Left”, “right”, “in front” and “behind” are as you see them in "
        "the image."
    )
    data: ClassVar[str] = "the folder of a run with a game"

    def make(self, data: str, options: Mapping[str, Any], limit: int | None, settings: StudySettings) -> Made:
        run = Path(named(data, self.data))
        count = self.per_condition if limit is None else limit
        moves = read_moves(run)
        fooled = sample(fooled_rows(moves), None, settings.seed)
        calm = sample(_calm(moves.to_pylist()), None, settings.seed)
        shown = [*fooled[:count], *calm[:count]]
        # For the changed scenes questions that no other item has come first: a worker sees a question once.
        changed = _changed(run, [*calm[count:], *fooled[count:], *shown], np.random.default_rng([settings.seed, 5]))
        trained = [(CHANGED, *pair) for pair in islice(changed, (self.training + 1) // 2)]
        chosen = [(FOOLED, row, scene_after(row)) for row in fooled[:count]]
        chosen += [(CONTROL, row, scene_after(row)) for row in calm[:count]]
        chosen += [(CHANGED, *pair) for pair in islice(changed, count)]
        if not fooled:
            raise PfungstError(f"No scene of {run} fooled its player, so there is nothing to show to people.")
        taken = {row["example_id"] for _, row, _ in (*chosen, *trained)}
        spare = [row for row in calm if row["example_id"] not in taken]
        trained += [(CONTROL, row, scene_after(row)) for row in spare[: self.training - len(trained)]]
        images: dict[str, Image] = {}
        items = [_item(*one, images) for one in chosen]
        items += [_practice(number, *one, images) for number, one in enumerate(trained)]
        items += checks(_fields(("yes", "no")))
        notes = tuple(
            f"There are {found} items in the condition {condition}, not {count}."
            for condition in (FOOLED, CONTROL, CHANGED)
            if (found := sum(item.condition == condition and item.role != TRAINING for item in items)) < count
        )
        return Made(items, images, notes)

    def accept(self, content: Content, value: Mapping[str, str]) -> None:
        # An attention check has no images, and may ask for anything.
        if content.images and value["same"] == "different" and value["after"] == value["before"]:
            raise BadAnswer("You chose “Different”, but the same answer for both images. Please change one of them.")

    def outcome(self, answers: Sequence[Mapping[str, Any]], items: Sequence[Mapping[str, Any]]) -> Outcome:
        matrix, conditions, numbers = [], [], {}
        for name in ("same", "different"):
            rows = [row for row in answers if _truth(row) == name]
            cells: list[Any] = [
                share("share", rows, partial(_says, option), _source, f"answer is {name}, people say {option}")
                for option, _ in SAME
            ]
            matrix.append((f"answer is {name}", len(rows), *cells))
            numbers[f"identified {name}"] = cells[0 if name == "same" else 1]
        for name in (FOOLED, CONTROL, CHANGED):
            rows = [row for row in answers if row["condition"] == name]
            verdict = share("share", rows, lambda row: _says(_truth(row), row), _source, name)
            before = share(
                "accuracy", rows, lambda row: row["value"]["before"] == row["about"]["before"], _source, name
            )
            after = share("accuracy", rows, lambda row: _after(row["value"]) == row["about"]["after"], _source, name)
            conditions.append((name, len(set(map(_source, rows))), len(rows), verdict, before, after))
            numbers[f"right after, {name}"] = after
        options = tuple(f"people say “{words}”" for _, words in SAME)
        confusion = Table(
            "Confusion matrix (Figure 28)", ("", "answers", *options), tuple(matrix),
            "Shares of a row. " + intervals(answers, "questions"),
        )  # fmt: skip
        columns = ("condition", "items", "answers", "same or different right", "right on the first image",
                   "right on the second image")  # fmt: skip
        by_condition = Table(
            "By condition", columns, tuple(conditions),
            "fooled: the scene fooled the player and keeps its answer. control: the adversary's scenes that fooled "
            "nobody. changed: legal scenes in which the answer changes. " + intervals(answers, "questions"),
        )  # fmt: skip
        return Outcome((confusion, by_condition), "same", numbers)


def _truth(row: Mapping[str, Any]) -> str:
    return "different" if row["condition"] == CHANGED else "same"


def _says(option: str, row: Mapping[str, Any]) -> bool:
    return bool(row["value"]["same"] == option)


def _source(row: Mapping[str, Any]) -> str:
    return str(row["source"])


def _after(value: Mapping[str, str]) -> str:
    """What a person answers on the second image."""
    return value["before"] if value["same"] == "same" else value.get("after", "")


def _fields(options: Sequence[str]) -> tuple[Field, ...]:
    words = tuple((one, one) for one in options)
    return (
        Field("before", "The answer for the first image", words, listed=len(words) > 3),
        Field("same", "For the second image the answer is", SAME),
        Field("after", "The answer for the second image", words, listed=True, when="same=different"),
    )


def _item(condition: str, row: Mapping[str, Any], after: Mapping[str, Any], images: dict[str, Image]) -> Item:
    before = _scene(row)
    board = _board(row, before, GameRules())
    moved = np.array([[one["3d_coords"][:2] for one in after["objects"]]])
    truth = board.moved.answers(moved)[0]
    new = answer_text(truth) if truth is not None else ""
    name = f"{condition} {row['example_id']}"
    images[f"{row['example_id']} before"] = image_of(before)
    images[name] = image_of(after)
    content = Content(
        _fields(_possible(board.truth_text)), row["question"],
        ((f"{row['example_id']} before", "First image"), (name, "Second image")),
    )  # fmt: skip
    about = {"example_id": row["example_id"], "before": board.truth_text, "after": new, "player": row["new_answer"]}
    return Item(name, content, row["example_id"], condition, about=about)


def _scene(row: Mapping[str, Any]) -> dict[str, Any]:
    """The scene before the move."""
    scene: dict[str, Any] = json.loads(row["scene"])
    scene.setdefault("camera", list(row["camera"]))
    return scene


def _board(row: Mapping[str, Any], scene: Mapping[str, Any], rules: GameRules) -> Board:
    return Board.of(Example(row["example_id"], row["question"], scene=scene, program=json.loads(row["program"])), rules)


def _possible(truth: str) -> tuple[str, ...]:
    """All answers of the kind of this one."""
    for kind in ("bool", "integer", *ATTRIBUTES):
        options = possible_answers(kind)
        if truth in options:
            return tuple(options)
    return (truth,)


def _changed(run: Any, rows: Sequence[Mapping[str, Any]], rng: np.random.Generator) -> Iterator[tuple[Any, Any]]:
    """Rows with a legal scene in which the question has another answer, one of the nearest to the scene before."""
    rules = read_result(run).settings.rules
    enforcers = Enforcers.of(rules).without("relevance")
    for row in rows:
        board = _board(row, _scene(row), rules)
        layouts = fair_layouts(board, enforcers, rng, _TRIES, uniform=False)
        answers: Any = board.moved.answers(layouts) if len(layouts) else []
        other = [one for one, answer in zip(layouts, answers, strict=True) if answer not in (None, board.truth)]
        if other:
            far = [float(np.abs(one - board.start).sum()) for one in other]
            yield row, board.record(other[int(np.argmin(far))])


def _calm(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first scene of each question that the player got right on every scene it was shown."""
    moved = {row["example_id"] for row in rows if row["fooled"] or row["changed"]}
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        fair = row["legal"] and row["status"] == "same" and row["old_answer"] == row["truth"]
        if fair and row["example_id"] not in moved:
            found.setdefault(row["example_id"], row)
    return list(found.values())


def _practice(
    number: int, condition: str, row: Mapping[str, Any], after: Mapping[str, Any], images: dict[str, Image]
) -> Item:
    """The same as a training item, which tells what is right."""
    made = _item(condition, row, after, images)
    before, now = made.about["before"], made.about["after"]
    then = "and the same in the second." if before == now else f"and “{now}” in the second."
    gold = (
        {"before": before, "same": "same"} if before == now else {"before": before, "same": "different", "after": now}
    )
    return practised(made, number, f"The answer is “{before}” in the first image {then}", gold)
