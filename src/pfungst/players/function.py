"""Any Python function, or any object with `answer(queries)`, as a player."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pfungst.core import Answer, Image, PfungstError, PlayerError, Query
from pfungst.core.code import describe
from pfungst.core.fingerprint import digest
from pfungst.core.images import as_rgb
from pfungst.core.types import GivenPlayer, Player
from pfungst.players.identity import identity, qualified_name

if TYPE_CHECKING:
    import PIL.Image

BURST_SECONDS = 0.005
"""Work of a function that a kill may lose beside the query it is at: storing each quick answer by itself would cost
more than all else that is done with it."""
_EXTRAS = ("choices", "scene", "take")


class FunctionPlayer(Player):
    """A function `answer(image, question) -> str` as a player.

    The function is called once per query. `image` is an RGB `PIL.Image.Image` of its own. Where the query has no image
    it is a plain gray one, or None for a function that says `image=None` in its signature. Parameters called `choices`
    (tuple of str), `scene` (CLEVR scene dictionary) and `take` (int, counts repetitions) are passed where the function
    has them; having `scene` makes the player read scenes. It returns the answer as str, as `(str, confidence)` or as an
    `Answer`.

    The fingerprint is made of the source file the function stands in (any change to the file is a new player), its
    qualified name, `version`, and what it works with as far as that can be known (`pfungst.players.identity`). A model
    that is an object of an installed package is not seen: change `version` when it changes.
    """

    def __init__(
        self, function: Callable[..., Any], *, name: str = "", version: str = "", batch_size: int = 32
    ) -> None:
        self._function = function
        self._call = _Call(function)
        self.name: str = name or _name_of(function)
        self.fingerprint: str = f"function-1-{digest(identity(function), version)}"
        self.guessed: bool = not version
        self.reads_scenes: bool = "scene" in self._call.extras
        self.reads_images: bool = self._call.wants_image
        self.batch_size = batch_size

    def answer_iter(self, queries: Sequence[Query]) -> Iterator[tuple[int, Answer]]:
        """Answers one by one, so that those already given survive an error in a later one."""
        last: Image | None = None
        pixels: PIL.Image.Image | None = None
        for index, query in enumerate(queries):
            if self._call.wants_image and query.image is not last:  # variants of one example follow each other
                pixels = None if query.image is None else as_rgb(query.image)
                last = query.image
            image = None if pixels is None else pixels.copy()  # the function may spoil it
            if image is None and not self._call.takes_none:
                image = gray()
            try:
                said = self._call(image, query)
            except PfungstError:
                raise
            except (Exception, SystemExit) as error:
                raise PlayerError(
                    f"{self.name} failed on the question '{query.question}': {describe(error)}"
                ) from error
            yield index, self._read(said, query)

    def answer_bursts(self, queries: Sequence[Query]) -> Iterator[list[tuple[int, Answer]]]:
        """Answers of a function that is quick come together, so that they are stored together."""
        burst: list[tuple[int, Answer]] = []
        since = time.monotonic()
        try:
            for answer in self.answer_iter(queries):
                burst.append(answer)
                if time.monotonic() - since > BURST_SECONDS:
                    yield burst
                    burst, since = [], time.monotonic()
        except GeneratorExit:
            raise
        except BaseException:
            if burst:
                yield burst
            raise
        if burst:
            yield burst

    def _read(self, said: object, query: Query) -> Answer:
        if isinstance(said, Answer):
            return said
        if isinstance(said, str):
            return Answer(said)
        if isinstance(said, tuple) and len(said) == 2 and isinstance(said[0], str):
            try:
                return Answer(said[0], confidence=float(said[1]))
            except (TypeError, ValueError):
                pass
        raise PlayerError(
            f"{self.name} returned {said!r:.80} ({type(said).__name__}) for the question '{query.question}'. "
            f"Return the answer as str, as (str, confidence), or as a pfungst Answer."
        )


class ObjectPlayer(GivenPlayer):
    """An object with `answer(queries)` that lacks a name or a fingerprint, completed with both.

    The fingerprint is made of the source file of its class, the class name, its attributes as far as they can be
    known, the options it was made with, and `version`. Optional attributes of the object (`reads_scenes`, `batch_size`,
    `answer_iter` ...) stay visible.
    """

    def __init__(
        self, player: Any, *, name: str = "", version: str = "", options: dict[str, Any] | None = None
    ) -> None:
        self._player = player
        self.name = getattr(player, "name", None) or name or type(player).__qualname__
        own = getattr(player, "fingerprint", None)
        made = f"object-1-{digest(*identity(player), options or {}, version)}"
        self.guessed = not (own or version)
        self.fingerprint = (f"{own}-{digest(version)}" if version else own) if own else made


class _Call:
    """Works out once how a function wants to be called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        try:
            parameters = inspect.signature(function).parameters
        except (TypeError, ValueError) as error:
            raise PlayerError(
                f"{_name_of(function)} has no readable signature: wrap it in a Python function."
            ) from error
        named = {n: p for n, p in parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
        self._function = function
        self.extras = tuple(name for name in _EXTRAS if name in named)
        rest = [name for name in named if name not in _EXTRAS]
        if {"image", "question"} & set(rest):
            needed = [n for n in rest if n not in ("image", "question") and named[n].default is inspect.Parameter.empty]
            if needed:
                raise PlayerError(
                    f"{_name_of(function)} has a parameter '{needed[0]}' that cannot be filled: use image, question, "
                    "choices, scene, take, or give it a default."
                )
            self._order = [name for name in rest if name in ("image", "question")]
            self._by_name = all(named[n].kind is not inspect.Parameter.POSITIONAL_ONLY for n in rest)
        else:
            needed = [n for n in rest if named[n].default is inspect.Parameter.empty]
            if len(needed) != 2:
                raise PlayerError(
                    f"{_name_of(function)} takes {len(needed)} required parameters; "
                    f"a player's function is answer(image, question)."
                )
            self._order = ["image", "question"]
            self._by_name = False
        self.wants_image = "image" in self._order
        self.takes_none = not self.wants_image or ("image" in named and named["image"].default is None)

    def __call__(self, image: PIL.Image.Image | None, query: Query) -> object:
        extras = {name: getattr(query, name) for name in self.extras}
        given = {"image": image, "question": query.question}
        if self._by_name:
            return self._function(**{name: given[name] for name in self._order}, **extras)
        return self._function(*(given[name] for name in self._order), **extras)


def gray() -> PIL.Image.Image:
    """What is shown to models that cannot do without an image, where a query has none."""
    import PIL.Image

    return PIL.Image.new("RGB", (224, 224), (127, 127, 127))


def is_answer_function(thing: Any) -> bool:
    """Whether a callable answers questions itself (rather than making a player): it needs an image or a question."""
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in positional if p.default is p.empty and p.name not in _EXTRAS]
    return any(p.name in ("image", "question") for p in parameters) or len(required) == 2


def _name_of(function: Any) -> str:
    inner = function.func if isinstance(function, partial) else function
    module = getattr(inner, "__module__", "") or ""
    plain = "" if module.startswith("pfungst_player_") or module == "__main__" else f"{module}:"
    return plain + qualified_name(inner)
