"""Names of players: those of this package, those a program registers, those other packages bring."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pfungst.core import Dataset, Player, PlayerError
from pfungst.players._options import coerce

GROUP = "pfungst.players"
"""Entry point group of third parties: `my_name = "my_package:make"`."""

Maker = Callable[..., Player]
"""`make(argument, *, data, **options)`: argument is what follows the colon in `name:argument`, empty if nothing."""

_MAKERS: dict[str, Maker] = {}


def register(name: str, maker: Maker | None = None) -> Callable[[Maker], Maker]:
    """Make `name` and `name:argument` a player for `resolve` and the command line.

    `maker(argument, *, data, **options)` returns the player; the types of its keyword parameters are those of the
    options. Use it as a function or as a decorator. Other packages declare an entry point in the group
    `pfungst.players` instead, and need no import. A second registration of a name replaces the first.
    """

    def remember(made: Maker) -> Maker:
        if not name or not name.replace("-", "_").isidentifier():
            raise PlayerError(f"A player cannot be called '{name}': use letters, digits, - and _.")
        _MAKERS[name] = made
        return made

    if maker is not None:
        remember(maker)
    return remember


def find(name: str) -> Maker | None:
    """The maker of that name, None if nobody has registered it."""
    if name in _MAKERS:
        return _MAKERS[name]
    for point in _third_parties():
        if point.name == name:
            try:
                loaded: Maker = point.load()
            except Exception as error:
                raise PlayerError(
                    f"The player '{name}' comes from '{point.value}', which cannot be imported: {error}"
                ) from error
            return loaded
    return None


def make(maker: Maker, name: str, argument: str, data: Dataset | None, options: dict[str, Any]) -> Player:
    return maker(argument, data=data, **coerce(maker, options, name))


def available() -> dict[str, str]:
    """Every registered name and the first line of its description; other packages are not imported for it."""
    own = {name: (maker.__doc__ or "").strip().split("\n")[0] for name, maker in _MAKERS.items()}
    others = {point.name: f"from {point.value}" for point in _third_parties() if point.name not in own}
    return {**own, **dict(sorted(others.items()))}


def unknown(spec: str) -> PlayerError:
    name = spec.partition(":")[0]
    names = list(available())
    close = get_close_matches(name, names, 3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(close)}?" if close else f"There are: {', '.join(names)}."
    return PlayerError(
        f"There is no player '{spec}'. {hint} For your own code give module:function or path/to/file.py:function."
    )


def _third_parties() -> list[EntryPoint]:
    return list(entry_points(group=GROUP))
