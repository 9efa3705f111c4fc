"""Blind: the shortcut ledger. How much of the accuracy is left when the evidence is taken away?

The other probes keep the answer and change what should not matter. This one takes away what should matter: whatever a
player still gets right, it gets right without looking.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from pfungst.core import (
    AnsweredTrial,
    BytesImage,
    DataError,
    Dataset,
    Example,
    Failure,
    Figure,
    Finding,
    Findings,
    Image,
    ProbeError,
    Query,
    Table,
    Trial,
    Variant,
)
from pfungst.core.images import image_size
from pfungst.probes import measure
from pfungst.scores import same_answer

KEEPS = "nothing on purpose: the evidence is removed, so what is still right was not read off the image"
GRAY = (127, 127, 127)
UNKNOWN = (224, 224)
CONDITIONS = ("blank image", "other image", "question only", "options only")


@dataclass(frozen=True)
class Blind:
    """Blank image, the image of another example, question only, options only (multiple choice).

    *Gain* is what the image adds: clean minus question-only accuracy. *Leakage* is what is answered without the image
    beyond guessing: question-only accuracy minus the accuracy of always saying the most frequent answer to this type
    of question (that some other example has too), or of a blind pick among the choices.
    """

    name: str = "blind"
    role = "removes"

    def check_data(self, data: Dataset) -> None:
        """Whether there are images to take away."""
        if all(example.image is None for example in data):
            raise ProbeError(
                f"The probe blind takes the image away, but none of the {len(data)} examples of {data.name} has one. "
                "Tell the loader where the images are."
            )

    def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
        self.check_data(data)
        seen = [example for example in data if example.image is not None]
        others = _other_images(seen, seed)
        for example in seen:
            assert example.image is not None
            query = measure.clean_query(example)
            unseen = replace(query, image=None, scene=None)
            variants = [
                Variant("clean", query),
                Variant("blank image", replace(unseen, image=one_colour(_size(example.image), GRAY))),
            ]
            if example.id in others:
                other = others[example.id]
                variants.append(Variant("other image", replace(query, image=other.image, scene=other.scene)))
            variants.append(Variant("question only", unseen))
            if example.choices:
                variants.append(Variant("options only", Query("", choices=example.choices)))
            yield Trial(example.id, tuple(variants), KEEPS)

    def findings(self, trials: Sequence[AnsweredTrial], seed: int) -> Findings:
        conditions = [name for name in CONDITIONS if measure.having(trials, name)]
        clean = measure.accuracy(trials, "clean", seed)
        accuracies = [clean, *(measure.accuracy(trials, name, seed) for name in conditions)]
        drops = measure.corrected([measure.drop(trials, "clean", name, seed) for name in conditions])
        guess = _guess_scores(trials)
        groups = measure.clusters(trials)
        guessing = measure.mean("guessing", guess, groups, seed)
        alone = measure.scores(trials, "question only")
        gain = next(replace(one, name="gain") for one in drops if one.condition == "question only")
        leakage = measure.difference("leakage", alone, guess, groups, seed, "question only")
        blind = next(one for one in accuracies if one.condition == "question only")
        bars = measure.series("accuracy", ("clean", *conditions, "guessing"), (*accuracies, guessing))
        figure = Figure("Accuracy when the evidence is taken away", "bar", (bars,), y_label="accuracy")
        rows: list[tuple[object, ...]] = [("clean", clean, "", "", "", clean.n)]
        rows += [
            (one.condition, one, lost, *measure.p_cells(lost), one.n)
            for one, lost in zip(accuracies[1:], drops, strict=True)
        ]
        table = Table(
            "Shortcut ledger",
            ("condition", "accuracy", "drop from clean", *measure.P_COLUMNS, "n"),
            (*rows, ("guessing", guessing, "", "", "", guessing.n)),
            "Gain: clean minus question only. Leakage: question only minus guessing.",
        )
        return Findings(
            self.name, (*accuracies, *drops, guessing, gain, leakage), _verdict(clean, blind, gain, leakage, guessing),
            clean, blind, replace(gain, name="drop"), (table,), (figure,), _unmoved(trials),
        )  # fmt: skip


def _size(image: Image) -> tuple[int, int]:
    """Width and height. Of a broken image any will do: asking about it fails, and its trial is left out."""
    try:
        return image_size(image)
    except DataError:
        return UNKNOWN


def _verdict(clean: Finding, blind: Finding, gain: Finding, leakage: Finding, guessing: Finding) -> str:
    sentence = (
        f"Without the image the player still scores {measure.with_interval(blind)}, "
        f"against {measure.percent(guessing.value)} for guessing and {measure.percent(clean.value)} with the image. "
        f"The image is worth {measure.with_interval(gain)}"
    )
    if gain.low <= 0 <= gain.high:
        return f"{sentence}: no proof that the player looks at it."
    if leakage.low > 0:
        return f"{sentence}; {measure.with_interval(leakage)} beyond guessing comes from the text alone."
    return f"{sentence}; nothing beyond guessing comes from the text alone."


def _unmoved(trials: Sequence[AnsweredTrial]) -> tuple[Failure, ...]:
    """The suspicious ones: right with the image, and the same right answer about the image of another example."""
    found = [
        Failure(one.example.id, "other image", 0.0)
        for one in measure.having(trials, "other image")
        if one.of("clean")[1] > 0 and same_answer(one.of("other image")[0].text, one.of("clean")[0].text)
    ]
    return tuple(found[: measure.WORST])


@lru_cache(maxsize=64)
def one_colour(size: tuple[int, int], colour: tuple[int, int, int]) -> BytesImage:
    """An image of this width and height without any content."""
    import PIL.Image

    buffer = io.BytesIO()
    PIL.Image.new("RGB", size, colour).save(buffer, format="PNG")
    return BytesImage(buffer.getvalue())


def _other_images(examples: Sequence[Example], seed: int) -> dict[str, Example]:
    """For every example another one with another image; none where the data set has a single image."""
    if len({_picture(example) for example in examples}) < 2:
        return {}
    order = np.random.default_rng(seed).permutation(len(examples))
    others: dict[str, Example] = {}
    for place, index in enumerate(order):
        mine = examples[index]
        for step in range(1, len(examples)):
            other = examples[order[(place + step) % len(examples)]]
            if _picture(other) != _picture(mine):
                others[mine.id] = other
                break
    return others


def _picture(example: Example) -> str:
    return example.image_id or example.id


def _guess_scores(trials: Sequence[AnsweredTrial]) -> list[float]:
    """Score of the best blind guess for every example: 1/k of k choices, else the most frequent answer to its type."""
    counts: dict[str, Counter[str]] = {}
    for one in trials:
        if one.example.target is not None:
            counts.setdefault(_type(one.example), Counter())[one.example.target] += 1
    # An answer that no other example has is no guess, so that the second may be needed.
    leaders = {
        kind: sorted(counter.items(), key=lambda item: (-item[1], item[0]))[:2] for kind, counter in counts.items()
    }
    return [_guess_score(one.example, leaders) for one in trials]


def _guess_score(example: Example, leaders: Mapping[str, Sequence[tuple[str, int]]]) -> float:
    if example.target is None:
        return float("nan")
    if example.choices:
        return 1 / len(example.choices)
    # Among as many yes as no, the most frequent answer of all but the example itself would always be the wrong one.
    known = (answer for answer, count in leaders[_type(example)] if count > (answer == example.target))
    guess = next(known, None)
    if guess is None:
        return 0.0
    if len(example.answers) > 3:  # ten humans: the VQA rule
        return min(1.0, example.answers.count(guess) / 3)
    return float(guess == example.target)


def _type(example: Example) -> str:
    return example.question_type or example.answer_type or " ".join(example.question.lower().split()[:2])
