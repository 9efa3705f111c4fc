"""Findings by name, as a person writes them: `noise.drop`, `rephrase.cs4`, `noise.accuracy[third]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def key(words: str) -> str:
    """What is compared: letters and digits only, so that `CS(4)`, `cs4` and `cs-4` are one name.

    The noise levels are called First, Second ...; `partition 3` is another way to say Third.
    """
    plain = re.sub(r"[\W_]+", "", words.casefold())
    return f"partition{_ORDINALS.index(plain) + 1}" if plain in _ORDINALS else plain


def slug(words: str) -> str:
    """A name as it is shown: `any-flip rate` -> `any-flip-rate`, `CS(4)` -> `cs4`."""
    return re.sub(r"[\W_]+", "-", re.sub(r"[()]", "", words.casefold())).strip("-")


def finding_name(probe: str, finding: Mapping[str, Any]) -> str:
    """`PROBE.FINDING`, with the condition in brackets where there is one."""
    condition = finding.get("condition") or ""
    return f"{probe}.{slug(finding['name'])}" + (f"[{condition}]" if condition else "")
