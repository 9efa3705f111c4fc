"""What a Python function or object is made of, as far as that can be known: the fingerprint of a player made of it.

Known are the source file, what a function closes over, its defaults, the globals it names, the attributes of an
object, and all this of the helpers that are not from an installed package. Of other objects only the class is known.
"""

from __future__ import annotations

import dis
import hashlib
import inspect
import sysconfig
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from pfungst.core.files import exists, file_digest

WEIGHTS = {".bin", ".ckpt", ".h5", ".joblib", ".json", ".npy", ".npz", ".onnx", ".pkl", ".pt", ".pth", ".safetensors"}
"""Endings of files whose content counts where a function names them."""
_STORES = ("STORE_GLOBAL", "STORE_DEREF", "STORE_ATTR", "DELETE_GLOBAL", "DELETE_DEREF", "DELETE_ATTR")
_MUTATORS = {
    "add",
    "append",
    "clear",
    "discard",
    "extend",
    "insert",
    "pop",
    "popitem",
    "remove",
    "setdefault",
    "update",
}
_INSTALLED = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_PACKAGE = str(Path(__file__).parents[1])


def identity(thing: Any) -> list[Any]:
    """What tells a function or an object from others. Anything JSON can write; the same in every process."""
    known = [source_digest(thing), qualified_name(thing)]
    if isinstance(thing, partial):
        known = [source_digest(thing.func), qualified_name(thing.func)]
    state = _State(thing).read(thing)
    return [*known, state] if state else known


class _State:
    """Reads the values that a function or an object works with.

    What the code itself changes, such as a counter or a cache, is no part of what it is, and is left out.
    """

    def __init__(self, thing: Any) -> None:
        self._seen: dict[int, Any] = {}
        self._changed: set[str] = set()
        self._changes_containers = False
        self._look_at(thing)
        self._seen = {}

    def read(self, thing: Any) -> Any:
        """The values by name; empty where there are none."""
        if id(thing) in self._seen:
            return []
        self._seen[id(thing)] = thing
        told = [[name, self._value(value)] for name, value in _parts(thing) if self._stays(name, value)]
        return [[name, value] for name, value in told if value != []]

    def _look_at(self, thing: Any) -> None:
        """Learn what the code of `thing`, and of all it leads to, changes."""
        if id(thing) in self._seen:
            return
        self._seen[id(thing)] = thing
        for code in _running(thing):
            stored = [one for one in dis.get_instructions(code) if one.opname in _STORES]
            self._changed.update(str(one.argval) for one in stored)
            subscripts = any(one.opname in ("STORE_SUBSCR", "DELETE_SUBSCR") for one in dis.get_instructions(code))
            self._changes_containers |= subscripts or bool(_MUTATORS & {*code.co_names})
        for _, value in _parts(thing):
            if _leads_on(value):
                self._look_at(value)

    def _stays(self, name: str, value: Any) -> bool:
        container = isinstance(value, list | dict | set | bytearray) or hasattr(value, "tobytes")
        return name not in self._changed and not (container and self._changes_containers)

    def _value(self, value: Any) -> Any:
        if isinstance(value, str | Path):
            return _text(value)
        if value is None or isinstance(value, bool | int | float | complex | bytes):
            return repr(value)
        if isinstance(value, list | tuple):
            return [type(value).__name__, *map(self._value, value)]
        if isinstance(value, set | frozenset):
            return ["set", *sorted(map(repr, map(self._value, value)))]
        if isinstance(value, dict):
            return ["dict", *([self._value(key), self._value(one)] for key, one in value.items())]
        if isinstance(value, ModuleType | BuiltinFunctionType):
            return []
        if isinstance(mark := getattr(value, "fingerprint", None), str):
            return mark
        if not getattr(getattr(value, "dtype", None), "hasobject", True):  # a numpy array
            return [str(value.dtype), list(value.shape), hashlib.sha256(value.tobytes()).hexdigest()]
        if _leads_on(value):
            return [source_digest(value), qualified_name(value), self.read(value)]
        return [qualified_name(value)]


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    """Name and value of what a function or an object has at hand."""
    if isinstance(thing, partial):
        yield from (("function", thing.func), ("arguments", thing.args), *sorted(thing.keywords.items()))
    elif isinstance(thing, MethodType):
        yield from (("self", thing.__self__), ("function", thing.__func__))
    elif isinstance(thing, FunctionType):
        yield from zip(thing.__code__.co_freevars, _contents(thing), strict=False)
        yield from (("default", value) for value in thing.__defaults__ or ())
        yield from sorted((thing.__kwdefaults__ or {}).items())
        if (wrapped := getattr(thing, "__wrapped__", None)) is not None:
            yield "wrapped", wrapped
        for code in _nested(thing.__code__):
            bound = (name for name in code.co_names if name in thing.__globals__ and not name.startswith("__"))
            yield from ((name, thing.__globals__[name]) for name in bound)
            named = (value for value in code.co_consts if isinstance(value, str) and Path(value).suffix in WEIGHTS)
            yield from (("file", name) for name in named)
    elif inspect.isclass(thing):
        yield from ((name, value) for name, value in vars(thing).items() if isinstance(value, FunctionType))
    else:
        yield "class", type(thing)
        yield from sorted(getattr(thing, "__dict__", {}).items())


def _contents(function: FunctionType) -> list[Any]:
    """What it closes over; nothing where a variable has no value yet."""
    try:
        return [cell.cell_contents for cell in function.__closure__ or ()]
    except ValueError:
        return []


def _leads_on(value: Any) -> bool:
    """Whether this is code, or an object of a class, that is neither installed nor part of this package."""
    if isinstance(value, partial):
        return True
    if not (isinstance(value, FunctionType | MethodType) or inspect.isclass(value)):
        value = type(value)
    module = inspect.getmodule(value)
    file = getattr(module, "__file__", None)
    if file is None:
        return getattr(value, "__module__", "") not in ("builtins", "typing", "types")
    return not file.startswith((*_INSTALLED, _PACKAGE))


def _running(thing: Any) -> Iterator[CodeType]:
    """The code that runs when it answers; what makes an object runs before."""
    if isinstance(thing, FunctionType) and thing.__name__ not in ("__init__", "__post_init__"):
        yield from _nested(thing.__code__)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _text(value: str | Path) -> Any:
    """Of a path on this machine only the name; of weights also what is in them."""
    path = Path(value) if len(str(value)) < 1000 else Path()
    name = path.name if path.is_absolute() else str(value)
    if path.suffix in WEIGHTS and exists(path) and path.is_file():
        return ["file", name, file_digest(path)]
    return name


def source_digest(thing: Any) -> str:
    """SHA-256 of the source file that defines `thing`; of its compiled code where there is no file."""
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
