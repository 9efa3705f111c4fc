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
_FLOATS = ("<f4", ">f4", "<f8", ">f8")


@dataclass(slots=True)
class _Named:
    """One of the three names a table needs; with `arguments`, what it would have made of them, and its state."""

    name: str
    arguments: Any = None
    state: Any = None


@dataclass(slots=True)
class _Span:
    """Bytes of the file, left where they are."""

    start: int
    length: int


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
            try:
                items = reader.array(reader.read())[2]
                if not isinstance(items, list) or shape != (rows,) or len(items) != rows:
                    raise reader.refusal(f"it does not hold one vector for each of the {rows} words of the dictionary.")
                return reader.table(items)
            except (AttributeError, IndexError, KeyError, ValueError, TypeError) as error:
                raise reader.refusal(f"it is damaged ({type(error).__name__}: {error}).") from error


class _Reader:
    """Follows the instructions one by one, on a stack, as any reader of this format does."""

    def __init__(self, content: mmap.mmap, path: Path) -> None:
        self.content = content
        self.path = path
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def refusal(self, problem: str) -> DataError:
        return DataError.at(
            self.path,
            f"byte {self.content.tell()}",
            problem,
            "If you trust the file, convert it once where you may unpickle: numpy.save('utable.npy', numpy.stack("
            "[row.ravel() for row in numpy.load('utable.npy', allow_pickle=True)])).",
        )

    def read(self) -> Any:
        for code, argument, _ in pickletools.genops(cast(IO[bytes], self.content)):
            action = _ACTIONS.get(code.name)
            if action is None:
                raise self.refusal(f"it holds the pickle instruction {code.name}, which no table of floats needs.")
            action(self, argument)
        return self.stack.pop()

    def array(self, made: Any) -> tuple[str, int, Any]:
        """Type, number of entries and content of an array."""
        if not isinstance(made, _Named) or made.name != "reconstruct":
            raise self.refusal("it holds something that is not an array.")
        _, shape, kind, fortran, content = made.state
        if not isinstance(kind, _Named) or kind.name != "dtype":
            raise self.refusal("it holds an array that does not say of what.")
        if fortran and len(shape) > 1 and sorted(shape)[-2] > 1:
            raise self.refusal("it holds a matrix where a vector should be.")
        return self.text(kind.state[1]) + self.text(kind.arguments[0]), math.prod(shape), content

    def table(self, items: list[Any]) -> FloatArray:
        table = np.zeros((0, 0), np.float32)
        for row, item in enumerate(items):
            kind, count, span = self.array(item)
            if kind not in _FLOATS or not isinstance(span, _Span):
                raise self.refusal(f"entry {row} is not an array of floats.")
            if span.length != count * int(kind[2]) or (row and count != table.shape[1]):
                raise self.refusal(f"entry {row} has {count} numbers in {span.length} bytes, unlike the first.")
            if not row:
                table = np.zeros((len(items), count), np.float32)
            table[row] = np.frombuffer(self.content, kind, count, span.start)
        return table

    def text(self, value: str | _Span) -> str:
        if isinstance(value, str):
            return value
        return self.content[value.start : value.start + value.length].decode("latin-1")

    def since_mark(self) -> list[Any]:
        found = []
        while (item := self.stack.pop()) is not _MARK:
            found.append(item)
        return found[::-1]

    def tuple_of(self, count: int) -> None:
        found = [self.stack.pop() for _ in range(count)]
        self.stack.append(tuple(found[::-1]))

    def extend(self, items: list[Any]) -> None:
        self.stack[-1].extend(items)

    def name(self, module: str | _Span, name: str | _Span) -> None:
        named = self.text(module), self.text(name)
        if named not in _NAMES:
            raise self.refusal(f"it wants to call {'.'.join(named)}, which no table of floats needs.")
        self.stack.append(_Named(_NAMES[named]))

    def reduce(self, arguments: Any, function: Any) -> None:
        if not isinstance(function, _Named) or function.name == "ndarray" or function.arguments is not None:
            raise self.refusal("it calls something that no table of floats needs.")
        self.stack.append(_Named(function.name, arguments))

    def build(self, state: Any) -> None:
        made = self.stack[-1]
        if not isinstance(made, _Named) or made.arguments is None:
            raise self.refusal("it sets the state of something that is not an array.")
        made.state = state


_Action = Callable[[_Reader, Any], None]


def _push(value: Any) -> _Action:
    return lambda r, _: r.stack.append(value)


def _push_span(r: _Reader, argument: str | bytes) -> None:
    r.stack.append(_Span(r.content.tell() - len(argument), len(argument)))


def _put(r: _Reader, place: int | None) -> None:
    r.memo[len(r.memo) if place is None else place] = r.stack[-1]


_ACTIONS: dict[str, _Action] = {
    **dict.fromkeys(("PROTO", "FRAME", "STOP"), lambda r, _: None),
    "GLOBAL": lambda r, names: r.name(*names.split(" ")),
    "STACK_GLOBAL": lambda r, _: r.name(r.stack.pop(-2), r.stack.pop()),
    "REDUCE": lambda r, _: r.reduce(r.stack.pop(), r.stack.pop()),
    "BUILD": lambda r, _: r.build(r.stack.pop()),
    "MARK": _push(_MARK),
    "TUPLE": lambda r, _: r.stack.append(tuple(r.since_mark())),
    "EMPTY_TUPLE": _push(()),
    "TUPLE1": lambda r, _: r.tuple_of(1),
    "TUPLE2": lambda r, _: r.tuple_of(2),
    "TUPLE3": lambda r, _: r.tuple_of(3),
    "EMPTY_LIST": lambda r, _: r.stack.append([]),
    "APPEND": lambda r, _: r.extend([r.stack.pop()]),
    "APPENDS": lambda r, _: r.extend(r.since_mark()),
    "NONE": _push(None),
    "NEWTRUE": _push(True),
    "NEWFALSE": _push(False),
    **dict.fromkeys(
        ("BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE", "SHORT_BINUNICODE"),
        lambda r, argument: r.stack.append(argument),
    ),
    **dict.fromkeys(("BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"), _push_span),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT", "MEMOIZE"), _put),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), lambda r, place: r.stack.append(r.memo[place])),
}
