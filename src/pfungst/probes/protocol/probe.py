"""The protocol probe: the same question and image, asked as different harnesses ask.

Prompt, labels and order of options, place and encoding of the image, and how the reply is read differ from harness to
harness; none of them should matter. Each question is asked under every row of an orthogonal array (`design`), and every
reply is read by several matchers, which costs no query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pfungst.core import (
    AnsweredTrial,
    Dataset,
    Example,
    Findings,
    Framing,
    Probe,
    ProbeError,
    Query,
    Trial,
    UsageError,
    Variant,
)
from pfungst.probes import measure
from pfungst.probes.protocol.design import crossed
from pfungst.probes.protocol.results import BETWEEN, MATCHER, read
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
_FACTOR_OF = {
    **dict.fromkeys(STYLES, STYLE),
    **dict.fromkeys(ORDERS, ORDER),
    **dict.fromkeys((FIRST, LAST), PLACE),
    **dict.fromkeys((PNG, JPEG), ENCODING),
}
_SEEN: Mapping[str, Callable[[Query], object]] = {
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
