"""Named parts: ours by a table, third parties' by Python entry points.

A table maps a name to "module:attribute", so that listing the names imports nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pfungst.core.errors import PfungstError


@cache
def _third_party(group: str) -> Mapping[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=group)}


@dataclass(frozen=True)
class Registry:
    """The parts of one kind."""

    kind: str
    """Singular, for messages: `probe`, `metric` ..."""
    group: str
    """Entry point group of third parties, for example `pfungst.probes`."""
    builtin: Mapping[str, str]
    """Name to "module:attribute"."""

    def names(self) -> list[str]:
        return sorted({*self.builtin, *_third_party(self.group)})

    def get(self, name: str) -> Any:
        """The part of this name; ours win over third parties'."""
        if name in self.builtin:
            module, _, attribute = self.builtin[name].partition(":")
            return getattr(import_module(module), attribute)
        if name in _third_party(self.group):
            try:
                return _third_party(self.group)[name].load()
            except Exception as error:
                raise PfungstError(f"The {self.kind} {name} is installed but cannot be loaded: {error}.") from error
        near = get_close_matches(name, self.names(), n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"There are: {', '.join(self.names())}."
        raise PfungstError(f"There is no {self.kind} called {name!r}. {hint}")
