"""How long to wait for a server, how much to ask of it at once, and when to give up on it."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from pfungst.core import Answer, PlayerError

LONGEST = 30.0
"""Seconds before a request is sent again, at most."""
_CHANCE = random.Random()


@dataclass(frozen=True, slots=True)
class Usage:
    """What a player has asked of a server so far."""

    requests: int = 0
    """Requests sent, retries included."""
    answers: int = 0
    """Answers received."""
    retries: int = 0
    """Requests that had to be sent again."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    spend: float = 0.0
    """Tokens times the prices given as options, in the currency of those prices; 0 without prices."""

    def __str__(self) -> str:
        words = f"{self.requests:,} requests, {self.retries:,} retries"
        if self.prompt_tokens or self.completion_tokens:
            words += f", {self.prompt_tokens + self.completion_tokens:,} tokens"
        return words + (f", spent {self.spend:,.4f}" if self.spend else "")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the server asks to wait, from `Retry-After` (seconds or an HTTP date) or `retry-after-ms`."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "").strip()
    seconds = _number(value)
    if seconds is not None or not value:
        return seconds
    try:
        then = parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    try:
        # The server's own clock, where it tells the time: ours may be wrong.
        now = parsedate_to_datetime(headers.get("date", "")).timestamp()
    except (ValueError, TypeError, OverflowError):
        now = time.time()
    return max(0.0, then - now)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def backoff(first: float, attempt: int) -> float:
    """Seconds to wait: they double with each attempt from `first` up to `LONGEST`, and are between half and all of
    that, by chance.

    The chance keeps many askers from coming back at the same moment; it never touches an answer.
    """
    return min(LONGEST, first * 2.0 ** min(attempt, 30)) * (0.5 + 0.5 * _CHANCE.random())


class Limit:
    """How many requests may be under way at one server: additive increase, multiplicative decrease.

    It begins at the ceiling, which the user has chosen. A server that pushes back (429, `Retry-After`, no reply in
    time) is asked half as much at once, at most once a round: what was under way when the limit fell says nothing
    about the new limit. Each round of replies without a complaint adds one request, up to the ceiling.

    Latency counts as well. When replies take more than twice as long as they once did, a fifth fewer are asked at
    once for a while. If as many replies a second come then, the requests were only queueing and the lower limit
    stays; if fewer come, the questions have become harder, the old limit returns, and latency must double again
    before the next such trial. So a slower server is relieved without loss, and long replies cost no throughput.
    """

    FEWER = 0.8
    WINDOW = 16

    def __init__(self, ceiling: int) -> None:
        self._ceiling = ceiling
        self._limit = float(ceiling)
        self._cut_at = -math.inf
        self._lowest = math.inf
        self._tolerated = 2.0
        self._before: tuple[float, float] | None = None
        """Limit and replies a second before a trial with fewer; None where no trial is under way."""
        self._skip = False
        self._began, self._count, self._seconds = 0.0, 0, 0.0

    @property
    def now(self) -> int:
        return max(1, int(self._limit))

    def answered(self, seconds: float, now: float) -> None:
        """A reply came at `now` (monotonic seconds) after so many seconds."""
        if self._before is None:
            self._limit = min(float(self._ceiling), self._limit + 1 / max(1.0, self._limit))
        if not self._count:  # nothing may have been asked for a while
            self._began = max(self._began, now - seconds)
        self._count += 1
        self._seconds += seconds
        if self._count >= max(self.WINDOW, self.now):
            self._close_window(now)

    def pushed_back(self, sent_at: float, now: float) -> None:
        """The server would not, or could not, serve a request sent at `sent_at`."""
        if sent_at >= self._cut_at:
            self._limit, self._cut_at = max(1.0, self._limit / 2), now
            self._before = None
            self._open_window(now)

    def _close_window(self, now: float) -> None:
        mean, rate = self._seconds / self._count, self._count / max(1e-9, now - self._began)
        self._open_window(now)
        if self._skip:  # these were mostly sent under the limit before
            self._skip = False
            return
        self._lowest = min(self._lowest, mean)
        if self._before is not None:
            limit, earlier = self._before
            self._before = None
            if rate < 0.95 * earlier:
                self._limit = limit
                self._tolerated *= 2
        elif mean > self._tolerated * self._lowest and self._limit > 1:
            self._before = (self._limit, rate)
            self._limit = max(1.0, self._limit * self.FEWER)
            self._skip = True

    def _open_window(self, now: float) -> None:
        self._began, self._count, self._seconds = now, 0, 0.0


class PartialAnswers(PlayerError):
    """A batch that could not be finished. `answers` holds those that were received, by position in the batch."""

    def __init__(self, message: str, answers: Mapping[int, Answer]) -> None:
        super().__init__(message)
        self.answers = dict(answers)
