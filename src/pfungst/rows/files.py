"""The files of a data set, wherever they lie: plain, gzipped, or inside a zip archive that is never unpacked."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from pfungst.core import DataError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

DATA_SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".txt", ".parquet", ".arrow"})
IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"})

HEAD = 1 << 16
"""Bytes looked at to recognise a format."""
BOMB_FLOOR = 64 << 20
BOMB_RATIO = 200
"""A compressed file may grow to BOMB_FLOOR bytes or BOMB_RATIO times its size, whichever is more. Published JSON grows
about fifteenfold, an archive bomb a thousandfold."""
MAX_MEMBER_NAME = 1_024
MAX_MEMBER_IN_MEMORY = 1 << 30
"""Parquet needs random access; inside an archive it is read into memory up to this many bytes."""

_READ_ERRORS = (
    OSError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    RuntimeError,  # an encrypted member
    NotImplementedError,  # a compression that zipfile does not know
    ValueError,
)


class _Guarded(io.RawIOBase):
    """Decompressed bytes, at most `limit` of them; whatever goes wrong is a sentence about `label`."""

    def __init__(self, source: BinaryIO, label: str, limit: int | None) -> None:
        self._source = source
        self._label = label
        self._limit = limit
        self._seen = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")
        try:
            data = self._source.read(len(view))
        except _READ_ERRORS as error:
            raise DataError.at(
                self._label,
                f"after byte {self._seen}",
                f"the rest of the file cannot be read ({error}).",
                "Download it again.",
            ) from error
        self._seen += len(data)
        if self._limit is not None and self._seen > self._limit:
            raise DataError.at(
                self._label,
                "",
                f"it unpacks to more than {self._limit:,} bytes, far more than its size explains.",
                "If you trust it, unpack it yourself and give the plain file.",
            )
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._source.close()
        super().close()


@dataclass(frozen=True, slots=True)
class File:
    """One file of a data set. Sorted, plain files come before the same packed."""

    path: Path
    """The file on disk; the archive, for a member of one."""
    member: str = ""
    """Name inside the archive, empty for a file of its own."""

    def __lt__(self, other: File) -> bool:
        return (self.preference, self.path, self.member) < (other.preference, other.path, other.member)

    @property
    def name(self) -> str:
        """Base name without `.gz`: `v2_mscoco_val2014_annotations.json`."""
        base = self.member.replace("\\", "/").rpartition("/")[2] if self.member else self.path.name
        return base[:-3] if base.lower().endswith(".gz") else base

    @property
    def stem(self) -> str:
        return self.name.rpartition(".")[0] or self.name

    @property
    def suffix(self) -> str:
        dot, extension = self.name.rpartition(".")[1:]
        return dot + extension.lower() if dot else ""

    @property
    def folder(self) -> str:
        """The folder that holds it, on disk or in the archive; files of one folder belong together."""
        if not self.member:
            return str(self.path.parent)
        return f"{self.path}/{self.member.replace(chr(92), '/').rpartition('/')[0]}"

    @property
    def label(self) -> str:
        """How messages name it."""
        return f"{self.path}/{self.member}" if self.member else str(self.path)

    @property
    def unit(self) -> str:
        """What is counted in it: a `record` of JSON, a `row` of Parquet, a `line` of anything else."""
        return {".json": "record", ".parquet": "row", ".arrow": "row"}.get(self.suffix, "line")

    @property
    def preference(self) -> int:
        """Of two copies of one file the plain one is quickest to read."""
        return 2 if self.member else int(self.path.name.lower().endswith(".gz"))

    def open(self) -> BinaryIO:
        """A buffered stream of the decompressed bytes, bounded in size; never touches the disk."""
        limit: int | None = None
        stream: BufferedReader
        try:
            if self.member:
                stream, size = _open_member(self.path, self.member)
                limit = max(BOMB_FLOOR, BOMB_RATIO * size)
            else:
                stream = open(self.path, "rb")  # noqa: SIM115 - closed by the stream around it
            if stream.peek(2)[:2] == b"\x1f\x8b":  # whatever it is called
                limit = limit or max(BOMB_FLOOR, BOMB_RATIO * self.path.stat().st_size)
                stream = cast(BufferedReader, gzip.GzipFile(fileobj=stream))
        except (*_READ_ERRORS, KeyError) as error:
            reason = (isinstance(error, OSError) and error.strerror) or error
            raise DataError.at(self.label, "", f"the file cannot be opened ({reason}).") from error
        return cast(BinaryIO, BufferedReader(_Guarded(stream, self.label, limit), 1 << 16))

    def head(self) -> str:
        """The beginning as text, for recognising the format."""
        with self.open() as stream:
            return stream.read(HEAD).decode("utf-8", "replace").removeprefix("\ufeff")

    def random_access(self) -> Path | io.BytesIO:
        """What a reader that needs to seek can open: the path, or the decompressed bytes in memory."""
        if not self.member and not self.path.name.lower().endswith(".gz"):
            return self.path
        with self.open() as stream:
            data = stream.read(MAX_MEMBER_IN_MEMORY + 1)
        if len(data) > MAX_MEMBER_IN_MEMORY:
            raise DataError.at(self.label, "", "it is too large to read from an archive.", "Unpack it first.")
        return io.BytesIO(data)


def _open_member(path: Path, member: str) -> tuple[BufferedReader, int]:
    status = path.stat()
    archive = _archive(path, status.st_mtime_ns, status.st_size, os.getpid())
    info = archive.getinfo(member)
    return cast(BufferedReader, archive.open(info)), info.compress_size


@lru_cache(maxsize=4)
def _archive(path: Path, modified: int, size: int, process: int) -> zipfile.ZipFile:
    """An archive that stays open: its list of members is long where they are many. Processes share no open file."""
    return zipfile.ZipFile(path)


def check_unpacked(path: Path, archive: zipfile.ZipFile, size: int) -> None:
    """Refuse an archive of `size` bytes that unpacks to far more than that explains, before any of it is read.

    Python reads no more of a member than the archive says it has, so an archive that lies is cut off.
    """
    unpacked = sum(info.file_size for info in archive.infolist())
    if unpacked > max(BOMB_FLOOR, BOMB_RATIO * size):
        raise DataError.at(path, "", f"it unpacks to {unpacked:,} bytes, far more than its size explains.")


@dataclass(slots=True)
class Listing:
    """What lies under a path: files that may be data, and images as (container, name) pairs."""

    files: list[File] = field(default_factory=list)
    pictures: list[tuple[str, str]] = field(default_factory=list)
    """(archive, member) for an image in an archive, ("", path) for one on disk."""
    saved: list[Path] = field(default_factory=list)
    """Folders written by `datasets.save_to_disk`."""

    def add(self, path: str, name: str) -> None:
        suffix = _suffix(name)
        if suffix in IMAGE_SUFFIXES:
            self.pictures.append(("", path))
        elif suffix in DATA_SUFFIXES:
            self.files.append(File(Path(path)))
        elif suffix == ".zip":
            self.add_archive(Path(path))

    def add_archive(self, path: Path, *, strict: bool = False) -> None:
        try:
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
        except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            if strict:
                raise DataError.at(path, "", f"this is not a readable zip archive ({error}).") from error
            return
        for name in names:
            suffix = _suffix(name)
            if name.endswith("/") or "__MACOSX/" in name or len(name) > MAX_MEMBER_NAME:
                continue
            if suffix in IMAGE_SUFFIXES:
                self.pictures.append((str(path), name))
            elif suffix in DATA_SUFFIXES:
                self.files.append(File(path, name))


def _suffix(name: str) -> str:
    """The ending below `.gz`, in lower case."""
    return "." + name.lower().removesuffix(".gz").rpartition(".")[2]


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def list_folder(folder: Path, *, depth: int = 8) -> Listing:
    """Everything under a folder, links followed, no folder twice, hidden folders left out."""
    listing = Listing()
    _walk(str(folder), depth, listing, set())
    return listing


def _walk(folder: str, depth: int, listing: Listing, visited: set[tuple[int, int]]) -> None:
    try:
        status = Path(folder).stat()
    except OSError:
        return
    if (status.st_dev, status.st_ino) in visited:
        return
    visited.add((status.st_dev, status.st_ino))
    names = set()
    for entry in _entries(folder):
        names.add(entry.name)
        if entry.name.startswith("."):
            continue
        if _is(entry.is_dir):
            if depth > 0:
                _walk(entry.path, depth - 1, listing, visited)
        elif _is(entry.is_file):
            listing.add(entry.path, entry.name)
    if "dataset_dict.json" in names or {"state.json", "dataset_info.json"} <= names:
        listing.saved.append(Path(folder))


def _is(kind: Callable[[], bool]) -> bool:
    """Whether an entry is a folder or a file. A pipe or a device is neither: opening one may wait for ever."""
    try:
        return kind()
    except OSError:
        return False


def list_place(path: Path) -> Listing | None:
    """The files of a folder or an archive, or the one file at a path; None where there is nothing."""
    if path.is_dir():
        return list_folder(path)
    if not path.is_file():
        return None
    listing = Listing()
    if path.suffix.lower() == ".zip":
        listing.add_archive(path, strict=True)
    else:
        listing.files.append(File(path))
    return listing


_NEIGHBOURS = frozenset({"annotations", "questions", "scenes"})
_PICTURE_FOLDERS = re.compile(
    r"images?|imgs?|jpegimages|(ms)?coco|nyu_depth_images|vg_100k(_2)?|(train|val|test)(20\d\d)?|scene_img_abstract_v002"
)


def list_around(file: Path) -> Listing:
    """What lies beside a file in the published layouts. The folder itself is not walked: it may be a home folder."""
    listing = Listing()
    parents = [file.parent]
    if file.parent.name.lower() in _NEIGHBOURS:
        parents.append(file.parent.parent)
    for parent in parents:
        for entry in _entries(str(parent)):
            if _is(entry.is_file):
                if parent == file.parent or entry.name.lower().endswith(".zip"):
                    listing.add(entry.path, entry.name)
            elif not _is(entry.is_dir):
                continue
            elif _PICTURE_FOLDERS.fullmatch(entry.name.lower()):
                listing.pictures.extend(list_folder(Path(entry.path)).pictures)
            elif entry.name.lower() in _NEIGHBOURS and Path(entry.path) != file.parent:
                listing.files.extend(list_folder(Path(entry.path), depth=1).files)
    return listing
