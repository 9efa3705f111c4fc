"""What a kind of study is, and what all kinds need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from pfungst.core import Dataset, Example, Finding, Image, NamedImage, Table, UsageError
from pfungst.core.stats import Interval
from pfungst.study.items import Content, Field, Item, instructed
from pfungst.study.settings import StudySettings

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


def load_data(data: str, options: Mapping[str, Any], what: str) -> Dataset:
    from pfungst.data import load

    if not data:
        raise UsageError(f"This study needs --data: {what}.")
    return load(data, **options)


def seen(image: Image | None) -> Image | None:
    """The image, where there is one that can be shown."""
    return None if image is None or isinstance(image, NamedImage) else image


def run_folder(data: str, what: str) -> Path:
    if not data:
        raise UsageError(f"This study needs --data: {what}.")
    return Path(data)


def image_name(example: Example) -> str:
    """The name under which the image of an example is kept; one file for all examples of an image."""
    return f"image {example.image_id or example.id}"


def finding(name: str, interval: Interval, detail: str = "") -> Finding:
    from pfungst.probes import measure

    return measure.finding(name, interval, detail)
