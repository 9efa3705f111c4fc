"""Damage, done by a seeded generator: the same seed gives the same damage."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 10**400, -(10**18), float("nan"), float("inf"), "", " ", "\ud800", "\0", "1", "-7",
    "1e999",
    "x" * 70_000, "NaN", "../../../etc/passwd", "%s%n{0}{x}", "<script>alert(1)</script>", [], [[]], [None], {},
    {"": {}},
    {"answer": None}, [1, "2", None], [[[[[[[[]]]]]]]],
)  # fmt: skip
BYTES = (b"\0", b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"=",
         b"-",
         b"e999", b"9" * 400, b"\xed\xa0\x80", b"\xf0\x9f\xa6\x84", b"NaN", b"null", b"%", b"\x1f\x8b",
         b"PK\x03\x04")  # fmt: skip
SIGNS = "aZ09 _-.:;,=+*/\\|?!@#$%^&()[]{}<>'\"`~\n\t\r\0é\u00df\u0130\u200b\u202e\ufeff\U0001f984\ud800中ا१٣½"


def harm_bytes(rng: random.Random, content: bytes) -> bytes:
    """One to four harms: cut, changed, inserted, dropped, repeated, swapped."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(data))
        length = rng.choice((1, 2, 4, 16, 200))
        match rng.choice(("cut", "flip", "set", "insert", "drop", "repeat", "swap", "zero")):
            case "cut" if rng.random() < 0.3:
                del data[at:]
            case "flip" if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            case "set":
                data[at : at + length] = rng.choice(BYTES)
            case "insert":
                data[at:at] = rng.choice((*BYTES, rng.randbytes(length)))
            case "drop":
                del data[at : at + length]
            case "repeat":
                data[at:at] = data[at : at + length] * rng.choice((1, 3, 50))
            case "swap":
                other = rng.randint(0, len(data))
                data[at : at + length], data[other : other + length] = (
                    data[other : other + length],
                    data[at : at + length],
                )
            case "zero":
                data[at : at + length] = bytes(length)
    return bytes(data) if rng.random() > 0.01 else b""


def harm_value(rng: random.Random, value: Any) -> Any:
    """One to three places of a JSON value: made odd, dropped, doubled, moved, or given to another key."""
    value = copy.deepcopy(value)
    for _ in range(rng.randint(1, 3)):
        places = _places(value)
        if not places:
            return copy.deepcopy(rng.choice(ODD))
        parent, key = rng.choice(places)
        match rng.choice(("odd", "odd", "drop", "double", "other", "text")):
            case "odd":
                parent[key] = copy.deepcopy(rng.choice(ODD))
            case "drop":
                del parent[key]
            case "double" if isinstance(parent, list):
                parent.extend([copy.deepcopy(parent[key])] * rng.choice((1, 5, 100)))
            case "other":
                # A copy: a value must not come to hold itself.
                parent[key] = copy.deepcopy(rng.choice([there[at] for there, at in places]))
            case "text":
                parent[key] = text(rng)
    return value


def _places(value: Any) -> list[tuple[Any, Any]]:
    """(parent, key) of every value inside."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        for key, inner in one.items() if isinstance(one, dict) else enumerate(one) if isinstance(one, list) else ():
            found.append((one, key))
            waiting.append(inner)
    return found


def text(rng: random.Random, words: tuple[str, ...] = ()) -> str:
    """Anything: signs of many scripts, and words of the trade among them."""
    parts = []
    for _ in range(rng.choice((0, 1, 2, 3, 5, 8, 30))):
        kind = rng.random()
        if words and kind < 0.6:
            parts.append(rng.choice(words))
        elif kind < 0.95:
            parts.append("".join(rng.choice(SIGNS) for _ in range(rng.choice((1, 1, 3, 8)))))
        else:
            parts.append(rng.choice(SIGNS) * rng.choice((100, 10_000)))
    return rng.choice(("", " ", "")).join(parts)


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()
