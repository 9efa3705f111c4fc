"""The exam: probes make trials, the player answers what the store does not know, probes read the answers.

Trials flow: they are made, asked, scored and written in portions, in order, and none is held for longer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfungst.core.asker import Asker, Place
from pfungst.core.by_id import ById
from pfungst.core.config import check_config
from pfungst.core.errors import PfungstError, PlayerError, ProbeError, UsageError
from pfungst.core.files import is_plain_name, jsonable, write_json
from pfungst.core.finished import finish, finished, made_of
from pfungst.core.flow import Answering, Filling, Recorded, flow, known_answers, not_collecting
from pfungst.core.lock import locked
from pfungst.core.scoring import Scoring
from pfungst.core.store import AnswerStore
from pfungst.core.stored import StoredPlayer
from pfungst.core.trials import trials_file
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
    Score,
    Trial,
    as_player,
    as_probe,
    no_progress,
)

if TYPE_CHECKING:
    from pfungst.core.adaptive import Stop


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
    budget: int | None = None
    """Most queries that may be put to the player."""
    place: Place | None = None
    """Where probes that search do their work."""
    matcher: Matcher | None = None
    """Reads the replies; None: a reply is the answer."""
    max_errors: int | None = 0
    """Most queries that may fail; their trials are left out, counted and shown. None: 10, or 1% of all so far if that
    is more."""
    label: str = ""
    """Of a second reading of a finished run: its files stand beside those of the first, with this in their names."""
    precision: float | None = None
    """Ask each probe no longer than until its drop is known to plus or minus this (`core.adaptive`). None: ask all."""
    share: bool = False
    """Without a precision: share the budget, of queries or of the player's money, over the probes so that the one with
    the widest interval is asked next, until it is spent."""
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
        if self.seed < 0:
            raise UsageError(f"The seed must be 0 or more, not {self.seed}.")
        names = [probe.name for probe in self.probes]
        for name in names:
            # Files are called after it, and it may come from somebody else's exam.json.
            if not isinstance(name, str) or not is_plain_name(name):
                raise ProbeError(f"A probe cannot be named {name!r}: its name must be a plain file name.")
        if len(set(names)) != len(names):
            raise ProbeError(f"Each probe may be given only once, but these were given: {', '.join(names)}.")
        from pfungst.core.adaptive import check_precision, stopped  # numpy waits until it is needed

        if self.precision is not None:
            check_precision(self.precision)
        for probe in self.probes:
            probe.check_data(probe.sees(self.data))
        self.out.mkdir(parents=True, exist_ok=True)
        with locked(self.out), AnswerStore(self.out / "answers.sqlite") as store, not_collecting():
            config = self._config()
            if not self.label:
                # A folder in which nothing was answered, such as after a wrong address, is free.
                self._write_config(config, free=not len(store) and not (self.out / "findings.json").exists())
            known_by = self._known_by(config)
            if (before := finished(self.out, known_by)) is not None:
                was, found_before = before
                return Examined(found_before, (), was.unread, was.total, notes=was.notes, most=was.most, finished=True)
            asker = Asker(self.player, store, budget=self.budget, progress=self.progress, place=self.place)
            asker.reading, asker.blind = self.config.get("matcher") or "", self.data.blind
            trials: Mapping[str, Iterable[Trial]] = {probe.name: self._trials(probe, asker) for probe in self.probes}
            searched = len(asker.failures)
            scoring = Scoring(self.score, self.matcher, ById(self.data), self.out, self.progress)
            answer: Answering = Filling(asker, self.max_errors)
            stops: dict[str, Stop] = {}
            if self.precision is not None or self.share:
                trials, stops = self._ask_in_rounds(asker, trials, scoring, self.precision)
                answer = known_answers(store)
            records: dict[str, Recorded] = {}
            findings: list[Findings] = []
            answered = flow(asker, trials, answer, len(self.data))
            for name, portions in groupby(answered, key=lambda portion: portion.probe):
                self.progress("scoring", len(records), len(self.probes))
                path = labelled(self.out / "trials", self.label) / f"{name}.parquet"
                records[name] = record = Recorded(path, asker, trials[name], scoring)
                probe = self.probes[len(findings)]
                with trials_file(path, probe.role) as file:
                    for portion in portions:
                        file.add(*record.add(portion))
                    if not record.count:
                        raise PlayerError(f"{self.player.name} answered no trial of the probe {name} in full.")
                found = replace(probe.findings(record.trials(), self.seed), role=probe.role)
                if not probe.searches and (told_too := self._unseen(record)):
                    found = replace(found, verdict=f"{found.verdict} {told_too}")
                findings.append(stopped(found, stops[name]) if name in stops else found)
            findings = _corrected(findings)
            self.progress("scoring", len(self.probes), len(self.probes))
            failed = asker.failures[searched:]
            unread = {name: record.unread for name, record in records.items()}
            left_out = sum(record.left_out for record in records.values())
            told: dict[str, Any] = {"findings": findings, "unread": unread, "left out": left_out, "failed": failed}
            if stops:
                told["precision"] = stops
            judge = None
            if isinstance(self.score, JudgingScore):
                judged = {name: record.trials() for name, record in records.items()}
                judge = told["judge"] = self.score.findings(judged, self.player, self.seed)
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
            (*scoring.notes(), *_lost(asker.failures[:searched]), *(stop.sentence(n) for n, stop in stops.items())),
            longest.count,
        )  # fmt: skip

    def _unseen(self, record: Recorded) -> str:
        """That the player does not look at what the probe changes: it cannot but stay the same."""
        if not record.alike:
            return ""
        if record.alike == record.disturbed:
            return (
                f"{self.player.name} looks at no images, and this probe changes nothing else: no answer could change."
            )
        return (
            f"{self.player.name} looks at no images: to it, {record.alike:,} of the {record.disturbed:,} disturbed "
            "queries are the same as the clean ones."
        )

    def _config(self) -> dict[str, Any]:
        return {
            **self.config,
            "player": {
                **self.config.get("player", {}),
                "name": self.player.name,
                "fingerprint": self.player.fingerprint,
                "reads_scenes": bool(self.player.reads_scenes),
                "reads_ids": bool(self.player.reads_ids),
                **({} if self.player.reads_images else {"reads_images": False}),
                **({"takes": sorted(self.player.takes)} if self.player.takes else {}),
            },
            "data": {
                **self.config.get("data", {}),
                "name": self.data.name,
                "metric": self.data.metric,
                "fingerprint": self.data.fingerprint,
                "examples": len(self.data),
                "originals": len(self.data.originals),
                "skipped": self.data.skipped,
            },
            "probes": [{"name": probe.name, "settings": jsonable(_settings(probe))} for probe in self.probes],
            "seed": self.seed,
            **({} if self.precision is None else {"precision": self.precision}),
            **({"share": True} if self.share else {}),
        }

    def _known_by(self, config: Mapping[str, Any]) -> str:
        """What the exam is made of, by which a finished run is known again; empty where it must be done anyway."""
        parts = (*self.probes, self.score, self.matcher)
        asked_for = isinstance(self.player, StoredPlayer) or self.label or self.precision is not None or self.share
        return "" if asked_for or any(isinstance(part, AskingPart) for part in parts) else made_of(config, parts)

    def _write_config(self, config: Mapping[str, Any], free: bool) -> None:
        path = self.out / "exam.json"
        if path.exists() and not free:
            before = read_config(self.out)
            for part in ("player", "data"):
                if before[part]["fingerprint"] != config[part]["fingerprint"]:
                    raise PfungstError(
                        f"{self.out} holds the exam of another {part} ({before[part]['name']}, "
                        f"{before[part]['fingerprint'][:16]}). Choose another run folder."
                    )
        write_json(path, config)

    def _trials(self, probe: Probe, asker: Asker) -> Iterable[Trial]:
        """What the probe asks, as the player may see it; whoever goes through it has it made."""
        data = probe.sees(self.data)
        probe.prepare(data, self.seed, self.progress)
        if probe.searches:
            asker.folder = self.out / probe.name
            return list(_Visible(self, data, probe, asker, lambda: probe.search(asker, data, self.seed)))
        return _Visible(self, data, probe, asker, lambda: probe.trials(data, self.seed))

    def _ask_in_rounds(
        self, asker: Asker, trials: Mapping[str, Iterable[Trial]], scoring: Scoring, precision: float | None
    ) -> tuple[dict[str, list[Trial]], dict[str, Stop]]:
        """Have queries answered until every probe knows its drop well enough; returns the trials that were asked."""
        from pfungst.core.adaptive import ask_in_rounds

        made = {name: list(some) for name, some in trials.items()}
        most, errors = self.max_errors, asker.errors
        if most is None:
            every = {v.query.key(asker.fingerprint) for some in made.values() for trial in some for v in trial.variants}
            most = max(10, len(every) // 100)

        def answer(name: str, some: Sequence[Trial]) -> list[AnsweredTrial]:
            left = most - (asker.errors - errors)
            portions = flow(asker, {name: some}, Filling(asker, left), len(some))
            return [trial for portion in portions for trial in scoring.scored(portion.asked, portion.answers)[0]]

        return ask_in_rounds(
            self.probes, made, scoring.examples, answer, precision=precision, seed=self.seed, images=self.images
        )


def _corrected(findings: Sequence[Findings]) -> list[Findings]:
    """The findings of all probes, the tests of their drops corrected for their number."""
    from pfungst.core.stats import holm

    tests = [None if one.drop is None else one.drop.p for one in findings]
    p_values = holm([math.nan if p is None else p for p in tests])
    return [replace(one, p_holm=p) for one, p in zip(findings, p_values, strict=True)]


def _lost(failures: Sequence[tuple[str, str]]) -> Iterator[str]:
    """That queries of a search got no answer, and why. It counts them itself."""
    if failures:
        question, error = failures[0]
        yield f"{len(failures):,} queries of the search got no answer. The first was about '{question:.80}': {error}"


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
    left_out: int = 0
    """Trials that lack an answer: they count in no number."""
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


def labelled(path: Path, label: str) -> Path:
    """`findings.json` with the label `exact` is `findings-exact.json`."""
    return path.with_name(f"{path.stem}-{label}{path.suffix}") if label else path


def read_config(run: Path) -> dict[str, Any]:
    """The configuration of a run folder."""
    path = run / "exam.json"
    try:
        config: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        if (run / "game.json").exists():
            raise PfungstError(
                f"{run} was written by `pfungst play` of an earlier version, whose folders this version cannot read. "
                "Play again into a new folder."
            ) from None
        raise PfungstError(f"{run} is not a run folder: it has no exam.json.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise PfungstError(f"{path} cannot be read ({error}).") from error
    try:
        check_config(config)
    except ValueError as error:
        raise PfungstError(f"{path} is not the configuration of an exam ({error}).") from None
    return config


def _settings(probe: Probe) -> dict[str, Any]:
    return {one.name: getattr(probe, one.name) for one in fields(probe)} if is_dataclass(probe) else {}
