"""What this machine has: the optional dependencies, what is cached, and what a doctor says of it all."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal

from pfungst import __version__
from pfungst.compute.devices import visible_gpus
from pfungst.core.errors import PfungstError, UsageError
from pfungst.core.files import cache_root
from pfungst.core.seal import SUMS, check_sum
from pfungst.core.threads import available_cores

# --- the optional dependencies: what each is for, and which of its packages are missing here --------------------------

EXTRAS = {
    "torch": "the networks of the zoo, `train`, `harden`, and the LASSO on a GPU",
    "photos": "models of the zoo that look at photographs (`NAME-vqa2`, `NAME-daquar`)",
    "hf": "models and data sets of Hugging Face (`hf:MODEL`)",
    "game": "adversaries that learn (`a2c`), and the game as a Gymnasium environment",
    "web": "the explorer and the live game (`pfungst serve`)",
    "study": "studies with people (`pfungst study`)",
    "postgres": "studies kept in PostgreSQL",
    "ray": "work spread over a cluster (`--on ray`)",
    "inspect": "models of inspect_ai as players (`inspect:PROVIDER/MODEL`)",
    "lmms": "models of lmms-eval as players (`lmms:NAME`)",
    "xlsx": "tables and logs in Excel files",
    "zstd": "logs compressed with zstd, such as new ones of inspect_ai",
    "meteor": "the synonyms and paraphrases of the text metric METEOR",
    "minilm": "the sentence encoder `minilm`, with its weights in the package",
    "sentence-transformers": "any sentence encoder of sentence-transformers",
}
"""Extra -> what it adds. Those for work on Pfungst itself (dev, docs, bench) are not for users."""

_REQUIREMENT = re.compile(r"\s*(?P<name>[\w.-]+)\s*(\[[^\]]*\])?\s*(?P<bounds>[^;]*?)\s*(;(?P<marker>.*))?$")
_EXTRA = re.compile(r"""extra\s*==\s*["'](?P<extra>[^"']+)["']""")


def missing(extra: str = "") -> list[str]:
    """The requirements of an extra that are not met here, as they are written; "" means those of the package itself."""
    found = [(installed(name), lowest, told) for name, lowest, told in requirements(extra)]
    return [told for version, lowest, told in found if version is None or numbers(version) < numbers(lowest)]


def requirements(extra: str = "") -> list[tuple[str, str, str]]:
    """Package, lowest version ("" for any) and the requirement as it is written."""
    found = []
    for line in requires("pfungst") or ():
        match = _REQUIREMENT.match(line)
        if match is None:
            continue
        marker = match["marker"] or ""
        of = _EXTRA.search(marker)
        if (of["extra"] if of else "") == extra:
            lowest = re.search(r"[>=]=\s*([\w.]+)", match["bounds"])
            found.append((match["name"], lowest[1] if lowest else "", line.partition(";")[0].strip()))
    return found


def installed(package: str) -> str | None:
    """The version that is installed, without importing it."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def numbers(text: str) -> tuple[int, ...]:
    """The release of a version: 2.13.0+cpu -> (2, 13)."""
    release = re.match(r"\d+(\.\d+)*", text)
    parts = [int(part) for part in release[0].split(".")] if release else []
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


# --- what the cache folder holds, and how to empty it: our own files, and nothing else --------------------------------


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


# --- what is there, what is missing, what that costs, and how to get it -----------------------------------------------

OLDEST = (3, 11)
NEWEST = (3, 13)
"""The Pythons that Pfungst is tested with, oldest and newest."""
LITTLE_DISK = 2 * 1024**3
"""Bytes. Features of a photograph data set take more."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

State = Literal["ok", "missing", "broken"]


@dataclass(frozen=True)
class Checked:
    """One thing that was looked at."""

    what: str
    state: State
    """`missing` is optional and costs something; `broken` keeps Pfungst from working."""
    found: str
    costs: str = ""
    """What does not work, or works worse, as it is."""
    cure: str = ""
    """What to do about it."""


def diagnose() -> list[Checked]:
    """Look at everything. Nothing heavy is imported, except torch where there is a GPU that it should see."""
    checks: tuple[Callable[[], Iterable[Checked]], ...] = (
        _python, _package, _weights, _threads, _gpu, _cache, _extras, _programs
    )  # fmt: skip
    found: list[Checked] = []
    for check in checks:
        try:
            found.extend(check())
        except Exception as error:  # a doctor that falls ill says so, and goes on to the next patient
            name = check.__name__.strip("_")
            found.append(Checked(name, "broken", f"could not be examined: {type(error).__name__}: {error}"))
    return found


def _python() -> Iterator[Checked]:
    found = f"{platform.python_version()}, {platform.system()} {platform.machine()}"
    if sys.version_info[:2] < OLDEST:
        yield Checked("Python", "broken", found, "Pfungst needs 3.11 or newer.", "Install a newer Python.")
    elif sys.version_info[:2] > NEWEST:
        tested = ".".join(map(str, NEWEST))
        yield Checked("Python", "ok", found, f"Newer than what is tested ({tested}).")
    else:
        yield Checked("Python", "ok", found)


def _package() -> Iterator[Checked]:
    where = Path(__file__).parents[1]
    try:
        lacking = missing()
    except PackageNotFoundError:
        yield Checked(
            "Pfungst", "ok", f"{__version__}, from {where}, not installed",
            "Parts of other packages and the extras cannot be looked up.", "pip install pfungst",
        )  # fmt: skip
        return
    if lacking:
        names = ", ".join(lacking)
        yield Checked(
            "Pfungst", "broken", f"{__version__}, without {names}", "Some commands fail.", "pip install pfungst"
        )
    else:
        yield Checked("Pfungst", "ok", f"{__version__}, from {where}")


def _weights() -> Iterator[Checked]:
    folder = Path(__file__).parents[1] / "models" / "weights"
    sums = folder / SUMS
    named = [line.split()[-1] for line in sums.read_text("utf-8").splitlines()] if sums.exists() else []
    bad = []
    for name in named:
        try:
            if not (folder / name).is_file():
                raise PfungstError("missing")
            check_sum(folder / name, (folder / name).read_bytes())
        except PfungstError:
            bad.append(name)
    if bad or not named:
        told = f"{len(bad)} of {len(named)} files are damaged or missing: {', '.join(bad)}" if named else "none"
        cost = "Players of the zoo cannot be loaded."
        yield Checked("weights of the zoo", "broken", told, cost, "pip install --force-reinstall --no-deps pfungst")
    else:
        yield Checked("weights of the zoo", "ok", f"{len(named)} files, checksums right")


def _threads() -> Iterator[Checked]:
    # Libraries of arithmetic can be counted only once they are loaded.
    import numpy  # noqa: F401
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

    pools = [pool for pool in threadpool_info() if pool["user_api"] in ("blas", "openmp")]
    most = max((int(pool["num_threads"]) for pool in pools), default=1)
    names = sorted({f"{pool['internal_api']} {pool['version'] or ''}".strip() for pool in pools})
    usable = available_cores()
    told = f"{most} threads on {usable} usable cores ({', '.join(names) or 'none found'})"
    if most > usable:
        yield Checked(
            "BLAS threads", "missing", told, "Threads that wait for each other make small work several times slower.",
            f"export OMP_NUM_THREADS={usable}",
        )  # fmt: skip
    else:
        yield Checked("BLAS threads", "ok", told)


def _gpu() -> Iterator[Checked]:
    gpus = visible_gpus()
    torch = installed("torch")
    if not gpus:
        cost = "Networks run on the processor: fine for the zoo, slow for large `hf:` models and for training."
        yield Checked(
            "GPU", "missing", "none found", cost, "Use a machine with an NVIDIA GPU, or a server (`openai:`)."
        )
    elif torch is None:
        yield Checked("GPU", "missing", f"{len(gpus)}, unused", "torch is missing.", "pip install 'pfungst[torch]'")
    else:
        import torch as library

        told = f"{len(gpus)}, torch {torch}"
        if library.cuda.is_available():
            yield Checked("GPU", "ok", f"{told}, {library.cuda.get_device_name(0)}")
        else:
            cost = "This build of torch cannot use it; networks run on the processor."
            yield Checked("GPU", "missing", told, cost, "Install a CUDA build of torch that fits the driver.")


def _cache() -> Iterator[Checked]:
    root = cache_root()
    held = sum(one.size for one in kept())
    there = next(folder for folder in (root, *root.parents) if folder.exists())
    free = shutil.disk_usage(there).free
    told = f"{root}: {sized(held)}, {sized(free)} free on the disk"
    if not os.access(there, os.W_OK):
        cost = "Worlds, rankings, vectors and features are calculated again in every run, and some commands fail."
        yield Checked("cache", "broken", f"{told}, cannot be written", cost, "export PFUNGST_CACHE=/a/folder/of/yours")
    elif free < LITTLE_DISK:
        cost = "Little room for features of photographs and for runs."
        yield Checked("cache", "missing", told, cost, "pfungst cache --clear, or export PFUNGST_CACHE=/another/disk")
    else:
        yield Checked("cache", "ok", told)


def _extras() -> Iterator[Checked]:
    for extra, use in EXTRAS.items():
        try:
            lacking = missing(extra)
        except PackageNotFoundError:
            return
        if lacking:
            told = f"missing: {', '.join(lacking)}"
            yield Checked(f"extra {extra}", "missing", told, f"Needed for {use}.", f"pip install 'pfungst[{extra}]'")
        else:
            yield Checked(f"extra {extra}", "ok", f"installed: {use}")


def _programs() -> Iterator[Checked]:
    ray = installed("ray")
    address = os.environ.get("RAY_ADDRESS")
    if ray is not None:
        where = f"cluster {address}" if address else "no cluster named (RAY_ADDRESS): one is started on this machine"
        yield Checked("Ray", "ok", f"{ray}, {where}")
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        cost = "Only tests need it: those of the report and the explorer are skipped."
        yield Checked("Chromium", "missing", "not found", cost, "make browser, or apt install chromium")
    else:
        yield Checked("Chromium", "ok", browser)
