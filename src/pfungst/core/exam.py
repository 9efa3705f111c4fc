"""The exam: probes make trials, the player answers what the store does not know, probes read the answers.

Trials are made, asked, scored and written in portions, in order, and none is held for longer.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfungst.core.asker import Asker
from pfungst.core.errors import PfungstError, PlayerError, ProbeError, UsageError, ended
from pfungst.core.files import is_plain_name, locked, write_json
from pfungst.core.finished import finish, finished, made_of
from pfungst.core.scoring import Asked, ById, Scoring
from pfungst.core.spec import ExamSpec, exam_config, labelled, write_config
from pfungst.core.store import AnswerStore, StoredPlayer
from pfungst.core.trials import Recorder, Row, recording
from pfungst.core.types import (
    Answer,
    AnsweredTrial,
    AskingPart,
    Dataset,
    Example,
    Findings,
    JudgingScore,
    Matcher,
    Player,
    Probe,
    Progress,
    Query,
    Score,
    Trial,
    as_player,
    as_probe,
    no_progress,
)

if TYPE_CHECKING:
    from pfungst.core.adaptive import Stop

PORTION = 1 << 13
"""Queries asked about together, of all probes: the exam holds no more."""
AT_ONCE = 1 << 16
"""The same for a player that has several under way at a time, which would idle at the end of every portion."""
HELD = 1 << 16
"""Variants of a probe up to which its trials are held until its findings are made. More are read from their file."""

Answering = Callable[[Mapping[str, Query], float], Mapping[str, Answer]]
"""Gives the answers to queries by key; the number says how much of the exam is asked with these, from 0 to 1."""


@dataclass(frozen=True)
class Exam:
    """Examine `player` on `data` with `probes`; everything lands in the run folder `out`.

    Running the same exam again asks nothing twice: it resumes what was killed, or just writes the same findings.
    """

    player: Player
    data: Dataset
    probes: Sequence[Probe]
    score: Score
    out: Path
    seed: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)
    """More to remember in exam.json: specs, options, versions."""
    progress: Progress = no_progress
    matcher: Matcher | None = None
    """Reads the replies; None: a reply is the answer."""
    label: str = ""
    """Of a second reading of a finished run: its files stand beside those of the first, with this in their names."""
    spec: ExamSpec = field(default_factory=partial(ExamSpec, "", (), max_errors=0))
    """Its options, as far as they are not given above."""
    images: Mapping[str, int] = field(default_factory=dict)
    """Of a second reading of a run with a precision: the images that each probe asked about."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "player", as_player(self.player))
        object.__setattr__(self, "probes", tuple(map(as_probe, self.probes)))

    def run(self) -> Examined:
        """Ask, score and write the run folder. Raises PfungstError where a part could not be finished: what could be
        is written, and the same exam tries the rest again."""
        examined = self.run_in_part()
        if examined.problems:
            raise PfungstError(f"The exam in {self.out} is not whole. {' '.join(examined.problems)}")
        return examined

    def run_in_part(self) -> Examined:
        """`run`, for a caller that tells the user about `Examined.problems` and ends as a failure."""
        if len(self.data) == 0:
            raise PfungstError(f"The data set {self.data.name} has no examples to ask about.")
        if not 0 <= self.seed < 1 << 63:
            raise UsageError(f"The seed must be a whole number from 0 to {(1 << 63) - 1}, not {self.seed}.")
        names = [probe.name for probe in self.probes]
        for name in names:
            # Files are called after it, and it may come from somebody else's exam.json.
            if not isinstance(name, str) or not is_plain_name(name):
                raise ProbeError(f"A probe cannot be named {name!r}: its name must be a plain file name.")
        if len(set(names)) != len(names):
            raise ProbeError(f"Each probe may be given only once, but these were given: {', '.join(names)}.")
        from pfungst.core.adaptive import check_precision, stopped  # numpy waits until it is needed

        if self.spec.precision is not None:
            check_precision(self.spec.precision)
        for probe in self.probes:
            probe.check_data(probe.sees(self.data))
        self.out.mkdir(parents=True, exist_ok=True)
        with locked(self.out), AnswerStore(self.out / "answers.sqlite") as store, not_collecting():
            spec, reading = self.spec, str(self.config.get("matcher") or "")
            config = exam_config(spec, self.player, self.data, self.probes, self.seed, reading, self.config)
            if not self.label:
                # A folder in which nothing was answered, such as after a wrong address, is free.
                write_config(self.out, config, free=not len(store) and not (self.out / "findings.json").exists())
            known_by = self._known_by(config)
            if (before := finished(self.out, known_by)) is not None:
                was, found_before = before
                return Examined(found_before, (), was.unread, was.total, notes=was.notes, most=was.most, finished=True)
            # With copies of the player it is the asking that is spread: a search runs here and asks all of them.
            place = spec.place if spec.replicas is None else None
            asker = Asker(self.player, store, budget=spec.max_queries, progress=self.progress, place=place)
            asker.reading, asker.blind = reading, self.data.blind
            trials: Mapping[str, Iterable[Trial]] = {probe.name: self._trials(probe, asker) for probe in self.probes}
            scoring = Scoring(self.score, self.matcher, ById(self.data), self.out, self.progress, self.player)
            answer: Answering = Filling(asker, spec.max_errors)
            stops: dict[str, Stop] = {}
            if spec.precision is not None or spec.budget is not None:
                trials, stops = self._ask_in_rounds(asker, trials, scoring)
                answer = known_answers(store)
            records: dict[str, Recorder] = {}
            answered_trials: dict[str, Sequence[AnsweredTrial]] = {}
            findings: list[Findings] = []
            left_out = {**asker.left_out}
            answered = in_portions(asker, trials, answer, len(self.data))
            for name, portions in groupby(answered, key=lambda portion: portion.probe):
                self.progress("scoring", len(records), len(self.probes))
                path = labelled(self.out / "trials", self.label) / f"{name}.parquet"
                probe, alike = self.probes[len(findings)], _Alike()
                # A probe asks at least twice about nearly every example: many are not held to be dropped in the end.
                with recording(path, probe.role, HELD if 2 * len(self.data) <= HELD else 0) as record:
                    for portion in portions:
                        scored, rows = scoring.scored(portion.asked, portion.answers)
                        record.add(scored, rows)
                        if lacking := len(portion.asked) - len(scored):
                            left_out[name] = left_out.get(name, 0) + lacking
                        if not self.player.reads_images:
                            alike.add(portion.asked)
                    if not record.count:
                        raise PlayerError(f"{self.player.name} answered no trial of the probe {name} in full.")
                records[name] = record
                answered_trials[name] = held = self._answered(path, record, asker, trials[name], scoring)
                found = replace(probe.findings(held, self.seed), role=probe.role)
                if not probe.searches and (unseen := alike.sentence(self.player.name)):
                    found = replace(found, verdict=f"{found.verdict} {unseen}")
                findings.append(stopped(found, stops[name]) if name in stops else found)
            findings = _corrected(findings)
            self.progress("scoring", len(self.probes), len(self.probes))
            failed = asker.failures
            unread = {name: record.unread for name, record in records.items()}
            lost = sum(left_out.values())
            told: dict[str, Any] = {"findings": findings, "unread": unread, "left out": lost, "failed": failed}
            if left_out:
                told["left out by probe"] = left_out
            if stops:
                told["precision"] = stops
            judge = None
            if isinstance(self.score, JudgingScore):
                judge = told["judge"] = self.score.findings(answered_trials, self.player, self.seed)
                asker.problems += self.score.problems
            write_json(labelled(self.out / "findings.json", self.label), told)
            longest = max(records.values(), key=lambda record: record.count)
            total = sum(record.variants for record in records.values())
            if known_by and not (failed or left_out or asker.problems):
                count = {"unread": sum(unread.values()), "total": total, "most": longest.count}
                finish(self.out, known_by, list(records), **count)
        return Examined(
            tuple(findings), tuple(asker.problems), sum(unread.values()), total,
            tuple(longest.clean), left_out, tuple(failed), judge,
            (*scoring.notes(), *(stop.sentence(n) for n, stop in stops.items())),
            longest.count,
        )  # fmt: skip

    def _answered(
        self, path: Path, record: Recorder, asker: Asker, made: Iterable[Trial], scoring: Scoring
    ) -> Sequence[AnsweredTrial]:
        """The trials of a probe for its findings, once their file is written."""
        if record.held is not None:
            return record.held
        from pfungst.core.answered import AnsweredTrials, TrialsFile

        def again() -> Iterator[AnsweredTrial]:
            assert asker.store is not None
            for portion in in_portions(asker, {"": made}, known_answers(asker.store), record.count):
                yield from scoring.scored(portion.asked, portion.answers, asking=False)[0]

        return AnsweredTrials(TrialsFile(path), again)

    def _known_by(self, config: Mapping[str, Any]) -> str:
        """What the exam is made of, by which a finished run is known again; empty where it must be done anyway."""
        parts = (*self.probes, self.score, self.matcher)
        in_rounds = self.spec.precision is not None or self.spec.budget is not None
        again = isinstance(self.player, StoredPlayer) or self.label or in_rounds
        return "" if again or any(isinstance(part, AskingPart) for part in parts) else made_of(config, parts)

    def _trials(self, probe: Probe, asker: Asker) -> Iterable[Trial]:
        """What the probe asks, as the player may see it; whoever goes through it has it made."""
        data = probe.sees(self.data)
        probe.prepare(data, self.seed, self.progress)
        if probe.searches:
            asker.folder = self.out / probe.name
            search = probe.search
            return list(_Visible(self, data, probe, asker, lambda: search(asker, data, self.seed)))
        return _Visible(self, data, probe, asker, lambda: probe.trials(data, self.seed))

    def _ask_in_rounds(
        self, asker: Asker, trials: Mapping[str, Iterable[Trial]], scoring: Scoring
    ) -> tuple[dict[str, list[Trial]], dict[str, Stop]]:
        """Have queries answered until every probe knows its drop well enough; returns the trials that were asked."""
        from pfungst.core.adaptive import ask_in_rounds

        made = {name: list(some) for name, some in trials.items()}
        most, errors = self.spec.max_errors, asker.errors
        if most is None:
            every = {v.query.key(asker.fingerprint) for some in made.values() for trial in some for v in trial.variants}
            most = max(10, len(every) // 100)

        def answer(name: str, some: Sequence[Trial]) -> list[AnsweredTrial]:
            left = most - (asker.errors - errors)
            portions = in_portions(asker, {name: some}, Filling(asker, left), len(some))
            return [trial for portion in portions for trial in scoring.scored(portion.asked, portion.answers)[0]]

        return ask_in_rounds(
            self.probes, made, scoring.examples, answer, precision=self.spec.precision, seed=self.seed,
            images=self.images,
        )  # fmt: skip


def _corrected(findings: Sequence[Findings]) -> list[Findings]:
    """The findings of all probes, the tests of their drops corrected for their number."""
    from pfungst.core.stats import holm

    tests = [None if one.drop is None else one.drop.p for one in findings]
    p_values = holm([math.nan if p is None else p for p in tests])
    return [replace(one, p_holm=p) for one, p in zip(findings, p_values, strict=True)]


@dataclass(frozen=True)
class _Visible:
    """The trials of a probe with what the player may see of them, made whenever somebody goes through them."""

    exam: Exam
    data: Dataset
    probe: Probe
    asker: Asker
    make: Callable[[], Iterable[Trial]]

    def __iter__(self) -> Iterator[Trial]:
        count, data, what = 0, self.data, f"{self.probe.name}: making trials"
        for count, trial in enumerate(self.make(), 1):
            variants = []
            for variant in trial.variants:
                query = self.asker.visible(variant.query, variant.example_id or trial.example_id)
                variants.append(variant if query is variant.query else replace(variant, query=query))
            same = all(one is other for one, other in zip(variants, trial.variants, strict=True))
            yield trial if same else replace(trial, variants=tuple(variants))
            if count % 1000 == 0:
                self.exam.progress(what, count, max(count, len(data)))
        if count >= 1000:
            self.exam.progress(what, len(data), len(data))
        if not count:
            raise ProbeError(f"The probe {self.probe.name} found nothing to ask in {data.name}.")


@dataclass(frozen=True)
class Examined:
    """What came of an exam."""

    findings: tuple[Findings, ...]
    """In the order of the probes."""
    problems: tuple[str, ...] = ()
    """What could not be finished, in sentences; the same command tries it again."""
    unread: int = 0
    """Replies that the matcher could not read."""
    total: int = 0
    """Variants of all probes together."""
    clean: tuple[tuple[Example, Answer], ...] = ()
    """The examples and their clean answers, of the probe that asked about most: the first of them in a long run."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """By probe, its trials that lack an answer: they count in no number."""
    failed: tuple[tuple[str, str], ...] = ()
    """Queries without an answer: the question, and what went wrong."""
    judge: Findings | None = None
    """How far the judge can be trusted, where a judge was the metric."""
    notes: tuple[str, ...] = ()
    """What judges used, and where probes stopped."""
    most: int = 0
    """Trials of the probe that asked about most."""
    finished: bool = False
    """The run was finished before: nothing was done, and `notes` are those of that time."""

    @property
    def lacking(self) -> str:
        """How many trials are left out because asking failed, and why the first did; empty where none is."""
        from pfungst.core.run import missing_trials

        if not self.failed:
            return ""
        question, error = self.failed[0]
        told = missing_trials({"failed": self.failed, "left out by probe": self.left_out})
        return f"{told} The first: {question[:80]!r}: {ended(error[:300])} The same exam tries them again."


# --- asking in portions -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Portion:
    """Trials of one probe, with the keys of their queries, and answers by key; those that failed are missing."""

    probe: str
    asked: Asked
    answers: Mapping[str, Answer]


def in_portions(
    asker: Asker, trials: Mapping[str, Iterable[Trial]], answer: Answering, examples: int
) -> Iterator[Portion]:
    """The trials of the probes, in order, as they are answered."""
    several = asker.player.terms.at_once > 1
    portion = max(AT_ONCE, PORTION) if several else PORTION
    waiting: dict[str, list[tuple[Trial, Row]]] = {}
    queries: dict[str, Query] = {}
    for number, (name, some) in enumerate(trials.items()):
        waiting[name] = []
        for made, trial in enumerate(some, 1):
            row = tuple(variant.query.key(asker.fingerprint) for variant in trial.variants)
            queries.update(zip(row, (variant.query for variant in trial.variants), strict=True))
            waiting[name].append((trial, row))
            if len(queries) >= portion:
                share = (number + min(1.0, made / examples)) / len(trials)
                answers = answer(queries, share)
                yield from (Portion(probe, asked, answers) for probe, asked in waiting.items() if asked)
                waiting, queries = {name: []}, {}
    answers = answer(queries, 1.0) if queries else {}
    yield from (Portion(probe, asked, answers) for probe, asked in waiting.items() if asked)


def known_answers(store: AnswerStore) -> Answering:
    """The answers that are there; nobody is asked."""
    return lambda queries, share: store.known(queries)


class Filling:
    """Has queries answered, and lets some of them fail.

    max_errors: how many; None: 10, or 1% of those so far if that is more.
    """

    def __init__(self, asker: Asker, max_errors: int | None) -> None:
        self._asker = asker
        self._max_errors = max_errors
        self._errors_before = asker.errors
        self._absent = list(asker.player.failed) if isinstance(asker.player, StoredPlayer) else []
        self._gone: set[str] = set()
        """What failed once is not asked again."""
        self._met = 0

    def __call__(self, queries: Mapping[str, Query], share: float) -> Mapping[str, Answer]:
        before, self._met = self._met, self._met + len(queries)
        if isinstance(self._asker.player, StoredPlayer) and self._asker.store is not None:
            # What failed when the player was there is missing still; more than that would be an unfinished run.
            known = self._asker.store.known(queries)
            lacking = queries.keys() - known.keys() - self._gone
            if len(lacking) <= len(self._absent):
                self._asker.failures += self._absent[: len(lacking)]
                del self._absent[: len(lacking)]
                self._gone |= lacking
                return known
        most = max(10, self._met // 100) if self._max_errors is None else self._max_errors
        left = most - (self._asker.errors - self._errors_before)
        if self._gone:
            queries = {key: query for key, query in queries.items() if key not in self._gone}
        with collecting():
            answers = self._asker.fill(queries, tolerate=max(0, left), before=before, total=round(self._met / share))
        self._gone.update(key for key in queries if key not in answers)
        return answers


class _Alike:
    """Counts the variants that a player which looks at no images cannot tell from the clean ones."""

    def __init__(self) -> None:
        self.disturbed = self.alike = 0

    def add(self, asked: Asked) -> None:
        for trial, _ in asked:
            first, *others = (_without_image(variant.query) for variant in trial.variants)
            self.disturbed += len(others)
            self.alike += others.count(first)

    def sentence(self, player: str) -> str:
        """That the player does not look at what the probe changes: it cannot but stay the same."""
        if not self.alike:
            return ""
        if self.alike == self.disturbed:
            return f"{player} looks at no images, and this probe changes nothing else: no answer could change."
        return (
            f"{player} looks at no images: to it, {self.alike:,} of the {self.disturbed:,} disturbed queries are the "
            "same as the clean ones."
        )


def _without_image(query: Query) -> tuple[object, ...]:
    return query.question, query.choices, query.scene, query.take, query.example_id, query.framing


_RESTING: ContextVar[bool] = ContextVar("resting", default=False)


@contextmanager
def not_collecting() -> Iterator[None]:
    """Python's collector of cycles would go through all that a portion holds again and again, and find none. It rests,
    but for the time in which the player works (`collecting`)."""
    resting = gc.isenabled()
    token = _RESTING.set(resting)
    gc.disable()
    try:
        yield
    finally:
        _RESTING.reset(token)
        if resting:
            gc.enable()


@contextmanager
def collecting() -> Iterator[None]:
    """The collector works, where it rested."""
    if _RESTING.get():
        gc.enable()
    try:
        yield
    finally:
        if _RESTING.get():
            gc.disable()
