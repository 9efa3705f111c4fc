"""The exam: probes make trials, the player answers what the store does not know, probes read the answers."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pfungst.core.asker import Asker, Place
from pfungst.core.config import check_config
from pfungst.core.errors import PfungstError, PlayerError, ProbeError
from pfungst.core.files import jsonable, write_json
from pfungst.core.store import AnswerStore
from pfungst.core.trials import write_trials
from pfungst.core.types import (
    Answer,
    AnsweredTrial,
    AskingMatcher,
    AskingPart,
    DataCheckingProbe,
    Dataset,
    Example,
    Findings,
    JudgingScore,
    Matcher,
    Player,
    PreparingProbe,
    Probe,
    Progress,
    Query,
    Score,
    SearchingProbe,
    Trial,
    no_progress,
    notes_of,
    reads_ids,
    reads_scenes,
    takes,
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
    """Most queries that may fail; their trials are left out, counted and shown. None: 10, or 1% of all if that is
    more."""
    label: str = ""
    """Of a second reading of a finished run: its files stand beside those of the first, with this in their names."""
    precision: float | None = None
    """Ask each probe no longer than until its drop is known to plus or minus this (`core.adaptive`). None: ask all."""
    images: Mapping[str, int] = field(default_factory=dict)
    """Of a second reading of a run with a precision: the images that each probe asked about."""

    def run(self) -> Examined:
        """Ask, score and write the run folder."""
        if len(self.data) == 0:
            raise PfungstError(f"The data set {self.data.name} has no examples to ask about.")
        names = [probe.name for probe in self.probes]
        if len(set(names)) != len(names):
            raise ProbeError(f"Each probe may be named once, but these were: {', '.join(names)}.")
        from pfungst.core.adaptive import check_precision, stopped  # numpy waits until it is needed

        if self.precision is not None:
            check_precision(self.precision)
        for probe in self.probes:
            if isinstance(probe, DataCheckingProbe):
                probe.check_data(self.data)
        self.out.mkdir(parents=True, exist_ok=True)
        with _locked(self.out), AnswerStore(self.out / "answers.sqlite") as store:
            if not self.label:
                self._write_config()
            asker = Asker(self.player, store, budget=self.budget, progress=self.progress, place=self.place)
            trials = {probe.name: self._trials(probe, asker) for probe in self.probes}
            searched = len(asker.failures)
            examples = {example.id: example for example in self.data}
            stops: dict[str, Stop] = {}
            if self.precision is None:
                keys = self._ask(asker, trials)
            else:
                trials, stops = self._ask_in_rounds(asker, trials, store, examples, self.precision)
                keys = {name: [_keys(asker, trial) for trial in some] for name, some in trials.items()}
            failed = asker.failures[searched:]
            findings = []
            unread: dict[str, int] = {}
            left_out = 0
            said: dict[str, list[tuple[Example, Answer]]] = {}
            judged: dict[str, list[AnsweredTrial]] = {}
            for done, probe in enumerate(self.probes):
                self.progress("scoring", done, len(self.probes))
                answered, keys[probe.name], lost = self._score(trials[probe.name], keys[probe.name], store, examples)
                left_out += lost
                if not answered:
                    raise PlayerError(f"{self.player.name} answered no trial of the probe {probe.name} in full.")
                file = labelled(self.out / "trials", self.label) / f"{probe.name}.parquet"
                write_trials(file, answered, keys[probe.name])
                found = probe.findings(answered, self.seed)
                findings.append(stopped(found, stops[probe.name]) if probe.name in stops else found)
                unread[probe.name] = sum(answer.unread for trial in answered for answer in trial.answers)
                said[probe.name] = [(trial.example, trial.answers[0]) for trial in answered]
                if isinstance(self.score, JudgingScore):
                    judged[probe.name] = answered
            self.progress("scoring", len(self.probes), len(self.probes))
            told: dict[str, Any] = {"findings": findings, "unread": unread, "left out": left_out, "failed": failed}
            if stops:
                told["precision"] = stops
            judge = None
            if isinstance(self.score, JudgingScore):
                judge = told["judge"] = self.score.findings(judged, self.player, self.seed)
            write_json(labelled(self.out / "findings.json", self.label), told)
        total = sum(len(row) for rows in keys.values() for row in rows)
        return Examined(
            tuple(findings), tuple(asker.problems), sum(unread.values()), total, _longest(said), left_out,
            tuple(failed), judge, (*self._judges_notes(), *(stop.sentence(name) for name, stop in stops.items())),
        )  # fmt: skip

    def _judges_notes(self) -> tuple[str, ...]:
        """What the players that judge and read used."""
        asking: tuple[object, ...] = (self.score, self.matcher)
        players = [part.player for part in asking if isinstance(part, AskingPart)]
        return tuple(f"{player.name}, the judge: {note}" for player in players for note in notes_of(player))

    def _write_config(self) -> None:
        path = self.out / "exam.json"
        config = {
            **self.config,
            "player": {
                **self.config.get("player", {}),
                "name": self.player.name,
                "fingerprint": self.player.fingerprint,
                "reads_scenes": reads_scenes(self.player),
                "reads_ids": reads_ids(self.player),
                **({"takes": sorted(takes(self.player))} if takes(self.player) else {}),
            },
            "data": {
                **self.config.get("data", {}),
                "name": self.data.name,
                "metric": self.data.metric,
                "fingerprint": self.data.fingerprint,
                "examples": len(self.data),
                "skipped": self.data.skipped,
            },
            "probes": [{"name": probe.name, "settings": jsonable(_settings(probe))} for probe in self.probes],
            "seed": self.seed,
            **({} if self.precision is None else {"precision": self.precision}),
        }
        if path.exists():
            before = read_config(self.out)
            for part in ("player", "data"):
                if before[part]["fingerprint"] != config[part]["fingerprint"]:
                    raise PfungstError(
                        f"{self.out} holds the exam of another {part} ({before[part]['name']}, "
                        f"{before[part]['fingerprint'][:16]}). Choose another run folder."
                    )
        write_json(path, config)

    def _trials(self, probe: Probe, asker: Asker) -> list[Trial]:
        if isinstance(probe, PreparingProbe):
            probe.prepare(self.data, self.seed, self.progress)
        made: Iterator[Trial]
        if isinstance(probe, SearchingProbe):
            asker.folder = self.out / probe.name
            made = probe.search(asker, self.data, self.seed)
        else:
            made = probe.trials(self.data, self.seed)
        trials = []
        for trial in made:
            variants = tuple(
                replace(variant, query=asker.visible(variant.query, variant.example_id or trial.example_id))
                for variant in trial.variants
            )
            trials.append(replace(trial, variants=variants))
            if len(trials) % 1000 == 0:
                self.progress(f"{probe.name}: making trials", len(trials), len(self.data))
        if len(trials) >= 1000:
            self.progress(f"{probe.name}: making trials", len(self.data), len(self.data))
        if not trials:
            raise ProbeError(f"The probe {probe.name} found nothing to ask in {self.data.name}.")
        return trials

    def _ask_in_rounds(
        self,
        asker: Asker,
        trials: Mapping[str, Sequence[Trial]],
        store: AnswerStore,
        examples: Mapping[str, Example],
        precision: float,
    ) -> tuple[dict[str, list[Trial]], dict[str, Stop]]:
        """Have queries answered until every probe knows its drop well enough; returns the trials that were asked."""
        from pfungst.core.adaptive import ask_in_rounds

        most, failed = self.max_errors, len(asker.failures)
        if most is None:
            every = {key for some in trials.values() for trial in some for key in _keys(asker, trial)}
            most = max(10, len(every) // 100)

        def answer(name: str, some: Sequence[Trial]) -> list[AnsweredTrial]:
            left = most - (len(asker.failures) - failed)
            keys = self._ask(asker, {name: some}, left)
            return self._score(some, keys[name], store, examples)[0]

        return ask_in_rounds(
            self.probes, trials, examples, answer, precision=precision, seed=self.seed, images=self.images
        )

    def _ask(
        self, asker: Asker, trials: Mapping[str, Sequence[Trial]], max_errors: int | None = None
    ) -> dict[str, list[tuple[str, ...]]]:
        """Have every query answered; returns the keys of each trial's variants."""
        allowed = self.max_errors if max_errors is None else max_errors
        queries: dict[str, Query] = {}
        keys: dict[str, list[tuple[str, ...]]] = {}
        for name, group in trials.items():
            keys[name] = []
            for trial in group:
                row = _keys(asker, trial)
                queries.update(zip(row, (variant.query for variant in trial.variants), strict=True))
                keys[name].append(row)
        if isinstance(self.player, StoredPlayer) and self.player.missing:
            # What failed when the player was there is missing still; more than that would be an unfinished run.
            known = asker.store.known(queries) if asker.store is not None else {}
            if len(queries) - len(known) <= self.player.missing:
                return keys
        most = max(10, len(queries) // 100) if allowed is None else allowed
        asker.fill(queries, tolerate=most)
        return keys

    def _score(
        self,
        trials: Sequence[Trial],
        keys: Sequence[tuple[str, ...]],
        store: AnswerStore,
        examples: Mapping[str, Any],
    ) -> tuple[list[AnsweredTrial], list[tuple[str, ...]], int]:
        """The trials with all their answers, their keys, and how many lack one: those are left out."""
        answers = store.known(key for row in keys for key in row)
        scored, whole = [], []
        told: list[tuple[Trial, Example, list[tuple[Example, Answer]]]] = []
        for trial, row in zip(trials, keys, strict=True):
            if any(key not in answers for key in row):
                continue
            whole.append(row)
            example = examples[trial.example_id]
            said = []
            for variant, key in zip(trial.variants, row, strict=True):
                said.append((variant.asked(examples[variant.example_id or example.id]), answers[key]))
            told.append((trial, example, said))
        asking: tuple[object, ...] = (self.matcher, self.score)
        for part in asking:
            if isinstance(part, AskingPart):
                part.prepare([pair for *_, said in told for pair in said], self.out, self.progress)
        judging, reading = isinstance(self.score, JudgingScore), isinstance(self.matcher, AskingMatcher)
        for trial, example, said in told:
            read = tuple(
                self._read(answer, asked, reading, variant.read)
                for variant, (asked, answer) in zip(trial.variants, said, strict=True)
            )
            scores = tuple(self._judge(asked, answer, judging) for (asked, _), answer in zip(said, read, strict=True))
            scored.append(AnsweredTrial(trial, example, read, scores))
        return scored, whole, len(trials) - len(whole)

    def _judge(self, asked: Example, answer: Answer, judging: bool) -> float:
        score = self.score(asked, answer)
        if not answer.unread or judging:
            return score
        # What could not be read is not right; where the truth is unknown the score stays unknown.
        return score if math.isnan(score) else 0.0

    def _read(self, answer: Answer, asked: Example, reading: bool, own: Matcher | None) -> Answer:
        """The answer in a reply, by the matcher."""
        if self.matcher is None or answer.scores is not None:
            return answer  # chosen by its scores, not said
        if own is not None:
            text = own(answer.reply, asked.choices, asked.answer_type)
        elif reading:
            text = cast(AskingMatcher, self.matcher).read(asked, answer)
        else:
            text = self.matcher(answer.reply, asked.choices, asked.answer_type)
        if text is None:
            return replace(answer, text=answer.reply, raw=answer.reply, unread=True)
        return answer if text == answer.text else replace(answer, text=text, raw=answer.reply)


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
    """The examples and their clean answers, of the probe that asked about most."""
    left_out: int = 0
    """Trials that lack an answer: they count in no number."""
    failed: tuple[tuple[str, str], ...] = ()
    """Queries without an answer: the question, and what went wrong."""
    judge: Findings | None = None
    """How far the judge can be trusted, where a judge was the metric."""
    notes: tuple[str, ...] = ()
    """What judges used, and where probes stopped."""


def labelled(path: Path, label: str) -> Path:
    """`findings.json` with the label `exact` is `findings-exact.json`."""
    return path.with_name(f"{path.stem}-{label}{path.suffix}") if label else path


def _keys(asker: Asker, trial: Trial) -> tuple[str, ...]:
    """The names that a trial's queries have in the store."""
    return tuple(variant.query.key(asker.fingerprint) for variant in trial.variants)


def _longest(said: Mapping[str, list[tuple[Example, Answer]]]) -> tuple[tuple[Example, Answer], ...]:
    longest: list[tuple[Example, Answer]] = []
    for pairs in said.values():
        longest = pairs if len(pairs) > len(longest) else longest
    return tuple(longest)


@dataclass(frozen=True)
class StoredPlayer:
    """A player that is absent: only what it said before is known. `rescore` runs an exam with it."""

    name: str
    fingerprint: str
    reads_scenes: bool = False
    reads_ids: bool = False
    missing: int = 0
    """Queries that failed, and so have no answer."""
    takes: frozenset[str] = frozenset()

    def answer(self, queries: Sequence[Query]) -> Sequence[Answer]:
        raise PlayerError(
            f"{len(queries)} or more answers of {self.name} are not in the store. Run the exam to its end first. If an "
            "earlier version finished it, a probe may ask something else now: examine again into the same folder."
        )


def read_config(run: Path) -> dict[str, Any]:
    """The configuration of a run folder."""
    path = run / "exam.json"
    try:
        config: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
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
    fields: Mapping[str, Any] = getattr(type(probe), "__dataclass_fields__", {})
    return {name: getattr(probe, name) for name in fields}


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """One exam a run folder at a time: two would ask the same questions twice.

    An open SQLite transaction is a lock that every system has and that ends with the process, however it ends.
    """
    lock = sqlite3.connect(out / ".lock", timeout=0, isolation_level=None)
    try:
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            raise PfungstError(f"Another exam is running in {out}. Wait for it, or choose another folder.") from None
        yield
    finally:
        lock.close()
