"""The surface probe: the same question with typos, in capitals, with a "please". The answer must stay.

Unlike `rephrase`, no word is exchanged for another and no sentence is built anew: what changes is how the
question is typed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter, itemgetter

from pfungst.core import (
    AnsweredTrial,
    Dataset,
    Example,
    Figure,
    Finding,
    Findings,
    Probe,
    ProbeError,
    Trial,
    UsageError,
    Variant,
)
from pfungst.core.registry import Registry
from pfungst.core.types import POINTS
from pfungst.probes import measure, reading
from pfungst.probes.measure import (
    Sheet,
    bars,
    effect_of,
    effects_of,
    failures,
    heading_of,
    largest_drop,
    lost,
    mean_known,
)
from pfungst.probes.surface.edits import Draws, Edit, Question, touched

EDITS = Registry(
    "surface edit",
    "pfungst.surface_edits",
    {
        name: f"pfungst.probes.surface.edits:{name.upper()}"
        for name in ("typo", "upper", "lower", "unmarked", "marks", "contraction", "spelling", "filler", "polite")
    },
)
TOUCHED = "touched"
"""Name of a trial's note: characters touched, by variant."""
BINS = ((1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, math.inf))
"""Characters touched, from and to."""
KEEPS = (
    "the answer: the question is typed differently, and words that carry the answer, the options, negations and "
    "quotations are not touched"
)


@dataclass(frozen=True)
class Surface(Probe):
    """The same question typed differently: typos, case, marks, contractions, spelling, fillers, polite phrases."""

    edits: tuple[str, ...] = tuple(EDITS.builtin)
    """What is done to the question, joined by +: typo+upper."""
    name: str = "surface"

    def __post_init__(self) -> None:
        if len(self._edits) != len(self.edits) or not self.edits:
            raise UsageError("The edits of the probe surface are different names, joined by +; name at least one.")

    @cached_property
    def _edits(self) -> Mapping[str, Edit]:
        """The edits by name."""
        return {name: EDITS.get(name) for name in self.edits}

    def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
        found = False
        for example in data:
            trial = self._trial(example, seed)
            if len(trial.variants) > 1:
                found = True
                yield trial
        if not found:
            raise ProbeError(
                f"The edits {', '.join(self.edits)} have nothing to change in the questions of {data.name}. Name "
                "others."
            )

    def findings(self, trials: Sequence[AnsweredTrial], seed: int) -> Findings:
        return read(self.name, trials, {name: edit.about for name, edit in self._edits.items()}, seed)

    def lost(self, trial: AnsweredTrial) -> float:
        """What the drop is the mean of."""
        return lost(trial, heading_of)

    def _trial(self, example: Example, seed: int) -> Trial:
        clean = measure.clean_query(example)
        variants = [Variant("clean", clean)]
        question = Question.of(example)
        lengths: dict[str, int] = {}
        for name, level, text in self._texts(example, question, seed):
            variants.append(Variant(name, replace(clean, question=text), level=level))
            lengths[name] = touched(example.question, text)
        return Trial(example.id, tuple(variants), KEEPS, {TOUCHED: lengths})

    def _texts(self, example: Example, question: Question, seed: int) -> Iterator[tuple[str, float | None, str]]:
        for name, edit in self._edits.items():
            for level in edit.levels:
                text = edit(question, Draws(f"{seed} {name} {level} {example.id}"), level)
                if text is not None and text.strip():
                    yield (name, None, text) if len(edit.levels) == 1 else (f"{name} {level}", level, text)


# --- answers, read --------------------------------------------------------------------------------------------------


def read(name: str, trials: Sequence[AnsweredTrial], about: Mapping[str, str], seed: int) -> Findings:
    """The findings: drops by edit and by the number of characters touched; `about` names the edits and says what they
    do."""
    sheet = Sheet.of(trials, heading_of, lambda trial, variant: _bin(trial.trial.notes[TOUCHED][variant]))
    clean, disturbed, drop, changed, worst = sheet.all.summary(trials, seed)
    order = [one for edit in about for one in sorted(sheet.variants) if heading_of(one) == edit]
    edits = effects_of({one: sheet.variants[one] for one in order}, seed)
    drops = [one.drop for one in edits]
    means = _touched_means(trials)
    by_edit = measure.table_of(
        "By edit",
        edits,
        {
            "edit": attrgetter("name"),
            "what it does": lambda one: about[heading_of(one.name)],
            "characters touched": lambda one: round(means[one.name], 1),
            **measure.EFFECT,
        },
        "Each edit is measured on the questions that it can change; clean: of the same questions. The headline is the "
        f"mean over edits{_joined(order)}.",
    )
    lengths = [
        effect_of(label, sheet.levels[label], seed, f"{label} character{'' if label == '1' else 's'}")
        for label in map(_label, BINS)
        if label in sheet.levels
    ]
    by_characters = measure.table_of(
        "By characters touched",
        lengths,
        {
            "characters": attrgetter("name"),
            **{column: measure.EFFECT[column] for column in ("clean", "accuracy", "drop", "n")},
        },
        "Insertions, deletions and replacements of characters, over all edits.",
    )
    reads = reading.read(trials, heading_of, seed, every="all edits")
    words = reads[-1].sentence() if reads else reading.UNTOLD
    rows = (
        clean, disturbed, drop, changed, worst, *(one.accuracy for one in edits), *drops,
        *(one.changes for one in edits), *(one.accuracy for one in lengths), *(one.drop for one in lengths),
        *reading.findings(reads),
    )  # fmt: skip
    line = measure.series("drop", [one.name for one in lengths], [one.drop for one in lengths])
    curve = Figure("Drop by characters touched", "line", (line,), "characters touched", "drop, points", POINTS)
    tables = (by_edit, by_characters, *([reading.table(reads, "edit")] if reads else []))
    verdict = f"{_verdict(clean, disturbed, drop, drops, changed, worst, order)} {words}"
    return Findings(
        name, rows, verdict, clean, disturbed, drop, tables, (bars("Drop under every edit", drops), curve),
        failures(trials),
    )  # fmt: skip


def _joined(order: Sequence[str]) -> str:
    """That the levels of an edit count as one, where there are several."""
    several = [levels for levels in measure.grouped(order, heading_of).values() if len(levels) > 1]
    return "".join(f", of which {', '.join(levels[:-1])} and {levels[-1]} are one" for levels in several)


def _label(one: tuple[int, float]) -> str:
    low, high = one
    return f"{low} or more" if math.isinf(high) else str(low) if low == high else f"{low} to {int(high)}"


def _bin(length: int) -> str:
    return next(_label(one) for one in BINS if length <= one[1])


def _touched_means(trials: Sequence[AnsweredTrial]) -> dict[str, float]:
    lengths = [length for trial in trials for length in trial.trial.notes[TOUCHED].items()]
    return {name: mean_known(n for _, n in some) for name, some in measure.grouped(lengths, itemgetter(0)).items()}


def _verdict(
    clean: Finding, disturbed: Finding, drop: Finding, drops: Sequence[Finding], changed: Finding, worst: Finding,
    order: Sequence[str],
) -> str:  # fmt: skip
    told = (
        f"Typed differently, questions lose {measure.with_interval(drop)} of accuracy ({measure.percent(clean.value)} "
        f"to {measure.percent(disturbed.value)}; the mean over edits{_joined(order)}), and "
        f"{measure.with_interval(changed)} of the answers change."
    )
    told += largest_drop(drops)
    return f"{told} Under the worst edit of each question {measure.with_interval(worst)} is left."
