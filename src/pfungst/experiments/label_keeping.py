"""How often does a disturbed question still ask the same? By the world's programs, and by what people answered.

A question of the world is read back to its program (`probes.rephrase.parsing`), whoever reworded it; what the parser
cannot read counts apart. Where people asked about one photograph twice in the same content words (the rule of
`asked`), the ten answers to one question judge the answer to the other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import permutations
from pathlib import Path
from typing import Any

from pfungst.core import Dataset, Example, Finding, Table
from pfungst.core.types import Progress
from pfungst.experiments.base import Experiment, option
from pfungst.probes import measure

WRITERS = ("world", "world-forms", "rules")
BY_PROGRAM = "read back to its program"
BY_NEAREST = "read back, each unknown word as the most similar known one"
BY_PEOPLE = "the answer to one question, by the ten answers to the other"
CEILING = "the answer to the question itself, by its own ten answers"
Text = tuple[Example, str]
"""A disturbed question, with the original that it must ask the same as."""
Asks = Callable[[str, Example], bool | None]


@dataclass(frozen=True)
class KeepingConfig:
    """How often disturbed questions ask the same: judged by the programs of the world and by the answers of people."""

    data: str = option("world", "--data", "-d")
    """Data whose questions have CLEVR programs and are worded as the world's."""
    asked: tuple[str, ...] = ()
    """Data sets with ten answers a question, in which people asked about one image in several wordings."""
    count: int = 3
    """Rephrasings per question."""
    limit: int | None = None
    """Only the first so many questions."""
    seed: int = 0
    """Seed of every random choice."""


@dataclass(frozen=True)
class Kept:
    """One way to disturb questions."""

    name: str
    texts: int
    read: int
    """Of these, those that the judge can read."""
    share: Finding
    """Of those that it can read, those that ask the same."""
    judge: str


def run(config: KeepingConfig, out: Path, *, progress: Progress) -> list[Kept]:
    """Disturb, and judge."""
    from pfungst.data import load

    data = load(config.data)
    ways = _ways(data, config)
    judges = _judges(data)
    found = []
    for done, (name, texts) in enumerate(ways.items()):
        progress("judging", done, len(ways))
        found += [_kept(name, texts, asks, judge) for judge, asks in judges.items() if _wanted(name, judge)]
    progress("judging", len(ways), len(ways))
    for spec in config.asked:
        found += _by_people(spec, load(spec))
    return found


def _ways(data: Dataset, config: KeepingConfig) -> dict[str, list[Text]]:
    """Name of a way to disturb -> disturbed questions."""
    from pfungst.probes.rephrase import get_rephraser
    from pfungst.probes.surface.probe import EDITS, Surface

    originals = data.originals.examples[: config.limit]
    groups = {one.group: one for one in originals}
    ways: dict[str, list[Text]] = {}
    for example in data:
        if example.group in groups and example is not groups[example.group]:
            name = f"{example.wording} wordings of the data"
            ways.setdefault(name, []).append((groups[example.group], example.question))
    for writer in WRITERS:
        written = get_rephraser(writer).rephrase(originals, config.count, config.seed)
        ways[writer] = [(one, text) for one, texts in zip(originals, written, strict=True) for text in texts]
    by_id = {one.id: one for one in originals}
    for trial in Surface(tuple(EDITS.builtin)).trials(data.subset(originals), config.seed):
        for variant in trial.variants[1:]:
            ways.setdefault(f"surface: {variant.name}", []).append((by_id[trial.example_id], variant.query.question))
    return ways


def _judges(data: Dataset) -> dict[str, Asks]:
    from pfungst.probes.rephrase.parsing import Parser
    from pfungst.world.programs import Program
    from pfungst.world.questions import load_templates

    parser = Parser(load_templates())
    known = dict.fromkeys(sorted({word for example in data for word in re.findall(r"\w+", example.question.lower())}))

    def asks(text: str, example: Example) -> bool | None:
        program = Program.from_json(example.program or (), example.id)
        told = (parser.asks(part, program) for part in _parts(text))
        return next((one for one in told if one is not None), None)

    def mended(found: re.Match[str]) -> str:
        word = found.group()
        return word if word.lower() in known else next(iter(get_close_matches(word.lower(), known, 1)), word)

    return {BY_PROGRAM: asks, BY_NEAREST: lambda text, example: asks(re.sub(r"\w+", mended, text), example)}


def _wanted(name: str, judge: str) -> bool:
    """Whether a judge is for this way: words are mended where they were misspelled on purpose."""
    return judge == BY_PROGRAM or "typo" in name or "spelling" in name


def _parts(text: str) -> Iterator[str]:
    """The text, and what is left of it without an opening or a thank you."""
    yield text
    for opening in re.finditer(r"[,:.] ", text):
        yield text[opening.end() :]
    for ending in re.finditer(r"[.?!] ", text):
        yield text[: ending.start()]


def _kept(name: str, texts: Sequence[Text], asks: Asks, judge: str) -> Kept:
    told = [(asks(text, example), example.cluster) for example, text in texts]
    read = [(float(same), image) for same, image in told if same is not None]
    share = measure.mean("kept", [same for same, _ in read], [image for _, image in read], 0, name)
    return Kept(name, len(texts), len(read), share, judge)


def _by_people(spec: str, data: Dataset) -> list[Kept]:
    """Pairs of questions that people asked about one image, in the same content words, each judged by the other."""
    from pfungst.probes.rephrase.generators import content, kind_of, plain
    from pfungst.scores import get_metric

    metric = get_metric(data.metric)
    groups = measure.grouped(data, lambda one: (one.image_id, kind_of(one.question), *content(one.question)))
    pairs = [
        (one, other)
        for some in groups.values()
        for one, other in permutations(some, 2)
        if plain(one.question) != plain(other.question) and one.answers and other.answers
    ]
    scores = {
        BY_PEOPLE: [_score(metric, one, other) for one, other in pairs],
        CEILING: [_score(metric, one, one) for one, _ in pairs],
    }
    images = [one.cluster for one, _ in pairs]
    name = f"asked ({Path(spec.partition('#')[0]).name})"
    return [
        Kept(name, len(pairs), len(pairs), measure.mean("kept", values, images, 0, judge), judge)
        for judge, values in scores.items()
    ]


def _score(metric: Any, one: Example, other: Example) -> float:
    """What the most common answer to one question scores as an answer to the other."""
    from pfungst.core import Answer

    ((text, _),) = Counter(one.answers).most_common(1)
    return float(metric(other, Answer(text)))


def tables(result: Sequence[Kept]) -> list[Table]:
    rows = tuple((one.name, one.texts, one.read, one.share if one.read else "–", one.judge) for one in result)
    return [
        Table(
            "How often is the label kept?",
            ("disturbance", "texts", "read by the judge", "share kept, of these", "how it was judged"),
            rows,
            "95% intervals over images. What the judge cannot read is in none of the shares.",
        )
    ]


def record(result: Sequence[Kept]) -> Mapping[str, Any]:
    return {"kept": list(result)}


EXPERIMENT = Experiment("label-keeping", KeepingConfig, run, tables, record=record)
