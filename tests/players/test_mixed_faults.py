"""A whole exam of a player behind a server that fails in every way at once: it ends, and every question is told of."""

import hashlib
import os
import random
import threading
import time
from pathlib import Path

import pytest

import pfungst
from pfungst.core import Example
from tests.players.api_server import Exchange, serving

FAULTS = ("long", "429", "500", "reset", "slow", "cut")
SHARE = 0.3
TIMEOUT = 0.2


def failing(seed: int, slow: float) -> object:
    """Fails in a share of all requests, by a draw of the question, its attempt and the seed."""

    def behave(exchange: Exchange) -> None:
        draw = random.Random(hashlib.sha256(f"{seed} {exchange.prompt} {exchange.attempt}".encode()).digest())
        fault = draw.choice(FAULTS) if draw.random() < SHARE else ""
        if fault == "long":
            exchange.say("x" * ((1 << 20) + 1))
        elif fault == "429":
            exchange.fail(429, "later", {"Retry-After": "0.01"})
        elif fault == "500":
            exchange.fail(500)
        elif fault == "reset":
            exchange.hang_up()
        elif fault == "cut":
            exchange.cut()
        else:
            time.sleep(slow if fault == "slow" else draw.random() * 0.01)
            exchange.say("yes")

    return behave


def examine_through(seed: int, questions: int, out: Path, within: float) -> pfungst.Run:
    """The exam; an error where it does not end in time."""
    ended: list[pfungst.Run | BaseException] = []

    def run(url: str) -> None:
        options = {"backoff": 0.001, "timeout": TIMEOUT, "concurrency": 16, "breaker": 1000}
        data = [Example(f"q{number}", f"Is it number {number}?", answers=("yes",)) for number in range(questions)]
        try:
            ended.append(
                pfungst.examine(
                    f"openai:m@{url}", data, ["control"], out, player_options=options, max_errors=questions, seed=seed
                )
            )
        except BaseException as error:
            ended.append(error)

    with serving(failing(seed, 2 * TIMEOUT)) as server:
        thread = threading.Thread(target=run, args=(server.url,), daemon=True)
        thread.start()
        thread.join(within)
        assert ended, f"the exam of seed {seed} hangs after {server.count} requests"
    if isinstance(ended[0], BaseException):
        raise ended[0]
    return ended[0]


@pytest.mark.parametrize("seed", range(int(os.environ.get("PFUNGST_SOAK", "2"))))
def test_an_exam_ends_whatever_its_server_does(tmp_path: Path, seed: int) -> None:
    """PFUNGST_SOAK=50: so many exams, of 559 questions each."""
    questions = 559 if "PFUNGST_SOAK" in os.environ else 120
    run = examine_through(seed, questions, tmp_path, 120)
    (control,) = run.findings
    assert (control.clean.value, control.clean.n) == (1.0, questions)
