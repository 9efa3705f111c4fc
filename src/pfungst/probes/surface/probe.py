"""The surface probe: the same question with typos, in capitals, with a "please". The answer must stay.

Unlike `rephrase`, no word is exchanged for another and no sentence is built anew: what changes is how the
question is typed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from pfungst.core import AnsweredTrial, Dataset, Example, Findings, Probe, ProbeError, Trial, UsageError, Variant
from pfungst.core.registry import Registry
from pfungst.probes import measure
from pfungst.probes.cells import lost
from pfungst.probes.surface.edits import Draws, Edit, touched
from pfungst.probes.surface.protection import Question
from pfungst.probes.surface.results import TOUCHED, edit_of, read

EDITS = Registry(
    "surface edit",
    "pfungst.surface_edits",
    {
        name: f"pfungst.probes.surface.edits:{name.upper()}"
        for name in ("typo", "upper", "lower", "unmarked", "marks", "contraction", "spelling", "filler", "polite")
    },
)
TRANSLATION = "translation"
KEEPS = (
    "the answer: the question is typed differently, and words that carry the answer, the options, negations and "
    "quotations are not touched"
)


@dataclass(frozen=True)
class Surface(Probe):
    """The same question typed differently: typos, case, marks, contractions, spelling, fillers, polite phrases."""

    edits: tuple[str, ...] = tuple(EDITS.builtin)
    """What is done to the question, joined by +: typo+upper."""
    translations: str = ""
    """JSON file with the questions in another language, id to question."""
    name: str = "surface"

    def __post_init__(self) -> None:
        if len(set(self.edits)) != len(self.edits) or not (self.edits or self.translations):
            raise UsageError("The edits of the probe surface are different names, joined by +; name at least one.")
        for one in self.edits:
            EDITS.get(one)

    def check_data(self, data: Dataset) -> None:
        """Whether the translations can be read and belong to the data."""
        if self.translations:
            known = read_translations(self.translations)
            if not any(example.id in known for example in data):
                raise ProbeError(
                    f"{self.translations} has {len(known)} questions, but none for an id of {data.name}, such as "
                    f"{data[0].id!r}."
                )

    def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
        self.check_data(data)
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
        about = {name: EDITS.get(name).about for name in self.edits}
        if self.translations:
            about[TRANSLATION] = "in another language; choices stay"
        return read(self.name, trials, about, seed)

    def lost(self, trial: AnsweredTrial) -> float:
        """What the drop is the mean of."""
        return lost(trial, edit_of)

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
        for name in self.edits:
            edit: Edit = EDITS.get(name)
            for level in edit.levels:
                text = edit(question, Draws(f"{seed} {name} {level} {example.id}"), level)
                if text is not None and text.strip():
                    yield (name, None, text) if len(edit.levels) == 1 else (f"{name} {level}", level, text)
        if self.translations:
            told = read_translations(self.translations).get(example.id)
            if told is not None and told != example.question:
                yield TRANSLATION, None, told


def read_translations(file: str) -> Mapping[str, str]:
    """Id to question, from a JSON file."""
    try:
        modified = Path(file).stat().st_mtime_ns
    except OSError as error:
        raise UsageError(f"The translations {file} cannot be read ({error.strerror}).") from error
    return _translations(file, modified)


@lru_cache(maxsize=4)
def _translations(file: str, modified: int) -> Mapping[str, str]:
    try:
        told = json.loads(Path(file).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"The translations {file} are not a JSON file ({error}).") from error
    if not isinstance(told, dict):
        raise UsageError(f"{file} must hold one JSON object, ids to questions, not a {type(told).__name__}.")
    for name, text in told.items():
        if not isinstance(text, str) or not text.strip():
            raise UsageError(f"{file}, id {name!r}: the question must be a text, not {text!r:.60}.")
    return told
