"""Named parts: ours by a table, third parties' by Python entry points.

A table may map a name to "module:attribute", so that listing the names imports nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pfungst.core.errors import PfungstError, UsageError, did_you_mean


@cache
def _found(group: str, find: Callable[..., Iterable[EntryPoint]], path: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    """The entry points of a group. To find them, Python opens a file of every installed package: once is enough."""
    return {entry.name: entry for entry in find(group=group)}


@dataclass(frozen=True)
class Registry:
    """The parts of one kind."""

    kind: str
    """Singular, for messages: `probe`, `metric` ..."""
    group: str
    """Entry point group of third parties, for example `pfungst.probes`."""
    builtin: Mapping[str, Any]
    """Name to "module:attribute", or to the part itself."""
    error: type[PfungstError] = PfungstError
    """What is raised."""
    further: list[Registry] = field(default_factory=list, repr=False, compare=False)
    """Parts of packages that this one may not import, see `extend`."""

    def extend(self, more: Registry) -> None:
        """Offer the parts of a package further along the road: it may import us, and we may not name it."""
        self.further.append(more)

    def names(self) -> list[str]:
        return sorted({*self.builtin, *self.others(), *(name for more in self.further for name in more.builtin)})

    def others(self) -> Mapping[str, EntryPoint]:
        """Those of third parties, not imported."""
        return _found(self.group, entry_points, tuple(sys.path))

    def get(self, name: str) -> Any:
        """The part of this name; ours win over third parties'."""
        if name in self.builtin:
            part = self.builtin[name]
            if not isinstance(part, str):
                return part
            module, _, attribute = part.partition(":")
            return getattr(import_module(module), attribute)
        for more in self.further:
            if name in more.builtin:
                return more.get(name)
        entry = self.others().get(name)
        if entry is None:
            raise self.unknown(name)
        try:
            return entry.load()
        except Exception as error:
            raise self.error(
                f"The {self.kind} {name!r} comes from {entry.value}, which cannot be loaded: {error}."
            ) from error

    def unknown(self, name: str, asked: str = "") -> PfungstError:
        """The sentence for a name that nobody has; `asked` is what the user wrote, if more than the name."""
        hint = did_you_mean(name, self.names(), cutoff=0.5) or f" There are: {', '.join(self.names())}."
        # A wrong name is wrong usage, and still the error that this kind of part raises.
        kinds = (UsageError,) if issubclass(UsageError, self.error) else (UsageError, self.error)
        unknown: type[PfungstError] = type("UnknownPart", kinds, {})
        return unknown(f"There is no {self.kind} called {(asked or name)!r}.{hint}")
