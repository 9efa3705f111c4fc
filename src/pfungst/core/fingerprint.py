"""What names a content: that of a data set, or of the parts of anything."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from pfungst.core.types import Example


class Fingerprint:
    """Names the content of a data set: what is asked and what is right, not where the files lie or how they are
    packed. The same on every machine."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._scenes: dict[int, tuple[Any, str]] = {}

    def add(self, example: Example) -> None:
        parts = [
            example.id,
            example.question,
            example.image_id,
            example.target if example.target is not None else "\0",
            example.answer_type,
            example.question_type,
            example.group,
            str(len(example.answers)),
            *example.answers,
            *example.choices,
        ]
        if example.scene is not None:
            parts.append(self._scene(example.scene))
        if example.program is not None:
            parts.append(json.dumps(example.program, sort_keys=True, default=str))
        if example.contrast:
            parts += ["\0contrast", example.contrast]
        self._hash.update("\x1f".join(parts).encode("utf-8", "surrogatepass"))
        self._hash.update(b"\x1e")

    def _scene(self, scene: Any) -> str:
        known = self._scenes.get(id(scene))
        if known is None:
            # the scene is kept beside its digest: an id is only a name as long as its object lives
            known = (scene, hashlib.sha256(json.dumps(scene, sort_keys=True, default=str).encode()).hexdigest())
            self._scenes[id(scene)] = known
        return known[1]

    def hex(self) -> str:
        return self._hash.hexdigest()


def fingerprint(examples: Iterable[Example]) -> str:
    """The fingerprint of these examples, wherever they come from."""
    found = Fingerprint()
    for example in examples:
        found.add(example)
    return found.hex()


def digest(*parts: Any) -> str:
    """A short name of the parts (anything JSON can write), for fingerprints."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]
