"""From words to players: the registered names, one way to turn a word into a player, and a run's player and data."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

from pfungst.core import Dataset, PfungstError, Player, PlayerError, UsageError, read_config
from pfungst.core.code import describe, load_code, own_modules, split_code
from pfungst.core.files import exists
from pfungst.core.registry import Registry
from pfungst.core.settings import Setting, describe_settings, parse_settings, read_settings
from pfungst.core.types import as_player
from pfungst.data import load as load_data
from pfungst.data.loading import select
from pfungst.players.function import FunctionPlayer, ObjectPlayer, is_answer_function

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


def _registered(maker: Maker, name: str, argument: str, data: Dataset | None, options: dict[str, Any]) -> Player:
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


def _unknown(spec: str) -> PfungstError:
    known = PLAYERS.unknown(spec.partition(":")[0], spec)
    return type(known)(f"{known} For your own code give module:function or path/to/file.py:function.")


class UnknownModule(UsageError, PlayerError):
    """A player in a module that is not there."""


def resolve(spec: str | object, *, data: Dataset | None = None, **options: Any) -> Player:
    """The player that `spec` names.

    - `oracle`, `prior`, `random`, `flaky`, `flaky:0.2`, `flaky:0.2:prior`: reference players, they need `data`
    - `hf:MODEL` or `hf:FOLDER`: a Hugging Face model
    - `openai:MODEL@http://host:port/v1`: a model behind an OpenAI-compatible server
    - `recorded:FILE`: answers from a file, they need `data`
    - `module:name`, `path/to/file.py:name`: your own function, class, instance, or a function that makes a player
    - any name registered with `register` or through the entry point group `pfungst.players`

    A registered name goes before a module of the same name. `spec` may also be a player or a function itself.
    Options are those of the player's constructor, as values or as the words of a command line.
    """
    if not isinstance(spec, str):
        return _wrap(spec, str(getattr(spec, "name", "") or ""), data, options)
    name, _, argument = spec.partition(":")
    maker = find(name)
    if maker is not None:
        return as_player(_registered(maker, name, argument, data, options))
    place, _ = split_code(spec, "answer")
    if not place.endswith(".py") and (":" not in spec or not all(part.isidentifier() for part in place.split("."))):
        if exists(f"{spec}.py"):
            raise PlayerError(f"Say which function of {spec}.py answers: {spec}:answer, for example.")
        raise _unknown(spec)
    if ":" in spec and not place.endswith(".py") and not _importable(place):
        near = get_close_matches(name, [*available(), *(file.stem for file in Path().glob("*.py"))], n=3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise UnknownModule(
            f"There is no player called {name!r}, and no module {place} in this folder or among the installed packages."
            f"{hint}"
        )
    return _wrap(load(spec), spec, data, options)


def load(spec: str) -> Any:
    """The object that `module:name` or `file.py:name` names; `name` is `answer` where it is left out."""
    return load_code(spec, "answer", PlayerError)


WRITING: Mapping[str, Mapping[str, Any]] = {
    "openai": {"prompt": "{question}", "max_tokens": 1024},
    "hf": {"prompt": "{question}", "max_new_tokens": 384},
    "inspect": {"prompt": "{question}", "max_tokens": 1024},
    "lmms": {"prompt": "{question}", "max_new_tokens": 384},
}
"""Options of players that answer in a word unless they are told otherwise."""


def writer(spec: str | Player, **options: Any) -> Player:
    """The player of this spec, asked for exactly what the question says, in plain words and without an image: it
    rephrases, judges or reads instead of looking."""
    kind = spec.partition(":")[0] if isinstance(spec, str) else ""
    return resolve(spec, **{**WRITING.get(kind, {}), **options})


def _wrap(thing: Any, name: str, data: Dataset | None, options: dict[str, Any]) -> Player:
    """A player from a class, an instance, a function that answers, or a function that makes a player."""
    version = str(options.pop("version", "") or getattr(thing, "version", "") or "")
    given: dict[str, Any] = {}
    if inspect.isclass(thing) or (callable(thing) and not hasattr(thing, "answer") and not is_answer_function(thing)):
        given, options = options, {}
        thing = _make(thing, name, data, given)
    if inspect.iscoroutinefunction(getattr(thing, "answer", thing)):
        raise PlayerError(
            f"{name or 'The player'} answers in an `async def`, which players cannot do. Put a plain function around "
            "it that returns asyncio.run(...) of it."
        )
    if not hasattr(thing, "answer"):
        if callable(thing) and not inspect.isclass(thing):
            return FunctionPlayer(thing, name=name, version=version, **read_options(FunctionPlayer, options, name))
        raise PlayerError(
            f"{name} is neither a function answer(image, question) nor an object with a method answer(queries)."
        )
    if options:
        raise PlayerError(f"{name} is already made: the option '{next(iter(options))}' cannot be set.")
    if is_answer_function(thing.answer):
        made_with = sorted((k, str(v)) for k, v in given.items()) if given else ""
        return FunctionPlayer(thing.answer, name=getattr(thing, "name", "") or name, version=f"{version}{made_with}")
    if not getattr(thing, "name", "") or not getattr(thing, "fingerprint", "") or version:
        return ObjectPlayer(thing, name=name, version=version, options=given)
    return as_player(thing)


def _make(maker: Any, name: str, data: Dataset | None, options: dict[str, Any]) -> Any:
    arguments = read_options(maker, options, name)
    parameters = inspect.signature(maker).parameters
    if "data" in parameters:
        arguments["data"] = data
    needed = [
        p.name
        for p in parameters.values()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and p.name not in arguments
    ]
    if needed:
        raise PlayerError(
            f"{name} needs a value for '{needed[0]}': give it as an option. "
            f"(A function that answers has parameters called image and question.)"
        )
    try:
        return maker(**arguments)
    except PlayerError:
        raise
    except Exception as error:
        raise PlayerError(f"{name} could not be made: {describe(error)}") from error


def _importable(place: str) -> bool:
    """Whether a dotted name may be a module at all, so that a misspelt player's name is told as such."""
    top = place.partition(".")[0]
    here = Path.cwd()
    if top in sys.modules or exists(here / f"{top}.py") or exists(here / top):
        return True
    try:
        return importlib.util.find_spec(top) is not None
    except (ImportError, ValueError):
        return False


@lru_cache(maxsize=2)
def _data(data: str, options: tuple[tuple[str, Any], ...], limit: int | None, open_questions: bool) -> Dataset:
    """Players that are asked the same share the data."""
    return select(load_data(data, **dict(options)), limit, (), open_questions)


@dataclass(frozen=True)
class Recipe:
    """Makes the player and the examples of a run, wherever the work runs."""

    player: str
    data: str
    player_options: tuple[tuple[str, Any], ...] = ()
    data_options: tuple[tuple[str, Any], ...] = ()
    limit: int | None = None
    open_questions: bool = False

    def __call__(self) -> tuple[Player, Dataset]:
        own_modules()
        part = self.examples()
        return resolve(self.player, data=part.whole, **dict(self.player_options)), part

    def examples(self) -> Dataset:
        """The data alone."""
        return _data(self.data, self.data_options, self.limit, self.open_questions)

    @classmethod
    def of(
        cls,
        player: str,
        data: str,
        player_options: Mapping[str, Any],
        data_options: Mapping[str, Any],
        limit: int | None = None,
        open_questions: bool = False,
    ) -> Recipe:
        about_player, about_data = tuple(sorted(player_options.items())), tuple(sorted(data_options.items()))
        return cls(player, data, about_player, about_data, limit, open_questions)

    def config(self) -> dict[str, Any]:
        """The same for exam.json; `of_run` reads it again."""
        return {
            "player": {"spec": self.player, "options": dict(self.player_options)},
            "data": {
                "spec": self.data,
                "options": dict(self.data_options),
                "limit": self.limit,
                "open": self.open_questions,
            },
        }

    @classmethod
    def of_run(cls, run: Path) -> Recipe:
        """What made the player and data of a run."""
        config = read_config(run)
        player, data = config["player"], config["data"]
        if player.get("spec") is None or data.get("spec") is None:
            raise PfungstError(f"{run} does not say how its player or data was made: it was run with Python objects.")
        options = (player.get("options") or {}, data.get("options") or {})
        return cls.of(player["spec"], data["spec"], *options, data.get("limit"), bool(data.get("open", False)))
