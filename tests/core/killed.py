"""An exam that takes its time, for a process that will be killed."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from pfungst.core import Answer, Exam, Query
from pfungst.probes.blind import Blind
from pfungst.probes.control import Control
from tests.conftest import squares


class Slow:
    """Writes down what it is asked, then takes a while to answer."""

    name, fingerprint, batch_size = "slow", "slow 1", 4

    def __init__(self, log: str) -> None:
        self._log = os.open(log, os.O_APPEND | os.O_CREAT | os.O_WRONLY)

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        os.write(self._log, "".join(f"{query.key('')}\n" for query in queries).encode())
        time.sleep(0.004)
        return [Answer("yes" if len(query.question + str(query.take)) % 3 else "no") for query in queries]


def examine(out: str, log: str) -> None:
    probes = [Control(), Blind()]
    Exam(Slow(log), squares(60), probes, lambda example, answer: float(answer.text == example.target), Path(out)).run()
