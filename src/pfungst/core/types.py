"""The words of the package, as types. Everything that flows along the road is one of these, and frozen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from json.encoder import encode_basestring as _text
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, overload, runtime_checkable

from pfungst.core.images import Image

if TYPE_CHECKING:
    from pfungst.core.asker import Asker

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much is done and how much there is. Changing detail may follow after ` · `."""


def no_progress(what: str, done: int, total: int) -> None:
    """A progress callback that shows nothing."""


def shifted(progress: Progress, before: int, total: int) -> Progress:
    """One bar over all stages: this one begins after `before` of `total`."""
    return lambda what, done, _: progress(what, before + done, total)


@dataclass(frozen=True, slots=True)
class Example:
    """One question of a data set, with all that is known about it."""

    id: str
    """Unique in its data set."""
    question: str
    image: Image | None = None
    """None where the image was not found; `image_id` still names it."""
    image_id: str = ""
    """Name of the image in the data set; examples of one image form a cluster in every statistic."""
    answers: tuple[str, ...] = ()
    """Human answers: ten in VQA, one elsewhere, none in an unlabelled test set."""
    target: str | None = None
    """The one right answer: the choice that counts, or the most frequent human answer."""
    answer_type: str = ""
    """`yes/no`, `number` or `other` in VQA; the data set's own word elsewhere; empty if unknown."""
    question_type: str = ""
    """The data set's own classification of the question, empty if none."""
    choices: tuple[str, ...] = ()
    """The options of a multiple choice, target included; empty when the question is open-ended."""
    scene: Mapping[str, Any] | None = None
    """Published CLEVR scene dictionary."""
    program: Sequence[Mapping[str, Any]] | None = None
    """Published CLEVR functional program."""
    group: str = ""
    """Examples of one group ask the same thing in other words; it is the id of the original question."""
    wording: str = ""
    """`train` for words that the data set's training questions use too, `heldout` for words kept from them; empty where
    the data do not say."""
    contrast: str = ""
    """Examples of one contrast group look alike but are not answered alike: one question on two images, two questions
    on one image. It is the name of the group."""
    repeats: str = ""
    """The id of the first of the examples that are the same question, where no image is named to tell it."""

    def __post_init__(self) -> None:
        given: Any = self.answers
        if isinstance(given, str):  # one answer, not as many as it has letters
            object.__setattr__(self, "answers", (given,))

    @property
    def cluster(self) -> str:
        """What is statistically one thing: all questions about an image, or else all repetitions of a question."""
        return self.image_id or self.repeats or self.id


_JSON = json.JSONEncoder(ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Framing:
    """How a query is put, where that is not left to the player. Players take out what they cannot follow."""

    template: str = ""
    """The prompt, with `{question}` and, for a multiple choice, `{options}`; empty: the player's own."""
    options: str = ""
    """How options are labelled: `A.`, `A)`, `(a)`, `1)`, or `text` for no label; empty: the player's own way."""
    image_last: bool = False
    """The image follows the text."""
    as_is: bool = False
    """The image's own bytes are sent, where the player would encode its pixels itself."""

    def within(self, takes: frozenset[str]) -> Framing | None:
        """What a player follows that takes these fields; None where nothing is left."""
        kept = Framing(**{name: getattr(self, name) for name in self.__slots__ if name in takes})
        return kept if kept != Framing() else None


@dataclass(frozen=True, slots=True)
class Query:
    """All that a player gets to see."""

    question: str
    image: Image | None = None
    choices: tuple[str, ...] = ()
    scene: Mapping[str, Any] | None = None
    """Given only to players that declare `reads_scenes`."""
    take: int = 0
    """Counts independent repetitions of the same question. A player that samples may seed itself with it."""
    example_id: str = ""
    """Given only to players that declare `reads_ids`: they look answers up and must tell equal questions apart."""
    framing: Framing | None = None
    """How it is put; None: as the player puts it by itself. Given only to players that declare what they take."""

    def key(self, fingerprint: str) -> str:
        """Name of this query to this player in the answer store."""
        # JSON, written by hand: an encoder would cost more than everything else that is done with a query.
        seen = [
            _text(fingerprint),
            _text(self.image.digest) if self.image is not None else "null",
            _text(self.question),
            f"[{', '.join(map(_text, self.choices))}]",
            "null" if self.scene is None else _text(json.dumps(self.scene, sort_keys=True)),
            f"{self.take:d}",
        ]
        if self.example_id:
            seen.append(_text(self.example_id))
        if self.framing is not None:
            seen.append(_JSON.encode({"framing": astuple(self.framing)}))
        return hashlib.sha256(f"[{', '.join(seen)}]".encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a player says. Only `text` is needed; the rest is kept where a player knows it."""

    text: str
    confidence: float | None = None
    """The player's own probability that `text` is right, in [0, 1]."""
    scores: tuple[float, ...] | None = None
    """One score per choice, in the order of `Query.choices`; higher is better."""
    raw: str | None = None
    """The whole reply as it was said, where `text` was read out of it; None where `text` is the reply."""
    # How an answer came about does not make it another answer.
    thinking: str = field(default="", compare=False)
    """What the player thought before it replied, where it tells."""
    stop: str = field(default="", compare=False)
    """Why the reply ended, in the server's own word: `stop`, `length`, `content_filter` ..."""
    input_tokens: int | None = field(default=None, compare=False)
    output_tokens: int | None = field(default=None, compare=False)
    seconds: float | None = field(default=None, compare=False)
    """How long the player took."""
    unread: bool = False
    """A matcher found no answer in the reply. Set when a run is scored, never stored."""

    @property
    def reply(self) -> str:
        """What was said, before anybody read it."""
        return self.text if self.raw is None else self.raw


@dataclass(frozen=True, slots=True)
class Reading:
    """What a player reads of a question, in words or, where it reads these, in tokens."""

    words: int
    """Of the question."""
    cut: int = 0
    """Of all it is sent, how many behind the last that it reads."""
    unknown: int = 0
    """Words of the question that it does not know, whether they are cut or not."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What asking a player may take."""

    price_in: float = 0.0
    """Price of a million input tokens."""
    price_out: float = 0.0
    """Price of a million output tokens."""
    most_output: int | None = None
    """Tokens of the longest reply, None where there is no limit."""
    at_once: int = 1
    """Queries under way at the same time."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What one copy of a player takes of a machine."""

    gpus: float = 0.0
    """GPUs of its own; below 1: several copies share one."""
    memory: float | None = None
    """GiB of main memory, at most; a copy that grows beyond it is replaced between two batches. None: unknown."""


DEFAULT_BATCH = 32
"""Queries a player gets at once unless it says otherwise."""


class Player:
    """Anything that answers questions about images: it has a `name`, a `fingerprint` and `answer`.

    All else is optional, and stands here with its default. A class need not derive from this one: `as_player` gives
    any object that has these three the defaults for what it lacks.
    """

    name: str = ""
    fingerprint: str = ""
    """Changes whenever the answers may change: weights, prompt, revision, settings."""
    guessed: bool = False
    """Whether its fingerprint was made for it, of what can be known; then a run says what it took from the store."""
    batch_size: int = DEFAULT_BATCH
    """Queries it wants at once. One that streams is given everything at once."""
    reads_images: bool = True
    """Whether it looks at the image."""
    reads_scenes: bool = False
    """Whether it wants the scene of a query; from other players it is kept."""
    reads_ids: bool = False
    """Whether it looks answers up by the example's id, such as a file of recorded answers; no other sees an id."""
    takes: frozenset[str] = frozenset()
    """How it can be told to put a query: names of the fields of `Framing` that it follows."""
    samples: bool = False
    """Whether it may answer the same query differently the next time."""
    matcher: str = ""
    """The matcher that reads its replies unless the user names another; empty where the reply is the answer."""
    notes: Sequence[str] = ()
    """What the user should know at the end of a run, in sentences."""
    usage: object = None
    """What it has used so far. `str(usage)` stands in the progress bar and at the end of a run; None: not counted."""
    terms: Terms = Terms()
    """What asking it may take."""
    needs: Needs | None = None
    """What each copy of it needs (`--replicas`). It is read from the class, or from the function that makes the
    player, before any copy is made. None: a GPU where its option `device` says `cuda`, else nothing in particular."""

    def answer(self, queries: Sequence[Query]) -> Sequence[Answer]:
        """One answer per query, in order. A player has this, or streams."""
        if not self.streams:
            raise NotImplementedError(f"{type(self).__name__} has no method answer(queries).")
        answers = dict(pair for burst in self.answer_bursts(queries) for pair in burst)
        return [answers[position] for position in range(len(queries))]

    def answer_iter(self, queries: Sequence[Query]) -> Iterator[tuple[int, Answer]]:
        """(position, answer) as answers come in, in any order; what failed is raised after the last of them. A player
        that has this, or `answer_bursts`, streams: each answer is stored before the next is waited for."""
        if self.has("answer_bursts"):
            for burst in self.answer_bursts(queries):
                yield from burst
        else:
            yield from enumerate(self.answer(queries))

    def answer_bursts(self, queries: Sequence[Query]) -> Iterator[Sequence[tuple[int, Answer]]]:
        """As `answer_iter`; what comes in together is handed over together, and stored together."""
        for pair in self.answer_iter(queries):
            yield [pair]

    def knows(self, query: Query) -> bool:
        """Whether it has an answer to a query; some players have answers to some queries only."""
        return True

    def prompt(self, query: Query) -> str:
        """What it is sent for a query, in words."""
        return "\n".join((query.question, *query.choices))

    def reading(self, queries: Sequence[Query]) -> Sequence[Reading | None]:
        """What it reads of each question; None: it does not tell. Images and scenes may be missing here."""
        return [None] * len(queries)

    def look(self, queries: Sequence[Query]) -> Mapping[str, Any]:
        """Where it looks: maps by name, torch tensors with a row a query; those whose names end in `picture` lie over
        the image."""
        return {}

    def has(self, method: str) -> bool:
        """Whether one of these optional methods is its own."""
        return getattr(type(self), method) is not getattr(Player, method)

    @property
    def streams(self) -> bool:
        return self.has("answer_iter") or self.has("answer_bursts")

    @property
    def last_words(self) -> tuple[str, ...]:
        """What the user should know, what it used last."""
        return tuple(self.notes) if self.usage is None else (*self.notes, str(self.usage))


_OWN = ("name", "fingerprint", "answer", "has", "streams", "last_words")
OPTIONAL = tuple(name for name in (*Player.__annotations__, *vars(Player)) if name[0] != "_" and name not in _OWN)
"""What a player may have besides a name, a fingerprint and `answer`."""


class GivenPlayer(Player):
    """A player made of an object that is none: it has what the object has, and the defaults for all else."""

    def __new__(cls, player: Any, **others: Any) -> GivenPlayer:
        # A class of its own for each set of attributes: what the object has goes before the defaults.
        seen = {name: property(attrgetter(f"_player.{name}")) for name in OPTIONAL if hasattr(player, name)}
        return object.__new__(type(cls.__name__, (cls,), seen))

    def __init__(self, player: Any) -> None:
        self._player = player
        self.name = player.name
        self.fingerprint = str(player.fingerprint)

    def answer(self, queries: Sequence[Query]) -> Sequence[Answer]:
        answers: Sequence[Answer] = self._player.answer(queries)
        return answers

    def __getattr__(self, name: str) -> Any:
        if name == "_player":  # not there yet
            raise AttributeError(name)
        return getattr(self._player, name)


def as_player(thing: Any) -> Player:
    """The object itself where it derives from `Player`, else a player made of it."""
    return thing if isinstance(thing, Player) else GivenPlayer(thing)


ROLES = ("clean", "keeps", "removes", "changes", "control")
"""What a variant is for: the question as it stands; a disturbance that keeps the right answer; one that removes what
the answer depends on; one that changes the right answer; the question as it stands once more."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way of asking an example."""

    name: str
    """The condition, the same word for all examples: `clean`, `again`, `blank image`, `partition 3` ..."""
    query: Query
    example_id: str = ""
    """The example asked, where it is not the trial's own (another member of a rephrasing group)."""
    target: str | None = None
    """The right answer to this variant, where it is another one than the example's, on purpose (a contrast)."""
    read: Matcher | None = None
    """Reads the reply to this variant in place of the exam's matcher, where the exam has one."""
    role: str = ""
    """One of `ROLES`; empty: `clean` for the first of a trial, the probe's role for the others."""
    level: float | None = None
    """How strong the disturbance is, in the probe's own measure, where it has one."""

    def asked(self, example: Example) -> Example:
        """The example as this variant asks it: with its choices and its right answer."""
        if self.query.choices != example.choices:
            example = replace(example, choices=self.query.choices)
        if self.target is not None and self.target != example.target:
            example = replace(example, target=self.target, answers=(self.target,))
        return example


@dataclass(frozen=True, slots=True)
class Trial:
    """The variants of one example. `variants[0]` is the clean one."""

    example_id: str
    variants: tuple[Variant, ...]
    keeps: str
    """The label-preservation contract: what stays the same over the variants, and why, in words."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """What the probe must remember to read the answers (JSON-able), such as the scores of a ranking."""


@dataclass(frozen=True, slots=True)
class AnsweredTrial:
    """A trial with an answer and a score in [0, 1] (NaN where the truth is unknown) for every variant."""

    trial: Trial
    example: Example
    answers: tuple[Answer, ...]
    scores: tuple[float, ...]
    readings: tuple[Reading | None, ...] = ()
    """What the player read of every variant; empty where it does not tell."""

    def of(self, variant: str) -> tuple[Answer, float]:
        for one, answer, score in zip(self.trial.variants, self.answers, self.scores, strict=True):
            if one.name == variant:
                return answer, score
        raise KeyError(variant)


POINTS = "points"
"""Unit of a difference of two percentages."""
BEYOND = "beyond controls"
"""Name of a finding: what a disturbance costs beyond what changes with it, such as length. It is said with the drop."""
FRACTIONS = ("%", POINTS)
"""Units of numbers that are stored as fractions of 1."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One number, with how sure we are of it."""

    name: str
    """What was measured: `accuracy`, `drop`, `flip rate` ..."""
    value: float
    n: int
    """Examples behind the number."""
    low: float = float("nan")
    high: float = float("nan")
    """95% interval; NaN where it cannot be known."""
    condition: str = ""
    """The variant or subset measured, empty for all."""
    clusters: int = 0
    """Independent units (images) behind the interval."""
    p: float | None = None
    """p-value of the test named in `how`, as it is."""
    how: str = ""
    """Interval and test, in words."""
    unit: str = "%"
    """`%`: a fraction, shown in percent; `points`: a difference of two. Others stand behind the plain number."""
    at_least: float = float("nan")
    at_most: float = float("nan")
    """One-sided 95% bounds, tighter than the interval: what a requirement is held against. NaN where unknown."""
    effective: float = float("nan")
    """Images of equal weight that would tell as much; NaN where nobody counted."""
    changed: int | None = None
    """Of a difference: how many of the examples score differently. None for any other number."""
    formatting: float = float("nan")
    """Of a drop: the share of the examples whose answers are the same but score differently, by their form alone. NaN
    where nobody looked."""
    without_formatting: Finding | None = None
    """The drop where answers that are the same score the same; None where they do anyway."""
    p_holm: float | None = None
    """p corrected by Holm for the number of rows of its table. None where it is not one of several."""
    note: str = ""
    """What has to be said with the number wherever it is shown; most need nothing."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a probe's report section. Cells are strings, numbers or Findings."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """One line or one group of bars: y over x, with an interval where known."""

    name: str
    x: tuple[Any, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot of a probe's report section, as data; the report draws it."""

    title: str
    kind: str
    """`bar` or `line`."""
    series: tuple[Series, ...]
    x_label: str = ""
    y_label: str = ""
    unit: str = "%"
    """Of y. `%`: a fraction, shown in percent; `points`: a difference of two. Anything else: the plain number."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One example worth looking at: right before the disturbance, wrong after it."""

    example_id: str
    variant: str
    loss: float
    """Clean score minus disturbed score."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a probe found. The report draws a section from exactly this."""

    probe: str
    rows: tuple[Finding, ...]
    verdict: str
    """The result in words, with its interval."""
    clean: Finding | None = None
    disturbed: Finding | None = None
    drop: Finding | None = None
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    failures: tuple[Failure, ...] = ()
    role: str = ""
    """What the probe does with the right answer, one of `ROLES`; the exam writes it."""
    p_holm: float | None = None
    """p of `drop`, corrected by Holm over the drops of all probes of the run; the exam writes it."""


Score = Callable[[Example, Answer], float]
"""Judges one answer: a number in [0, 1], NaN where the truth is unknown."""

Matcher = Callable[[str, Sequence[str], str], str | None]
"""Reads a reply, given the choices that were offered and the answer type: the answer in it, None where it has none or
several."""


@runtime_checkable
class AskingPart(Protocol):
    """A metric or matcher that asks a player of its own: a judge. The exam shows it all answers of a probe before it
    wants the first of them scored or read."""

    @property
    def player(self) -> Player: ...

    def prepare(self, answers: Sequence[tuple[Example, Answer]], folder: Path, progress: Progress) -> None:
        """Ask what has not been asked before; `folder` is the run folder, where what was said is kept."""
        ...


@runtime_checkable
class JudgingScore(AskingPart, Protocol):
    """A metric that asks. It judges a reply as it was said, so one that the matcher could not read may be right; NaN
    also stands for a judgement that failed."""

    @property
    def problems(self) -> Sequence[str]:
        """What it could not judge and the same exam tries again, in sentences."""
        ...

    def __call__(self, example: Example, answer: Answer) -> float: ...

    def findings(self, trials: Mapping[str, Sequence[AnsweredTrial]], player: Player, seed: int) -> Findings:
        """How far the judge can be trusted, from the scored trials of every probe."""
        ...


@runtime_checkable
class AskingMatcher(AskingPart, Protocol):
    """A matcher that asks; to read a reply it is shown the question too, never the right answer."""

    def read(self, example: Example, answer: Answer) -> str | None: ...


@dataclass(frozen=True)
class Dataset(Sequence[Example]):
    """Examples, with a name and the metric they are judged by."""

    name: str
    examples: Sequence[Example]
    metric: str = "vqa"
    """Name in `pfungst.scores.METRICS`: how an answer is judged by default."""
    fingerprint: str = ""
    """Content of the files it was read from."""
    skipped: int = 0
    """Bad records left out by `skip_bad`."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    parent: Dataset | None = field(default=None, repr=False, compare=False)
    """What this is a part of, None if it is whole."""

    @property
    def blind(self) -> bool:
        """Whether its questions are to be asked without their images (`images=none`)."""
        return self.notes.get("images") == "none"

    @property
    def whole(self) -> Dataset:
        """The data set this was taken from. A limit limits what is asked; pools are drawn from the whole."""
        return self.parent if self.parent is not None else self

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Example]: ...
    def __getitem__(self, index: int | slice) -> Example | Sequence[Example]:
        return self.examples[index]

    def __len__(self) -> int:
        return len(self.examples)

    def __iter__(self) -> Iterator[Example]:
        return iter(self.examples)

    @cached_property
    def wordings(self) -> list[list[Example]]:
        """The questions in several wordings: about one image, with one right answer. The original, after which the
        group is named, comes first, or else the first of the data."""
        groups: dict[str, list[Example]] = {}
        for one in self.examples:
            if one.group:
                groups.setdefault(one.group, []).append(one)
        for name, members in groups.items():
            members.sort(key=lambda member: member.id != name)
        return [some for some in groups.values() if len(some) > 1 and len({(e.target, e.image_id) for e in some}) == 1]

    @cached_property
    def originals(self) -> Dataset:
        """Every question once, in its original wording."""
        others = {wording.id for _, *others in self.wordings for wording in others}
        return self.subset([one for one in self.examples if one.id not in others]) if others else self

    def subset(self, examples: Sequence[Example]) -> Dataset:
        """A part of this data set. It remembers the whole."""
        return replace(self, examples=examples, parent=self.whole)


class Probe:
    """A disturbance: makes the variants of every example, and reads the answers.

    It has a `name`, `trials` and `findings`; all else is optional, and stands here with its default. A class need not
    derive from this one (`as_probe`).
    """

    name: str = ""
    role: str = "keeps"
    """What its disturbance does, one of `ROLES`."""
    wordings: ClassVar[bool] = False
    """Whether it asks a question in all the wordings that the data set holds. Others get the originals alone."""

    def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
        """The trials, a pure function of data and seed. Raises ProbeError where the data cannot carry the probe."""
        raise NotImplementedError(f"{type(self).__name__} has no method trials(data, seed).")

    def findings(self, trials: Sequence[AnsweredTrial], seed: int) -> Findings:
        raise NotImplementedError(f"{type(self).__name__} has no method findings(trials, seed).")

    def check_data(self, data: Dataset) -> None:
        """Quickly, before anything is asked: raises ProbeError where the data cannot carry the probe."""

    def prepare(self, data: Dataset, seed: int, progress: Progress) -> None:
        """Long work before the trials, such as ranking. It shows how far it is."""

    def search(self, asker: Asker, data: Dataset, seed: int) -> Iterator[Trial]:
        """The trials of a probe whose variants depend on the answers so far: it asks while it makes them.

        A probe that has this `searches`: it is called instead of `trials`. What the asker was asked is in the store,
        so the trials that come out cost nothing again.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method search(asker, data, seed).")

    def most_queries(self) -> int:
        """The most queries that a search can put; 0: unknown."""
        return 0

    def lost(self, trial: AnsweredTrial) -> float:
        """What the drop is a mean of over the trials, between -1 and 1, NaN where it is unknown.

        Only for a drop that is no mean of the clean score minus that of the variant its findings name, or minus the
        mean of all variants: so that it can be followed while it is asked.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method lost(trial).")

    def has(self, method: str) -> bool:
        """Whether one of these optional methods is its own."""
        return getattr(type(self), method) is not getattr(Probe, method)

    @property
    def searches(self) -> bool:
        return self.has("search")

    def sees(self, data: Dataset) -> Dataset:
        """What it gets to see of a data set."""
        return data if self.wordings else data.originals


def as_probe(thing: Any) -> Probe:
    """The object itself where it derives from `Probe`, else the same with the defaults for what it lacks."""
    if isinstance(thing, Probe):
        return thing
    kind = type(thing)
    named = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    probe: Probe = object.__new__(type(kind.__name__, (kind, Probe), named))
    slots = [name for each in kind.__mro__ for name in getattr(each, "__slots__", ()) if hasattr(thing, name)]
    for name, value in {**getattr(thing, "__dict__", {}), **{name: getattr(thing, name) for name in slots}}.items():
        object.__setattr__(probe, name, value)
    return probe
