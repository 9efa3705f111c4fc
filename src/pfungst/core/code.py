"""Finding the user's own code: `module:name` and `path/to/file.py:name`."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import sysconfig
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from pfungst.core.errors import PfungstError, did_you_mean
from pfungst.core.files import at_home, exists


def load_code(spec: str, default: str = "", error: type[PfungstError] = PfungstError) -> Any:
    """The object that `module:name` or `file.py:name` names; `default` is its name where that is left out."""
    place, attribute = split_code(spec, default)
    module = _from_file(Path(place), default, error) if place.endswith(".py") else _from_path(place, error)
    found: Any = module
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            names = [name for name in vars(module) if not name.startswith("_")]
            raise error(f"{place} has nothing called '{part}'.{did_you_mean(part, names)}") from None
    return found


def own_modules(folder: str = "") -> None:
    """Let the user's own modules be found in a folder, by default the working folder.

    They come before installed packages and after Python's own: a file `random.py` that happens to lie there breaks
    nothing.
    """
    if folder in sys.path:
        return
    library = sysconfig.get_paths()["stdlib"]
    own = [at for at, path in enumerate(sys.path) if path == library or path == str(Path(library) / "lib-dynload")]
    sys.path.insert(max(own, default=-1) + 1, folder)


def split_code(spec: str, default: str = "") -> tuple[str, str]:
    """Place and name: the module or file, and what is wanted of it."""
    place, colon, attribute = spec.rpartition(":")
    # A colon in front of a slash belongs to a Windows drive, not to a name.
    if not colon or "/" in attribute or "\\" in attribute:
        return spec, default
    return place, attribute or default


def names_code(spec: str) -> bool:
    """Whether a word looks like `module:name` or `file.py:name`."""
    place, name = split_code(spec)
    dotted = all(part.isidentifier() for part in place.split("."))
    return bool(name) and name.replace(".", "_").isidentifier() and (place.endswith(".py") or dotted)


def _from_file(path: Path, default: str, error: type[PfungstError]) -> ModuleType:
    path = at_home(path).absolute()
    if not exists(path) or not (path := path.resolve()).is_file():
        raise error(
            f"There is no file {path}. Give the path of a Python file, as in path/to/file.py:{default or 'name'}."
        )
    # As `python file.py` does it: files beside this one can be imported.
    own_modules(str(path.parent))
    name = f"pfungst_player_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}_{path.stem}"
    module_spec = importlib.util.spec_from_file_location(name, path)
    if module_spec is None or module_spec.loader is None:
        raise error(f"{path} cannot be read as Python code.")
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[name] = module
    try:
        module_spec.loader.exec_module(module)
    except Exception as problem:
        del sys.modules[name]
        raise error(f"{path} could not be run: {describe(problem)}") from problem
    return module


def _from_path(name: str, error: type[PfungstError]) -> ModuleType:
    if str(Path.cwd()) not in sys.path and "" not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as problem:
        if problem.name is not None and (name == problem.name or name.startswith(f"{problem.name}.")):
            raise error(
                f"There is no module '{name}' in this folder or among the installed packages. "
                f"Give module:function, or path/to/file.py:function."
            ) from None
        raise error(f"The module '{name}' could not be imported: {describe(problem)}") from problem
    except Exception as problem:
        raise error(f"The module '{name}' could not be imported: {describe(problem)}") from problem


def describe(error: BaseException) -> str:
    """Error type, message and the innermost line of code: what a user needs to mend their own file."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"
