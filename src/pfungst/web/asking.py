"""A question of a visitor's own, put to a player as the probes would put it.

The question is an example like any other: the probes make their variants of it, with the data set behind it as pool.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pfungst.core import Answer, Dataset, Example, PfungstError, Probe, Query, Trial
from pfungst.probes.decoys.probe import Decoys
from pfungst.probes.measure import clean_query
from pfungst.probes.noise.probe import Noise
from pfungst.probes.rephrase.probe import Rephrase
from pfungst.scores import get_metric, same_answer
from pfungst.web.desk import Desk, Seat

BASIC_QUESTIONS = 7


@dataclass(frozen=True)
class Said:
    """One variant and what the player said to it."""

    name: str
    query: Query
    answer: Answer
    score: float | None
    """By the metric of the data; None where the right answer is not known."""
    changed: bool
    detail: str = ""
    """What the variant adds: an appended question with its score."""


@dataclass(frozen=True)
class Part:
    """The variants of one probe."""

    title: str
    about: str
    said: tuple[Said, ...] = ()
    problem: str = ""
    """Why the probe found nothing to ask, in a sentence."""


@dataclass(frozen=True)
class Asked:
    """All that a question brought to light."""

    example: Example
    clean: Said
    parts: tuple[Part, ...]
    target: str | None
    own_target: bool
    """The decoys stand beside the player's own answer, because the right one is not known."""


def own_id(question: str, target: str | None, image: str) -> str:
    """The id of a visitor's question. What the probes keep in caches goes by ids, so another question has another."""
    return "mine-" + hashlib.sha256(json.dumps([question, target, image]).encode()).hexdigest()[:16]


def ask(desk: Desk, seat: Seat, example: Example, data: Dataset) -> Asked:
    """Ask the question as it stands, with basic questions appended, in other words, and among decoys."""
    example = replace(example, group="", wording="")
    query = clean_query(example)
    answer = desk.answers(seat, [query], example.id)[0]
    clean = _said("as it stands", query, answer, example, answer, data.metric)
    parts = [_part(desk, seat, example, data, answer, title, about, probe) for title, about, probe in _probes(example)]
    target = example.target if example.target is not None else answer.text
    if target.strip():
        id_ = own_id(example.question, target, example.image_id) if example.target is None else example.id
        judged = replace(example, id=id_, target=target, answers=example.answers or (target,))
        parts.append(_decoys(desk, seat, judged, data, answer))
    return Asked(example, clean, tuple(parts), example.target, example.target is None)


def _probes(example: Example) -> list[tuple[str, str, Probe]]:
    writer = "world" if example.program is not None else "rules"
    return [
        (
            "Basic questions",
            "The most similar questions of the data set, each appended to yours. The answer should stay the same.",
            Noise(k=BASIC_QUESTIONS, partitions=BASIC_QUESTIONS, keep_main_questions=False),
        ),
        ("Rephrasings", "The same question in other words.", Rephrase(generator=writer)),
    ]


def _decoys(desk: Desk, seat: Seat, example: Example, data: Dataset, clean: Answer) -> Part:
    about = "The answer among wrong choices that fit the question (QoU), the image (IoU), or both."
    probe = Decoys(circular="none")
    part = _part(desk, seat, example, data, clean, "Decoys", about, probe)
    return replace(part, said=tuple(one for one in part.said if one.query.choices))


def _part(
    desk: Desk, seat: Seat, example: Example, data: Dataset, clean: Answer, title: str, about: str, probe: Probe
) -> Part:
    try:
        with desk.probing:
            alone = replace(data.whole, examples=[example], parent=data.whole)
            trial = next(iter(probe.trials(alone, 0)))
        variants = trial.variants[1:]
        answers = desk.answers(seat, [variant.query for variant in variants], example.id)
    except PfungstError as error:
        return Part(title, about, problem=str(error))
    details = _details(trial, example, [variant.query for variant in variants])
    said = tuple(
        _said(variant.name, variant.query, answer, example, clean, data.metric, detail)
        for variant, answer, detail in zip(variants, answers, details, strict=True)
    )
    return Part(title, about, said, "" if said else "There is nothing to ask.")


def _details(trial: Trial, example: Example, queries: Sequence[Query]) -> list[str]:
    """The appended question of each variant, with its score in the ranking where there is one."""
    scores: Sequence[Any] = next(
        (note["scores"] for note in trial.notes.values() if isinstance(note, dict) and "scores" in note), ()
    )
    found = []
    for at, query in enumerate(queries):
        appended = query.question.removeprefix(example.question).strip() if query.question != example.question else ""
        if not query.question.startswith(example.question):
            appended = ""
        known = f" (score {float(scores[at]):.2f})" if appended and at < len(scores) else ""
        found.append(appended + known)
    return found


def _said(
    name: str, query: Query, answer: Answer, example: Example, clean: Answer, metric: str, detail: str = ""
) -> Said:
    score: float | None = None
    if example.target is not None:
        asked = replace(example, choices=query.choices)
        score = get_metric("exact" if not example.answers or len(example.answers) == 1 else metric)(asked, answer)
        score = None if score != score else score
    return Said(name, query, answer, score, not same_answer(answer.text, clean.text), detail)
