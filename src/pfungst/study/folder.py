"""The folder of a study: study.json, keys.json, images/, and study.sqlite unless the database is elsewhere."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
import secrets
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

import pfungst
from pfungst.core import DataError, Image, PfungstError
from pfungst.core.files import read_json, write_atomic
from pfungst.core.types import Progress, no_progress
from pfungst.study.book import Book
from pfungst.study.database import Database
from pfungst.study.items import ITEM, Item
from pfungst.study.kinds import Kind, get_kind
from pfungst.study.schema import ITEMS
from pfungst.study.settings import FILE, StudySettings
from pfungst.web.pictures import LARGE, encode

KEYS, IMAGES = "keys.json", "images"


@dataclass(frozen=True)
class Keys:
    """Secrets of a study: who has this file can be any worker."""

    secret: bytes
    admin: str
    """Opens the pages of the people who run the study."""
    join: str
    """Stands in the link by which workers join on their own."""

    @classmethod
    def make(cls, folder: Path) -> Keys:
        made = {"secret": secrets.token_hex(32), "admin": secrets.token_urlsafe(24), "join": secrets.token_urlsafe(12)}
        path = folder / KEYS
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(made, file)
        return cls.read(folder)

    @classmethod
    def read(cls, folder: Path) -> Keys:
        path = folder / KEYS
        found: Any = read_json(path) if path.is_file() else {}
        try:
            return cls(bytes.fromhex(found["secret"]), str(found["admin"]), str(found["join"]))
        except (KeyError, TypeError, ValueError):
            raise DataError.at(path, "", "its keys are missing or damaged.", "Put back a copy.") from None

    def sign(self, text: str) -> str:
        return hmac.new(self.secret, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()

    def token(self, worker: int, code: str) -> str:
        """What stands in the link of a worker. It is made from the secret and stored nowhere."""
        return f"{worker}-{self.sign(f'worker {worker} {code}')[:32]}"

    def completion(self, worker: int, code: str) -> str:
        return self.sign(f"done {worker} {code}")[:10].upper()


@dataclass(frozen=True)
class Study:
    """A study that was made."""

    folder: Path
    settings: StudySettings
    keys: Keys
    database: Database

    @cached_property
    def book(self) -> Book:
        return Book(self.database, self.settings, self.kind)

    @cached_property
    def kind(self) -> Kind:
        return get_kind(self.settings.kind)

    @property
    def title(self) -> str:
        return self.settings.title or self.kind.title

    @property
    def instructions(self) -> str:
        return self.settings.instructions or self.kind.instructions

    def completion(self, worker: int, code: str) -> str:
        return self.settings.completion_code or self.keys.completion(worker, code)

    def close(self) -> None:
        self.database.close()


def open_study(folder: Path, database: str = "") -> Study:
    """The study in a folder.

    database: address of a PostgreSQL server, where the study was made with one.
    """
    settings = StudySettings.read(folder)
    made = Database.of(folder, database)
    if made.is_sqlite and not Path(made.url.database or "").is_file():
        raise PfungstError(
            f"{folder} has no database. If the study was made with --database, give the same address again; else "
            "put study.sqlite back from a copy."
        )
    made.prepare()
    return Study(folder, settings, Keys.read(folder), made)


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
        base.prepare()
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
