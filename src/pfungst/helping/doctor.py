"""What this machine has: what is there, what is missing, what that costs, and how to get it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Literal

from pfungst import __version__
from pfungst.compute.devices import visible_gpus
from pfungst.core.errors import PfungstError
from pfungst.core.files import cache_root
from pfungst.core.seal import SUMS, check_sum
from pfungst.core.threads import available_cores
from pfungst.helping.cache import kept, sized
from pfungst.helping.extras import EXTRAS, installed, missing

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
