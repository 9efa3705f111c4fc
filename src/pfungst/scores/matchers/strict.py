"""`strict`: the reply is the answer."""

from __future__ import annotations

from collections.abc import Sequence


def strict(reply: str, choices: Sequence[str], kind: str) -> str | None:
    """The reply as it is, without blanks at its ends. With choices it must be one of them, letter for letter."""
    text = reply.strip()
    if not choices:
        return text or None
    return next((choice for choice in choices if text and choice.strip() == text), None)
