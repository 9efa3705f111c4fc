"""Asking a player, in batches that can be committed as they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pfungst.core.errors import PfungstError, PlayerError
from pfungst.core.types import Answer, Player, Query

COMMIT_EVERY_SECONDS = 1.0
COMMIT_EVERY_ANSWERS = 32
DEFAULT_BATCH = 32


def ask_all(player: Player, queries: Sequence[tuple[str, Query]]) -> Iterator[list[tuple[str, Query, Answer]]]:
    """Answers in batches fit to be committed.

    A player with `answer_iter(queries)` (yields (index, answer) as answers come in, in any order) is given everything
    and committed every second; any other player is asked batch by batch.
    """
    if not queries:
        return
    stream = getattr(player, "answer_iter", None)
    if stream is not None:
        yield from _ask_stream(player, stream, queries)
        return
    size = int(getattr(player, "batch_size", DEFAULT_BATCH))
    for start in range(0, len(queries), size):
        batch = queries[start : start + size]
        with _explained(player, batch[0][1]):
            answers = list(player.answer([query for _, query in batch]))
        if len(answers) != len(batch):
            raise PlayerError(f"{player.name} was asked {len(batch)} questions and gave {len(answers)} answers.")
        yield [(key, query, _valid(player, a, query)) for (key, query), a in zip(batch, answers, strict=True)]


def _ask_stream(
    player: Player,
    stream: Callable[[Sequence[Query]], Iterator[tuple[int, Answer]]],
    queries: Sequence[tuple[str, Query]],
) -> Iterator[list[tuple[str, Query, Answer]]]:
    pending: list[tuple[str, Query, Answer]] = []
    came: set[int] = set()
    last = time.monotonic()
    failure: BaseException | None = None
    try:
        with _explained(player, queries[0][1]):
            for index, answer in stream([query for _, query in queries]):
                if index in came or not 0 <= index < len(queries):
                    raise PlayerError(f"{player.name} answered query number {index} twice, or was never asked it.")
                came.add(index)
                key, query = queries[index]
                pending.append((key, query, _valid(player, answer, query)))
                if len(pending) >= COMMIT_EVERY_ANSWERS or time.monotonic() - last > COMMIT_EVERY_SECONDS:
                    yield pending
                    pending, last = [], time.monotonic()
    except (PfungstError, KeyboardInterrupt) as error:
        # What was answered before the failure is paid for: it goes to the store first.
        failure = error
    if pending:
        yield pending
    if failure is not None:
        raise failure
    if len(came) != len(queries):
        raise PlayerError(f"{player.name} was asked {len(queries)} questions and gave {len(came)} answers.")


def _valid(player: Player, answer: Answer, query: Query) -> Answer:
    if not isinstance(answer, Answer) or not isinstance(answer.text, str):
        raise PlayerError(
            f"{player.name} must answer with pfungst.core.Answer(text), but gave {type(answer).__name__} "
            f"to {query.question!r:.80}."
        )
    if answer.scores is not None and len(answer.scores) != len(query.choices):
        raise PlayerError(
            f"{player.name} gave {len(answer.scores)} scores for {len(query.choices)} choices "
            f"to {query.question!r:.80}."
        )
    return answer


@contextmanager
def _explained(player: Player, query: Query) -> Iterator[None]:
    try:
        yield
    except PfungstError:
        raise
    except Exception as error:
        raise PlayerError(
            f"{player.name} failed near the question {query.question!r:.80}: {type(error).__name__}: {error}. "
            "The answers before it are kept; run the same command again to go on."
        ) from error
