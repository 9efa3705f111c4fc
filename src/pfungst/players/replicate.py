"""One player in several copies, each in a process (or an actor of a Ray cluster) of its own.

    player = replicate("film", data, {}, ReplicaSettings(4))

A replicated player is simply a player: same name, same fingerprint, same answers. Its copies are fed from one queue.
A copy that dies, hangs or grows too large is replaced and its queries are tried again elsewhere; a query that costs
three copies their lives is given up, alone, with a sentence.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from pfungst.compute.devices import environment, every_gpu
from pfungst.compute.pool import ComputeError, Death, Pool, Stillborn, Unmade, Workers
from pfungst.compute.processes import ProcessWorkers
from pfungst.compute.ray import RayWorkers
from pfungst.core import (
    Answer,
    Asker,
    Dataset,
    Example,
    Image,
    Needs,
    PfungstError,
    Player,
    PlayerDied,
    PlayerError,
    Query,
    Reading,
    UsageError,
)
from pfungst.core.code import describe, own_modules
from pfungst.core.errors import QueriesFailed, ended
from pfungst.core.images import BytesImage, FileImage, NamedImage, ZipImage
from pfungst.core.settings import parse_settings, split_spec
from pfungst.core.threads import available_cores, machine_memory
from pfungst.data import load as load_data
from pfungst.players.dispatch import by_image
from pfungst.players.resolving import find, load, resolve
from pfungst.world.renderers.raycast import RenderedImage

if TYPE_CHECKING:
    import PIL.Image

SHARE = 0.9
"""Of the machine's memory that all copies together may hold."""
AHEAD = 2
"""Batches that a copy holds: while one is answered and stored, the next is there already."""
TRAITS = ("reads_scenes", "reads_ids", "reads_images", "samples", "takes", "matcher")
"""What a copy says about its player, so that the copies together are asked as it would be."""
DEATHS = 3
"""Copies that a query may cost before it is given up."""
PATIENCE = 5 * DEATHS
"""Deaths in a row, without one answer in between, after which the player is considered down."""
STREAMED = 8
"""Queries that a copy of a player gets at once which answers one by one: what a death may cost."""
UNDER_WAY = 4
"""Queries it gets for each that it has under way at the same time."""


@dataclass(frozen=True)
class ReplicaSettings:
    """How a player is copied."""

    count: int | None = None
    """Copies. None: one for each GPU where the player needs one, else one for each core."""
    timeout: float = 1800.0
    """Seconds without a word after which a copy is considered hung and replaced."""
    memory: float | None = None
    """GiB beyond which a copy is replaced [what the player says, else its share of the machine]."""
    gpus: float | None = None
    """GPUs of each copy [what the player says]."""
    threads: int = 1
    """Threads that each copy computes with."""

    def __post_init__(self) -> None:
        if self.count is not None and self.count < 1:
            raise UsageError(f"At least one copy of the player is needed, not {self.count}.")
        if self.timeout <= 0 or self.threads < 1:
            raise UsageError("The timeout and the threads of a copy must be above 0.")

    @classmethod
    def of(cls, text: str | int) -> ReplicaSettings:
        """`4`, `auto`, or with more settings: `4:timeout=60,memory=8`."""
        count, words = split_spec(str(text))
        if count != "auto" and not count.isdecimal():
            raise UsageError(f"--replicas takes a number or `auto`, not {count!r}.")
        given = {} if count == "auto" else {"count": int(count)}
        read = parse_settings(cls, words, what="replicas")
        return cls(**{**vars(read), **given})


def replicate(
    spec: object,
    data: Dataset | None,
    options: Mapping[str, Any],
    settings: ReplicaSettings | None = None,
    *,
    on: str = "processes",
    data_spec: str | None = None,
    data_options: Mapping[str, Any] | None = None,
) -> Player:
    """The player of `spec` in several copies.

    data: what players see that know a data set. Where it was loaded from `data_spec`, copies load it themselves, and
        only if they look at it.
    on: `local` or `processes` for processes of this machine, else a Ray cluster as in `pfungst.compute`.
    """
    if not isinstance(spec, str):
        raise PlayerError("Copies of a player are made from its name: give it as text, such as my_module:answer.")
    if spec.startswith("openai:"):
        raise UsageError(
            f"{spec} asks servers, many questions at once: there is nothing to copy here. Start more servers and give "
            "their addresses separated by commas, openai:MODEL@URL1,URL2."
        )
    settings = settings or ReplicaSettings()
    if data is not None and data_spec is not None:
        late = LateExamples(data_spec, dict(data_options or {}))
        data = Dataset(data.name, late, data.metric, data.fingerprint, data.skipped)
    make = Made(spec, dict(options), data)
    needs = needs_of(spec, options)
    needs = Needs(needs.gpus if settings.gpus is None else settings.gpus, settings.memory or needs.memory)
    workers: Workers
    if on in ("local", "processes"):
        gpus = every_gpu() if needs.gpus and ":" not in str(options.get("device", "")) else ()
        count = settings.count or (max(1, int(len(gpus) / needs.gpus)) if gpus else available_cores())
        devices = [environment(gpu) for gpu in gpus]
        try:
            workers = ProcessWorkers(make, threads=settings.threads, devices=devices)
        except ComputeError as error:
            raise PlayerError(
                f"{spec} cannot be sent to another process: {error} Data that are given by name are read there."
            ) from error
        memory = needs.memory or SHARE * machine_memory() / 2**30 / count
    else:
        workers = cluster = RayWorkers(make, on, settings.count, needs)
        room = cluster.room()
        if not room:  # a copy that no node can take would be waited for forever
            cluster.close()
            memory_words = f" and {needs.memory:g} GiB of memory" if needs.memory else ""
            raise ComputeError(
                f"A copy of the player needs {needs.gpus:g} GPUs{memory_words}, and no node of the cluster at {on} has "
                "that."
            )
        count, memory = settings.count or room, needs.memory or 0.0
    return ReplicatedPlayer(workers, count, timeout=settings.timeout, memory=memory or None)


def needs_of(spec: str, options: Mapping[str, Any]) -> Needs:
    """What a copy needs: what the player's class or maker says (`Player.needs`), else what its options tell."""
    name = spec.partition(":")[0]
    maker = find(name)
    said = getattr(maker if maker is not None else load(spec), "needs", None)
    if isinstance(said, Needs):
        return said
    device = str(options.get("device", "auto" if name == "hf" else ""))
    return Needs(gpus=1.0 if device.startswith("cuda") or (device == "auto" and every_gpu()) else 0.0)


@dataclass(eq=False)
class _Chunk:
    """Queries that are asked together."""

    places: list[int]
    deaths: int = 0
    what: str = "answer"


class _Same:
    """All copies must be the same player."""

    about: Described | None = None

    def __call__(self, about: Described) -> None:
        if self.about is not None and self.about.fingerprint != about.fingerprint:
            raise PlayerError(
                f"The copies of {about.name} are not the same player: one has the fingerprint "
                f"{self.about.fingerprint:.40}, another {about.fingerprint:.40}. All machines need the same weights "
                "and versions."
            )
        self.about = about


class ReplicatedPlayer(Player):
    """Copies of one player that answer together."""

    def __init__(self, workers: Workers, count: int, *, timeout: float = math.inf, memory: float | None = None) -> None:
        self._files = workers.files
        self._same = _Same()
        self._pool: Pool[_Chunk] = Pool(workers, count, ahead=AHEAD, timeout=timeout, welcome=self._same)
        self._memory = None if memory is None else memory * 2**30
        self._poison: set[str] = set()
        self._renewed = 0
        self._words: dict[int, tuple[str, ...]] = {}
        """The notes of each copy."""
        with self._in_words():
            self._pool.start_one()
        self.name = self._about.name
        self.fingerprint = self._about.fingerprint
        for name, value in self._about.traits.items():
            setattr(self, name, value)

    def has(self, method: str) -> bool:
        traits = {"look": self._about.looks, "reading": self._about.tells}
        return traits[method] if method in traits else super().has(method)

    @property
    def notes(self) -> Sequence[str]:  # type: ignore[override]
        """What the copies want to tell, and what became of them."""
        said = dict.fromkeys(note for _, notes in sorted(self._words.items()) for note in notes)
        if self._pool.deaths:
            said[f"{self._pool.deaths} copies of the player died and were replaced."] = None
        if self._renewed:
            said[f"{self._renewed} copies of the player grew too large and were replaced."] = None
        return tuple(said)

    def answer_bursts(self, queries: Sequence[Query]) -> Iterator[list[tuple[int, Answer]]]:
        """Answers as they come; what failed is raised after the last of them."""
        problems: dict[int, str] = {}
        broken: set[str] = set()
        with self._in_words():
            for number, chunk, outcome in self._outcomes(self._chunks(queries, problems), queries):
                if isinstance(outcome, Death):
                    self._pool.suspects.extendleft(reversed(self._after_death(chunk, outcome.how, queries, problems)))
                    continue
                if outcome.died:
                    raise PlayerDied(outcome.died)
                broken |= outcome.broken
                self._words[number] = outcome.notes
                if self._memory is not None and outcome.memory > self._memory:
                    self._renewed += 1
                    self._pool.renew(number)
                answers = list(zip(chunk.places, outcome.answers, strict=True))
                problems |= zip((place for place, answer in answers if answer is None), outcome.problems, strict=True)
                yield [(place, answer) for place, answer in answers if answer is not None]
        if problems:
            images = [place for place, sentence in problems.items() if sentence in broken]
            raise QueriesFailed(dict(sorted(problems.items())), images)

    def _outcomes(self, chunks: Sequence[_Chunk], queries: Sequence[Query]) -> Iterator[tuple[int, _Chunk, Any]]:
        def message(chunk: _Chunk) -> tuple[str, list[Query]]:
            return chunk.what, carried([queries[place] for place in chunk.places], self._files)

        return self._pool.run(chunks, message)

    def _chunks(self, queries: Sequence[Query], problems: dict[int, str]) -> list[_Chunk]:
        """The queue. Queries about one image stand together, where the player does not care how they are batched."""
        # A batch decides the last bits of what a network computes: those that go in batches keep the batches that a
        # single copy would get.
        order = range(len(queries)) if self._about.in_order else by_image(queries, {})
        if self._poison:
            known = {place: queries[place].key(self.fingerprint) in self._poison for place in order}
            problems |= {place: _poisonous(self.name, queries[place]) for place in order if known[place]}
            order = [place for place in order if not known[place]]
        size = self._about.at_once
        return [_Chunk(list(order[start : start + size])) for start in range(0, len(order), size)]

    def _after_death(self, chunk: _Chunk, how: str, queries: Sequence[Query], problems: dict[int, str]) -> list[_Chunk]:
        """What is tried again: first all of it, in case it was not the queries; then each alone; then nothing."""
        if self._pool.deaths_in_a_row > PATIENCE:
            raise PlayerDied(
                f"{self.name} is considered down: {self._pool.deaths_in_a_row} of its copies died without an answer in "
                f"between, the last because: {ended(how)} Its earlier answers are kept; run the same command again to "
                "resume."
            )
        chunk.deaths += 1
        if chunk.deaths == DEATHS - 1 and len(chunk.places) > 1:
            return [_Chunk([place], chunk.deaths) for place in chunk.places]
        if chunk.deaths < DEATHS:
            return [chunk]
        (place,) = chunk.places
        self._poison.add(queries[place].key(self.fingerprint))
        problems[place] = _poisonous(self.name, queries[place], how)
        return []

    @contextlib.contextmanager
    def _in_words(self) -> Iterator[None]:
        """What went wrong with the copies, as errors of a player."""
        try:
            yield
        except Unmade as error:
            raise PlayerError(str(error)) from None
        except Stillborn as error:
            name = getattr(self, "name", "The player")
            raise PlayerDied(f"{name} cannot be started: its copies die before they are ready ({error}).") from None

    @property
    def _about(self) -> Described:
        assert self._same.about is not None
        return self._same.about

    def look(self, queries: Sequence[Query]) -> Mapping[str, Any]:
        """Where the player looks, as one of the copies says."""
        import torch

        outcome = self._of_one("look", queries)
        if isinstance(outcome, dict):
            return {name: torch.from_numpy(values) for name, values in outcome.items()}
        raise PlayerError(f"{self.name} could not say where it looks: {outcome}.")

    def reading(self, queries: Sequence[Query]) -> Sequence[Reading | None]:
        """What the player reads, as one of the copies says."""
        outcome = self._of_one("reading", [replace(query, image=None, scene=None) for query in queries])
        if isinstance(outcome, list):
            return outcome
        raise PlayerError(f"{self.name} could not say what it reads: {outcome}.")

    def _of_one(self, what: str, queries: Sequence[Query]) -> Any:
        """What one of the copies says about the queries."""
        with self._in_words():
            for _, _, outcome in self._outcomes([_Chunk(list(range(len(queries))), what=what)], queries):
                return outcome
        raise AssertionError("a pool gives an outcome for every task")

    def close(self) -> None:
        """End all copies. Whoever forgets it ends them with the program."""
        self._pool.close()


def _poisonous(name: str, query: Query, how: str = "") -> str:
    because = f"; the last: {how}" if how else ""
    said = f"{name} was asked {query.question!r:.80}, and {DEATHS} of its copies died on it{because}"
    return f"{ended(said)} The question is given up."


@contextlib.contextmanager
def closing(player: object) -> Iterator[None]:
    """End the copies of the player in the end, if it has any."""
    try:
        yield
    finally:
        if isinstance(player, ReplicatedPlayer):
            player.close()


@dataclass(frozen=True)
class Made:
    """Makes the player of a spec, in whichever process it is called."""

    spec: str
    options: Mapping[str, Any]
    data: Dataset | None = None

    def __call__(self) -> Host:
        own_modules()
        try:
            player = resolve(self.spec, data=self.data, **self.options)
        except PfungstError:
            raise
        except Exception as error:
            raise PlayerError(f"The player could not be made: {describe(error)}") from error
        if player.has("knows"):
            raise PlayerError(f"{player.name} has recorded answers: there is nothing to gain from copies of it.")
        return Host(player)


@dataclass(frozen=True, eq=False)
class LateExamples(Sequence[Example]):
    """The examples of a data set, loaded when the first of them is wanted: most players never look at them."""

    spec: str
    options: Mapping[str, Any]

    @cached_property
    def _examples(self) -> Sequence[Example]:
        return load_data(self.spec, **self.options).examples

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
    tells: bool
    """Whether it tells what it reads."""


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
    """One copy of a player: what a worker holds."""

    def __init__(self, player: Player) -> None:
        self.player = player

    def do(self, what: str, queries: Sequence[Query]) -> Reply | dict[str, Any] | list[Reading | None]:
        """`answer`, `look` or `reading`."""
        if what == "reading":
            return list(self.player.reading(queries))
        return self.look(queries) if what == "look" else self.answer(queries)

    def about(self) -> Described:
        player = self.player
        streams, at_once = player.streams, player.batch_size
        if streams:
            under_way = player.terms.at_once
            at_once = UNDER_WAY * under_way if under_way > 1 else STREAMED
        traits = {name: getattr(player, name) for name in TRAITS}
        has = player.has("look"), player.has("reading")
        return Described(player.name, str(player.fingerprint), at_once, not streams, traits, *has)

    def answer(self, queries: Sequence[Query]) -> Reply:
        """Ask; a query that fails alone has no answer and a sentence that says why."""
        asker = Asker(self.player, patience=len(queries) + 1)
        try:
            answers = asker.ask(queries)
        except PlayerError as error:  # raised only where the player says that it is down for good
            return Reply((None,) * len(queries), died=str(error), memory=memory_held())
        problems = tuple(sentence for _, sentence in asker.failures)
        return Reply(
            tuple(answers), problems, frozenset(asker.broken), memory=memory_held(), notes=self.player.last_words
        )

    def look(self, queries: Sequence[Query]) -> dict[str, Any]:
        """Where the player looks, as NumPy arrays."""
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
