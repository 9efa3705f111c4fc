"""Does a probe keep the rules? Run it on your own class before you trust its numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from pfungst.core import Answer, AnsweredTrial, Asker, Dataset, Example, Findings, Player, Probe, ProbeError, Query
from pfungst.core.files import jsonable
from pfungst.core.types import ROLES, Trial, Variant, as_probe
from pfungst.probes.blind import one_colour
from pfungst.scores import same_answer

SHOWN = 5
"""Sentences of one kind that are told; a broken contract is broken many times."""


def check_probe(probe: Probe, data: Dataset | None = None) -> list[str]:
    """What is wrong with a probe, in sentences; empty when it keeps the rules.

    data: examples the probe can work on. By default two samples: yes/no questions about grey squares, and a small
        CLEVR world with scenes and programs, where the right answer to a changed scene can be computed.
    """
    problems: list[str] = []
    if not isinstance(getattr(probe, "name", None), str) or not probe.name:
        problems.append("The probe has no name: `name` must be a non-empty string.")
    missing = [method for method in ("trials", "findings") if not callable(getattr(probe, method, None))]
    if missing:
        return [*problems, f"The probe lacks the methods {', '.join(missing)}."]
    probe = as_probe(probe)
    if probe.role not in ROLES[1:]:
        return [*problems, f"The probe's role is {probe.role!r}; a probe is one of: {', '.join(ROLES[1:])}."]
    refused: list[str] = []
    samples = [data] if data is not None else [_squares(), _world()]
    for sample in samples:
        try:
            problems += _check_on(probe, probe.sees(sample))
        except ProbeError as error:
            refused.append(str(error))
    if len(refused) == len(samples):
        problems.append(f"The probe cannot work on the sample data ({refused[-1]}); pass data that it can work on.")
    return list(dict.fromkeys(problems))


def _check_on(probe: Probe, data: Dataset) -> list[str]:
    trials = _trials(probe, data)
    if not trials:
        return ["The probe made no trial."]
    problems = []
    if _keys(trials) != _keys(_trials(probe, data)):
        problems.append("The probe made different trials for the same data and seed: draw every choice from the seed.")
    examples = {example.id: example for example in data}
    problems += _check_trials(trials, examples, probe.role)
    return problems or _check_findings(probe, trials, examples)


def _trials(probe: Probe, data: Dataset) -> list[Trial]:
    if probe.searches:
        return list(probe.search(Asker(_Reference(data)), data, 0))
    return list(probe.trials(data, 0))


def _keys(trials: Sequence[Trial]) -> list[tuple[str, str]]:
    return [(v.name, v.query.key("")) for trial in trials for v in trial.variants]


# --- trials -----------------------------------------------------------------------------------------------------------


def _check_trials(trials: Sequence[Trial], examples: Mapping[str, Example], role: str) -> list[str]:
    problems = []
    known: set[tuple[str, ...]] = set()
    for trial in trials:
        names = [variant.name for variant in trial.variants]
        if len(names) < 2:
            problems.append(
                f"The trial of {trial.example_id} has {len(names)} variant: it needs the clean one and more."
            )
        if len(set(names)) != len(names):
            problems.append(f"The trial of {trial.example_id} has two variants with the same name: {', '.join(names)}.")
        if not trial.keeps.strip():
            problems.append(f"The trial of {trial.example_id} does not say what it keeps: fill `keeps`.")
        keys = [variant.query.key("") for variant in trial.variants]
        if len(set(keys)) == 1 and len(keys) > 1:
            problems.append(
                f"The variants of {trial.example_id} are one and the same query: count up `take` to repeat."
            )
        problems += _wrong_roles(trial)
        asked = (trial.example_id, *keys)
        if asked in known:
            problems.append(f"Two trials of {trial.example_id} ask the very same: every answer would count twice.")
        known.add(asked)
        unknown = {trial.example_id, *(v.example_id or trial.example_id for v in trial.variants)} - set(examples)
        if unknown:
            problems.append(f"A trial names the example {min(unknown)!r}, which is not in the data.")
    if problems:
        return problems
    broken = [sentence for trial in trials for sentence in broken_contracts(trial, examples, role)]
    return broken[:SHOWN] + [f"... and {len(broken) - SHOWN} more of this kind."] * (len(broken) > SHOWN)


def _wrong_roles(trial: Trial) -> list[str]:
    roles = [variant.role for variant in trial.variants]
    told = [
        f"a variant has the role {role!r}; roles are: {', '.join(ROLES)}" for role in roles if role not in ("", *ROLES)
    ]
    if any(role not in ("", "clean") for role in roles[:1]) or "clean" in roles[1:]:
        told.append("the first variant, and no other, is the clean one")
    return [f"In the trial of {trial.example_id}, {sentence}." for sentence in told]


def broken_contracts(trial: Trial, examples: Mapping[str, Example], role: str = "keeps") -> list[str]:
    """The variants whose right answer is not that of the example, or not the one they name themselves, wherever the
    right answer can be known.

    role: of the probe. Variants that remove what the answer depends on are held to nothing.

    It can where a variant offers choices, asks another example, or shows a scene and the example has a program. A trial
    whose variants name their right answers is a contrast: these may not be all the same.
    """
    example = examples[trial.example_id]
    if example.target is None:
        return []
    told = []
    for place, variant in enumerate(trial.variants):
        if (variant.role or (role if place else "clean")) == "removes":
            continue
        where = f"The variant {variant.name!r} of {trial.example_id}"
        asked = examples[variant.example_id or trial.example_id]
        right = example.target if variant.target is None else variant.target
        computed = _computed(variant, asked)
        if computed is None and asked.target is not None and not same_answer(asked.target, right):
            told.append(f"{where} asks the example {asked.id}, whose answer is {asked.target!r}, not {right!r}.")
        elif variant.query.choices and not any(same_answer(one, right) for one in variant.query.choices):
            told.append(f"{where} does not offer the right answer {right!r} among its choices.")
        elif computed is not None and not same_answer(computed, right):
            told.append(
                f"{where} shows a scene on which the program answers {computed!r}, not {right!r}: "
                "the change does not keep the answer."
            )
    named = [variant.target for variant in trial.variants if variant.target is not None]
    if named and all(same_answer(target, named[0]) for target in named):
        told.append(f"The trial of {trial.example_id} is a contrast, but all its right answers are {named[0]!r}.")
    return told


def _computed(variant: Variant, example: Example) -> str | None:
    """What the example's program says about the scene of the variant; None where there is no scene or program."""
    from pfungst.world import answer, answer_text

    if variant.query.scene is None or example.program is None:
        return None
    value = answer(example.program, variant.query.scene)
    return "no answer" if value is None else answer_text(value)


# --- findings ---------------------------------------------------------------------------------------------------------


def _check_findings(probe: Probe, trials: Sequence[Trial], examples: Mapping[str, Example]) -> list[str]:
    problems = []
    for score in (1.0, 0.0, float("nan")):
        answered = []
        for trial in trials:
            example = examples[trial.example_id]
            right = [variant.target or example.target or "yes" for variant in trial.variants]
            said = tuple(Answer(target if score == 1.0 else "none of these") for target in right)
            answered.append(AnsweredTrial(trial, example, said, (score,) * len(said)))
        found: object = probe.findings(answered, 0)
        if not isinstance(found, Findings):
            return [f"findings() must return pfungst.core.Findings, not {type(found).__name__}."]
        if json.dumps(jsonable(found)) != json.dumps(jsonable(probe.findings(answered, 0))):
            problems.append("findings() gave different numbers for the same answers and seed.")
        if not found.verdict.strip():
            problems.append("findings() gave no verdict in words.")
        drop = found.drop
        if score == 1.0 and drop is not None and abs(drop.value) > 1e-12:
            problems.append(f"All answers were right in every variant, but the drop is {drop.value:g}, not 0.")
        if any(row.n < 0 or row.value is None for row in found.rows):
            problems.append("A finding has a negative n or no value.")
    return problems


# --- what a probe is tried on -----------------------------------------------------------------------------------------


class _Reference(Player):
    """Knows the target of every question, and gets a quarter of what it is shown wrong: always the same quarter."""

    name = "reference"
    fingerprint = "reference-1"
    reads_scenes = True

    def __init__(self, data: Dataset) -> None:
        self._targets = {example.question: example.target or "" for example in data}
        self._answers = sorted(set(self._targets.values()))

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        return [Answer(self._said(query)) for query in queries]

    def _said(self, query: Query) -> str:
        target = self._targets.get(query.question, "")
        shown = json.dumps([query.question, query.scene, query.choices], sort_keys=True)
        wrong = [text for text in query.choices or self._answers if not same_answer(text, target)]
        return wrong[0] if wrong and hashlib.sha256(shown.encode()).digest()[0] < 64 else target


def _squares() -> Dataset:
    examples = []
    for index in range(48):
        first = index - index % 2  # two wordings per question, two questions per image
        target = "yes" if first % 3 else "no"
        wording = "Is square number {} white?" if index == first else "The square with number {}: is it white?"
        examples.append(
            Example(
                id=f"q{index}",
                question=wording.format(first),
                image=one_colour((2, 2), (first * 5,) * 3),
                image_id=f"i{index // 4}",
                answers=(target,),
                target=target,
                answer_type="yes/no",
                question_type="is",
                choices=("yes", "no"),
                group=f"q{first}",
            )
        )
    return Dataset("squares", examples, metric="exact")


def _world() -> Dataset:
    from pfungst.world import embedded

    return embedded(scenes=12, rephrasings=1, width=48, height=36, cache=False)
