"""The protocol probe: the same question and image, asked as different harnesses ask.

Prompt, labels and order of options, place and encoding of the image, and how the reply is read differ from harness to
harness; none of them should matter. Each question is asked under every row of an orthogonal array (`split.crossed`),
and every reply is read by several matchers, which costs no query.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pfungst.core import (
    AnsweredTrial,
    Dataset,
    Example,
    Figure,
    Finding,
    Findings,
    Framing,
    Probe,
    ProbeError,
    Query,
    Table,
    Trial,
    UsageError,
    Variant,
)
from pfungst.core.stats import Floats, holm, interval_of
from pfungst.core.types import POINTS
from pfungst.probes import measure
from pfungst.probes.measure import Cells, cells_of, failures, mean_cell
from pfungst.probes.protocol.split import REST, TOTAL, Part, Split, crossed, split
from pfungst.probes.protocol.templates import (
    ORDERS,
    OWN,
    STYLES,
    TEMPLATES,
    JPEGImage,
    Reader,
    Template,
    are_free,
    ordered,
    read_templates,
    style_for,
)
from pfungst.scores.matchers import MATCHERS

TEMPLATE, STYLE, ORDER, PLACE, ENCODING = "template", "labels", "order", "place", "encoding"
FIRST, LAST, PNG, JPEG = "image first", "image last", "PNG", "JPEG"
FACTORS = (TEMPLATE, STYLE, ORDER, PLACE, ENCODING)
MATCHER = "matcher"
HARNESS = "harness"
"""Name of the headline: the standard deviation of accuracy over harnesses."""
BETWEEN = " | "
"""Joins the levels of a harness, the matcher last, to the name of its variant."""
_HOW = "orthogonal array; chance taken off by the cluster bootstrap, interval by inverting its test"
Seen = Mapping[str, Callable[[Query], object]]
_FACTOR_OF = {
    **dict.fromkeys(STYLES, STYLE),
    **dict.fromkeys(ORDERS, ORDER),
    **dict.fromkeys((FIRST, LAST), PLACE),
    **dict.fromkeys((PNG, JPEG), ENCODING),
}
_SEEN: Seen = {
    TEMPLATE: lambda query: query.framing and query.framing.template,
    STYLE: lambda query: query.framing and query.framing.options,
    ORDER: lambda query: query.choices,
    PLACE: lambda query: query.framing and query.framing.image_last,
    ENCODING: lambda query: query.image and query.image.digest,
}
"""What of a query tells the levels of a factor apart; a player that cannot follow one is shown the same under all."""
KEEPS = (
    "the answer: question and image are the same; the instruction, the labels and order of the options, the place of "
    "the image and its encoding (JPEG of quality 95) are a harness's choice"
)


@dataclass(frozen=True)
class Protocol(Probe):
    """The same question asked as different harnesses ask: how many points of the score come from the harness?"""

    factors: tuple[str, ...] = FACTORS
    """What is varied, joined by +: template+labels+order+place+encoding. None: each reply is only read again."""
    templates: str = ""
    """JSON file with your own prompts, by name, in place of the built-in ones."""
    matchers: tuple[str, ...] = ("lenient", "lmms-eval", "vlmevalkit")
    """Who reads the replies, joined by +. For players whose replies are read at all."""
    name: str = "protocol"

    def __post_init__(self) -> None:
        wrong = [one for one in self.factors if one not in FACTORS]
        if wrong or len(set(self.factors)) != len(self.factors):
            raise UsageError(
                f"The factors of the probe protocol are different names out of {', '.join(FACTORS)}, joined by +, not "
                f"{'+'.join(self.factors)}."
            )
        if not self.matchers or len(set(self.matchers)) != len(self.matchers):
            raise UsageError("The matchers of the probe protocol are different names, joined by +; name at least one.")
        for one in self.matchers:
            MATCHERS.get(one)
        self._templates()

    def check_data(self, data: Dataset) -> None:
        if len(self._design(data)) * len(self.matchers) < 2:
            raise ProbeError(
                f"The probe protocol has nothing to vary on {data.name}: it has no options to label or to order, or no "
                "images. Name other factors, such as protocol:factors=template, or several matchers."
            )

    def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
        self.check_data(data)
        design, templates = self._design(data), self._templates()
        for example in data:
            yield self._trial(example, design, templates, seed)

    def findings(self, trials: Sequence[AnsweredTrial], seed: int) -> Findings:
        return read(self.name, trials, self.levels_of, _SEEN, seed)

    def levels_of(self, variant: str) -> dict[str, str]:
        """Factor to level, from the name of a variant."""
        *parts, matcher = variant.split(BETWEEN)
        own = {TEMPLATE: parts.pop(0)} if TEMPLATE in self.factors else {}
        return {**own, **{_FACTOR_OF[part]: part for part in parts}, MATCHER: matcher}

    def _templates(self) -> Mapping[str, Template]:
        return read_templates(self.templates) if self.templates else TEMPLATES

    def _design(self, data: Dataset) -> list[dict[str, str]]:
        """The harnesses for this data set: options and images are varied only where there are some."""
        choices = any(len(example.choices) > 1 for example in data)
        images = any(example.image is not None for example in data)
        levels = {
            TEMPLATE: (OWN, *self._templates()),
            STYLE: STYLES if choices else (),
            ORDER: ORDERS if choices else (),
            PLACE: (FIRST, LAST) if images else (),
            ENCODING: (PNG, JPEG) if images else (),
        }
        return crossed({name: levels[name] for name in FACTORS if name in self.factors and levels[name]})

    def _trial(
        self, example: Example, design: Sequence[Mapping[str, str]], templates: Mapping[str, Template], seed: int
    ) -> Trial:
        clean = measure.clean_query(example)
        variants = [Variant("clean", clean)]
        # Options that refer to each other, or are letters themselves, stay as they are.
        free = are_free(example.choices)
        for row in design:
            style = style_for(row.get(STYLE, ""), example.choices) if free else ""
            query = _put(clean, example, row, templates, style, free, f"{seed} {example.id}")
            for matcher in self.matchers:
                name = BETWEEN.join((*row.values(), matcher))
                variants.append(Variant(name, query, read=Reader(matcher, style)))
        return Trial(example.id, tuple(variants), KEEPS)


def _put(
    clean: Query,
    example: Example,
    row: Mapping[str, str],
    templates: Mapping[str, Template],
    style: str,
    free: bool,
    key: str,
) -> Query:
    """The query as one harness puts it."""
    chosen = row.get(TEMPLATE, OWN)
    template = "" if chosen == OWN else templates[chosen].choices if example.choices else templates[chosen].open
    jpeg = row.get(ENCODING) == JPEG and example.image is not None
    # `A.` is how players label options by themselves.
    last = row.get(PLACE) == LAST and example.image is not None
    framing = Framing(template, "" if style == STYLES[0] else style, last, jpeg)
    return replace(
        clean,
        choices=ordered(clean.choices, row.get(ORDER, ORDERS[0]), key) if free else clean.choices,
        image=JPEGImage(example.image) if jpeg and example.image is not None else clean.image,
        framing=framing if framing != Framing() else None,
    )


# --- answers under many harnesses, read -------------------------------------------------------------------------------


def read(
    name: str, trials: Sequence[AnsweredTrial], levels_of: Callable[[str], Mapping[str, str]], seen: Seen, seed: int
) -> Findings:
    """The findings. levels_of: from a variant to its levels; seen: what of a query tells a factor's levels apart."""
    told = _Told.of(trials, seen)
    harnesses = [levels_of(one) for one in told.names]
    factors = [one for one in harnesses[0] if one in told.applies and len({row[one] for row in harnesses}) > 1]
    idle = [one for one in harnesses[0] if one not in factors]
    levels = {one: [row[one] for row in harnesses] for one in factors}
    scores = np.array(told.scores, np.float64).T
    parts = split(scores, told.cells.clusters, levels, seed=seed)
    clean, disturbed, drop, changed, worst = told.cells.summary(trials, seed)
    total = _spread(parts.total, parts)
    corrected = holm([one.p for one in parts.parts])
    spreads = [replace(_spread(one, parts), p_holm=p) for one, p in zip(parts.parts, corrected, strict=True)]
    shares = [_share(one, parts) for one in parts.parts]
    by_level = _levels(levels, scores, told.cells.clusters, seed)
    columns = ("factor", "level", "accuracy", "difference from the mean")
    levels_table = Table("By level", columns, tuple(by_level), "Each level averaged over all others.")
    rows = (
        total, clean, disturbed, drop, changed, worst, *spreads, *shares,
        *(accuracy for *_, accuracy, _ in by_level), *(away for *_, away in by_level),
    )  # fmt: skip
    return Findings(
        name, rows, _verdict(parts, total, factors, idle, told, worst), clean, disturbed, drop,
        (_by_factor(spreads, shares, levels), levels_table, _by_harness(told.names, harnesses, parts)),
        tuple(_figures(spreads, by_level)), failures(trials),
    )  # fmt: skip


@dataclass
class _Told:
    """What one pass over the trials gathers."""

    names: list[str] = field(default_factory=list)
    scores: list[tuple[float, ...]] = field(default_factory=list)
    """(questions, harnesses)."""
    cells: Cells = field(default_factory=Cells)
    applies: set[str] = field(default_factory=set)
    """Factors whose levels made a difference to what the player was shown, or to how a reply was read."""

    @classmethod
    def of(cls, trials: Sequence[AnsweredTrial], seen: Seen) -> _Told:
        told = cls()
        for trial in trials:
            variants = trial.trial.variants[1:]
            told.names = told.names or [variant.name for variant in variants]
            told.scores.append(trial.scores[1:])
            told.cells.add(trial.scores[0], mean_cell(cell for _, cell in cells_of(trial)), measure.cluster(trial))
            for factor, level in seen.items():
                if factor not in told.applies and len({level(variant.query) for variant in variants}) > 1:
                    told.applies.add(factor)
            answers: dict[str, set[tuple[str, bool]]] = {}
            for variant, answer in zip(variants, trial.answers[1:], strict=True):
                asked = variant.name.rpartition(BETWEEN)[0]
                answers.setdefault(asked, set()).add((answer.text, answer.unread))
            if any(len(some) > 1 for some in answers.values()):
                told.applies.add(MATCHER)
        return told


def _spread(part: Part, of: Split) -> Finding:
    how = f"{_HOW}; p: bootstrap test of no effect"
    condition = "" if part.name == TOTAL else part.name
    return Finding(HARNESS, part.spread, of.n, part.low, part.high, condition, of.clusters, part.p, how, POINTS)


def _share(part: Part, of: Split) -> Finding:
    how = f"{_HOW.partition(',')[0]}, percentiles"
    return Finding(
        "share of variance", part.share, of.n, part.share_low, part.share_high, part.name, of.clusters, None, how
    )


def _levels(
    levels: Mapping[str, Sequence[str]], scores: Floats,
    clusters: Sequence[str], seed: int,
) -> list[tuple[str, str, Finding, Finding]]:  # fmt: skip
    """Factor, level, accuracy under it, and how far that is from the mean of all."""
    mean, found = scores.mean(0), []
    for factor, of in levels.items():
        for level in dict.fromkeys(of):
            own = scores[[at for at, one in enumerate(of) if one == level]].mean(0)
            condition = f"{factor}: {level}"
            accuracy = measure.mean("accuracy", own, clusters, seed, condition)
            away = interval_of(own - mean, clusters, bounds=(-1.0, 1.0))
            difference = measure.finding("difference from the mean", away, condition, unit=POINTS)
            found.append((factor, level, accuracy, difference))
    return found


def _by_factor(spreads: Sequence[Finding], shares: Sequence[Finding], levels: Mapping[str, Sequence[str]]) -> Table:
    return Table(
        "By factor",
        ("factor", "levels", "standard deviation", *measure.P_COLUMNS, "share of variance"),
        tuple(
            (
                spread.condition,
                ", ".join(dict.fromkeys(levels[spread.condition])) if spread.condition in levels else "",
                spread,
                *measure.p_cells(spread),
                share,
            )
            for spread, share in zip(spreads, shares, strict=True)
        ),
        "Standard deviation of accuracy over the levels of a factor, corrected for chance. Together: what factors do "
        "only in combination, as far as the design shows it.",
    )


def _by_harness(names: Sequence[str], harnesses: Sequence[Mapping[str, str]], parts: Split) -> Table:
    order = sorted(range(len(names)), key=lambda at: -parts.accuracy[at].value)
    return Table(
        "Every harness",
        (*harnesses[0], "accuracy"),
        tuple(
            (
                *harnesses[at].values(),
                measure.finding("accuracy", parts.accuracy[at], names[at]),
            )
            for at in order
        ),
        "Best first. The best and the worst of many are also the luckiest: their distance overstates the spread.",
    )  # fmt: skip


def _figures(spreads: Sequence[Finding], found: Sequence[tuple[str, str, Finding, Finding]]) -> list[Figure]:
    if not spreads:
        return []
    aways = [away for *_, away in found]
    bars = measure.series("standard deviation", (one.condition for one in spreads), spreads)
    levels = measure.series("difference", (one.condition for one in aways), aways)
    return [
        Figure("What of the harness matters", "bar", (bars,), "", "standard deviation of accuracy, points", POINTS),
        Figure("Accuracy by level, less the mean", "bar", (levels,), "", "difference, points", POINTS),
    ]


# --- in words ---------------------------------------------------------------------------------------------------------


_NOT = {
    "template": "the prompt",
    "labels": "the labels of options",
    "order": "the order of options",
    "place": "the place of the image",
    "encoding": "the encoding of the image",
    MATCHER: "the matcher",
}


def _verdict(
    parts: Split, total: Finding, factors: Sequence[str], idle: Sequence[str], told: _Told, worst: Finding
) -> str:
    without = _idle(idle)
    if not factors:
        return (
            f"The harness does not affect the score: {without[0].lower()}{without[1:]}"
            if without
            else "Nothing varied."
        )
    if math.isnan(total.value):
        return f"The right answers are unknown, and so is the share of the harness. {without}".strip()
    values = [one.value for one in parts.accuracy]
    said = (
        f"Over {len(told.names)} harnesses the score has a standard deviation of {measure.with_interval(total)}; it "
        f"goes from {measure.percent(min(values))} to {measure.percent(max(values))}, and "
        f"{measure.with_interval(worst)} of the questions are right under all of them."
    )
    named = [one for one in parts.parts if one.name != REST and one.share == one.share]
    if named and total.p is not None and total.p < 0.05:
        most = max(named, key=lambda one: one.share)
        share = f"{100 * most.share:.0f}% [{100 * most.share_low:.0f}, {100 * most.share_high:.0f}] of the variance"
        alone = len(parts.parts) == 1
        said += f" All of it is the {most.name}." if alone else f" The largest part is the {most.name}: {share}."
    else:
        said += " That is no more than chance would give."
    return f"{said} {without}".strip()


def _idle(idle: Sequence[str]) -> str:
    """What does not apply to this player and these data, in a sentence."""
    named = [_NOT[one] for one in idle if one in _NOT and one != MATCHER]
    said = ""
    if named:
        listed = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
        said = f"{listed[0].upper()}{listed[1:]} cannot be varied for this player on these data."
    if MATCHER in idle:
        said += f"{' ' if said else ''}All matchers read its answers alike."
    return said
