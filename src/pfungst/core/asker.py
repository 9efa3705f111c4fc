"""The asker: the only one who asks a player.

Whatever wants an answer goes through it: the exam, probes that search, builders that mine a player's mistakes. It shows
a player only what it may see, asks nothing that the store knows, commits answers as they come, keeps to a budget and
tells how far it is.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path

from pfungst.core.errors import (
    BrokenImage,
    BudgetSpent,
    DataError,
    NoAnswer,
    PfungstError,
    PlayerDied,
    PlayerError,
    QueriesFailed,
    StoreError,
    ended,
)
from pfungst.core.images import NamedImage
from pfungst.core.store import AnswerStore
from pfungst.core.types import Answer, Example, Player, Progress, Query, as_player, no_progress

TELL_EVERY_SECONDS = 0.1
UNSAVED_SECONDS = 0.002
"""Work of a player that a kill may lose beside what is in flight: a commit for each batch would cost more than that."""
PATIENCE = 5
"""Failures in a row after which a player is considered down."""
LONGEST_ANSWER = 1 << 20
"""Characters. A report of longer ones could not be opened; a million is far beyond what any model says at once."""

_ASKING_NOBODY: ContextVar[bool] = ContextVar("asking_nobody", default=False)

Source = Callable[[], tuple[Player, Sequence[Example]]]
"""Makes the player and its examples where the work runs. For other processes it must be importable by name."""


@dataclass(frozen=True)
class Place:
    """Where long work runs. What comes out is the same everywhere."""

    on: str = "local"
    """`local`, `processes`, `ray` ..., as in `pfungst.compute`."""
    workers: int | None = None
    """Pieces of work at once; None: one per core."""
    source: Source | None = None
    """Makes player and examples in another process; needed for any place but `local`."""
    devices: tuple[str, ...] = ()
    """Devices of this machine that share the work, a process each: `cuda:0`, `cuda:1`."""


class NobodyAsked(PfungstError):
    """A player would have had to be asked where nobody may be."""


@contextmanager
def asking_nobody() -> Iterator[None]:
    """Inside it no player is asked, whoever wants to: NobodyAsked is raised where the store does not know an answer."""
    token = _ASKING_NOBODY.set(True)
    try:
        yield
    finally:
        _ASKING_NOBODY.reset(token)


class Asker:
    """Puts queries to a player, through an answer store where there is one.

    player: who is asked.
    store: what is in it is not asked again, and answers go into it as they come.
    budget: most queries that may be put to the player; answers from the store are free. BudgetSpent is raised after.
    patience: failures in a row after which `ask` raises PlayerDied.
    progress: told about every batch.
    folder: where a searching probe may keep what it found, None outside an exam.
    place: where a search may run.

    >>> Asker(player).answers([Query("How many cubes are there?", image)])
    """

    def __init__(
        self,
        player: Player,
        store: AnswerStore | None = None,
        *,
        budget: int | None = None,
        patience: int = PATIENCE,
        progress: Progress = no_progress,
        folder: Path | None = None,
        place: Place | None = None,
    ) -> None:
        self.player: Player = as_player(player)
        self.store = store
        self.budget = budget
        self.folder = folder
        self.place: Place = place or Place()
        self.progress = progress
        self.reads_scenes: bool = self.player.reads_scenes
        self.reads_ids: bool = self.player.reads_ids
        self.takes: frozenset[str] = frozenset(self.player.takes)
        self.fingerprint: str = str(player.fingerprint)
        self.asked: int = 0
        """Answers the player gave."""
        self.recalled: int = 0
        """Answers that came from the store."""
        self.reused: int = 0
        """Those of them that were there before this run."""
        self.failed: int = 0
        """Queries that got no answer."""
        self.failures: list[tuple[str, str]] = []
        """Their questions and what went wrong."""
        self.errors: int = 0
        """Those of them that count: of all queries about one broken image, the first."""
        self.broken: set[str] = set()
        """What was said about broken images."""
        self.last_error: str = ""
        self.expected = 0
        """Most queries of a search, for its progress; a search that knows says it here."""
        self.blind: bool = False
        """Whether the user wants to ask without images: those that are only named stay in the keys."""
        self.reading: str = ""
        """Name of the matcher by which a search reads replies; empty: the player's own, if it has one."""
        self.left_out: dict[str, int] = {}
        """By probe, the trials that a search did not make because a query got no answer."""
        self.problems: list[str] = []
        """What a search could not finish, in sentences; the exam passes them on to the user."""
        self._patience = patience
        self._failures_in_a_row = 0
        self._last_failure: PfungstError | None = None
        self._last_ones: Callable[[], bool] = _never
        """Whether so few queries are open that all of them may fail: nobody needs to know then whether the player is
        down."""

    def visible(self, query: Query, example_id: str = "") -> Query:
        """What the player may see of a query about this example."""
        if query.scene is not None and not self.reads_scenes:
            query = replace(query, scene=None)
        if query.framing is not None:
            query = replace(query, framing=query.framing.within(self.takes))
        return replace(query, example_id=example_id) if self.reads_ids and example_id else query

    def answers(self, queries: Sequence[Query], what: str = "asking") -> list[Answer]:
        """One answer per query, in order. Raises PlayerError where the player fails; what came before is stored."""
        keys, seen = self._named(queries)
        known = self.fill(dict(zip(keys, seen, strict=True)), what)
        return [known[key] for key in keys]

    def ask(self, queries: Sequence[Query]) -> list[Answer | None]:
        """One answer per query, in order; None where the player failed.

        Where a batch fails its queries are asked one by one. One that fails alone is counted, and after `patience` of
        these in a row PlayerDied is raised.
        """
        keys, seen = self._named(queries)
        known = self._recall(keys)
        open_queries = {key: query for key, query in zip(keys, seen, strict=True) if key not in known}

        def tell() -> None:
            done = self.asked + self.recalled
            self.progress(self._with_usage("searching"), done, max(done, self.expected))

        self._put(list(open_queries.items()), known, tell, None)
        return [known.get(key) for key in keys]

    def fill(
        self,
        queries: Mapping[str, Query],
        what: str = "asking",
        tolerate: int = 0,
        *,
        before: int = 0,
        total: int | None = None,
    ) -> dict[str, Answer]:
        """Have all of these answered; returns the answers by key. Keys are those of `Query.key`.

        tolerate: most queries that may fail; those have no answer, are counted in `failed` and named in `failures`.
            One more, or a player that fails on everything, raises the error. All queries about one broken image count
            as one.
        before, total: where these are a part of more, for the progress.
        """
        known = self._recall(list(queries))
        open_queries = [(key, query) for key, query in queries.items() if key not in known]
        total, told = before + len(queries) if total is None else total, 0.0
        self.progress(what, before + len(known), total)

        def tell() -> None:
            nonlocal told
            if time.monotonic() - told > TELL_EVERY_SECONDS or len(known) == len(queries):
                told = time.monotonic()
                self.progress(self._with_usage(what), before + len(known), total)

        few = tolerate
        if len(open_queries) > min(tolerate, len(known)):  # else they failed before, it may be, and may fail again
            few = min(tolerate, 2 * self._patience)
        self._last_ones = lambda: len(queries) - len(known) <= min(few, len(known))
        try:
            # What a search before this gave up does not count.
            self._put(open_queries, known, tell, tolerate and self.errors + tolerate)
        finally:
            self._last_ones = _never
        if self._last_failure is not None and not known:
            raise self._last_failure
        if len(known) < len(queries):
            self.progress(self._with_usage(what), before + len(known), total)
        return known

    def still_up(self, asked: int = 0, recalled: int = 0) -> None:
        """Raise PlayerDied where the last thing the player did was to fail.

        asked, recalled: how many answers there were when this began. Where all others are recalled, what fails failed
        before, and says nothing of the player.
        """
        if self._failures_in_a_row and (self.asked > asked or self.recalled == recalled):
            raise self._death()
        self._failures_in_a_row = 0

    def _named(self, queries: Sequence[Query]) -> tuple[list[str], list[Query]]:
        seen = [self.visible(query) for query in queries]
        if self.store is None:
            # Without a store the queries need no names, and naming is what costs most for a quick player.
            return [str(number) for number in range(len(seen))], seen
        return [query.key(self.fingerprint) for query in seen], seen

    def _recall(self, keys: Sequence[str]) -> dict[str, Answer]:
        if self.store is None:
            return {}
        before = self.store.reread
        known = self.store.known(keys)
        self.recalled += len(known)
        self.reused += self.store.reread - before
        return known

    def _put(
        self, items: list[tuple[str, Query]], known: dict[str, Answer], tell: Callable[[], None], tolerate: int | None
    ) -> None:
        """Ask everything. What fails together is asked one by one; what fails alone is given up, `tolerate` times."""
        at_once = 1 if self.player.streams else self.player.batch_size
        while items:
            try:
                for batch in self._batches(items):
                    known.update((key, answer) for key, _, answer in batch)
                    tell()
                return
            except (BudgetSpent, NobodyAsked, PlayerDied, StoreError):
                raise
            except QueriesFailed as error:
                if tolerate == 0:
                    raise
                # Those that were answered meanwhile show that the player is up.
                in_a_row = len(error.failed) == len(items)
                for place, sentence in error.failed.items():
                    kind = BrokenImage if place in error.images else PlayerError
                    self._give_up(items[place][1], kind(sentence), tolerate, in_a_row)
                return
            except PfungstError as error:
                if tolerate == 0:
                    raise
                alone = len(items) == 1
                items = [item for item in items if item[0] not in known]
                # A player that is asked batch by batch failed in the first batch without an answer; of those that
                # stream, the first without an answer is the one that failed, or all that are left failed.
                suspects, items = items[:at_once], items[at_once:]
                while suspects:
                    item = suspects.pop(0)
                    if alone:
                        self._give_up(item[1], error, tolerate)
                        return
                    self._put([item], known, tell, tolerate)
                    if self._failures_in_a_row and items:  # the next may be about the same image: one from elsewhere
                        suspects.insert(0, items.pop(len(items) // 2))

    def _batches(self, items: Sequence[tuple[str, Query]]) -> Iterator[list[tuple[str, Query, Answer]]]:
        """Answers in batches, stored as they come: only those of a player too quick for that are gathered first."""
        if items and _ASKING_NOBODY.get():
            raise NobodyAsked(f"{self.player.name} would have to be asked {len(items):,} questions first.")
        allowed = items if self.budget is None else items[: max(0, self.budget - self.asked)]
        unsaved: list[tuple[str, Query, Answer]] = []
        since, process = time.monotonic(), os.getpid()
        try:
            for batch in _ask_all(self.player, [*map(_without_name, allowed)] if self.blind else allowed):
                _leave_if_forked(process)
                unsaved += batch
                if self.player.streams or time.monotonic() - since > UNSAVED_SECONDS:
                    self._save(unsaved)
                    unsaved, since = [], time.monotonic()
                self.asked += len(batch)
                self._failures_in_a_row = 0
                yield batch
        finally:
            _leave_if_forked(process)
            self._save(unsaved)
        if len(allowed) < len(items):
            raise BudgetSpent(
                f"The budget of {self.budget:,} queries to {self.player.name} is spent. The answers so far are kept: "
                "run the same command with a larger budget to continue."
            )

    def _save(self, answered: Sequence[tuple[str, Query, Answer]]) -> None:
        if self.store is not None and answered:
            self.store.add(self.fingerprint, answered)

    def _with_usage(self, what: str) -> str:
        return what if self.player.usage is None else f"{what} · {self.player.usage}"

    def _give_up(self, query: Query, error: PfungstError, tolerate: int | None, in_a_row: bool = True) -> None:
        self.last_error, self._last_failure = ended(str(error)), error
        self.failed += 1
        self.failures.append((query.question, self.last_error))
        self.errors += self.last_error not in self.broken
        if isinstance(error, BrokenImage):
            self.broken.add(self.last_error)
        if tolerate is not None and self.errors > tolerate:
            raise PlayerError(
                f"{self.player.name} failed on {self.errors} queries, more than the {tolerate} allowed. The last: "
                f"{self.last_error} Its answers are kept: run the same command again to try the rest, or allow more "
                "with --max-errors."
            ) from error
        # a broken image says nothing about the player, however often it is asked about
        self._failures_in_a_row += in_a_row and not isinstance(error, NoAnswer | DataError)
        if self._failures_in_a_row >= self._patience and not self._last_ones():
            raise self._death()

    def _death(self) -> PlayerDied:
        # Whoever goes on after this starts with fresh patience.
        times, self._failures_in_a_row = self._failures_in_a_row, 0
        return PlayerDied(
            f"{self.player.name} failed on the last {times} question{'s' * (times > 1)} and is considered down "
            f"({self.last_error}) Its earlier answers are kept; run the same command again to resume."
        )


def _without_name(item: tuple[str, Query]) -> tuple[str, Query]:
    key, query = item
    return key, replace(query, image=None) if isinstance(query.image, NamedImage) else query


def _never() -> bool:
    return False


def _leave_if_forked(process: int) -> None:
    """End a process that the player forked and that came back from it: two would write into one store."""
    if os.getpid() != process:
        os._exit(0)


def _ask_all(player: Player, queries: Sequence[tuple[str, Query]]) -> Iterator[list[tuple[str, Query, Answer]]]:
    """Answers in batches fit to be committed: a streaming player's one by one, any other's batch by batch."""
    if not queries:
        return
    if player.streams:
        yield from _ask_stream(player, queries)
        return
    size = player.batch_size
    for start in range(0, len(queries), size):
        batch = queries[start : start + size]
        with _explained(player, batch[0][1]):
            answers = list(player.answer([query for _, query in batch]))
        if len(answers) != len(batch):
            raise PlayerError(f"{player.name} was asked {len(batch)} questions and gave {len(answers)} answers.")
        yield [(key, query, _valid(player, a, query)) for (key, query), a in zip(batch, answers, strict=True)]


def _ask_stream(player: Player, queries: Sequence[tuple[str, Query]]) -> Iterator[list[tuple[str, Query, Answer]]]:
    """As they come: a reply may be paid for, so it is stored before the next is waited for."""
    came: set[int] = set()
    with _explained(player, queries[0][1]):
        for burst in player.answer_bursts([query for _, query in queries]):
            batch: list[tuple[str, Query, Answer]] = []
            try:
                for index, answer in burst:
                    if index in came or not 0 <= index < len(queries):
                        raise PlayerError(f"{player.name} answered query number {index} twice, or was never asked it.")
                    came.add(index)
                    key, query = queries[index]
                    batch.append((key, query, _valid(player, answer, query)))
            except PfungstError:
                if batch:
                    yield batch
                raise
            yield batch
    if len(came) != len(queries):
        raise PlayerError(f"{player.name} was asked {len(queries)} questions and gave {len(came)} answers.")


def _valid(player: Player, answer: Answer, query: Query) -> Answer:
    if not isinstance(answer, Answer) or not isinstance(answer.text, str):
        raise PlayerError(
            f"{player.name} must answer with pfungst.core.Answer(text), but gave {type(answer).__name__} "
            f"to {query.question[:80]!r}."
        )
    if len(answer.text) > LONGEST_ANSWER:
        raise PlayerError(
            f"{player.name} answered {query.question[:80]!r} with {len(answer.text):,} characters. At most "
            f"{LONGEST_ANSWER:,} are accepted as an answer."
        )
    if answer.scores is not None and len(answer.scores) != len(query.choices):
        raise PlayerError(
            f"{player.name} gave {len(answer.scores)} scores for {len(query.choices)} choices "
            f"to {query.question[:80]!r}."
        )
    try:
        return _plain(answer)
    except (TypeError, ValueError) as error:
        raise PlayerError(
            f"{player.name} gave an answer to {query.question[:80]!r} that cannot be stored ({error})."
        ) from None


def _plain(answer: Answer) -> Answer:
    """With the numbers and texts of Python itself: those of numpy or torch would be read back as others."""

    def text(value: str | None) -> str:
        return str.__str__(value or "")

    return Answer(
        text(answer.text),
        _probability(answer.confidence),
        None if answer.scores is None else tuple(float(score) for score in answer.scores),
        None if answer.raw is None else text(answer.raw),
        text(answer.thinking),
        text(answer.stop),
        None if answer.input_tokens is None else int(answer.input_tokens),
        None if answer.output_tokens is None else int(answer.output_tokens),
        None if answer.seconds is None else float(answer.seconds),
        answer.unread,
    )


def _probability(confidence: float | None) -> float | None:
    """A confidence from 0 to 1; single precision may miss these by a little."""
    value = math.nan if confidence is None else float(confidence)
    if math.isnan(value):
        return None
    if not -0.001 <= value <= 1.001:
        raise ValueError(f"its confidence is {value:g}, not a number from 0 to 1")
    return min(1.0, max(0.0, value))


@contextmanager
def _explained(player: Player, query: Query) -> Iterator[None]:
    try:
        yield
    except PfungstError:
        raise
    except (Exception, SystemExit) as error:  # a model that leaves must not end the command as if all were done
        raise PlayerError(
            f"{player.name} failed near the question {query.question[:80]!r}: {type(error).__name__}: {error}. "
            "The answers before it are kept; run the same command again to resume."
        ) from error
