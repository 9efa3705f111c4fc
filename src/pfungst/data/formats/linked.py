"""Groups that are told by lists of ids, one list a question, as in GQA."""

from __future__ import annotations

from collections.abc import Iterable


class Linked:
    """Names groups of linked questions while they are read: the first one met names the group of all it is linked to.

    >>> groups = Linked()
    >>> groups.name("a", ["b", "c"]), groups.name("b", ["a"]), groups.name("d", [])
    ('a', 'a', '')
    """

    def __init__(self) -> None:
        self._groups: dict[str, str] = {}

    def name(self, id_: str, linked: Iterable[str]) -> str:
        """The group of a question; empty where it is linked to no other."""
        others = [other for other in linked if other != id_]
        if not others:
            return self._groups.get(id_, "")
        group = self._groups.get(id_) or next(filter(None, map(self._groups.get, others)), id_)
        for other in (id_, *others):
            self._groups.setdefault(other, group)
        return self._groups[id_]
