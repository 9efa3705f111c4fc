"""`pfungst study new` and `demo`: items and images into a folder and a database."""

from __future__ import annotations

import hashlib
import math
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

import pfungst
from pfungst.core import Image, PfungstError
from pfungst.core.files import write_atomic
from pfungst.core.types import Progress, no_progress
from pfungst.study.database import Database
from pfungst.study.folder import IMAGES, Keys, Study, open_study
from pfungst.study.items import ITEM, Item
from pfungst.study.kinds import get_kind
from pfungst.study.schema import ITEM as ITEMS
from pfungst.study.settings import FILE, StudySettings
from pfungst.web.pictures import LARGE, encode

ENDINGS = {"image/png": ".png", "image/jpeg": ".jpg"}
PLAYER = "san"
GAME = "game:adversary=rsg,size=20,seeds=1,budget=10"
"""A small game for the demo: it takes less than a minute, and fools the player often enough."""


@dataclass(frozen=True)
class NewStudy:
    """A study that was just made."""

    study: Study
    items: int
    notes: tuple[str, ...]
    workers: int
    """Fewest workers who can give all answers."""


def new_study(
    out: Path,
    settings: StudySettings,
    *,
    database: str = "",
    options: Mapping[str, Any] | None = None,
    limit: int | None = None,
    progress: Progress = no_progress,
) -> NewStudy:
    """Make a study in a new folder.

    database: address of an empty PostgreSQL database; by default study.sqlite in the folder
    options: of `pfungst.data.load`
    limit: items to draw, see the kind
    """
    kind = get_kind(settings.kind)
    if (out / FILE).exists() or (out.is_dir() and any(out.iterdir())):
        raise PfungstError(f"{out} is not empty. A study needs its own, empty folder.")
    made = kind.make(settings.data, options or {}, limit, settings)
    if not any(item.role == ITEM for item in made.items):
        raise PfungstError(f"There is nothing to ask: {settings.data} gives no items for this study.")
    out.mkdir(parents=True, exist_ok=True)
    try:
        names = _write_images(out / IMAGES, made.images, progress)
        base = Database.of(out, database)
        base.migrate()
        with base.reading() as connection:
            if connection.execute(select(func.count()).select_from(ITEMS)).scalar_one():
                raise PfungstError(
                    f"The database {base.name} holds a study already. Every study needs its own database."
                )
        study = Study(out, settings, Keys.make(out), base)
        study.book.add(_with_files(item, names) for item in made.items)
        settings.write(out)
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)
        raise
    asked = [item for item in made.items if item.role == ITEM]
    return NewStudy(study, len(asked), made.notes, _fewest(asked, settings, kind.follows))


def make_demo(out: Path, progress: Progress = no_progress) -> Study:
    """Play a game on the built-in world and make a study of it, or open the one that is there."""
    if (out / FILE).exists():
        return open_study(out)
    run = out.with_name(f"{out.name}-game")
    played = pfungst.examine(PLAYER, "world?scenes=20", [GAME], run, progress=progress)
    if played.problems:
        raise PfungstError(" ".join(played.problems))
    settings = StudySettings("same-different:per_condition=5", data=str(run), wanted=3)
    return new_study(out, settings, progress=progress).study


def _fewest(items: Sequence[Item], settings: StudySettings, follows: bool) -> int:
    """A worker gets one item of a source, and nobody judges their own: what follows an answer is for others."""
    answers: Counter[str] = Counter()
    for item in items:
        answers[item.source] += settings.wanted if item.wanted is None else item.wanted
    fewest = max(answers.values(), default=1) + (settings.wanted if follows else 0)
    return max(fewest, math.ceil(answers.total() / settings.per_worker)) if settings.per_worker else fewest


def _write_images(folder: Path, images: Mapping[str, Image], progress: Progress) -> dict[str, str]:
    """Name in the items -> name of the file. Files are named after what is in them, which tells a worker nothing."""
    folder.mkdir()
    names = {}
    for number, (name, image) in enumerate(images.items()):
        progress("images", number, len(images))
        content, kind = encode(image, LARGE)
        names[name] = hashlib.sha256(content).hexdigest()[:32] + ENDINGS[kind]
        write_atomic(folder / names[name], content)
    progress("images", len(images), len(images))
    return names


def _with_files(item: Item, names: Mapping[str, str]) -> Item:
    images = tuple((names[name], caption) for name, caption in item.content.images)
    return replace(item, content=replace(item.content, images=images))
