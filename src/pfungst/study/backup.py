"""A study in one file, and back: the same for SQLite and PostgreSQL, and from one to the other."""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

from sqlalchemy import func, insert, select, text

from pfungst.core import DataError, PfungstError
from pfungst.core.files import publish
from pfungst.rows.files import check_unpacked
from pfungst.study.database import Database
from pfungst.study.folder import IMAGES, KEYS, Study, open_study
from pfungst.study.schema import TABLES
from pfungst.study.settings import FILE

_ROWS = 5_000
_ABOUT = "backup.json"
VERSION = 1


def back_up(study: Study, out: Path) -> dict[str, int]:
    """Write a zip archive, while the study goes on; returns the rows of each table.

    The archive holds the keys of the study: keep it as safe as the folder.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    counts: dict[str, int] = {}
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as folder:
        temporary = Path(folder) / "backup.zip"
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            # One transaction: workers, items and turns of one moment.
            with study.database.reading() as connection:
                for table in TABLES:
                    rows = connection.execute(select(table).order_by(table.c.id)).mappings()
                    with archive.open(f"{table.name}.jsonl", "w") as file:
                        counts[table.name] = 0
                        for row in rows:
                            file.write(json.dumps(dict(row)).encode() + b"\n")
                            counts[table.name] += 1
            for name in (FILE, KEYS):
                archive.write(study.folder / name, name)
            for image in sorted((study.folder / IMAGES).iterdir()):
                archive.write(image, f"{IMAGES}/{image.name}", zipfile.ZIP_STORED)
            archive.writestr(_ABOUT, json.dumps({"version": VERSION, "rows": counts}))
        publish(temporary, out)
    out.chmod(0o600)
    return counts


def restore(backup: Path, out: Path, database: str = "") -> Study:
    """A study from its backup, in a new folder and an empty database."""
    if out.is_dir() and any(out.iterdir()):
        raise PfungstError(f"{out} is not empty. A study is restored into its own, empty folder.")
    if not backup.is_file():
        raise DataError.at(backup, "", "there is no such file.", "`pfungst study backup` writes one.")
    try:
        with zipfile.ZipFile(backup) as archive:
            check_unpacked(backup, archive, backup.stat().st_size)
            about = json.loads(archive.read(_ABOUT))
            if about["version"] != VERSION:
                raise DataError.at(
                    backup, "", "this backup was written by a newer version of Pfungst.", "Update Pfungst."
                )
            out.mkdir(parents=True, exist_ok=True)
            try:
                _unpack(archive, out)
                base = Database.of(out, database)
                base.migrate()
                _fill(base, archive)
                base.close()
            except BaseException:
                shutil.rmtree(out, ignore_errors=True)
                raise
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, TypeError) as error:
        raise DataError.at(backup, "", f"this is not a whole backup of a study ({error}).") from None
    return open_study(out, database)


def _unpack(archive: zipfile.ZipFile, out: Path) -> None:
    """Known names alone, as plain files below `out`: a name that climbs, or a link, is left in the archive."""
    (out / IMAGES).mkdir()
    for name in archive.namelist():
        place = PurePosixPath(name)
        if place.parent == PurePosixPath(IMAGES) and place.name not in ("", ".", ".."):
            (out / IMAGES / place.name).write_bytes(archive.read(name))
        elif name in (FILE, KEYS):
            (out / name).touch(0o600)
            (out / name).write_bytes(archive.read(name))


def _fill(base: Database, archive: zipfile.ZipFile) -> None:
    with base.writing() as connection:
        for table in TABLES:
            if connection.execute(select(func.count()).select_from(table)).scalar_one():
                raise PfungstError(f"The database {base.name} is not empty. A study is restored into an empty one.")
        for table in TABLES:
            rows: list[dict[str, Any]] = []
            with archive.open(f"{table.name}.jsonl") as file:
                for line in file:
                    rows.append(json.loads(line))
                    if len(rows) == _ROWS:
                        connection.execute(insert(table), rows)
                        rows = []
            if rows:
                connection.execute(insert(table), rows)
            if not base.is_sqlite:  # new rows go on behind the restored ones
                connection.execute(
                    text(
                        f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), "
                        f"GREATEST((SELECT COALESCE(MAX(id), 0) FROM {table.name}), 1))"
                    )
                )
