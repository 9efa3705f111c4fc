"""GBQD and YNBQD: the basic question data sets of Assessing the Robustness of VQA, ranked and written as files.

Each is written twice: as Parquet, and as JSON in the layout of the papers' authors (docs/explanation/noise.md).
"""

from __future__ import annotations

import hashlib
import resource
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfungst.core import Dataset, Example, PfungstError, Table
from pfungst.core.files import file_digest
from pfungst.core.types import Progress
from pfungst.experiments.base import Experiment, argument, check_known, claim, kept, option

if TYPE_CHECKING:
    from pfungst.probes.noise.bqd import MainQuestion
    from pfungst.probes.noise.ranking import RankSettings

POOLS = {"GBQD": "all", "YNBQD": "yes/no"}
"""The papers' two data sets, and which questions are their pool."""


@dataclass(frozen=True)
class BasicQuestionsConfig:
    """GBQD and YNBQD: rank a pool of questions for every main question, and write both as files."""

    main: str = argument()
    """Data set of the main questions, or a text file with one per line."""
    pools: tuple[str, ...] = option((), "--pool")
    """Data sets, or text files with one question per line, whose questions are ranked; none: the main questions."""
    kinds: tuple[str, ...] = tuple(POOLS)
    """GBQD (all questions of the pools) and YNBQD (their yes/no questions; text files do not say and are left out)."""
    encoder: str = ""
    """Sentence encoder; empty: the embedded one."""
    tol: float = 1e-3
    """Relative duality gap to certify."""
    limit: int | None = None
    """Only the first N main questions."""
    device: str = option("cpu", free=True)
    """Where the LASSO is solved: cpu, cuda."""

    def __post_init__(self) -> None:
        check_known(self.kinds, POOLS, "There is no basic question data set {0!r}; there are {1}.")


@dataclass(frozen=True)
class Made:
    """One basic question data set."""

    name: str
    main: int
    distinct: int
    """Different main questions."""
    pool: int
    """Different questions that were ranked."""
    seconds: float
    """Of the last run, if it was stopped and continued."""
    memory: int
    """Largest memory of the process, in bytes."""
    gap: float | None
    largest_gap: float | None
    """Median and largest certified relative duality gap; None for rankers without certificate."""
    files: Mapping[str, Mapping[str, Any]]
    """File name -> bytes and sha256."""
    left_out: float | None = None
    """Questions of the pool that ask the same and were left out, on average over the different main questions."""


def pool_of(specs: Sequence[str], kind: str, data: Dataset | None = None) -> list[str]:
    """The distinct questions of these data sets and text files, or of `data`, in order; kind: `all` or `yes/no`."""
    from pfungst.probes.noise.bqd import is_text, pool_questions
    from pfungst.probes.noise.ranking import Pool

    found: list[str] = []
    for spec in specs or [""]:
        if kind == "all" or not is_text(spec):
            found += pool_questions(spec, data or Dataset("", []), kind)
    return list(Pool.of([" ".join(text.split()) for text in found]).questions)


def pools_of(names: Iterable[str], specs: Sequence[str], data: Dataset | None = None) -> dict[str, list[str]]:
    """The pool of each basic question data set; one that is too small is told before anything is ranked."""
    from pfungst.probes.noise.ranking import TOP_K

    pools = {name: pool_of(specs, POOLS[name], data) for name in names}
    for name, pool in pools.items():
        if len(pool) < TOP_K:
            kind = "" if POOLS[name] == "all" else f"{POOLS[name]} "
            raise PfungstError(
                f"The pool of {name} has {len(pool)} distinct {kind}questions, fewer than the {TOP_K} that each main "
                "question needs. Name a larger pool: --pool."
            )
    return pools


def make(
    name: str,
    folder: Path,
    main: Sequence[MainQuestion],
    pool: Sequence[str],
    settings: RankSettings,
    progress: Progress,
    as_json: bool = False,
    device: str | None = None,
    known: Iterable[Example] = (),
) -> Made:
    """Rank, unless FOLDER has it already, and write FOLDER/NAME.parquet and, where wanted, FOLDER/NAME.json."""

    def ranked() -> Made:
        from pfungst.probes.noise.bqd import BasicQuestions, build

        start = time.monotonic()
        files = [folder / f"{name}.parquet", *([folder / f"{name}.json"] if as_json else [])]
        build(files[0], main, pool, settings, progress, files[1:], device, known)
        took = time.monotonic() - start
        written = BasicQuestions.read(files[0])
        gaps = sorted(gap for *_, gap in written.rows.values() if gap is not None)
        left_out = [count or 0 for count in written.left_out.values()]
        return Made(
            name,
            len(main),
            len({one.text for one in main}),
            len(pool),
            round(took, 1),
            _peak_memory(),
            gaps[len(gaps) // 2] if gaps else None,
            gaps[-1] if gaps else None,
            {one.name: {"bytes": one.stat().st_size, "sha256": file_digest(one)} for one in files},
            sum(left_out) / len(left_out),
        )

    return Made(**kept(folder / f"{name}-made.json", ranked))


def run(config: BasicQuestionsConfig, out: Path, *, progress: Progress) -> list[Made]:
    """Make what OUT does not hold yet."""
    from pfungst.probes.noise.bqd import read_source
    from pfungst.probes.noise.ranking import RankSettings

    main = read_source(config.main, limit=config.limit)
    claim(out, config, data=hashlib.sha256("\n".join(main.texts).encode("utf-8", "surrogatepass")).hexdigest())
    pools = config.pools or (config.main,)
    device = None if config.device == "cpu" else config.device
    settings = RankSettings(encoder=config.encoder, tol=config.tol)
    return [
        make(name.lower(), out, main.questions, pool, settings, progress, as_json=True, device=device)
        for name, pool in pools_of(config.kinds, pools).items()
    ]


def _peak_memory() -> int:
    """Bytes of this process at its largest."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def tables(result: Sequence[Made]) -> list[Table]:
    """What was made, what it took, and the files."""
    return [
        Table(
            "Basic question data sets",
            ("", "main questions", "different", "pool", "time", "memory", "gap: median", "largest"),
            tuple(
                (
                    one.name.upper(), f"{one.main:,}", f"{one.distinct:,}", f"{one.pool:,}", f"{one.seconds:,.0f} s",
                    f"{one.memory / 2**30:.1f} GiB", *(f"{gap:.1e}" for gap in (one.gap or 0, one.largest_gap or 0)),
                )
                for one in result
            ),
            "21 basic questions for each main question, by the LASSO with lambda 1e-6.",
        ),
        Table(
            "Files",
            ("file", "bytes", "sha256"),
            tuple((name, f"{of['bytes']:,}", of["sha256"]) for one in result for name, of in one.files.items()),
        ),
    ]  # fmt: skip


EXPERIMENT = Experiment("basic-questions", BasicQuestionsConfig, run, tables, record=lambda made: {"made": made})
