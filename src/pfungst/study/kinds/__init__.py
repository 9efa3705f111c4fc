"""What people can be asked, and what all kinds of studies need: one file a kind, registered here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from pfungst.core import Dataset, Example, Finding, Image, NamedImage, Table, UsageError
from pfungst.core.registry import Registry
from pfungst.core.settings import parse_settings, split_spec
from pfungst.data import load
from pfungst.probes.measure import finding, grouped
from pfungst.scores.reliability import over_people, too_few
from pfungst.study.items import TRAINING, Content, Field, Item, instructed
from pfungst.study.settings import StudySettings

Answered = Mapping[str, Any]
"""An answer with its item and worker, as `Book.answers` has it."""
YES_NO = (("yes", "Yes"), ("no", "No"))
CHECKS = 20
"""Attention checks of a study: as many as a worker could ever need, each with another right answer."""


@dataclass(frozen=True)
class Made:
    """The items of a new study."""

    items: Sequence[Item]
    images: Mapping[str, Image] = field(default_factory=dict)
    """By the name that items use."""
    notes: tuple[str, ...] = ()
    """What the maker of the study should know, in sentences."""


@dataclass(frozen=True)
class Outcome:
    """What a study found, besides what all studies have."""

    tables: tuple[Table, ...] = ()
    rated: str = ""
    """The field whose agreement is reported."""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    """Findings by name, and whatever else belongs into results.json."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Exports: name and content."""


class Kind:
    """A kind of study; subclasses are frozen dataclasses whose fields are its settings."""

    name: ClassVar[str]
    title: ClassVar[str]
    instructions: ClassVar[str]
    data: ClassVar[str]
    """What `--data` must name, in words."""
    follows: ClassVar[bool] = False
    """Whether answers bring new items, see `follow`."""

    def make(self, data: str, options: Mapping[str, Any], limit: int | None, settings: StudySettings) -> Made:
        """The items, from a data set or a run.

        options: of `pfungst.data.load`
        """
        raise NotImplementedError

    def accept(self, content: Content, value: Mapping[str, str]) -> None:
        """Raise BadAnswer where an answer must be given again."""

    def follow(
        self, item: Mapping[str, Any], said: Sequence[Mapping[str, str]], worker: int, settings: StudySettings
    ) -> Sequence[Item]:
        """Items that arise from an answer. Called once an answer is in, with all answers to its item, the last one by
        `worker`. Names that there are already are left out."""
        return ()

    def outcome(self, answers: Sequence[Mapping[str, Any]], items: Sequence[Mapping[str, Any]]) -> Outcome:
        """Tables and exports, from the answers that count (`Book.answers`) and all items (`Book.items`)."""
        raise NotImplementedError


def checks(fields: tuple[Field, ...], count: int = CHECKS) -> list[Item]:
    return [instructed(f"check {number}", fields, number) for number in range(count)]


def sample(examples: Sequence[Any], limit: int | None, seed: int) -> list[Any]:
    """`limit` of these by chance, in a random order."""
    order = np.random.default_rng([seed, 11]).permutation(len(examples))
    return [examples[number] for number in order[: len(examples) if limit is None else limit]]


def named(data: str, what: str) -> str:
    """What `--data` names; UsageError where it is missing."""
    if not data:
        raise UsageError(f"This study needs --data: {what}.")
    return data


def load_data(data: str, options: Mapping[str, Any], what: str) -> Dataset:
    return load(named(data, what), **options)


def seen(image: Image | None) -> Image | None:
    """The image, where there is one that can be shown."""
    return None if image is None or isinstance(image, NamedImage) else image


def shown_image(example: Example, images: dict[str, Image]) -> tuple[tuple[str, str], ...]:
    """The image of an example as `Content` names it, none where it cannot be shown; noted in `images`, once for all
    examples of an image."""
    image = seen(example.image)
    if image is None:
        return ()
    name = f"image {example.image_id or example.id}"
    images[name] = image
    return ((name, "The image"),)


def practised(item: Item, number: int, explanation: str, gold: Mapping[str, str]) -> Item:
    """The item as one of the training, which tells what is right, and why."""
    name = f"training {number}"
    content = replace(item.content, explanation=explanation)
    return replace(item, name=name, source=name, content=content, role=TRAINING, gold=gold)


def by_item(answers: Sequence[Answered]) -> dict[str, list[Answered]]:
    return grouped(answers, lambda row: str(row["item"]))


def share(
    name: str, answers: Sequence[Answered], right: Callable[[Answered], bool], group: Callable[[Answered], str],
    condition: str = "",
) -> Finding:  # fmt: skip
    """The share of answers that are right, with an interval over people and what the items belong to."""
    items = list(by_item(answers).values())
    told = over_people(items, lambda said: (sum(map(right, said)), len(said)), worker_of, group)
    return finding(name, told, condition)


def majority_share(
    name: str, answers: Sequence[Answered], verdict: Callable[[Sequence[Answered]], bool | None],
    group: Callable[[Answered], str], condition: str = "",
) -> Finding:  # fmt: skip
    """The share of items of which the verdict of those who saw them is true; None is no verdict."""

    def part(said: Sequence[Answered]) -> Sequence[float]:
        true = verdict(said) if said else None
        return () if true is None else (float(true), 1.0)

    items = [said for said in by_item(answers).values() if verdict(said) is not None]
    return finding(name, over_people(items, part, worker_of, group), condition)


def intervals(answers: Sequence[Answered], over: str) -> str:
    """What the intervals of a table are over, in a sentence, or why there are none."""
    return too_few(len(set(map(worker_of, answers)))) or f"95% intervals over people and {over}."


def worker_of(row: Answered) -> str:
    return str(row["worker"])


KINDS = Registry(
    "kind of study",
    "pfungst.studies",
    {
        "same-different": "pfungst.study.kinds.same_different:SameDifferent",
        "withheld": "pfungst.study.kinds.withheld:Withheld",
        "rephrase": "pfungst.study.kinds.rephrase:Rephrase",
        "validate": "pfungst.study.kinds.rephrase:Validate",
        "judge": "pfungst.study.kinds.judge:Judge",
        "kept": "pfungst.study.kinds.kept:Kept",
    },
    UsageError,
)

__all__ = ["KINDS", "Kind", "Made", "Outcome", "get_kind"]


def get_kind(spec: str) -> Kind:
    """A kind from a word, with settings after a colon: `withheld:conditions=A+IQA`."""
    name, words = split_spec(spec)
    kind: Kind = parse_settings(KINDS.get(name), words, what=f"study {name}")
    return kind
