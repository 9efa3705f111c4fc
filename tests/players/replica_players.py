"""Players that die, hang, leak and fork, for the tests of replicas. State that outlives a copy lies in a folder."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from pfungst.core import Answer, Needs, Query


def mark(folder: str, name: str) -> int:
    """Count a call: how many there were before."""
    before = len(list(Path(folder).glob(f"{name}-*"))) if folder else 0
    if folder:
        (Path(folder) / f"{name}-{time.monotonic_ns()}-{os.getpid()}").touch()
    return before


class Batched:
    """Answers in batches of four with its process id; may die, hang, leak, fork or fail at words in the question."""

    name = "batched"
    fingerprint = "batched 1"
    batch_size = 4
    needs = Needs(memory=2.0)

    def __init__(self, folder: str = "", start: str = "") -> None:
        self.folder = folder
        self.leaked: list[bytes] = []
        mark(folder, "started")
        if start == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if start == "fail":
            raise RuntimeError("no weights here")

    def answer(self, queries: list[Query]) -> list[Answer]:
        mark(self.folder, "batch")
        return [self.one(query) for query in queries]

    def one(self, query: Query) -> Answer:
        question = query.question
        if "poison" in question or ("once" in question and not mark(self.folder, "once")):
            os.kill(os.getpid(), signal.SIGKILL)
        if "hang" in question and not mark(self.folder, "hang"):
            time.sleep(600)
        if "leak" in question:
            self.leaked.append(os.urandom(1 << 26))
        if "fork" in question and os.fork() == 0:
            time.sleep(0.2)  # the child goes on as if it were the copy
        if "orphan" in question and not mark(self.folder, "orphan"):
            if os.fork() == 0:
                time.sleep(600)
                os._exit(0)
            os.kill(os.getpid(), signal.SIGKILL)  # its child holds the pipe
        if "fail" in question:
            raise ValueError("I do not like this one")
        return Answer(f"{len(question)} {query.image.digest[:6] if query.image else ''}", confidence=0.5)


class Where(Batched):
    """Says which process answers, once two have been asked."""

    name, fingerprint = "where", "where 1"

    def one(self, query: Query) -> Answer:
        (Path(self.folder) / f"asked-{os.getpid()}").touch()
        while len(list(Path(self.folder).glob("asked-*"))) < 2:
            time.sleep(0.02)
        return Answer(f"{os.getpid()} {os.environ.get('OMP_NUM_THREADS')}")


def echo(image: object, question: str) -> str:
    """A function: it is asked one by one."""
    return question.upper()
