"""Names of players: those of this package, those a program registers, those other packages bring."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pfungst.core import Dataset, PfungstError, Player, PlayerError
from pfungst.core.registry import Registry
from pfungst.core.settings import Setting, describe_settings, parse_settings, read_settings

Maker = Callable[..., Player]
"""`make(argument, *, data, **options)`: argument is what follows the colon in `name:argument`, empty if nothing."""

_MAKERS: dict[str, Maker] = {}
_OPTIONS: dict[str, type] = {}
_HIDDEN = ("argument", "data", "options")
PLAYERS = Registry("player", "pfungst.players", _MAKERS, PlayerError)
"""Third parties declare an entry point: `my_name = "my_package:make"`."""


def register(name: str, maker: Maker | None = None, *, options: type | None = None) -> Callable[[Maker], Maker]:
    """Make `name` and `name:argument` a player for `resolve` and the command line.

    `maker(argument, *, data, **options)` returns the player; the types of its keyword parameters are those of the
    options. With a dataclass as `options` it is called as `maker(argument, data=data, options=...)` instead. Use it as
    a function or as a decorator. Other packages declare an entry point in the group `pfungst.players` instead, and need
    no import. A second registration of a name replaces the first.
    """

    def remember(made: Maker) -> Maker:
        if not name or not name.replace("-", "_").isidentifier():
            raise PlayerError(f"A player cannot be called '{name}': use letters, digits, - and _.")
        _MAKERS[name] = made
        _OPTIONS.pop(name, None)
        if options is not None:
            _OPTIONS[name] = options
        return made

    if maker is not None:
        remember(maker)
    return remember


def find(name: str) -> Maker | None:
    """The maker of that name, None if nobody has registered it."""
    # A path such as C:\player.py or ./oracle.py is never a registered name.
    path = name.endswith(".py") or "/" in name
    return PLAYERS.get(name) if not path and name in PLAYERS.names() else None


def make(maker: Maker, name: str, argument: str, data: Dataset | None, options: dict[str, Any]) -> Player:
    if name in _OPTIONS and maker is _MAKERS.get(name):
        given: Any = parse_settings(_OPTIONS[name], options, what=f"player '{name}'", noun="option")
        return maker(argument, data=data, options=given)
    return maker(argument, data=data, **read_options(maker, options, name))


def read_options(maker: Callable[..., Any], options: Mapping[str, Any], player: str) -> dict[str, Any]:
    """The options with the types of the maker's signature."""
    return read_settings(maker, options, what=f"player '{player}'", hidden=_HIDDEN, noun="option")


def options_of(name: str) -> list[Setting]:
    """What can be set of a player, with a line about each."""
    return describe_settings(_OPTIONS.get(name) or PLAYERS.get(name), _HIDDEN)


def available() -> dict[str, str]:
    """Every registered name and the first line of its description; other packages are not imported for it."""
    own = {name: (maker.__doc__ or "").strip().split("\n")[0] for name, maker in _MAKERS.items()}
    others = {name: f"from {entry.value}" for name, entry in PLAYERS.others().items() if name not in own}
    return {**own, **dict(sorted(others.items()))}


def unknown(spec: str) -> PfungstError:
    known = PLAYERS.unknown(spec.partition(":")[0], spec)
    return type(known)(f"{known} For your own code give module:function or path/to/file.py:function.")
