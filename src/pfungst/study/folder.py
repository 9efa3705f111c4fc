"""The folder of a study: study.json, keys.json, images/, and study.sqlite unless the database is elsewhere."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfungst.core import DataError, PfungstError
from pfungst.core.files import read_json
from pfungst.study.database import Database
from pfungst.study.settings import StudySettings

if TYPE_CHECKING:
    from pfungst.study.book import Book
    from pfungst.study.kinds import Kind

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
            raise DataError.at(path, "", "the keys of the study are missing or damaged.", "Restore a backup.") from None

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
        from pfungst.study.book import Book

        return Book(self.database, self.settings, self.kind)

    @cached_property
    def kind(self) -> Kind:
        from pfungst.study.kinds import get_kind

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
    """The study in a folder, its tables brought up to date.

    database: address of a PostgreSQL server, where the study was made with one.
    """
    settings = StudySettings.read(folder)
    made = Database.of(folder, database)
    if made.is_sqlite and not Path(made.url.database or "").is_file():
        raise PfungstError(
            f"{folder} has no database. If the study was made with --database, give the same address again; else "
            "restore a backup with `pfungst study restore`."
        )
    made.migrate()
    return Study(folder, settings, Keys.read(folder), made)
