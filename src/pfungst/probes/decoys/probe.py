"""The decoys probe: the same question with other wrong choices (Being Negative but Constructively).

The right answer stays; what changes is what it stands among. A player that finds the target by eliminating what does
not fit the question, or is not in the image, falls where the decoys fit both.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pfungst.core import (
    Answer,
    AnsweredTrial,
    Dataset,
    Example,
    Figure,
    Finding,
    Findings,
    Probe,
    ProbeError,
    Query,
    Series,
    Table,
    Trial,
    UsageError,
    Variant,
)
from pfungst.core.files import cache_dir
from pfungst.core.flips import alike, normalise
from pfungst.core.settings import option
from pfungst.core.stats import Floats
from pfungst.core.types import Progress, no_progress
from pfungst.probes import measure
from pfungst.probes.decoys.ambiguity import Alike, ambiguity, note, sentence
from pfungst.probes.decoys.ambiguity import table as ambiguity_table
from pfungst.probes.decoys.building import NEIGHBOURS, K, build
from pfungst.probes.decoys.filters import THRESHOLD
from pfungst.probes.decoys.sets import MOSTLY, DecoySet, fallen_note, kind_name, read_sets
from pfungst.scores.metrics import choice_by_scores

OPEN = "open-ended"
_TURN = re.compile(r"(.+), turn (\d+)")
_STRENGTH = re.compile(r"QoU@(\d+)")
OWN = ", no fallback"
FEW = 0.8
"""Share of the questions without a fallback below which the conclusion over them is said in words."""


def turn_name(name: str, turn: int) -> str:
    """The variant with the options moved up by `turn` places."""
    return f"{name}, turn {turn}"


@dataclass(frozen=True)
class Pick:
    """What a player chose."""

    score: float
    """In [0, 1]; 0 where the answer is none of the choices, NaN where the truth is unknown."""
    choice: int | None
    """Position of the chosen option; None where the answer cannot be read as one."""


def pick(query: Query, answer: Answer, score: float, target: str | None) -> Pick:
    """Read an answer to a multiple choice, strictly.

    Scores decide where a player gives them; of several highest ones the one it names is the choice, else the first, and
    the question counts the share that is right. Otherwise the text must be one of the choices (`pfungst.scores` says
    when two answers are the same); anything else is not read, and wrong.
    """
    said = normalise(answer.text)
    named = next((at for at, choice in enumerate(query.choices) if normalise(choice) == said), None)
    if answer.scores is not None and len(answer.scores) == len(query.choices):
        known = [-np.inf if one != one else one for one in answer.scores]
        best = [at for at, one in enumerate(known) if one == max(known)]
        if len(best) == 1 and best[0] == named:
            return Pick(score, named)
        right = float("nan") if target is None else choice_by_scores(answer.scores, query.choices, target)
        return Pick(right, named if named in best else best[0])
    if named is None:
        return Pick(score if score != score else 0.0, None)
    return Pick(score, named)


@dataclass(frozen=True)
class Column:
    """One choice set over all trials that have it."""

    name: str
    trials: tuple[AnsweredTrial, ...]
    picks: tuple[Pick, ...]
    options: tuple[int, ...]

    @classmethod
    def of(cls, name: str, trials: Sequence[AnsweredTrial]) -> Column:
        some, picks, options = [], [], []
        for one in trials:
            for variant, answer, score in zip(one.trial.variants, one.answers, one.scores, strict=True):
                if variant.name == name:
                    some.append(one)
                    options.append(len(variant.query.choices))
                    open_ = not variant.query.choices
                    picks.append(Pick(score, 0) if open_ else pick(variant.query, answer, score, one.example.target))
        return cls(name, tuple(some), tuple(picks), tuple(options))

    @property
    def scores(self) -> list[float]:
        return [one.score for one in self.picks]

    @property
    def chance(self) -> float:
        known = [1 / size for size in self.options if size]
        return float(np.mean(known)) if known else float("nan")

    @property
    def unread(self) -> int:
        return sum(one.choice is None for one in self.picks)

    def accuracy(self, seed: int, condition: str = "") -> Finding:
        return measure.mean("accuracy", self.scores, measure.clusters(self.trials), seed, condition or self.name)

    def not_read(self, seed: int, condition: str) -> Finding:
        unread = [float(one.choice is None) for one in self.picks]
        return measure.mean("answers not read", unread, measure.clusters(self.trials), seed, condition)

    def only(self, keep: Sequence[bool]) -> Column:
        rows = [
            row for row, kept in zip(zip(self.trials, self.picks, self.options, strict=True), keep, strict=True) if kept
        ]
        trials, picks, options = zip(*rows, strict=True) if rows else ((), (), ())
        return Column(self.name, trials, picks, options)


def read(probe: str, trials: Sequence[AnsweredTrial], seed: int) -> Findings:
    """The findings of the decoys probe."""
    names = list(dict.fromkeys(v.name for one in trials for v in one.trial.variants))
    columns = {name: Column.of(name, trials) for name in names}
    has_orig = any(columns["clean"].options)
    headline = max(
        (one.trial.notes["headline"] for one in trials), key=lambda name: len(columns[name].trials), default="clean"
    )
    main = columns[headline]
    sets = [name for name in names if not _TURN.fullmatch(name)]
    labels = {name: ("Orig" if has_orig else OPEN) if name == "clean" else name for name in sets}
    accuracies = {name: columns[name].accuracy(seed, labels[name]) for name in sets}
    bases = [name for name in ("Random", "clean") if name in columns]
    drops = _drops(columns, bases, headline, labels, has_orig, seed)
    unread = [columns[name].not_read(seed, labels[name]) for name in sets if any(columns[name].options)]
    own = main.only([not one.trial.notes["fallbacks"] for one in main.trials])
    fallen, fallbacks = _fallbacks(trials, seed)
    circular, circular_table = _circular(columns, headline, seed)
    doubtful = ambiguity(trials, seed)
    rows = [*accuracies.values(), *drops, *unread, *circular, *fallbacks, *doubtful]
    shown = [(columns[name], accuracies[name]) for name in sets]
    figures = _figures(shown)
    apart = ""
    if 0 < len(own.trials) < len(main.trials):
        shown.append((own, own.accuracy(seed, headline + OWN)))
        worth = _drops({**columns, headline: own}, bases[:1], headline, labels, has_orig, seed, OWN)
        rows += [shown[-1][1], *worth]
        if len(own.trials) < FEW * len(main.trials):
            apart = _apart(own, len(main.trials), shown[-1][1], worth)
    elif fallbacks and not own.trials:
        apart = f" No question of {headline} is without a fallback."
    for part in _own_parts(columns, headline) if fallen else ():
        accuracy = part.accuracy(seed, part.name + OWN)
        rows.append(accuracy)
        apart += (
            f" Over the {len(part.trials):,} whose {part.name} decoys are without, it finds the right answer among "
            f"these in {measure.with_interval(accuracy)}, chance {measure.percent(part.chance)}."
        )
    base = accuracies["Random"] if "Random" in accuracies else accuracies["clean"]
    drop = drops[0] if drops else None
    compared = columns["Random" if "Random" in columns else "clean"]
    tables = [_table(shown, fallen)]
    if circular_table is not None:
        tables.append(circular_table)
    if doubtful:
        tables.append(ambiguity_table(doubtful))
    open_ended = accuracies.get(OPEN) or (None if has_orig else accuracies["clean"])
    return Findings(
        probe, tuple(rows),
        _verdict(main, accuracies[headline], compared, base, drop, open_ended, circular, fallbacks, fallen, apart)
        + sentence(doubtful),
        base, accuracies[headline], drop, tuple(tables), figures,
        measure.worst(trials, "Random", headline) if "Random" in columns else (),
    )  # fmt: skip


def _fallbacks(trials: Sequence[AnsweredTrial], seed: int) -> tuple[dict[str, float], list[Finding]]:
    """Kinds whose decoys mostly come from the fallback, with its share; and how much of each kind the fallback made."""
    notes = [one.trial.notes for one in trials]
    fallen, made = {}, []
    for kind in dict.fromkeys(kind for one in notes for kind in one.get("decoys", {})):
        counts = [one.get("decoys", {}).get(kind, 0) for one in notes]
        strange = [one["fallbacks"].get(kind, 0) for one in notes]
        if sum(strange) > MOSTLY * sum(counts):
            fallen[kind] = sum(strange) / sum(counts)
        share = [few / count if count else float("nan") for few, count in zip(strange, counts, strict=True)]
        made.append(measure.mean("decoys from the fallback", share, measure.clusters(trials), seed, kind_name(kind)))
    return fallen, made


def _own_parts(columns: Mapping[str, Column], headline: str) -> list[Column]:
    """The parts of the headline set, each over the questions that have no decoy of that kind from the fallback."""
    kinds = {kind_name(kind): kind for one in columns[headline].trials for kind in one.trial.notes.get("decoys", {})}
    parts = [(columns[name], kinds[name]) for name in headline.split("+") if name in kinds and name in columns]
    own = [part.only([not one.trial.notes["fallbacks"].get(kind) for one in part.trials]) for part, kind in parts]
    return [part for part in own if part.trials]


def _apart(own: Column, count: int, accuracy: Finding, worth: Sequence[Finding]) -> str:
    """The conclusion over the questions none of whose decoys come from the fallback."""
    said = (
        f" Over the {len(own.trials):,} of {count:,} questions without a fallback it finds the right answer in "
        f"{measure.with_interval(accuracy)}, chance {measure.percent(own.chance)}"
    )
    return said + "".join(f"; elimination is worth {measure.with_interval(one)} there" for one in worth) + "."


def _drops(
    columns: dict[str, Column], bases: Sequence[str], headline: str, labels: dict[str, str], has_orig: bool, seed: int,
    ending: str = "",
) -> list[Finding]:  # fmt: skip
    """The base sets against the headline, at equal chance: a guesser loses nothing where a set has more options."""
    found = []
    main = columns[headline]
    by_id = {
        one.trial.example_id: (p.score, size)
        for one, p, size in zip(main.trials, main.picks, main.options, strict=True)
    }
    for base in bases:
        if base == headline or (base == "clean" and not has_orig):
            continue
        asked = zip(columns[base].trials, columns[base].options, strict=True)
        both = columns[base].only([one.trial.example_id in by_id and bool(size) for one, size in asked])
        after = [by_id[one.trial.example_id][0] for one in both.trials]
        sizes = [by_id[one.trial.example_id][1] for one in both.trials]
        condition = f"{labels[base]} to {headline}{ending}"
        said = [alike(one.of(base)[0], one.of(headline)[0]) == 1.0 for one in both.trials]
        lost, settled = (
            (at_chance(both.scores, both.options, sizes), at_chance(some, sizes, both.options))
            for some in (after, np.where(said, both.scores, after))
        )
        groups = measure.clusters(both.trials)
        drop = measure.difference("drop", *lost, groups, seed, condition, settled)
        found.append(replace(drop, changed=int((np.abs(np.subtract(both.scores, after)) > measure.TINY).sum())))
    return measure.corrected(found)


def at_chance(scores: Sequence[float] | Floats, options: Sequence[int], others: Sequence[int]) -> Floats:
    """The scores as they would be at the chance of the other set, where that has fewer options: whoever knows a share
    k of the answers and guesses the rest has k + (1 - k) / options."""
    own = 1 / np.array(options, np.float64)
    chance = np.maximum(own, 1 / np.array(others, np.float64))
    return np.asarray(1 - (1 - np.array(scores, np.float64)) * (1 - chance) / np.where(own < 1, 1 - own, 1.0))


def _circular(columns: dict[str, Column], headline: str, seed: int) -> tuple[list[Finding], Table | None]:
    """All orders of one set: right in every one, same choice in every one, and where the player likes to point."""
    turns = [columns[headline], *(one for name, one in columns.items() if name.startswith(f"{headline}, turn "))]
    if len(turns) < 2:
        return [], None
    scores: dict[str, list[float]] = {}
    chosen: dict[str, set[str | None]] = {}
    where: dict[str, AnsweredTrial] = {}
    places: dict[int, list[int]] = {}
    for column in turns:
        for one, p, size in zip(column.trials, column.picks, column.options, strict=True):
            key = one.trial.example_id
            where[key] = one
            scores.setdefault(key, []).append(p.score)
            choices = next(v.query.choices for v in one.trial.variants if v.name == column.name)
            chosen.setdefault(key, set()).add(None if p.choice is None else choices[p.choice])
            counts = places.setdefault(size, [0] * size)
            if p.choice is not None:
                counts[p.choice] += 1
    groups = measure.clusters(list(where.values()))
    always, swayed = [float(np.min(one)) for one in scores.values()], [float(len(one) > 1) for one in chosen.values()]
    rows = [
        measure.mean("accuracy in every order", always, groups, seed, headline),
        measure.mean("choice changes with the order", swayed, groups, seed, headline),
    ]
    size = max(places, key=lambda one: sum(places[one]))
    total = max(1, sum(places[size]))
    table = Table(
        f"Where the player points, {headline} with {size} options in every order",
        ("place", *(chr(65 + place % 26) for place in range(size))),
        (("share of picks", *(f"{100 * count / total:.1f}%" for count in places[size])),),
        f"Every option is in every position once, so a player without a preference has {100 / size:.1f}% each.",
    )
    return rows, table


def _table(shown: Sequence[tuple[Column, Finding]], fallen: dict[str, float]) -> Table:
    rows: list[tuple[object, ...]] = []
    for one, accuracy in shown:
        told = (f"{np.mean(one.options):.1f}", measure.percent(one.chance), one.unread)
        options, chance, unread = told if any(one.options) else ("", "", "")
        rows.append((accuracy.condition, options, accuracy, chance, unread, len(one.trials)))
    return Table(
        "Accuracy by choice set",
        ("choices", "options", "accuracy", "chance", "not read", "n"),
        tuple(rows),
        "Layout of Tables 3 to 5, for one player. Random: as many decoys as QoU+IoU, targets of any questions. "
        "Not read: answers that are none of the choices; they count as wrong."
        + "".join(f" {fallen_note(kind_name(kind), share)}" for kind, share in fallen.items()),
    )


def _figures(shown: Sequence[tuple[Column, Finding]]) -> tuple[Figure, ...]:
    bars = [(accuracy.condition, one, accuracy) for one, accuracy in shown if not _STRENGTH.fullmatch(one.name)]
    figures = [_figure("Accuracy by choice set", "bar", "", bars)]
    weak = {int(found[1]): pair for pair in shown if (found := _STRENGTH.fullmatch(pair[0].name))}
    strong = [pair for pair in shown if pair[0].name == "QoU"]
    if weak and strong:
        curve = [(str(rank), *weak[rank]) for rank in sorted(weak, reverse=True)] + [("0", *strong[0])]
        title = "Accuracy against the strength of the decoys"
        figures.append(_figure(title, "line", "most similar questions left out", curve))
    return tuple(figures)


def _figure(title: str, kind: str, label: str, points: Sequence[tuple[str, Column, Finding]]) -> Figure:
    x = tuple(name for name, _, _ in points)
    found = measure.series("accuracy", x, [accuracy for _, _, accuracy in points])
    chance = Series("chance", x, tuple(one.chance for _, one, _ in points))
    return Figure(title, kind, (found, chance), label, "accuracy")


def _verdict(
    main: Column, accuracy: Finding, compared: Column, base: Finding, drop: Finding | None, open_ended: Finding | None,
    circular: Sequence[Finding], fallbacks: Sequence[Finding], fallen: dict[str, float], apart: str,
) -> str:  # fmt: skip
    fit = "that fit the question and the image " if not fallen else ""
    said = (
        f"Among decoys {fit}({accuracy.condition}) the player finds the right answer in "
        f"{measure.with_interval(accuracy)}, chance {measure.percent(main.chance)}"
    )
    if drop is not None:
        same = np.mean(main.options) == np.mean(compared.options)
        which = "random ones" if compared.name == "Random" else "the own ones of the question"
        said += (
            f"; among {which} ({base.condition}) in "
            f"{measure.percent(base.value)}{'' if same else f', chance {measure.percent(compared.chance)}'}: "
            f"{'' if same else 'at equal chance, '}elimination is worth {measure.with_interval(drop)}"
        )
    if open_ended is not None:
        said += f"; without choices it scores {measure.percent(open_ended.value)}"
    said += "."
    if accuracy.low <= main.chance <= accuracy.high:
        said += " That is no better than guessing."
    for one in fallbacks:
        if apart and one.value:
            so = ", so IoU and QoU+IoU are not IoU sets" if one.condition == "IoU" and "iou" in fallen else ""
            said += f" {measure.with_interval(one)} of the {one.condition} decoys come from the fallback{so}."
    said += apart
    if circular:
        swayed = measure.with_interval(circular[1])
        said += f" It changes {swayed} of its choices when only the order of the options changes."
    if main.unread:
        said += f" {main.unread} of {len(main.picks)} answers are none of the choices."
    return said


Sets = dict[str, tuple[str, ...]]
"""Choice set -> choices, of one example."""
Sources = Mapping[str, tuple[int, int]]
"""Kind -> how many decoys one example has of it, and how many of these come from the fallback."""
KEEPS = "the answer: image and question are the same, and the right answer stands among the choices"
_REFERS = re.compile(
    r"\W*[A-J]\W*|.*\b(?:[A-J](?: and |, | or | & )[A-J]|options? [A-J]|"
    r"(?:all|any|both|either|neither|none) of (?:the )?(?:above|answers|below|choices|options|these|those))\b.*",
    re.IGNORECASE | re.DOTALL,
)
STRENGTHS = (10, 100, 1000, 10_000)
"""Neighbours passed over by the weaker decoys of the strength curve."""


@dataclass(frozen=True)
class Decoys(Probe):
    """Other wrong choices: accuracy on Orig, QoU, IoU, QoU+IoU and All, open-ended twin, order of the options."""

    kinds: str = "qou+iou"
    """Kinds of decoys, joined by +; see `build`."""
    k: int = option(K, "--k", "-k")
    """Decoys of each kind."""
    encoder: str = ""
    """The encoder that finds similar questions: `words:FILE` as in the paper, any other by name [the embedded one]."""
    neighbours: int = NEIGHBOURS
    """How many of the most similar questions to search."""
    threshold: float = THRESHOLD
    """Answers whose WUPS is at least this are too similar."""
    fallback: str = "frequent"
    """Used if too few are found: `frequent` (the ten most frequent targets, as in the paper) or `neutral`."""
    made: str = ""
    """A file written by `pfungst decoys`, to use instead of making decoys."""
    pool_limit: int = 0
    """Maximum number of examples to take decoys from, in addition to those asked; 0 means all of them."""
    circular: str = "headline"
    """Ask with the options in every rotated order: the `headline` set (QoU+IoU), `all` sets, or `none`."""
    strength: bool = False
    """Ask with weaker QoU decoys too, for the curve of accuracy against strength."""
    name: str = "decoys"

    def check_data(self, data: Dataset) -> None:
        if self.circular not in ("headline", "all", "none"):
            raise ProbeError(
                f"The setting circular of the probe decoys is headline, all or none, not {self.circular!r}."
            )
        if self.pool_limit < 0:
            raise UsageError(f"pool_limit is {self.pool_limit}, but must be at least 0; 0 means all examples.")
        given = [example for example in data.whole if example.target and example.target.strip()]
        targets = {normalise(example.target or "") for example in given if not refers(example)}
        if not self.made and len(targets) < 2:
            why = f"all have the answer {min(targets)!r:.60}" if targets else "none has a right answer"
            if given and not targets:
                why = f"all right answers refer to the options they stand among, such as {given[0].target!r:.60}"
            raise ProbeError(
                f"The probe decoys makes wrong choices from the right answers of other questions, and in {data.name} "
                f"there are none: {why}."
            )

    def prepare(self, data: Dataset, seed: int, progress: Progress) -> None:
        if not self.made:
            self._build(data, seed, progress)

    def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
        self.check_data(data)
        sets, sources = self._from_file(data) if self.made else self._make(data, seed)
        if not sets:
            raise ProbeError(
                f"No question of {data.name} has a decoy"
                + (f" in {self.made}: it was made for other questions." if self.made else ".")
            )
        asked = [example for example in data if example.id in sets and not refers(example)]
        alike = self._alike(asked, sets)
        for example in asked:
            yield self._trial(example, sets[example.id], sources.get(example.id, {}), alike)

    def findings(self, trials: Sequence[AnsweredTrial], seed: int) -> Findings:
        return read(self.name, trials, seed)

    def _alike(self, asked: Sequence[Example], sets: Mapping[str, Sets]) -> Alike:
        """Judges the headline choices of these examples, by the embedded encoder and by the one that was named."""
        texts = (text for one in asked for text in (str(one.target), *_headline(sets[one.id])[1]))
        return Alike(texts, ["", self.encoder] if self.encoder else [""])

    def _trial(self, example: Example, sets: Mapping[str, tuple[str, ...]], sources: Sources, alike: Alike) -> Trial:
        query = measure.clean_query(example)
        variants = [Variant("clean", query)]
        if example.choices:
            variants.append(Variant(OPEN, replace(query, choices=())))
        headline, offered = _headline(sets)
        for name, choices in sets.items():
            variants.append(Variant(name, replace(query, choices=choices)))
            if self.circular == "all" or (self.circular == "headline" and name == headline):
                for turn in range(1, len(choices)):
                    turned = choices[turn:] + choices[:turn]
                    variants.append(Variant(turn_name(name, turn), replace(query, choices=turned), role="control"))
        fallbacks = {kind: strange for kind, (_, strange) in sources.items() if strange}
        decoys = {kind: count for kind, (count, _) in sources.items()}
        doubtful = note(example, offered, alike)
        notes = {"headline": headline, "fallbacks": fallbacks, "decoys": decoys, "ambiguous": doubtful}
        return Trial(example.id, tuple(variants), KEEPS, notes)

    def _build(self, data: Dataset, seed: int, progress: Progress = no_progress) -> DecoySet:
        """Decoys for the examples of `data` from the answers of the whole data set; finished work is in the cache."""
        kinds = [kind for kind in self.kinds.split("+") if kind]
        whole = data.whole.examples[: self.pool_limit or None]
        pool = {example.id: example for example in (*whole, *data) if not refers(example)}
        if self.strength:
            kinds += [f"qou@{rank}" for rank in STRENGTHS if rank < len(pool) // 2]
        kinds += ["random"] if "random" not in kinds else []
        settings = (data.whole.fingerprint, len(pool), sorted(example.id for example in data), kinds, seed, self)
        digest = hashlib.sha256(repr(settings).encode("utf-8", "surrogatepass")).hexdigest()[:24]
        return build(
            list(pool.values()), kinds, self.k, seed,
            encoder=self.encoder or None, neighbours=self.neighbours, threshold=self.threshold, fallback=self.fallback,
            only={example.id for example in data if example.id in pool}, folder=cache_dir("decoys") / digest,
            progress=progress,
        )  # fmt: skip

    def _make(self, data: Dataset, seed: int) -> tuple[dict[str, Sets], dict[str, Sources]]:
        made = self._build(data, seed)
        names = [name for name in made.variants if name != "Orig"]
        asked = {example.id for example in data}
        numbers = [number for number, example in enumerate(made.examples) if example.id in asked]
        keys = [made.examples[number].id for number in numbers]
        sets: dict[str, Sets] = {}
        for key, *choices in zip(keys, *(made.all_choices(name, numbers) for name in names), strict=True):
            options = {name: some for name, some in zip(names, choices, strict=True) if some}
            if options:
                sets[key] = options
        return sets, dict(zip(keys, made.of_each(numbers), strict=True))

    def _from_file(self, data: Dataset) -> tuple[dict[str, Sets], dict[str, Sources]]:
        stored = read_sets(Path(self.made))
        sets: dict[str, Sets] = {}
        sources: dict[str, Sources] = {}
        for example in data:
            if example.id in stored:
                target, choices, sources[example.id] = stored[example.id]
                if target != example.target:
                    raise ProbeError(
                        f"{self.made} has decoys for another data set: the target of {example.id} is {target!r:.60} "
                        f"there and {example.target!r:.60} here."
                    )
                sets[example.id] = {name: found for name, found in choices.items() if found and name != "Orig"}
        return {key: value for key, value in sets.items() if value}, sources


def _headline(sets: Mapping[str, tuple[str, ...]]) -> tuple[str, tuple[str, ...]]:
    """The choice set that all three rules ask for, or what comes closest, and its choices."""
    name = "QoU+IoU" if "QoU+IoU" in sets else list(sets)[-1]
    return name, sets[name]


def refers(example: Example) -> bool:
    """Whether the right choice means something only among its own options: `all of the above`, `A and B`, a letter."""
    return bool(example.choices and example.target and _REFERS.fullmatch(example.target))
