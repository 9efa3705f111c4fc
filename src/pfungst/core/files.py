"""Files that are either whole or not there, and locks on them."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import re
import secrets
import sqlite3
import sys
import tempfile
import time
import tokenize
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from pfungst.core.errors import DataError, PfungstError

DAMAGE = (
    OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, EOFError, RuntimeError, SyntaxError,
    tokenize.TokenError,
)  # fmt: skip
"""What readers of formats raise where a file is not what its name says; Arrow's own errors are among these, and what
NumPy lets through where the head of an array, which is Python, is damaged."""
PARQUET_WRITING: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
"""A flipped bit in a Parquet file of ours is an error. Without checksums of the pages most are another answer or
another score, and nobody notices."""
PARQUET_READING: dict[str, Any] = {"page_checksum_verification": True}
"""Files without checksums, of earlier versions and of others, are read as they are."""


def is_plain_name(name: str) -> bool:
    """Whether this can be the name of a file on any system, and cannot lead out of its folder."""
    return 0 < len(name) <= 200 and name[0] != "." and name.isprintable() and not set(name) & set('/\\:<>"|?*')


def file_name(text: str) -> str:
    """A text such as `hf:owner/model` as a part of a file's name; empty where nothing of it can be."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")


def write_atomic(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file as a whole: a reader or a killed writer never leaves half of one."""
    with replacing(Path(path)) as temporary:
        temporary.write_bytes(data)


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A new path beside the target: what is written there is flushed to the disk and takes the target's place."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        yield temporary
        publish(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def publish(temporary: Path, target: Path) -> None:
    """Flush `temporary` to the disk and give it its name."""
    with open(temporary, "rb+") as file:
        os.fsync(file.fileno())
    temporary.replace(target)
    # Without this a power cut may forget the rename itself. Some systems cannot open a folder, and need no such call.
    with contextlib.suppress(PermissionError):
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def file_digest(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cache_root() -> Path:
    """`$PFUNGST_CACHE`, or the user's cache folder. Everything in it may be deleted at any time."""
    chosen = os.environ.get("PFUNGST_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "pfungst"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "pfungst" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pfungst"


def cache_dir(name: str) -> Path:
    """A folder below `cache_root`, made where it is not there."""
    folder = cache_root() / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PfungstError(
            f"The cache folder {folder} cannot be made ({error.strerror or error}). Name another with the environment "
            "variable PFUNGST_CACHE."
        ) from error
    return folder


def exists(path: str | os.PathLike[str]) -> bool:
    """Whether there is such a file or folder. No where the text cannot be a path at all: too long, a NUL in it ..."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def at_home(path: str | os.PathLike[str]) -> Path:
    """A path as the user means it, with `~` for the home folder; as it stands where that names nobody's."""
    try:
        return Path(path).expanduser()
    except (RuntimeError, ValueError):
        return Path(path)


def storable(text: str) -> str:
    """Valid Unicode: a lone surrogate, which JSON can smuggle in, must not lose the record it stands in."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def jsonable(value: Any) -> Any:
    """Dataclasses to dictionaries, NaN and infinity to None: what strict JSON can hold."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "item") and callable(value.item):  # numpy scalars
        return jsonable(value.item())
    return value


def read_json(path: Path) -> Any:
    """The content of a JSON file of ours, or a DataError."""
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise DataError.at(path, "", "the file is damaged.", "Delete it and run the same command again.") from error


@contextlib.contextmanager
def reading(path: str | os.PathLike[str], hint: str = "") -> Iterator[None]:
    """While a file is read: whatever damage in it raises becomes a DataError about the file. `hint`: what to do."""
    try:
        yield
    except PfungstError:
        raise
    except (*DAMAGE, zipfile.BadZipFile, zlib.error) as error:
        said = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, OSError) and error.errno is not None:
            raise DataError.at(path, "", f"the file cannot be read ({error.strerror}).") from error
        raise DataError.at(path, "", f"the file is damaged ({said:.300}).", hint) from error


def claim(
    path: Path, settings: Mapping[str, Any], *, defaults: Mapping[str, Any] | None = None, free: Collection[str] = ()
) -> None:
    """One folder, one configuration: note the settings at `path`, or refuse to mix them with other ones.

    defaults: what a setting was that the file does not know yet
    free: settings that may change
    """
    wanted = jsonable(settings)
    if path.exists():
        before = {**jsonable(defaults or {}), **read_json(path)}
        for name in sorted({*wanted, *before} - {*free}):
            was, now = before.get(name), wanted.get(name)
            if was != now:
                while isinstance(was, dict) and isinstance(now, dict):
                    part = next(key for key in sorted({*was, *now}) if was.get(key, ...) != now.get(key, ...))
                    name, was, now = f"{name}.{part}", was.get(part), now.get(part)
                raise DataError.at(
                    path.parent,
                    "",
                    f"this run was started with other settings ({name} was {was!r:.60}, now it is {now!r:.60}).",
                    "Choose another folder, or delete this one.",
                )
    write_json(path, wanted)


def write_json(path: Path, value: Any) -> None:
    """Write JSON with a fixed layout: the same value gives the same bytes."""
    text = json.dumps(jsonable(value), indent=1, ensure_ascii=False, allow_nan=False)
    write_atomic(path, (text + "\n").encode("utf-8", "replace"))


# --- locks ------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def locked(out: Path) -> Iterator[None]:
    """Hold a run folder: two exams in it would ask the same questions twice.

    An open SQLite transaction is a lock that every system has and that ends with the process, however it ends.
    """
    path = out / ".lock"
    try:
        lock = _held(path)
    except sqlite3.OperationalError as error:
        if "locked" in str(error) and _locks_work(out):
            raise PfungstError(f"Another exam is running in {out}. Wait for it, or choose another folder.") from None
        raise PfungstError(
            f"{out} cannot be written or locked ({error}). Choose another folder: on a disk with free space, where "
            "you may write and where locks work (on some network drives they do not)."
        ) from error
    except sqlite3.DatabaseError:
        # Nothing is kept in the file, so whatever stands in a damaged one is no loss.
        path.unlink(missing_ok=True)
        lock = _held(path)
    try:
        yield
    finally:
        lock.close()


@contextlib.contextmanager
def only_here(path: Path) -> Iterator[None]:
    """Hold a file against all other processes; they wait. Where the system has no such locks, nobody is kept out."""
    with open(path, "ab") as file:
        with contextlib.suppress(ImportError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write_ahead(db: sqlite3.Connection, patience: float = 30.0) -> None:
    """Have a database keep a write-ahead log, waiting up to `patience` seconds for others that open it as well.

    SQLite's own timeout does not hold for this step: of two that open a new file at once, one is refused at once.
    """
    until = time.monotonic() + patience
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() >= until:
                raise
            time.sleep(0.005)


def _locks_work(out: Path) -> bool:
    """Whether a lock can be had in this folder at all: SQLite says the same where none can and where it is taken."""
    try:
        import fcntl
    except ImportError:  # Windows, whose locks work
        return True
    with tempfile.TemporaryFile(dir=out) as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def _held(path: Path) -> sqlite3.Connection:
    lock = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except BaseException:
        lock.close()
        raise
    return lock
