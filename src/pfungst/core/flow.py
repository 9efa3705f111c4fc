"""The flow of an exam: trials in portions, each asked as a whole, and what is remembered of them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from pfungst.core.asker import Asker
from pfungst.core.scoring import Asked, Scoring
from pfungst.core.store import AnswerStore
from pfungst.core.stored import StoredPlayer
from pfungst.core.trials import Row
from pfungst.core.types import Answer, AnsweredTrial, Example, Query, Trial

PORTION = 1 << 16
"""Queries asked about together, of all probes: a player that takes many at once is kept busy, and the exam holds no
more. Up to here an exam asks everything at once."""
HELD = 1 << 16
"""Variants of a probe up to which its trials are held until its findings are made."""

_RESTING: ContextVar[bool] = ContextVar("resting", default=False)

Answering = Callable[[Mapping[str, Query], float], Mapping[str, Answer]]
"""Gives the answers to queries by key; the number says how much of the exam is asked with these, from 0 to 1."""


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


@dataclass(frozen=True)
class Portion:
    """Trials of one probe, with the keys of their queries, and answers by key; those that failed are missing."""

    probe: str
    asked: Asked
    answers: Mapping[str, Answer]


def flow(asker: Asker, trials: Mapping[str, Iterable[Trial]], answer: Answering, examples: int) -> Iterator[Portion]:
    """The trials of the probes, in order, as they are answered."""
    waiting: dict[str, list[tuple[Trial, Row]]] = {}
    queries: dict[str, Query] = {}
    for number, (name, some) in enumerate(trials.items()):
        waiting[name] = []
        for made, trial in enumerate(some, 1):
            row = tuple(variant.query.key(asker.fingerprint) for variant in trial.variants)
            queries.update(zip(row, (variant.query for variant in trial.variants), strict=True))
            waiting[name].append((trial, row))
            if len(queries) >= PORTION:
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


class Recorded:
    """What an exam remembers of the trials of a probe: all of them where they are few, else where they are written."""

    def __init__(self, path: Path, asker: Asker, trials: Iterable[Trial], scoring: Scoring) -> None:
        self._path, self._asker, self._made, self._scoring = path, asker, trials, scoring
        self._held: list[AnsweredTrial] | None = []
        self.count: int = 0
        """Trials that were answered in full."""
        self.variants: int = 0
        self.unread: int = 0
        self.left_out: int = 0
        self.disturbed: int = 0
        """Variants besides the clean ones, of a player that looks at no images."""
        self.alike: int = 0
        """Those of them that differ from the clean one in the image at most: in nothing that such a player reads."""
        self.clean: list[tuple[Example, Answer]] = []
        """Examples and clean answers, of the first trials."""

    def add(self, portion: Portion) -> tuple[list[AnsweredTrial], list[Row]]:
        """The trials of a portion with their scores, and their keys."""
        scored, rows = self._scoring.scored(portion.asked, portion.answers)
        self.left_out += len(portion.asked) - len(scored)
        self.count += len(rows)
        self.variants += sum(map(len, rows))
        self.unread += sum(answer.unread for trial in scored for answer in trial.answers)
        self.clean += [(trial.example, trial.answers[0]) for trial in scored[: HELD - len(self.clean)]]
        if not self._asker.player.reads_images:
            for trial, _ in portion.asked:
                first, *others = (_without_image(variant.query) for variant in trial.variants)
                self.disturbed += len(others)
                self.alike += others.count(first)
        if self._held is not None:
            self._held = [*self._held, *scored] if self.variants <= HELD else None
        return scored, rows

    def trials(self) -> Sequence[AnsweredTrial]:
        """For the findings, once the file is written."""
        if self._held is not None:
            return self._held
        from pfungst.core.answered import AnsweredTrials, TrialsFile

        return AnsweredTrials(TrialsFile(self._path), self._again)

    def _again(self) -> Iterator[AnsweredTrial]:
        assert self._asker.store is not None
        known = known_answers(self._asker.store)
        for portion in flow(self._asker, {"": self._made}, known, self.count):
            yield from self._scoring.scored(portion.asked, portion.answers, asking=False)[0]


def _without_image(query: Query) -> tuple[object, ...]:
    return query.question, query.choices, query.scene, query.take, query.example_id, query.framing
