"""What an exam adds to asking: processor time a query, memory, a second run, the report.

A player that answers at once is asked 10,000,000 queries (the probe control over 5,000,000 questions without images):
once in a bare loop that makes the same queries and keeps nothing, once by an exam that stores every answer, scores it,
writes the trials and makes the findings. The data are made as they are read, so all memory is the exam's.

    python benchmarks/exam_scale.py [--queries 10000000] [--report] [--out FOLDER]
    python benchmarks/exam_scale.py --quick             100,000 queries
    python benchmarks/exam_scale.py --function          a plain function over a JSONL of 200,000 questions, all in

With --function everything that `pfungst.examine` does is measured, from reading the file to the report.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pfungst
from pfungst.core import Answer, Dataset, Exam, Example, Query
from pfungst.probes.control import Control
from pfungst.probes.measure import clean_query
from pfungst.scores import get_metric

GOAL_MICROSECONDS, GOAL_MEMORY, GOAL_FINDINGS, GOAL_AGAIN = 60.0, 1 << 30, 60.0, 5.0
GOAL_BYTES = 250


class Questions(Sequence[Example]):
    """Questions that are made when somebody looks at them."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[at] for at in range(self.count)[index]]
        number = range(self.count)[index]
        target = "yes" if number % 3 else "no"
        kind = "yes/no" if number % 5 else "other"
        return Example(
            f"q{number}", f"Is {number} a number that I like?", answers=(target,), target=target, answer_type=kind
        )


class Quick:
    """Says yes or no at once, and now and then something else the second time."""

    name, fingerprint = "quick", "quick 1"

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        return [Answer("yes" if self._likes(query) else "no") for query in queries]

    @staticmethod
    def _likes(query: Query) -> bool:
        words = query.question
        return bool((ord(words[3]) + len(words) * (query.take and words[4] == "7")) & 1)


@contextmanager
def measured(what: str, queries: int) -> Iterator[dict[str, float]]:
    """Prints and keeps the seconds of processor and clock, and how much the memory grew beyond what it was."""
    told: dict[str, float] = {}
    before, cpu, clock = peak_now(), time.process_time(), time.perf_counter()
    yield told
    told["cpu"], told["clock"] = time.process_time() - cpu, time.perf_counter() - clock
    told["memory"] = peak_since() - before
    each = 1e6 * told["cpu"] / queries
    print(
        f"{what:24} {told['cpu']:8.1f} s of processor ({each:6.2f} us a query), {told['clock']:8.1f} s by the clock, "
        f"{told['memory'] / 2**20:7.0f} MiB more at most",
        flush=True,
    )


def peak_now() -> float:
    """Bytes held now; from here on the peak is counted anew, where the system can."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return peak_since()


def peak_since() -> float:
    try:
        line = next(row for row in Path("/proc/self/status").read_text().splitlines() if row.startswith("VmHWM"))
        return int(line.split()[1]) * 1024.0
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1.0 if sys.platform == "darwin" else 1024.0)


def bare(player: Quick, data: Dataset) -> None:
    """The same queries, in batches of the same size."""
    batch: list[Query] = []
    for example in data:
        query = clean_query(example)
        batch += [query, replace(query, take=1)]
        if len(batch) >= 32:
            player.answer(batch)
            batch = []
    player.answer(batch)


def function(questions: int) -> None:
    """A plain function over a file, from reading the file to the report."""
    folder = Path(tempfile.mkdtemp(prefix="pfungst-scale-"))
    rows = (
        {"id": one.id, "question": one.question, "answer": one.target, "answer_type": one.answer_type}
        for one in Questions(questions)
    )
    lines = (json.dumps(row) + "\n" for row in rows)
    few, many = folder / "few.jsonl", folder / "many.jsonl"
    few.write_text("".join(next(lines) for _ in range(10)))
    with open(many, "w") as file:
        file.writelines(lines)
    try:
        # what is imported, and compiled, is nobody's memory
        pfungst.examine(yes, few, ["control"], folder / "few", metric="exact")
        with measured("examine", 2 * questions) as told:
            run = pfungst.examine(yes, many, ["control"], folder / "many", metric="exact")
        print(
            f"{run.findings[0].verdict}\nAll in: {1e6 * told['cpu'] / questions / 2:.1f} us (goal: "
            f"{GOAL_MICROSECONDS:.0f}) and {told['memory'] / questions / 2:.0f} bytes a query (goal: {GOAL_BYTES})."
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def yes(image: Any, question: str) -> str:
    return "yes"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=10_000_000)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--once", action="store_true", help="do not run the exam a second time")
    parser.add_argument("--report", action="store_true", help="write the report too")
    parser.add_argument("--function", action="store_true", help="examine a plain function over a file")
    parser.add_argument("--questions", type=int, default=200_000, help="with --function")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if arguments.function:
        function(arguments.questions)
        return
    queries = 100_000 if arguments.quick else arguments.queries
    folder = arguments.out or Path(tempfile.mkdtemp(prefix="pfungst-scale-"))
    data = Dataset("questions", Questions(queries // 2), metric="exact", fingerprint=f"questions {queries}")
    exam = Exam(Quick(), data, [Control()], get_metric("exact"), folder)
    import pyarrow.parquet  # noqa: F401  what is imported is nobody's memory
    import scipy.stats  # noqa: F401

    try:
        with measured("bare loop", queries) as loop:
            bare(Quick(), data)
        with measured("exam", queries) as whole:
            found = exam.run().findings[0]
        if not arguments.once:
            with measured("the same exam again", queries) as again:
                exam.run()
            print(f"It took {again['cpu']:.1f} s of processor (goal for 1,000,000 answers: {GOAL_AGAIN:.0f}).")
        added = 1e6 * (whole["cpu"] - loop["cpu"]) / queries
        print(f"{found.verdict}\nThe exam adds {added:.1f} us a query (goal: {GOAL_MICROSECONDS:.0f}), ", end="")
        print(
            f"{whole['cpu'] / loop['cpu']:.1f} times the bare loop, and {whole['memory'] / 2**20:.0f} MiB (goal: 1024)."
        )
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        print(f"The run folder has {size / 2**20:,.0f} MiB, {size / queries:.0f} bytes a query.")
        if arguments.report:
            from pfungst.report import write_report

            with measured("report", queries):
                write_report(folder, data)
    finally:
        if arguments.out is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
