"""Finding the user's own code: `module:name` and `path/to/file.py:name`, and a name for its content."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
import traceback
from difflib import get_close_matches
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from pfungst.core import PlayerError


def load(spec: str) -> Any:
    """The object that `module:name` or `file.py:name` names; `name` is `answer` where it is left out."""
    place, attribute = split(spec)
    module = _from_file(Path(place)) if place.endswith(".py") else _from_path(place)
    found: Any = module
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            names = [name for name in vars(module) if not name.startswith("_")]
            close = get_close_matches(part, names, 3)
            hint = f" Did you mean {' or '.join(close)}?" if close else ""
            raise PlayerError(f"{place} has nothing called '{part}'.{hint}") from None
    return found


def split(spec: str) -> tuple[str, str]:
    place, colon, attribute = spec.rpartition(":")
    # A colon in front of a slash belongs to a Windows drive, not to a name.
    if not colon or "/" in attribute or "\\" in attribute:
        return spec, "answer"
    return place, attribute or "answer"


def _from_file(path: Path) -> ModuleType:
    path = path.expanduser().resolve()
    if not path.is_file():
        raise PlayerError(f"There is no file {path}. Give the path of a Python file, as in path/to/file.py:answer.")
    # As `python file.py` does it: files beside this one can be imported.
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    name = f"pfungst_player_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}_{path.stem}"
    module_spec = importlib.util.spec_from_file_location(name, path)
    if module_spec is None or module_spec.loader is None:
        raise PlayerError(f"{path} cannot be read as Python code.")
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[name] = module
    try:
        module_spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise PlayerError(f"{path} could not be run: {describe(error)}") from error
    return module


def _from_path(name: str) -> ModuleType:
    if str(Path.cwd()) not in sys.path and "" not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise PlayerError(
                f"There is no module '{name}' in this folder or among the installed packages. "
                f"Give module:function, or path/to/file.py:function."
            ) from None
        raise PlayerError(f"The module '{name}' could not be imported: {describe(error)}") from error
    except Exception as error:
        raise PlayerError(f"The module '{name}' could not be imported: {describe(error)}") from error


def describe(error: BaseException) -> str:
    """Error type, message and the innermost line of code: what a user needs to mend their own file."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


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
