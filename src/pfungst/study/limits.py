"""Rate limits: how often somebody may do something."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from pfungst.web.security import Refused

_KEPT = 20_000
"""Visitors that are remembered."""


@dataclass
class Limit:
    """A bucket for each visitor: `burst` at once, then `per_second` more."""

    per_second: float
    burst: int
    clock: Callable[[], float] = time.monotonic
    _left: OrderedDict[Hashable, tuple[float, float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def check(self, who: Hashable) -> None:
        """Count one; Refused where it is one too many."""
        now = self.clock()
        with self._lock:
            left, at = self._left.pop(who, (float(self.burst), now))
            left = min(self.burst, left + (now - at) * self.per_second)
            self._left[who] = (left - 1 if left >= 1 else left, now)
            while len(self._left) > _KEPT:
                self._left.popitem(last=False)
        if left < 1:
            raise Refused(
                429, "There were too many requests in a short time. Please wait a moment, then load the page again."
            )
