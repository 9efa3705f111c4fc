"""Read the one kind of pickled file the skip-thoughts release has, without unpickling it.

`utable.npy` and `btable.npy` were saved from a list of vectors of two shapes, (620,) and (1, 620), so numpy wrote them
as an array of objects, that is, as a Python pickle: a program that may call any function on the machine that runs it.
This reader is no interpreter of such programs. It knows the few instructions that build arrays of floats, takes the
numbers from the file where they stand, and refuses everything else. Nothing is imported or called.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


class _Mark:
    pass


_MARK = _Mark()


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
            reader = _Reader(content, file.tell(), path)
            outer = reader.read()
            items = outer.content if isinstance(outer, _Array) else None
            if not isinstance(items, list) or shape != (rows,) or len(items) != rows:
                raise reader.refusal(f"it does not hold one vector for each of the {rows} words of the dictionary.")
            return reader.stack(items)


class _Reader:
    """Follows the instructions one by one, on a stack, as any reader of this format does."""

    def __init__(self, content: mmap.mmap, start: int, path: Path) -> None:
        self.content = content
        self.at = start
        self.path = path
        self.stack_: list[Any] = []
        self.memo: dict[int, Any] = {}

    def refusal(self, problem: str) -> DataError:
        return DataError.at(
            self.path,
            f"byte {self.at}",
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
            count = int(np.prod(item.shape))
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
            while True:
                code = self.content[self.at]
                self.at += 1
                if code == 0x2E:  # STOP
                    return self.stack_.pop()
                action = _ACTIONS.get(code)
                if action is None:
                    raise self.refusal(f"it holds the pickle instruction 0x{code:02x}, which no table of floats needs.")
                action(self)
        except (AttributeError, IndexError, KeyError, ValueError, TypeError, struct.error) as error:
            raise self.refusal(f"it is damaged ({type(error).__name__}: {error}).") from error

    def number(self, layout: str) -> int:
        (value,) = struct.unpack_from(layout, self.content, self.at)
        self.at += struct.calcsize(layout)
        return int(value)

    def skip(self, layout: str) -> None:
        self.at += struct.calcsize(layout)

    def span(self, length: int) -> _Span:
        found = _Span(self.at, length)
        self.at += length
        if length < 0 or self.at > len(self.content):
            raise ValueError("bytes past the end of the file")
        return found

    def text(self, span: _Span) -> str:
        return self.content[span.start : span.start + span.length].decode("latin-1")

    def line(self) -> str:
        end = self.content.find(b"\n", self.at)
        found = self.content[self.at : end].decode("ascii")
        self.at = end + 1
        return found

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
            raise self.refusal("it calls something that is no function of numpy.")
        if function.what == "reconstruct":
            self.stack_.append(_Array())
        elif function.what == "dtype":
            code = self.text(arguments[0])
            self.stack_.append(_Type(code.lstrip("<>|="), code[0] if code[0] in "<>" else "<"))
        else:
            raise self.refusal("it calls a function of numpy in a way no table of floats needs.")

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
            raise self.refusal("it sets the state of something that is no array.")


def _push(value: Any) -> Callable[[_Reader], None]:
    return lambda r: r.stack_.append(value)


def _append(r: _Reader) -> None:
    item = r.stack_.pop()
    r.stack_[-1].append(item)


def _extend(r: _Reader) -> None:
    items = r.since_mark()
    r.stack_[-1].extend(items)


def _stack_global(r: _Reader) -> None:
    name, module = r.stack_.pop(), r.stack_.pop()
    r.name(r.text(module), r.text(name))


def _put(layout: str) -> Callable[[_Reader], None]:
    def put(r: _Reader) -> None:
        r.memo[r.number(layout)] = r.stack_[-1]

    return put


def _number(layout: str) -> Callable[[_Reader], None]:
    return lambda r: r.stack_.append(r.number(layout))


def _get(layout: str) -> Callable[[_Reader], None]:
    return lambda r: r.stack_.append(r.memo[r.number(layout)])


def _bytes(layout: str) -> Callable[[_Reader], None]:
    return lambda r: r.stack_.append(r.span(r.number(layout)))


def _long(r: _Reader) -> None:
    span = r.span(r.number("<B"))
    r.stack_.append(int.from_bytes(r.content[span.start : span.start + span.length], "little", signed=True))


_ACTIONS: dict[int, Callable[[_Reader], None]] = {
    0x80: lambda r: r.skip("<B"),  # PROTO
    0x95: lambda r: r.skip("<Q"),  # FRAME
    ord("c"): lambda r: r.name(r.line(), r.line()),  # GLOBAL
    0x93: _stack_global,
    ord("R"): _Reader.reduce,
    ord("b"): _Reader.build,
    ord("("): _push(_MARK),
    ord("t"): lambda r: r.stack_.append(tuple(r.since_mark())),  # TUPLE
    ord(")"): _push(()),
    0x85: lambda r: r.tuple_of(1),
    0x86: lambda r: r.tuple_of(2),
    0x87: lambda r: r.tuple_of(3),
    ord("]"): lambda r: r.stack_.append([]),  # EMPTY_LIST
    ord("a"): _append,
    ord("e"): _extend,
    ord("N"): _push(None),
    0x88: _push(True),
    0x89: _push(False),
    ord("K"): _number("<B"),
    ord("M"): _number("<H"),
    ord("J"): _number("<i"),
    0x8A: _long,
    ord("U"): _bytes("<B"),  # SHORT_BINSTRING
    ord("T"): _bytes("<i"),  # BINSTRING
    ord("C"): _bytes("<B"),  # SHORT_BINBYTES
    ord("B"): _bytes("<I"),  # BINBYTES
    0x8E: _bytes("<Q"),  # BINBYTES8
    ord("X"): _bytes("<I"),  # BINUNICODE
    0x8C: _bytes("<B"),  # SHORT_BINUNICODE
    ord("q"): _put("<B"),
    ord("r"): _put("<I"),
    0x94: lambda r: r.memo.__setitem__(len(r.memo), r.stack_[-1]),  # MEMOIZE
    ord("h"): _get("<B"),
    ord("j"): _get("<I"),
}
