"""What runs in one copy of a player, wherever that is: it makes the player, tells what it is, and asks it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from pfungst.core import Answer, Asker, Dataset, Example, Image, PartialPlayer, PfungstError, Player, PlayerError, Query
from pfungst.core.code import describe, own_modules
from pfungst.core.images import BytesImage, FileImage, NamedImage, ZipImage
from pfungst.core.types import (
    LookingPlayer,
    PromptedPlayer,
    StreamingPlayer,
    batch_size,
    matcher_of,
    may_sample,
    notes_of,
    reads_ids,
    reads_images,
    reads_scenes,
    takes,
)
from pfungst.data import load
from pfungst.players.resolving import resolve
from pfungst.world.images import RenderedImage

if TYPE_CHECKING:
    import PIL.Image

STREAMED = 8
"""Queries that a copy of a player gets at once which answers one by one: what a death may cost."""
AHEAD = 4
"""Queries it gets for each that it has under way at the same time."""


@dataclass(frozen=True)
class Made:
    """Makes the player of a spec, in whichever process it is called."""

    spec: str
    options: Mapping[str, Any]
    data: Dataset | None = None

    def __call__(self) -> Player:
        own_modules()
        return resolve(self.spec, data=self.data, **self.options)


@dataclass(frozen=True, eq=False)
class LateExamples(Sequence[Example]):
    """The examples of a data set, loaded when the first of them is wanted: most players never look at them."""

    spec: str
    options: Mapping[str, Any]

    @cached_property
    def _examples(self) -> Sequence[Example]:
        return load(self.spec, **self.options).examples

    def __len__(self) -> int:
        return len(self._examples)

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Example]: ...
    def __getitem__(self, index: int | slice) -> Example | Sequence[Example]:
        return self._examples[index]

    def __reduce__(self) -> tuple[Any, ...]:
        return LateExamples, (self.spec, self.options)


@dataclass(frozen=True)
class Described:
    """What a copy says about its player: all that must be known to ask it."""

    name: str
    fingerprint: str
    at_once: int
    """Queries it is given together."""
    in_order: bool
    """Its batches are those that a single player would get: the same numbers come out, to the last bit."""
    traits: Mapping[str, Any]
    """Optional attributes of players that it has, with their values."""
    looks: bool


@dataclass(frozen=True)
class Reply:
    """What came of some queries."""

    answers: tuple[Answer | None, ...]
    """None where the player failed."""
    problems: tuple[str, ...] = ()
    """What went wrong, a sentence for each None."""
    broken: frozenset[str] = frozenset()
    """Those of these sentences that are about broken images."""
    died: str = ""
    """Not empty: the player fails on everything, in its own words."""
    memory: int = 0
    """Bytes that the copy holds."""
    notes: tuple[str, ...] = ()


class Host:
    """One copy of a player."""

    def __init__(self, make: Made) -> None:
        self.player = make()
        if isinstance(self.player, PartialPlayer):
            raise PlayerError(f"{self.player.name} has recorded answers: there is nothing to gain from copies of it.")

    @classmethod
    def begin(cls, make: Made) -> tuple[Host | None, tuple[str, str | Described]]:
        """A copy, and what it says first: `ready` and what it is, or `failed` and why there is none."""
        try:
            host = cls(make)
            return host, ("ready", host.describe())
        except PfungstError as error:
            return None, ("failed", str(error))
        except Exception as error:
            return None, ("failed", f"The player could not be made: {describe(error)}")

    def do(self, what: str, queries: Sequence[Query]) -> tuple[str, Reply | dict[str, Any]]:
        """`answer` or `look`."""
        return "done", self.look(queries) if what == "look" else self.answer(queries)

    def describe(self) -> Described:
        player = self.player
        streams = isinstance(player, StreamingPlayer)
        at_once = batch_size(player)
        if streams:
            under_way = player.terms.at_once if isinstance(player, PromptedPlayer) else 1
            at_once = AHEAD * under_way if under_way > 1 else STREAMED
        traits = {
            "reads_scenes": reads_scenes(player),
            "reads_ids": reads_ids(player),
            "reads_images": reads_images(player),
            "samples": may_sample(player),
            "takes": takes(player),
        }
        if matcher_of(player):
            traits["matcher"] = matcher_of(player)
        looks = isinstance(player, LookingPlayer)
        return Described(player.name, str(player.fingerprint), at_once, not streams, traits, looks)

    def answer(self, queries: Sequence[Query]) -> Reply:
        """Ask; a query that fails alone has no answer and a sentence that says why."""
        asker = Asker(self.player, patience=len(queries) + 1)
        try:
            answers = asker.ask(queries)
        except PlayerError as error:  # raised only where the player says that it is down for good
            return Reply((None,) * len(queries), died=str(error), memory=memory_held())
        problems = tuple(sentence for _, sentence in asker.failures)
        return Reply(
            tuple(answers), problems, frozenset(asker.broken), memory=memory_held(), notes=notes_of(self.player)
        )

    def look(self, queries: Sequence[Query]) -> dict[str, Any]:
        """Where the player looks, as NumPy arrays."""
        assert isinstance(self.player, LookingPlayer)
        return {name: values.cpu().numpy() for name, values in self.player.look(queries).items()}


def memory_held() -> int:
    """Bytes of main memory that this process holds now; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


@dataclass(frozen=True, slots=True)
class CarriedImage:
    """An image on its way to another process: its bytes under the name that it has at home."""

    digest: str
    data: bytes

    def read(self) -> bytes:
        return self.data

    def pil(self) -> PIL.Image.Image:
        return BytesImage(self.data).pil()


def carried(queries: Sequence[Query], files: bool) -> list[Query]:
    """The queries as another process can have them. files: it sees the files of this machine."""
    images: dict[int, Image | None] = {}
    ready = []
    for query in queries:
        image = query.image
        if image is not None and id(image) not in images:
            images[id(image)] = _carried(image, files)
        ready.append(query if image is None else replace(query, image=images[id(image)]))
    return ready


def _carried(image: Image, files: bool) -> Image:
    if isinstance(image, BytesImage | NamedImage | RenderedImage) or (
        files and isinstance(image, FileImage | ZipImage)
    ):
        return image
    try:
        return CarriedImage(image.digest, image.read())
    except PfungstError:
        return image  # the copy will say that it cannot be read
