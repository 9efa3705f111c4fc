"""The picture probe: what should not matter in the pixels.

Shifted, padded, compressed, blurred ... images must get the same right answer. Severities and the mean over them follow
Benchmarking Neural Network Robustness to Common Corruptions and Perturbations (ImageNet-C).
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter

import numpy as np

from pfungst.core import (
    AnsweredTrial,
    Dataset,
    Example,
    Figure,
    Finding,
    Findings,
    Image,
    LazyImage,
    Probe,
    ProbeError,
    Query,
    Series,
    Table,
    Trial,
    UsageError,
    Variant,
)
from pfungst.core.images import as_rgb
from pfungst.core.registry import Registry
from pfungst.core.stats import Floats, jackknife
from pfungst.core.types import POINTS
from pfungst.probes import measure
from pfungst.probes.measure import Cells, Effect, Sheet, bars, effects_of, failures, largest_drop, lost
from pfungst.probes.picture.kernels import Pixels
from pfungst.probes.picture.operations import SEVERITIES, Operation, made_later, topics
from pfungst.probes.picture.redrawn import Stage

_PIXELS = (
    "shift", "crop", "pad", "rescale", "rotate", "gamma", "brightness", "contrast", "grey", "blur", "noise", "fog",
    "jpeg", "webp",
)  # fmt: skip
OPERATIONS = Registry(
    "image operation",
    "pfungst.image_operations",
    {
        **{name: f"pfungst.probes.picture.operations:{name.upper()}" for name in _PIXELS},
        "mirror": "pfungst.probes.picture.redrawn:MIRROR",
        "camera": "pfungst.probes.picture.redrawn:CAMERA_MOVED",
        "light": "pfungst.probes.picture.redrawn:LIGHT_MOVED",
        "backdrop": "pfungst.probes.picture.redrawn:BACKDROP",
        "gloss": "pfungst.probes.picture.redrawn:GLOSS",
        "occlusion": "pfungst.probes.picture.redrawn:OCCLUSION",
    },
)
DEFAULT = tuple(name for name in OPERATIONS.builtin if name != "webp")
"""All of ours that give the same pixels on every machine."""
SHOWN = 5
"""Operations that get a curve of their own, those with the largest drops."""

KEEPS = "the answer: the pixels change in ways that the question's words do not ask about"
PROVED = (
    "the answer: the pixels change in ways that the question's words do not ask about, no object leaves the image, and "
    "on a scene drawn anew the program gives the same answer and every object shows"
)


@dataclass(frozen=True)
class Picture(Probe):
    """The same image shifted, padded, compressed, blurred ...: severity curves, worst of n, where accuracy halves."""

    operations: tuple[str, ...] = DEFAULT
    """What is done to the image, joined by +: jpeg+blur."""
    severities: tuple[int, ...] = SEVERITIES
    """How much of it, from 1 to 5, joined by +."""
    name: str = "picture"

    def __post_init__(self) -> None:
        wrong = [one for one in self.severities if one not in SEVERITIES]
        if wrong or not self.severities or len(set(self.severities)) != len(self.severities):
            raise UsageError(
                f"The severities of the probe picture are different numbers from 1 to 5, joined by +, not "
                f"{'+'.join(map(str, self.severities)) or 'none'}."
            )
        if not self.operations or len(set(self.operations)) != len(self.operations):
            raise UsageError("The operations of the probe picture are different names, joined by +; name at least one.")
        for one in self.operations:
            OPERATIONS.get(one)

    def check_data(self, data: Dataset) -> None:
        """Whether there are images to disturb."""
        if all(example.image is None for example in data):
            raise ProbeError(
                f"The probe picture disturbs images, but none of the {len(data)} examples of {data.name} has one. "
                "Tell the loader where the images are."
            )
        if not self._pixels() and all(Stage.of(example) is None for example in data):
            raise ProbeError(
                f"The operations {', '.join(self.operations)} redraw scenes, but {data.name} has no images that are "
                "drawn from scenes. Name others, such as picture:operations=jpeg+blur."
            )

    def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
        self.check_data(data)
        held: Trial | None = None
        lost = 0
        for example in data:
            if example.image is None:
                continue
            trial = self._trial(example, example.image, seed)
            if len(trial.variants) < 2:
                lost += 1
                continue
            if held is not None:
                yield held
            held = trial
        if held is None:
            raise ProbeError(
                f"The probe picture cannot apply any of {', '.join(self.operations)} to the images of {data.name}: "
                "every question is about what they change. Name other operations."
            )
        # questions that nothing may be done to have no trial of their own
        yield replace(held, notes={**held.notes, "left out": lost}) if lost else held

    def findings(self, trials: Sequence[AnsweredTrial], seed: int) -> Findings:
        about = {name: OPERATIONS.get(name).about for name in self.operations}
        return read(self.name, trials, about, self.severities, seed)

    def lost(self, trial: AnsweredTrial) -> float:
        """What the drop is the mean of."""
        return lost(trial, operation_of)

    def _pixels(self) -> bool:
        """Whether some operation needs no scene."""
        return any(OPERATIONS.get(one).change is not None for one in self.operations)

    def _trial(self, example: Example, image: Image, seed: int) -> Trial:
        variants = [Variant("clean", measure.clean_query(example))]
        refused: dict[str, str] = {}
        stage = Stage.of(example)
        spoken = topics(example)
        for name in self.operations:
            part: Operation = OPERATIONS.get(name)
            redraw = part.proved if stage is not None else None
            if redraw is None and part.change is None:
                continue
            if redraw is None and (of := spoken & part.spoils):
                refused[name] = f"speaks of {min(of)}"
                continue
            for severity in self.severities if part.graded else self.severities[:1]:
                key = _key(seed, name, severity, image)
                made: Query | str
                if redraw is not None:
                    made = redraw(stage, severity, key)
                elif stage is not None and part.band is not None and not stage.inside(part.band, severity):
                    made = "an object would leave the image"
                else:
                    made = replace(variants[0].query, image=disturbed(image, name, severity, key))
                if isinstance(made, str):
                    refused[f"{name} {severity}"] = made
                else:
                    variants.append(Variant(f"{name} {severity}", made, level=severity))
        notes: Mapping[str, object] = {"refused": refused} if refused else {}
        return Trial(example.id, tuple(variants), KEEPS if stage is None else PROVED, notes)


def disturbed(image: Image, name: str, severity: int, key: int) -> LazyImage:
    """The image after an operation, made when somebody looks at it. Its PNG file holds exactly these pixels."""
    named = [name, OPERATIONS.get(name).version(), severity, key, image.digest]
    return made_later(named, partial(change, image, name, severity, key))


def change(image: Image, name: str, severity: int, key: int) -> Pixels:
    """The disturbed pixels, uint8 (height, width, 3)."""
    part: Operation = OPERATIONS.get(name)
    return part(np.array(as_rgb(image)), severity, key)


def _key(seed: int, name: str, severity: int, image: Image) -> int:
    """A random number of 64 bits: questions about one image see the same disturbance."""
    text = f"{seed} {name} {severity} {image.digest}"
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "little")


# --- answers about disturbed images, read -----------------------------------------------------------------------------


def read(
    name: str,
    trials: Sequence[AnsweredTrial],
    about: Mapping[str, str],
    severities: Sequence[int],
    seed: int,
) -> Findings:
    """The findings; `about` names the operations and says what they do."""
    sheet = Sheet.of(trials, operation_of, lambda trial, variant: int(variant.rpartition(" ")[2]))
    operations = effects_of({one: sheet.headings[one] for one in about if one in sheet.headings}, seed)
    clean, disturbed, drop, changed, worst = sheet.all.summary(trials, seed)
    drops = [one.drop for one in operations]
    accuracies = {one: cells.accuracy(one, seed) for one, cells in sheet.variants.items()}
    halves = {one.name: half_at(sheet.variants, one.name, severities) for one in operations}
    found_halves = [
        Finding("half at", halves[one.name], one.n, condition=one.name, how="interpolated", unit="severity")
        for one in operations
        if not math.isnan(halves[one.name])
    ]
    mean_drop = _mean_drop([sheet.headings[one] for one in halves])
    levels = sorted(severities)
    table = measure.table_of(
        "By operation",
        operations,
        {
            "operation": attrgetter("name"),
            "what it does": lambda one: about[one.name],
            "clean": attrgetter("before"),
            **{str(level): partial(_at_level, accuracies, level) for level in levels},
            **{column: measure.EFFECT[column] for column in ("drop", *measure.P_COLUMNS, "answers changed")},
            "half at": lambda one: "not reached" if math.isnan(halves[one.name]) else f"{halves[one.name]:.1f}",
            "n": attrgetter("n"),
        },
        "Accuracy at every severity. Clean: of the same questions. Half at: the severity at which accuracy falls to "
        "half of that. A severity that the contract refuses for some questions is measured on the others.",
    )
    rows = (
        clean, disturbed, drop, mean_drop, changed, worst, *accuracies.values(), *drops,
        *(one.changes for one in operations), *found_halves,
    )  # fmt: skip
    figures = (bars("Drop under every operation", drops), *_curves(sheet, operations, accuracies, clean, levels, seed))
    verdict = _verdict(clean, disturbed, drop, drops, worst, halves)
    return Findings(name, rows, verdict, clean, disturbed, drop, (table, *_refusals(trials)), figures, failures(trials))


def _at_level(accuracies: Mapping[str, Finding], level: int, operation: Effect) -> Finding | str:
    return accuracies.get(f"{operation.name} {level}", "")


def operation_of(variant: str) -> str:
    """`blur 3` is an operation `blur`."""
    return variant.rpartition(" ")[0]


def half_at(variants: Mapping[str, Cells], operation: str, severities: Sequence[int]) -> float:
    """The severity at which accuracy first falls to half of that on the clean images, interpolated; NaN if it never
    does. Severity 0 is the clean image."""
    before, kept = 0, 1.0
    for severity in sorted(severities):
        some = variants.get(f"{operation} {severity}")
        if some is None:
            continue
        known = [(a, b) for a, b in zip(some.clean, some.scores, strict=True) if not math.isnan(a + b)]
        total = sum(a for a, _ in known)
        if not total:
            continue
        share = sum(b for _, b in known) / total
        if share <= 0.5:
            return before + (severity - before) * (kept - 0.5) / (kept - share)
        before, kept = severity, share
    return math.nan


# --- by operation and severity ----------------------------------------------------------------------------------------


def _mean_drop(some: Sequence[Cells]) -> Finding:
    """The mean of the operations' drops, as in ImageNet-C."""
    names = dict.fromkeys(cluster for cell in some for cluster in cell.clusters)
    labels = {cluster: at for at, cluster in enumerate(names)}
    sums, counts = np.zeros((len(some), len(labels))), np.zeros((len(some), len(labels)))
    for row, cell in enumerate(some):
        lost = np.array(cell.clean) - np.array(cell.scores)
        codes = np.array([labels[cluster] for cluster in cell.clusters])
        known = ~np.isnan(lost)
        sums[row] = np.bincount(codes[known], weights=lost[known], minlength=len(labels))
        counts[row] = np.bincount(codes[known], minlength=len(labels))
    found = jackknife(np.vstack([sums, counts]).T, counts.sum(0), _mean_of_means, bounds=(-1.0, 1.0))
    n = max((len(cell.scores) for cell in some), default=0)
    return measure.finding("mean corruption drop", replace(found, n=n), unit=POINTS)


def _mean_of_means(sums: Floats) -> Floats:
    """From (times, sums and then counts of every operation)."""
    total, count = np.split(sums, 2, axis=1)
    means = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    known = (count > 0).sum(1)
    return np.asarray(np.where(known > 0, np.nansum(means, 1) / np.maximum(known, 1), np.nan))


# --- in words, tables and figures -------------------------------------------------------------------------------------


def _refusals(trials: Sequence[AnsweredTrial]) -> list[Table]:
    counts: Counter[tuple[str, str]] = Counter()
    lost = 0
    for trial in trials:
        lost += int(trial.trial.notes.get("left out", 0))
        counts.update(trial.trial.notes.get("refused", {}).items())
    if not counts and not lost:
        return []
    told = (
        f" {lost} more questions are left out of all numbers: none of the operations is allowed on their images."
        if lost
        else ""
    )
    return [
        Table(
            "Refused",
            ("operation", "because the question, or its image", "questions"),
            tuple((name, why, n) for (name, why), n in sorted(counts.items())),
            f"A disturbance that could change the right answer is left out.{told}",
        )
    ]


def _curves(
    sheet: Sheet[int],
    operations: Sequence[Effect],
    accuracies: Mapping[str, Finding],
    clean: Finding,
    levels: Sequence[int],
    seed: int,
) -> list[Figure]:
    if len(levels) < 2:
        return []
    known = [level for level in levels if level in sheet.levels]
    means = [clean, *(sheet.levels[level].accuracy("", seed) for level in known)]
    lines = [measure.series("all operations", (0, *known), means)]
    for one in sorted(operations, key=lambda one: -one.drop.value)[:SHOWN]:
        points = [(0, one.before.value)]
        points += [(at, accuracies[f"{one.name} {at}"].value) for at in levels if f"{one.name} {at}" in accuracies]
        lines.append(Series(one.name, tuple(at for at, _ in points), tuple(value for _, value in points)))
    title = "Accuracy by severity" + (f", the {SHOWN} largest drops" if len(operations) > SHOWN else "")
    return [Figure(title, "line", tuple(lines), "severity", "accuracy")]


def _verdict(
    clean: Finding,
    disturbed: Finding,
    drop: Finding,
    drops: Sequence[Finding],
    worst: Finding,
    halves: Mapping[str, float],
) -> str:
    told = (
        f"Disturbed images cost {measure.with_interval(drop)} of accuracy ({measure.percent(clean.value)} to "
        f"{measure.percent(disturbed.value)})."
    )
    told += largest_drop(drops)
    told += f" Under the worst disturbance of each question {measure.with_interval(worst)} is left."
    fallen = [f"{one} (severity {value:.1f})" for one, value in halves.items() if not math.isnan(value)]
    if fallen:
        told += f" Accuracy falls by half under {', '.join(fallen)}."
    return told
