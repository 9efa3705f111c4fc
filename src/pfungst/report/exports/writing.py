"""Text that cannot do harm in the file it is written to, and YAML."""

from __future__ import annotations

import json
import re
from typing import Any

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff]")


def visible(text: str) -> str:
    """Control characters as the signs that stand for them (␀, ␛): XML, CSV and LaTeX cannot hold them. Tab and line
    breaks stay."""

    def sign(match: re.Match[str]) -> str:
        code = ord(match.group())
        return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"

    return _CONTROL.sub(sign, text)


def yaml(value: Any, indent: int = 0) -> str:
    """YAML in block style. Texts are quoted as in JSON, which YAML reads the same."""
    pad = "  " * indent
    if isinstance(value, dict) and value:
        return "".join(f"{pad}{name}:{_nested(item, indent + 1)}" for name, item in value.items() if item is not None)
    if isinstance(value, list) and value:
        return "".join(f"{pad}-{_item(item, indent + 1)}" for item in value)
    return f"{pad}{_scalar(value)}\n"


def _nested(value: Any, indent: int) -> str:
    return f"\n{yaml(value, indent)}" if isinstance(value, (dict, list)) and value else f" {_scalar(value)}\n"


def _item(value: Any, indent: int) -> str:
    return f" {yaml(value, indent).lstrip()}" if isinstance(value, (dict, list)) and value else f" {_scalar(value)}\n"


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        # U+0085, U+2028 and U+2029 break lines in YAML 1.1.
        return re.sub("[\u2028\u2029]", " ", json.dumps(visible(value), ensure_ascii=False))
    # YAML 1.1 takes 1e-07 for text: a float has a point.
    return re.sub(r"^(-?\d+)e", r"\1.0e", json.dumps(value))
