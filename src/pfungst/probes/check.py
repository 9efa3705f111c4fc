"""Does a probe keep the rules? Run it on your own class before you trust its numbers."""

from __future__ import annotations

import dataclasses
import json

from pfungst.core import Answer, AnsweredTrial, BytesImage, Dataset, Example, Findings, Probe, ProbeError
from pfungst.core.files import jsonable
from pfungst.core.types import Trial

# The smallest valid PNGs of two colours would do, but a probe may look at the size: 2 x 2 pixels, black and white.
_SIDE = 2


def _sample() -> Dataset:
    import io

    import PIL.Image

    def image(shade: int) -> BytesImage:
        buffer = io.BytesIO()
        PIL.Image.new("RGB", (_SIDE, _SIDE), (shade, shade, shade)).save(buffer, format="PNG")
        return BytesImage(buffer.getvalue())

    examples = []
    for index in range(48):
        first = index - index % 2  # two wordings a question, two questions a picture
        target = "yes" if first % 3 else "no"
        wording = "Is square number {} white?" if index == first else "The square with number {}: is it white?"
        examples.append(
            Example(
                id=f"q{index}",
                question=wording.format(first),
                image=image(first * 5),
                image_id=f"i{index // 4}",
                answers=(target,),
                target=target,
                answer_type="yes/no",
                question_type="is",
                choices=("yes", "no"),
                group=f"q{first}",
            )
        )
    return Dataset("check", examples, metric="exact")


def check_probe(probe: Probe, data: Dataset | None = None) -> list[str]:
    """What is wrong with a probe, in sentences; empty when it keeps the rules.

    data: examples the probe can work on; yes/no questions about grey squares by default.
    """
    problems: list[str] = []
    if not isinstance(getattr(probe, "name", None), str) or not probe.name:
        problems.append("The probe has no name: `name` must be a non-empty string.")
    missing = [method for method in ("trials", "findings") if not callable(getattr(probe, method, None))]
    if missing:
        return [*problems, f"The probe lacks the methods {', '.join(missing)}."]
    data = data or _sample()
    try:
        trials = list(probe.trials(data, 0))
    except ProbeError as error:
        return [*problems, f"The probe cannot work on the sample data ({error}); pass data that it can work on."]
    if not trials:
        return [*problems, "trials() made no trial."]
    if _keys(trials) != _keys(list(probe.trials(data, 0))):
        problems.append("trials() gave other trials for the same data and seed: draw every choice from the seed.")
    problems += _check_trials(trials, data)
    if not problems:
        problems += _check_findings(probe, trials, data)
    return problems


def _keys(trials: list[Trial]) -> list[tuple[str, str]]:
    return [(v.name, v.query.key("")) for trial in trials for v in trial.variants]


def _check_trials(trials: list[Trial], data: Dataset) -> list[str]:
    problems = []
    ids = {example.id for example in data}
    for trial in trials:
        names = [variant.name for variant in trial.variants]
        if trial.example_id not in ids:
            problems.append(f"A trial names the example {trial.example_id!r}, which is not in the data.")
        if len(names) < 2:
            problems.append(
                f"The trial of {trial.example_id} has {len(names)} variant: it needs the clean one and more."
            )
        if len(set(names)) != len(names):
            problems.append(f"The trial of {trial.example_id} has two variants of one name: {', '.join(names)}.")
        if not trial.keeps.strip():
            problems.append(f"The trial of {trial.example_id} does not say what it keeps: fill `keeps`.")
        keys = [variant.query.key("") for variant in trial.variants]
        if len(set(keys)) == 1 and len(keys) > 1:
            problems.append(
                f"The variants of {trial.example_id} are one and the same query: count up `take` to repeat."
            )
    return list(dict.fromkeys(problems))


def _check_findings(probe: Probe, trials: list[Trial], data: Dataset) -> list[str]:
    examples = {example.id: example for example in data}
    problems = []
    for score in (1.0, 0.0, float("nan")):
        answered = [
            AnsweredTrial(
                trial,
                examples[trial.example_id],
                tuple(Answer("yes") for _ in trial.variants),
                tuple(score for _ in trial.variants),
            )
            for trial in trials
        ]
        found: object = probe.findings(answered, 0)
        if not isinstance(found, Findings):
            return [f"findings() must return pfungst.core.Findings, not {type(found).__name__}."]
        if json.dumps(jsonable(found)) != json.dumps(jsonable(probe.findings(answered, 0))):
            problems.append("findings() gave other numbers for the same answers and seed.")
        if not found.verdict.strip():
            problems.append("findings() gave no verdict in words.")
        drop = found.drop
        if score == 1.0 and drop is not None and abs(drop.value) > 1e-12:
            problems.append(f"All answers were right in every variant, but the drop is {drop.value:g}, not 0.")
        if any(one.n < 0 or dataclasses.astuple(one)[1] is None for one in found.rows):
            problems.append("A finding has a negative n or no value.")
    return problems
