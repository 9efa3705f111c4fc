"""Examples by their ids, without holding them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pfungst.core.types import Example

if TYPE_CHECKING:
    from pfungst.core.keys import KeyIndex

MANY = 1 << 19
"""Examples from which on a dictionary would take too much memory."""
AT_ONCE = 1 << 16
"""Examples looked at together while the index is made."""


class ById(Mapping[str, Example]):
    """The examples of a data set by id.

    Asked in the order of the data it walks along. Otherwise it looks for the place of an id in an index, made when it
    is first needed: a dictionary, or 16 bytes an example where there are very many. No example is held.
    """

    def __init__(self, examples: Sequence[Example]) -> None:
        self._examples = examples
        self._walk = iter(examples)
        self._last: Example | None = None
        self._places: dict[str, int] | None = None
        self._index: KeyIndex | None = None

    def __len__(self) -> int:
        return len(self._examples)

    def __iter__(self) -> Iterator[str]:
        return (example.id for example in self._examples)

    def __getitem__(self, name: str) -> Example:
        last = self._last
        if last is None or last.id != name:
            last = next(self._walk, None)
            if last is None or last.id != name:
                place = self._place(name)
                last = self._examples[place]
                self._walk = (self._examples[at] for at in range(place + 1, len(self._examples)))
            self._last = last
        return last

    def _place(self, name: str) -> int:
        if len(self._examples) <= MANY:
            if self._places is None:
                self._places = {example.id: place for place, example in enumerate(self._examples)}
            return self._places[name]
        from pfungst.core.keys import KeyIndex, heads_of

        if self._index is None:
            self._index = KeyIndex()
            for start in range(0, len(self._examples), AT_ONCE):
                part = self._examples[start : start + AT_ONCE]
                self._index.add(heads_of([_key(example.id) for example in part]), start)
        for place in self._index.find(heads_of([_key(name)])).tolist():
            if self._examples[place].id == name:
                return int(place)
        raise KeyError(name)


def _key(name: str) -> bytes:
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
