"""What an exam would ask, and what that would take: queries, tokens, cost, time, disk. Nobody is asked and the run
folder is not touched."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from time import perf_counter

from pfungst.api import named, takes_spec
from pfungst.core import Answer, Asker, DataError, Dataset, ExamSpec, Player, Probe, Progress, Query
from pfungst.core.adaptive import check_precision
from pfungst.core.asker import NobodyAsked, asking_nobody
from pfungst.core.images import Image, image_size
from pfungst.core.store import AnswerStore, Typical, stored_keys, typical
from pfungst.core.types import Terms, as_probe

CHARACTERS_A_TOKEN = 4
"""Of English text, with the tokenisers of today's models."""
PACKED = 0.15
"""Size of the trials as Parquet beside the same in the answer store, measured on the embedded world and on VQA."""
REPORT = 500_000
"""Bytes of a report with its images, and of the other files of a run."""
SAMPLE = 400
"""Queries of a probe whose size in the answer store is measured."""
PIXELS_A_TOKEN = 28
"""Side of the square of pixels that a token of an image stands for, as in Qwen2-VL; other models differ by up to a
factor of two."""
IMAGES_MEASURED = 500
"""Images whose size is looked up; all others count as their mean."""


@dataclass(frozen=True)
class ProbePlan:
    """What one probe asks."""

    probe: str
    queries: int
    new: int
    """Not yet in the run folder, and not asked by a probe before it."""
    at_most: bool = False
    """A probe that searches may stop earlier."""
    problem: str = ""
    """Why its queries cannot be counted."""


@dataclass(frozen=True)
class Plan:
    """What an exam would take."""

    player: str
    data: str
    run: Path
    probes: tuple[ProbePlan, ...]
    queries: int
    """Distinct queries of all probes together."""
    stored: int
    """Of these, answered already."""
    to_ask: int
    at_most: bool
    input_tokens: int
    output_tokens: int | None
    cost: float | None
    """In the currency of the prices; None without prices."""
    seconds: float | None
    """None where no reply has told how long one takes."""
    disk: int
    """Bytes that the run folder will have."""
    how: tuple[str, ...]
    """What the numbers rest on, in sentences."""


@takes_spec(ExamSpec)
def plan(spec: ExamSpec) -> Plan:
    """What `pfungst.examine` with the same arguments would ask and take."""
    # Copies of the player would be started.
    chosen, part, parts, run = named(replace(spec, replicas=None))
    with asking_nobody():
        counted = _Counting(chosen, part, run, spec.seed, spec.progress)
        rows = tuple(counted.probe(probe) for probe in parts)
    if spec.precision is not None:
        check_precision(spec.precision)
        rows = tuple(replace(row, at_most=True) for row in rows)
    return counted.plan(rows, spec.max_queries)


class _Counting:
    """Goes through the queries of the probes once."""

    def __init__(self, player: Player, data: Dataset, run: Path, seed: int, progress: Progress) -> None:
        self._player = player
        self._asker = Asker(player)
        self._data = data
        self._run = run
        self._seed = seed
        self._progress = progress
        self._known: dict[str, bool] = {}
        """Key -> whether it is stored."""
        self._tokens = _Tokens(player)
        self._sample: dict[str, Query] = {}
        """Of the queries that are still to be asked."""
        self._seconds = 0.0
        """Spent on making the queries, which the exam makes again."""
        self._searching = 0
        """Queries of searches, at most, beyond those counted one by one."""

    def probe(self, probe: Probe) -> ProbePlan:
        began = perf_counter()
        try:
            return self._probe(probe)
        finally:
            self._seconds += perf_counter() - began

    def _probe(self, probe: Probe) -> ProbePlan:
        probe = as_probe(probe)
        data = probe.sees(self._data)
        probe.check_data(data)
        try:
            probe.prepare(data, self._seed, self._progress)
            queries = {query.key(self._asker.fingerprint): query for query in self._queries(probe, data)}
        except NobodyAsked as error:
            return ProbePlan(probe.name, 0, 0, problem=f"Not counted: {error}")
        fresh = [key for key in queries if key not in self._known]
        stored = stored_keys(self._run, fresh)
        for key in fresh:
            self._known[key] = key in stored
            if key not in stored:
                self._tokens.add(queries[key])
        open_keys = [key for key in fresh if key not in stored]
        new = len(open_keys)
        self._sample |= {key: queries[key] for key in open_keys[:: -(-new // SAMPLE) or 1]}
        if probe.searches:
            most = max(len(queries), probe.most_queries())
            self._searching += most - len(queries)
            return ProbePlan(probe.name, most, new + most - len(queries), at_most=True)
        return ProbePlan(probe.name, len(queries), new)

    def _queries(self, probe: Probe, data: Dataset) -> Iterator[Query]:
        for trial in probe.trials(data, self._seed):
            for variant in trial.variants:
                yield self._asker.visible(variant.query, variant.example_id or trial.example_id)

    def plan(self, rows: tuple[ProbePlan, ...], max_queries: int | None) -> Plan:
        to_ask = sum(row.new for row in rows)
        if max_queries is not None:
            to_ask = min(to_ask, max_queries)
        terms = self._player.terms
        seen = typical(self._run, self._asker.fingerprint)
        tokens_in, how_in = self._tokens.expected(to_ask, seen)
        tokens_out, how_out = _output(to_ask, terms, seen)
        seconds, how_long = _timed(to_ask, seen, terms, self._seconds)
        priced = bool(terms.price_in or terms.price_out) and tokens_out is not None
        return Plan(
            player=self._player.name,
            data=self._data.name,
            run=self._run,
            probes=rows,
            queries=len(self._known) + self._searching,
            stored=sum(self._known.values()),
            to_ask=to_ask,
            at_most=any(row.at_most for row in rows),
            input_tokens=tokens_in,
            output_tokens=tokens_out,
            cost=(tokens_in * terms.price_in + (tokens_out or 0) * terms.price_out) / 1e6 if priced else None,
            seconds=seconds,
            disk=self._disk(to_ask),
            how=(*how_in, *how_out, how_long, "Disk: by the size of a sample of the queries."),
        )

    def _disk(self, to_ask: int) -> int:
        """Answers by the bytes of a sample, written to a store; the trials beside them hold the same again, packed."""
        answered = [(key, query, Answer("a short reply")) for key, query in self._sample.items()]
        sizes = []
        with tempfile.TemporaryDirectory() as place:
            for some in ([], answered):
                with AnswerStore(Path(place) / "answers.sqlite") as store:
                    store.add(self._asker.fingerprint, some)
                sizes.append(size_of(Path(place)))
        each = (sizes[1] - sizes[0]) / max(1, len(answered))
        return size_of(self._run) + round(to_ask * each * (1 + PACKED)) + REPORT


class _Tokens:
    """Tokens of queries, by the length of their text and the size of their image."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._looks = player.reads_images
        self._sizes: dict[str, int | None] = {}
        self._count = self._text = self._images = self._measured = self._image = 0

    def add(self, query: Query) -> None:
        self._count += 1
        text = self._player.prompt(query)
        self._text += math.ceil(len(text.encode("utf-8", "surrogatepass")) / CHARACTERS_A_TOKEN)
        if query.image is not None and self._looks:
            self._images += 1
            tokens = self._of(query.image)
            if tokens is not None:
                self._measured += 1
                self._image += tokens

    def _of(self, image: Image) -> int | None:
        name = image.digest
        if name not in self._sizes:
            if len(self._sizes) >= IMAGES_MEASURED:
                return None
            try:
                width, height = image_size(image)
            except DataError:  # a broken image: the exam leaves it out
                self._sizes[name] = None
            else:
                self._sizes[name] = math.ceil(width / PIXELS_A_TOKEN) * math.ceil(height / PIXELS_A_TOKEN)
        return self._sizes[name]

    def expected(self, queries: int, seen: Typical) -> tuple[int, list[str]]:
        """Input tokens of so many queries, and what the number rests on."""
        if seen.input_tokens is not None:
            return round(queries * seen.input_tokens), [
                f"Input: {seen.input_tokens:,.0f} tokens a query, the mean of {seen.replies:,} stored replies."
            ]
        if not self._count:
            return 0, []
        images = self._image / self._measured * self._images if self._measured else 0.0
        mean = (self._text + images) / self._count
        how = f"Input: estimated, {mean:,.0f} tokens a query; a token is {CHARACTERS_A_TOKEN} characters of text"
        square = f" or {PIXELS_A_TOKEN} x {PIXELS_A_TOKEN} pixels of an image" if self._images else ""
        unsure = ", for which models differ by a factor of two" if self._images else ""
        return round(queries * mean), [f"{how}{square}{unsure}."]


def _output(queries: int, terms: Terms, seen: Typical) -> tuple[int | None, list[str]]:
    if seen.output_tokens is not None:
        how = f"Output: {seen.output_tokens:,.1f} tokens a query, the mean of {seen.replies:,} stored replies."
        return round(queries * seen.output_tokens), [how]
    if terms.most_output is not None:
        return queries * terms.most_output, [f"Output: at most {terms.most_output:,} tokens a query; most need fewer."]
    return None, []


def _timed(queries: int, seen: Typical, terms: Terms, making: float) -> tuple[float | None, str]:
    if seen.seconds is None:
        return None, "Time: unknown until some replies are stored; run the exam with --limit 10 first."
    how = f"Time: {seen.seconds:.2f} s a reply, the mean of those stored, {terms.at_once} at once"
    return queries * seen.seconds / terms.at_once + making, f"{how}, and {making:.1f} s to make the queries."


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder; 0 where there is none."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def shown_bytes(count: float) -> str:
    """`1.2 GB`"""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if count >= 100 or unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"


def shown_seconds(seconds: float | None) -> str:
    """`0:02:10`; with tenths below ten seconds."""
    if seconds is None:
        return "unknown"
    return f"{seconds:.1f} s" if seconds < 10 else str(timedelta(seconds=round(seconds)))
