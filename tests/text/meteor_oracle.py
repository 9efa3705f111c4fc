"""pycocoevalcap's METEOR: its jar, asked for many pairs at once."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import threading
from collections.abc import Sequence
from functools import lru_cache

import pytest

from pfungst.text import tokenize
from pfungst.text.meteor.words import JAR, folder

needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="the published METEOR is a Java program")


@lru_cache(maxsize=1)
def _jar() -> subprocess.Popen[bytes]:
    # One thread collects garbage: two would get in the way of the tests beside it.
    command = ["java", "-XX:+UseSerialGC", "-jar", "-Xmx2G", JAR, "-", "-", "-stdio", "-l", "en", "-norm"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=folder(), stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)

    def stop() -> None:
        process.kill()
        process.wait()

    atexit.register(stop)
    return process


def published(pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Scores of (reference, hypothesis) pairs, in the protocol that pycocoevalcap speaks with the jar."""
    jar = _jar()
    assert jar.stdin is not None and jar.stdout is not None
    reply = jar.stdout
    lines = [f"SCORE ||| {' '.join(tokenize(one))} ||| {' '.join(tokenize(two))}\n" for one, two in pairs]
    # Both pipes are small: write from a second thread while the answers are read.
    writer = threading.Thread(target=_write, args=(jar, "".join(lines)))
    writer.start()
    facts = [reply.readline().decode().strip() for _ in lines]
    writer.join()
    scores: list[float] = []
    for first in range(0, len(facts), 200):
        some = facts[first : first + 200]
        _write(jar, "EVAL" + "".join(f" ||| {fact}" for fact in some) + "\n")
        scores += [float(reply.readline()) for _ in some]
        reply.readline()  # the score of all together
    return scores


def _write(jar: subprocess.Popen[bytes], text: str) -> None:
    assert jar.stdin is not None
    jar.stdin.write(text.encode())
    jar.stdin.flush()
