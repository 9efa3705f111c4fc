"""Players whose weaknesses are known, so that a game can be right or wrong about them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pfungst.core import Answer, Example, Query
from pfungst.world import answer, answer_text


class ScenePlayer:
    """Answers from the scene with the plain engine; `weak(scene)` says where it gives another answer instead."""

    reads_scenes = True
    reads_images = False

    def __init__(
        self,
        examples: Sequence[Example],
        weak: Callable[[Mapping[str, Any]], bool] = lambda scene: False,
        name: str = "engine",
    ) -> None:
        self.programs = {example.question: example.program for example in examples}
        self.weak = weak
        self.name = name
        self.fingerprint = f"scripted-{name}"
        self.seen: list[str] = []

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        self.seen += [query.key("") for query in queries]
        return [Answer(self._one(query)) for query in queries]

    def _one(self, query: Query) -> str:
        program = self.programs[query.question]
        assert program is not None and query.scene is not None
        value = answer(program, query.scene)
        assert value is not None
        text = answer_text(value)
        return other(text) if self.weak(query.scene) else text


def other(text: str) -> str:
    """A wrong answer of the same kind."""
    if text in ("yes", "no"):
        return "no" if text == "yes" else "yes"
    if text.isdecimal():
        return str(int(text) + 1)
    return "red" if text != "red" else "blue"


def first_object_in(low_x: float, low_y: float) -> Callable[[Mapping[str, Any]], bool]:
    """A weakness: wrong whenever object 0 stands at x >= low_x and y >= low_y."""

    def weak(scene: Mapping[str, Any]) -> bool:
        x, y, _ = scene["objects"][0]["3d_coords"]
        return bool(x >= low_x and y >= low_y)

    return weak


class ChancePlayer:
    """Says yes or no by a hash of all it sees: the same question gets the same answer."""

    name = "chance"
    fingerprint = "chance-1"
    reads_scenes = False

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        return [Answer("yes" if self._bit(query) else "no") for query in queries]

    @staticmethod
    def _bit(query: Query) -> bool:
        return bool(hashlib.sha256(query.key("").encode()).digest()[0] & 1)
