"""What the cache folder holds, and how to empty it: our own files, and nothing else."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from pfungst.core.errors import UsageError
from pfungst.core.files import cache_root


@dataclass(frozen=True)
class Shelf:
    """A folder of the cache."""

    about: str
    files: str
    """Regular expression of the paths below it that are ours. The folder may be one that others use too."""
    precious: bool = False
    """Whether what is in it was paid for: cleared only when it is named."""


SHELVES = {
    "world": Shelf("embedded worlds, as they were drawn", r"[0-9a-f]{32}\.json"),
    "vectors": Shelf("sentences encoded for ranking", r"[^/]+/[0-9a-f]{64}\.\w+"),
    "rankings": Shelf("basic questions that were ranked", r"[0-9a-f]{64}\.npz"),
    "decoys": Shelf("choice sets that were made", r"[0-9a-f]{24}/(\.lock|(\.done/)?decoys-\d+\.npz(\.json)?)"),
    "scorers": Shelf("what the scorers of audits picked", r"[0-9a-f]{24}/(\.lock|(\.done/)?scorer-\d+\.npz(\.json)?)"),
    "features": Shelf(
        "images as networks see them",
        r"[0-9a-f]{64}\.npy|[^/]+-[0-9a-f]{16}/(index\.txt|lock|about\.json|features\.bin)",
    ),
    "shown": Shelf("images that `show` links to", r"[\w-]*[0-9a-f]{32}[\w-]*\.(png|jpg|gif|bmp|tif|webp|image)"),
    "skip-thoughts": Shelf("word tables of published encoders, converted by earlier versions", r"[0-9a-f]{16}\.npy"),
    "kernels": Shelf("programs compiled for the GPU", r"[0-9a-f]{32}\.cubin"),
    "meteor": Shelf("the paraphrase table of METEOR", r"paraphrases-\d+-[0-9a-f]{16}\.npz"),
    "rephrasings": Shelf("rephrasings that players wrote", r"answers\.sqlite(-wal|-shm)?|\.lock", precious=True),
}
_HALF = re.compile(r"((?:.*/)?)\.([^/]+)\.[0-9a-f]+\.tmp")
"""What a killed writer leaves behind: a file that never got its name."""


@dataclass(frozen=True)
class Kept:
    """What one folder of the cache holds."""

    name: str
    about: str
    folder: Path
    files: int
    size: int
    """Bytes of our files."""
    foreign: int
    """Files that are not ours. They are never touched."""
    precious: bool = False
    """Whether it is cleared only when it is named, because it cost money or hours."""


def kept(names: Collection[str] = ()) -> list[Kept]:
    """The folders of the cache that are there: these, or all."""
    _check(names)
    return [_kept(name) for name in SHELVES if (not names or name in names) and (cache_root() / name).is_dir()]


def clear(names: Collection[str] = ()) -> list[Kept]:
    """Delete our files in these folders, in all but the precious ones where none is named; what was there before.

    Links are not followed, files of others stay, and so does a folder that holds any. What is deleted is made again
    when it is needed.
    """
    _check(names)
    wanted = [name for name in SHELVES if name in names or not (names or SHELVES[name].precious)]
    before = [_kept(name) for name in wanted if (cache_root() / name).is_dir()]
    for one in before:
        for path, ours in _walk(one.name):
            if ours:
                path.unlink(missing_ok=True)
        for folder, _, _ in os.walk(one.folder, topdown=False):
            with contextlib.suppress(OSError):  # somebody else's files, or a new one of ours
                Path(folder).rmdir()
    return before


def _check(names: Collection[str]) -> None:
    for name in names:
        if name not in SHELVES:
            raise UsageError(f"The cache has no folder {name!r}. There are: {', '.join(SHELVES)}.")


def _kept(name: str) -> Kept:
    files = size = foreign = 0
    for path, ours in _walk(name):
        if not ours:
            foreign += 1
            continue
        with contextlib.suppress(OSError):  # another process may have deleted it meanwhile
            size += path.lstat().st_size
            files += 1
    shelf = SHELVES[name]
    return Kept(name, shelf.about, cache_root() / name, files, size, foreign, shelf.precious)


def _walk(name: str) -> Iterator[tuple[Path, bool]]:
    """Every file of a folder, and whether it is ours. A link is not ours, and what it points to is not looked at."""
    top = cache_root() / name
    pattern = re.compile(SHELVES[name].files)
    if top.is_symlink():
        return
    for folder, folders, files in os.walk(top):
        links = [inner for inner in folders if Path(folder, inner).is_symlink()]
        for file in (*files, *links):
            path = Path(folder, file)
            inside = _HALF.sub(r"\1\2", path.relative_to(top).as_posix())
            yield path, bool(pattern.fullmatch(inside)) and path.is_file() and not path.is_symlink()


def sized(size: float) -> str:
    """Bytes in words: 1.3 GB."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
