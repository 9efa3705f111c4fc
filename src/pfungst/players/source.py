"""The user's own player: its code, and a name for its content."""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path
from types import CodeType
from typing import Any

from pfungst.core import PlayerError
from pfungst.core.code import describe, load_code, split_code

__all__ = ["describe", "load", "qualified_name", "source_digest", "split"]


def load(spec: str) -> Any:
    """The object that `module:name` or `file.py:name` names; `name` is `answer` where it is left out."""
    return load_code(spec, "answer", PlayerError)


def split(spec: str) -> tuple[str, str]:
    return split_code(spec, "answer")


def source_digest(thing: Any) -> str:
    """SHA-256 of the source file that defines `thing`; of its compiled code where there is no file.

    The whole file counts, because a function leans on what stands around it. What it imports does not: that, and
    weights it loads, is what the `version` option is for.
    """
    target = inspect.unwrap(thing) if callable(thing) else thing
    if not (inspect.isroutine(target) or inspect.isclass(target)):
        target = type(target)
    try:
        file = inspect.getsourcefile(target)
        if file is not None and Path(file).is_file():
            return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except (TypeError, OSError):
        pass
    digest = hashlib.sha256()
    for code in _codes(target):
        _add_code(digest, code)
    return digest.hexdigest()


def qualified_name(thing: Any) -> str:
    return str(getattr(thing, "__qualname__", None) or type(thing).__qualname__)


def _codes(target: Any) -> list[CodeType]:
    members = list(vars(target).values()) if inspect.isclass(target) else [target]
    codes = [getattr(getattr(member, "__func__", member), "__code__", None) for member in members]
    return [code for code in codes if code is not None]


def _add_code(digest: Any, code: CodeType) -> None:
    digest.update(code.co_code)
    digest.update(repr(code.co_names).encode())
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _add_code(digest, constant)
        else:
            # Sets print in an order that changes from process to process.
            stable = sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant
            digest.update(repr(stable).encode())
