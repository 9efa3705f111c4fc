"""A scene as bit masks: what a description, a relation or a likeness picks out, ready to be looked up.

Bit i of a mask stands for object i. Looking up "red things left of object 3" is one `&`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from random import Random
from typing import Any

from pfungst.world.constants import ATTRIBUTES, RELATIONS
from pfungst.world.programs import ON_MASKS
from pfungst.world.questions.template import DESCRIPTION
from pfungst.world.scene import Scene, relationships

Key = tuple[str | None, str | None, str | None, str | None]
"""A description: size, colour, material, shape; None where it is not said."""
Choice = tuple[str | None, Key | None]
"""How a node is filled: relation, description."""
Outcome = tuple[Any, Sequence[Choice]]
"""A value a node can give, and all the ways to fill it that give it."""

EVERYTHING: Key = (None, None, None, None)
_SUBSETS = list(product((False, True), repeat=4))


class Tables:
    """One scene, prepared for the search. Draws from `rng` only when made."""

    def __init__(self, scene: Scene | Mapping[str, Any], rng: Random) -> None:
        self.scene = Scene.of(scene)
        objects = self.scene.objects
        self.everything: int = (1 << len(objects)) - 1
        self.attributes = {name: [getattr(one, name) for one in objects] for name in DESCRIPTION}
        self.value_masks = {
            (name, value): _mask(i for i, one in enumerate(column) if one == value)
            for name, column in self.attributes.items()
            for value in ATTRIBUTES[name]
        }
        self.same = {
            name: [self.value_masks[name, value] & ~(1 << i) for i, value in enumerate(column)]
            for name, column in self.attributes.items()
        }
        related = self.scene.relationships if self.scene.relationships is not None else relationships(self.scene)
        self.related = {name: [_mask(row) for row in related[name]] for name in RELATIONS if name in related}
        self.present: dict[Key, int] = {}
        for i in range(len(objects)):
            full = [self.attributes[name][i] for name in DESCRIPTION]
            for subset in _SUBSETS:
                key = tuple([value if kept else None for value, kept in zip(full, subset, strict=True)])
                self.present[key] = self.present.get(key, 0) | 1 << i  # type: ignore[index,arg-type]
        self.absent = self._near_misses(rng)
        self._cache: dict[Any, list[Outcome]] = {}

    def mask(self, key: Key) -> int:
        """The objects a description fits."""
        found = self.present.get(key)
        if found is not None:
            return found
        mask = self.everything
        for name, value in zip(DESCRIPTION, key, strict=True):
            if value is not None:
                mask &= self.value_masks[name, value]
        return mask

    def _near_misses(self, rng: Random) -> list[Key]:
        """Descriptions that fit nothing here, each one word away from one that does.

        Drawn at random, absent descriptions would be longer than present ones, and the length of a question would
        give its answer away.
        """
        absent: dict[Key, None] = {}
        for key in self.present:
            said = [i for i, value in enumerate(key) if value is not None]
            if not said:
                continue
            place = said[int(rng.random() * len(said))]
            values = ATTRIBUTES[DESCRIPTION[place]]
            changed = list(key)
            changed[place] = values[int(rng.random() * len(values))]
            miss: Key = (changed[0], changed[1], changed[2], changed[3])
            if miss not in self.present:
                absent[miss] = None
        return list(absent)

    def described(self, form: str, among: int, unsaid: tuple[int, ...]) -> list[Outcome]:
        """What `filter`, `filter_unique`, `filter_count` or `filter_exist` can give on the set `among`.

        `unsaid`: places of the description that must stay empty.
        """
        slot = (form, among, unsaid)
        if slot not in self._cache:
            outcomes: defaultdict[Any, list[Choice]] = defaultdict(list)
            value = ending(form)
            keys = list(self.present.items())
            if form != "filter_unique":
                keys += [(key, 0) for key in self.absent]
            # "Is there a thing?" needs no look, and "things or cubes" no cubes.
            empty = form == "filter" or (form == "filter_exist" and among == self.everything)
            for key, mask in keys:
                if any(key[i] is not None for i in unsaid) or (empty and key == EVERYTHING):
                    continue
                outcomes[value(mask & among)].append((None, key))
            self._cache[slot] = _valid(outcomes)
        return self._cache[slot]

    def related_described(self, form: str, origin: int, unsaid: tuple[int, ...]) -> list[Outcome]:
        """What `relate_filter` and its kin can give from the object `origin`.

        Only relations that narrow the description down are offered: where every red cube is to the left anyway,
        "left" adds nothing and a player could ignore it.
        """
        slot = (form, origin, unsaid)
        if slot not in self._cache:
            outcomes: defaultdict[Any, list[Choice]] = defaultdict(list)
            value = ending(form)
            for relation, rows in self.related.items():
                row = rows[origin]
                for key, mask in self.present.items():
                    if mask & row == mask or any(key[i] is not None for i in unsaid):
                        continue
                    if form == "relate_filter" and not mask & row:
                        continue
                    outcomes[value(mask & row)].append((relation, key))
            self._cache[slot] = _valid(outcomes)
        return self._cache[slot]


def _mask(indices: Any) -> int:
    mask = 0
    for i in indices:
        mask |= 1 << i
    return mask


def _valid(outcomes: dict[Any, list[Choice]]) -> list[Outcome]:
    outcomes.pop(None, None)
    return list(outcomes.items())


def ending(form: str) -> Callable[[int], Any]:
    """What turns the objects that a composite node picks out into its value; None where its `unique` fails."""
    return ON_MASKS.get(form.rpartition("_")[2], int)
