"""Players that are asked in plain words, without an image: they rephrase, judge and read instead of looking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pfungst.core import Player
from pfungst.players.resolving import resolve

WRITING: Mapping[str, Mapping[str, Any]] = {
    "openai": {"prompt": "{question}", "max_tokens": 1024},
    "hf": {"prompt": "{question}", "max_new_tokens": 384},
    "inspect": {"prompt": "{question}", "max_tokens": 1024},
    "lmms": {"prompt": "{question}", "max_new_tokens": 384},
}
"""Options of players that answer in a word unless they are told otherwise."""


def writer(spec: str | Player, **options: Any) -> Player:
    """The player of this spec, asked for exactly what the question says."""
    kind = spec.partition(":")[0] if isinstance(spec, str) else ""
    return resolve(spec, **{**WRITING.get(kind, {}), **options})
