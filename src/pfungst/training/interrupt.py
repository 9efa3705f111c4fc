"""Ctrl-C between two steps, never within one: half a step cannot be resumed."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def deferred(terminate: bool = False) -> Iterator[Callable[[], bool]]:
    """Within, Ctrl-C is not raised: the function given says whether it was pressed. Pressed again, it is raised.

    terminate: the same for SIGTERM, by which a cluster takes a machine back and `timeout` ends a command, but once is
        enough: it may reach a process directly and from the one that started it.
    In other threads than the main one, and where somebody else handles the signal, nothing changes.
    """
    usual = {signal.SIGINT: signal.default_int_handler, **({signal.SIGTERM: signal.SIG_DFL} if terminate else {})}
    mine = threading.current_thread() is threading.main_thread()
    heard = {one: how for one, how in usual.items() if mine and signal.getsignal(one) is how}
    pressed = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed and number == signal.SIGINT:
            raise KeyboardInterrupt
        pressed = True

    for one in heard:
        signal.signal(one, note)
    try:
        yield lambda: pressed
    finally:
        for one, how in heard.items():
            signal.signal(one, how)
