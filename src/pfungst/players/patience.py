"""How long to wait for a server, and when to give up on it."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from pfungst.core import Answer, PlayerError


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


class Backoff:
    """Waits that double from `first` up to `longest` seconds, each between half and all of it, by chance.

    The chance keeps many askers from coming back at the same moment; it never touches an answer.
    """

    def __init__(self, first: float, longest: float = 30.0) -> None:
        self._first = first
        self._longest = longest
        self._random = random.Random()

    def delay(self, attempt: int) -> float:
        return min(self._longest, self._first * 2.0 ** min(attempt, 30)) * (0.5 + 0.5 * self._random.random())


class Gate:
    """Holds every asker back until a moment: when a server asks one to wait, it means all."""

    def __init__(self) -> None:
        self._open_at = 0.0
        self._lock = threading.Lock()

    def close_for(self, seconds: float) -> None:
        with self._lock:
            self._open_at = max(self._open_at, time.monotonic() + seconds)

    def wait(self, stop: threading.Event) -> None:
        while (left := self._open_at - time.monotonic()) > 0 and not stop.is_set():
            stop.wait(left)


class Breaker:
    """Opens after `limit` failures in a row without one success: the server is dead, and asking on is no use."""

    def __init__(self, limit: int, server: str) -> None:
        self._limit = limit
        self._server = server
        self._failures = 0
        self._last = ""
        self._lock = threading.Lock()

    def success(self) -> None:
        with self._lock:
            self._failures = 0

    def failure(self, reason: str) -> None:
        with self._lock:
            self._failures += 1
            self._last = reason

    def check(self) -> None:
        with self._lock:
            if self._failures < self._limit:
                return
            failures, last = self._failures, self._last
            # Closed again: whoever asks later, after mending the server, starts afresh.
            self._failures = 0
        raise ServerDead(
            f"The server at {self._server} failed {failures} times in a row and is considered down (last: {last}). "
            f"Start it or check the address, and run again: answers already received are kept."
        )


class ServerDead(PlayerError):
    """Nothing answers any more."""


class PartialAnswers(PlayerError):
    """A batch that could not be finished. `answers` holds those that were received, by position in the batch."""

    def __init__(self, message: str, answers: Mapping[int, Answer]) -> None:
        super().__init__(message)
        self.answers = dict(answers)
