"""One way to turn a word into a player."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pfungst.core import Dataset, Player, PlayerError, UsageError
from pfungst.core.code import describe, load_code, split_code
from pfungst.core.files import exists
from pfungst.players import registry
from pfungst.players.function import FunctionPlayer, ObjectPlayer, is_answer_function
from pfungst.players.registry import read_options


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
    maker = registry.find(name)
    if maker is not None:
        return registry.make(maker, name, argument, data, options)
    place, _ = split_code(spec, "answer")
    if not place.endswith(".py") and (":" not in spec or not all(part.isidentifier() for part in place.split("."))):
        if exists(f"{spec}.py"):
            raise PlayerError(f"Say which function of {spec}.py answers: {spec}:answer, for example.")
        raise registry.unknown(spec)
    if ":" in spec and not place.endswith(".py") and not _importable(place):
        near = get_close_matches(name, [*registry.available(), *(file.stem for file in Path().glob("*.py"))], n=3)
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
    return thing  # type: ignore[no-any-return]


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
