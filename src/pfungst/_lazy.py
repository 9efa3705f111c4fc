"""Names of a package that are imported when they are first used: torch and numba take seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose names live in the modules `homes` says, below it.

    >>> __getattr__, __dir__ = lazy(__name__, {"fit": "_fit"})
    """

    def get(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{home}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        module = sys.modules[package]
        own = {*homes, *getattr(module, "__all__", ())}
        # No helpers that the package itself imported.
        return sorted(name for name in {*vars(module), *own} if name in own or name.startswith("__"))

    return get, names


def declared(package: str) -> dict[str, str]:
    """`homes` of `lazy`: what the package imports for type checkers alone, below `if TYPE_CHECKING:`."""
    import ast
    import inspect

    tree = ast.parse(inspect.getsource(sys.modules[package]))
    (block,) = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {one.name: str(node.module).removeprefix(f"{package}.") for node in imports for one in node.names}
