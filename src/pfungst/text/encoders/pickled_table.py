"""Read the one kind of pickled file the skip-thoughts release has, without unpickling it.

`utable.npy` and `btable.npy` were saved from a list of vectors of two shapes, (620,) and (1, 620), so numpy wrote them
as an array of objects, that is, as a Python pickle: a program that may call any function on the machine that runs it.
This reader is no interpreter of such programs. It has the standard library list the instructions, knows the few that
build arrays of floats, takes the numbers from the file where they stand, and refuses everything else. Nothing is
imported or called.
"""

from __future__ import annotations

import math
import mmap
import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from pfungst.core import DataError
from pfungst.text.encoders.base import FloatArray

_NAMES = {
    ("numpy.core.multiarray", "_reconstruct"): "reconstruct",
    ("numpy._core.multiarray", "_reconstruct"): "reconstruct",
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): "dtype",
}
_FLOATS = {"f4": 4, "f8": 8}


@dataclass(slots=True)
class _Name:
    """One of the three names a table needs; the reader knows what each would have made."""

    what: str


@dataclass(slots=True)
class _Type:
    code: str
    order: str = "<"


@dataclass(slots=True)
class _Span:
    """Bytes of the file, left where they are."""

    start: int
    length: int


@dataclass(slots=True)
class _Array:
    shape: tuple[int, ...] = ()
    kind: _Type | None = None
    content: Any = None


_MARK = object()


def read_table(path: Path, rows: int) -> FloatArray:
    """The vectors (rows, size) of a table that numpy saved as objects."""
    with open(path, "rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, _ = header(file)
        except ValueError as error:
            raise DataError.at(path, "", f"not a numpy file ({error}).") from error
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            content.seek(file.tell())
            reader = _Reader(content, path)
            outer = reader.read()
            items = outer.content if isinstance(outer, _Array) else None
            if not isinstance(items, list) or shape != (rows,) or len(items) != rows:
                raise reader.refusal(f"it does not hold one vector for each of the {rows} words of the dictionary.")
            return reader.stack(items)


class _Reader:
    """Follows the instructions one by one, on a stack, as any reader of this format does."""

    def __init__(self, content: mmap.mmap, path: Path) -> None:
        self.content = content
        self.path = path
        self.stack_: list[Any] = []
        self.memo: dict[int, Any] = {}

    def refusal(self, problem: str) -> DataError:
        return DataError.at(
            self.path,
            f"byte {self.content.tell()}",
            problem,
            "If you trust the file, convert it once where you may unpickle: numpy.save('utable.npy', numpy.stack("
            "[row.ravel() for row in numpy.load('utable.npy', allow_pickle=True)])).",
        )

    def stack(self, items: list[Any]) -> FloatArray:
        size = 0
        table: FloatArray | None = None
        for row, item in enumerate(items):
            if not isinstance(item, _Array) or item.kind is None or not isinstance(item.content, _Span):
                raise self.refusal(f"entry {row} is not an array of floats.")
            span, kind = item.content, item.kind
            count = math.prod(item.shape)
            width = _FLOATS[kind.code]
            if span.length != count * width or (table is not None and count != size):
                raise self.refusal(f"entry {row} has {count} numbers in {span.length} bytes, unlike the first.")
            if table is None:
                size = count
                table = np.zeros((len(items), size), np.float32)
            table[row] = np.frombuffer(self.content, f"{kind.order}{kind.code}", count, span.start)
        if table is None:
            raise self.refusal("it is empty.")
        return table

    def read(self) -> Any:
        try:
            for code, argument, _ in pickletools.genops(cast(IO[bytes], self.content)):
                action = _ACTIONS.get(code.name)
                if action is None:
                    raise self.refusal(f"it holds the pickle instruction {code.name}, which no table of floats needs.")
                action(self, argument)
            return self.stack_.pop()
        except (AttributeError, IndexError, KeyError, ValueError, TypeError) as error:
            raise self.refusal(f"it is damaged ({type(error).__name__}: {error}).") from error

    def text(self, value: str | _Span) -> str:
        if isinstance(value, str):
            return value
        return self.content[value.start : value.start + value.length].decode("latin-1")

    def since_mark(self) -> list[Any]:
        position = len(self.stack_) - 1
        while self.stack_[position] is not _MARK:
            position -= 1
            if position < 0:
                raise ValueError("no mark")
        found = self.stack_[position + 1 :]
        del self.stack_[position:]
        return found

    def tuple_of(self, count: int) -> None:
        found = tuple(self.stack_[-count:])
        if len(found) < count:
            raise ValueError("too short a stack")
        del self.stack_[-count:]
        self.stack_.append(found)

    def name(self, module: str, name: str) -> None:
        if (module, name) not in _NAMES:
            raise self.refusal(f"it wants to call {module}.{name}, which no table of floats needs.")
        self.stack_.append(_Name(_NAMES[module, name]))

    def reduce(self) -> None:
        arguments, function = self.stack_.pop(), self.stack_.pop()
        if not isinstance(function, _Name):
            raise self.refusal("it calls something that is not a numpy function.")
        if function.what == "reconstruct":
            self.stack_.append(_Array())
        elif function.what == "dtype":
            code = self.text(arguments[0])
            self.stack_.append(_Type(code.lstrip("<>|="), code[0] if code[0] in "<>" else "<"))
        else:
            raise self.refusal("it calls a numpy function in a way no table of floats needs.")

    def build(self) -> None:
        state = self.stack_.pop()
        target = self.stack_[-1]
        if isinstance(target, _Type):
            if state[1] is not None and self.text(state[1]) in ("<", ">"):
                target.order = self.text(state[1])
        elif isinstance(target, _Array):
            _, shape, kind, fortran, content = state
            if not isinstance(kind, _Type) or (kind.code not in _FLOATS and kind.code not in ("O", "O8")):
                raise self.refusal(f"it holds an array of type {getattr(kind, 'code', '?')}, not of floats.")
            target.shape, target.kind, target.content = tuple(int(n) for n in shape), kind, content
            if fortran and len(shape) > 1 and sorted(shape)[-2] > 1:
                raise self.refusal("it holds a matrix where a vector should be.")
        else:
            raise self.refusal("it sets the state of something that is not an array.")


_Action = Callable[[_Reader, Any], None]


def _push(value: Any) -> _Action:
    return lambda r, _: r.stack_.append(value)


def _push_argument(r: _Reader, argument: Any) -> None:
    r.stack_.append(argument)


def _push_span(r: _Reader, argument: str | bytes) -> None:
    r.stack_.append(_Span(r.content.tell() - len(argument), len(argument)))


def _append(r: _Reader, _: None) -> None:
    item = r.stack_.pop()
    r.stack_[-1].append(item)


def _extend(r: _Reader, _: None) -> None:
    items = r.since_mark()
    r.stack_[-1].extend(items)


def _stack_global(r: _Reader, _: None) -> None:
    name, module = r.stack_.pop(), r.stack_.pop()
    r.name(r.text(module), r.text(name))


def _put(r: _Reader, place: int | None) -> None:
    r.memo[len(r.memo) if place is None else place] = r.stack_[-1]


_ACTIONS: dict[str, _Action] = {
    **dict.fromkeys(("PROTO", "FRAME", "STOP"), lambda r, _: None),
    "GLOBAL": lambda r, names: r.name(*names.split(" ")),
    "STACK_GLOBAL": _stack_global,
    "REDUCE": lambda r, _: r.reduce(),
    "BUILD": lambda r, _: r.build(),
    "MARK": _push(_MARK),
    "TUPLE": lambda r, _: r.stack_.append(tuple(r.since_mark())),
    "EMPTY_TUPLE": _push(()),
    "TUPLE1": lambda r, _: r.tuple_of(1),
    "TUPLE2": lambda r, _: r.tuple_of(2),
    "TUPLE3": lambda r, _: r.tuple_of(3),
    "EMPTY_LIST": lambda r, _: r.stack_.append([]),
    "APPEND": _append,
    "APPENDS": _extend,
    "NONE": _push(None),
    "NEWTRUE": _push(True),
    "NEWFALSE": _push(False),
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE", "SHORT_BINUNICODE"), _push_argument),
    **dict.fromkeys(("BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"), _push_span),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT", "MEMOIZE"), _put),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), lambda r, place: r.stack_.append(r.memo[place])),
}
