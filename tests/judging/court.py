"""A judge behind a real server on loopback, and a player whose replies need one."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from pfungst.core import Answer, Dataset, Query
from tests.conftest import squares
from tests.players.api_server import Behaviour, Exchange

FENCED = re.compile(r"---- (DATA-[0-9a-f]{16}) begins ----\n(.*)\n---- \1 ends ----", re.S)


def data_in(prompt: str) -> dict[str, Any]:
    """The object between the fences."""
    found = FENCED.findall(prompt)
    assert len(found) == 1, prompt
    told: dict[str, Any] = json.loads(found[0][1])
    return told


def honest(data: dict[str, Any]) -> str:
    """Right where the reply holds the first reference answer as a word."""
    return "CORRECT" if re.search(rf"\b{data['reference answers'][0]}\b", data["reply"], re.I) else "INCORRECT"


def judging(rule: Callable[[dict[str, Any]], str] = honest) -> Behaviour:
    def behave(exchange: Exchange) -> None:
        exchange.say(rule(data_in(exchange.prompt)))

    return behave


class Talker:
    """Answers in sentences that only a reader understands; wrong on every fifth picture, and on all blank ones."""

    name = "talker"
    fingerprint = "talker-1"
    matcher = "lenient"

    def __init__(self, data: Dataset) -> None:
        self.truth = {(one.question, one.image.digest): one for one in data if one.image is not None}

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        return [Answer(self.say(query)) for query in queries]

    def say(self, query: Query) -> str:
        known = self.truth.get((query.question, query.image.digest)) if query.image is not None else None
        if known is None:
            return "I would say maybe."
        wrong = int(known.image_id.split()[1]) % 5 == 0
        target = {"yes": "no", "no": "yes"}[str(known.target)] if wrong else known.target
        return f"Looking at it closely one is inclined to say {target} here (picture {known.image_id})."


def court(count: int = 20, questions: int = 1) -> Dataset:
    return squares(count, questions)


def spec(url: str, model: str = "umpire", **settings: Any) -> str:
    """`judge:openai:...` with quick retries."""
    given = {"backoff": 0.01, "retries": 0, "connect_timeout": 2.0, **settings}
    return f"judge:openai:{model}@{url}," + ",".join(f"{key}={value}" for key, value in given.items())
