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
    Probe,
    ProbeError,
    Query,
    Table,
    Trial,
    Variant,
)
from pfungst.core.flips import normalise
from pfungst.core.images import image_size
from pfungst.probes import measure
from pfungst.scores import same_answer

KEEPS = "nothing on purpose: the evidence is removed, so what is still right was not read off the image"
GRAY = (127, 127, 127)
UNKNOWN = (224, 224)
CONDITIONS = {
    "other image": "With the image of another question",
    "blank image": "With a blank image",
    "question only": "With no image at all",
    "options only": "With the options alone",
}
"""What is taken away, in words. The first that a run has is the headline: an image of the data set is what players are
made for, where a gray one, or none, may make them say one word whatever they know."""
UNREAD = "no answer that could be read"
SIGNIFICANT = 0.05
HALF = 0.5
"""A player collapses in a condition if it gives fewer than so many of the different answers that it gives to the
questions as they are, or if the share of its answers that are not the most frequent one falls as far."""


@dataclass(frozen=True)
class Blind(Probe):
    """The image of another example, a blank one, question only, options only (multiple choice).

    *Gain* is what the image adds: clean accuracy minus that with the image of another example. Where the data set has
    only one image, the blank one stands for it. *Leakage* of a condition is what is answered without the image beyond
    guessing: its accuracy minus that of always saying the most frequent answer to this type of question (that some
    other example has too, and that is among the choices). Where choices are offered, what a blind pick among them
    scores stands beside it, and is guessing where it is more.
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
        said = _said(trials)
        clean = measure.accuracy(trials, "clean", seed)
        accuracies = [
            replace(one, note=_collapse(one, said[one.condition], said["clean"]))
            for one in (measure.accuracy(trials, name, seed) for name in conditions)
        ]
        drops = measure.corrected([measure.drop(trials, "clean", name, seed) for name in conditions])
        drops = [replace(lost, note=one.note) for lost, one in zip(drops, accuracies, strict=True)]
        examples = [one.example for one in trials]
        guess = _guess_scores(examples)
        groups = measure.clusters(trials)
        guessing = _constant("guessing", guess)
        pick = _constant("blind pick", [_pick_score(example) for example in examples])
        picks = [pick] if pick.n else []
        leakages = measure.corrected(
            [
                measure.difference("leakage", measure.scores(trials, name), guess, groups, seed, name)
                for name in conditions
                if name != "options only"
            ]
        )
        gain, blind = replace(drops[0], name="gain"), accuracies[0]
        bars = measure.series("accuracy", ("clean", *conditions, "guessing"), (clean, *accuracies, guessing))
        figure = Figure("Accuracy when the evidence is taken away", "bar", (bars,), y_label="accuracy")
        rows: list[tuple[object, ...]] = [("clean", clean, "", "", "", *_variety(said["clean"]), clean.n)]
        rows += [
            (one.condition, one, lost, *measure.p_cells(lost), *_variety(said[one.condition]), one.n)
            for one, lost in zip(accuracies, drops, strict=True)
        ]
        table = Table(
            "Shortcut ledger",
            ("condition", "accuracy", "drop from clean", *measure.P_COLUMNS, "different answers", "most frequent", "n"),
            (*rows, *((one.name, one, "", "", "", "", "", one.n) for one in (guessing, *picks))),
            f"Gain: clean minus {blind.condition}. Leakage: a condition minus guessing.",
        )
        verdict = _verdict(clean, blind, gain, [guessing, *picks], leakages)
        return Findings(
            self.name, (clean, *accuracies, *drops, guessing, *picks, gain, *leakages),
            " ".join([verdict, *(one.note for one in accuracies if one.note)]),
            clean, blind, replace(gain, name="drop"), (table,), (figure,), _unmoved(trials),
        )  # fmt: skip


def _size(image: Image) -> tuple[int, int]:
    """Width and height. Of a broken image any will do: asking about it fails, and its trial is left out."""
    try:
        return image_size(image)
    except DataError:
        return UNKNOWN


def _verdict(
    clean: Finding, blind: Finding, gain: Finding, guesses: Sequence[Finding], leakages: Sequence[Finding]
) -> str:
    guessing, *picks = (measure.percent(one.value) for one in guesses)
    pick = f" (a blind pick among the choices: {picks[0]})" if picks else ""
    told = (
        f"{CONDITIONS[blind.condition]} the player still scores {measure.with_interval(blind)}, "
        f"against {guessing} for guessing{pick} and {measure.percent(clean.value)} with its own. "
    )
    if blind.condition != "other image":
        told = f"All questions are about one image: none can be asked about the image of another. {told}"
    told += f"The {'difference is' if blind.note else 'image is worth'} {measure.with_interval(gain)}"
    if gain.low <= 0 <= gain.high:
        return f"{told}: no proof that the player looks at it."
    leaks = [one for one in leakages if one.value > 0 and one.p_holm is not None and one.p_holm < SIGNIFICANT]
    if not leaks:
        return f"{told}; nothing beyond guessing is left without it."
    most = max(leaks, key=lambda one: one.value)
    return f"{told}; {measure.with_interval(most)} beyond guessing are left without it ({most.condition})."


def _said(trials: Sequence[AnsweredTrial]) -> dict[str, Counter[str]]:
    """How often every answer was given, by condition."""
    said: dict[str, Counter[str]] = {}
    for one in trials:
        for variant, answer in zip(one.trial.variants, one.answers, strict=True):
            text = UNREAD if answer.unread else normalise(answer.text)
            said.setdefault(variant.name, Counter())[text] += 1
    return said


def _variety(said: Counter[str]) -> tuple[int, str]:
    """How many different answers there are, and the most frequent one with its share."""
    ((most, count),) = said.most_common(1)
    return len(said), f"{most:.60}, {measure.percent(count / said.total())}"


def _collapse(accuracy: Finding, said: Counter[str], clean: Counter[str]) -> str:
    """That the player gives only a few answers in a condition, in a sentence; empty where it does not."""
    varied, before = (1 - one.most_common(1)[0][1] / one.total() for one in (said, clean))
    if len(said) >= HALF * len(clean) and not (varied < before and varied <= HALF * before):
        return ""
    told = (
        f"{CONDITIONS[accuracy.condition]} it collapses to a few answers ({len(said)} different ones, {len(clean)} "
        f"with its own; most often {_variety(said)[1]})"
    )
    if accuracy.condition in ("other image", "options only"):
        return f"{told}."
    return f"{told}: its {measure.percent(accuracy.value)} there is no measure of what the image is worth."


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


def _constant(name: str, scores: Sequence[float]) -> Finding:
    """The mean of what no player said: it has no interval."""
    known = [score for score in scores if score == score]
    return Finding(name, sum(known) / len(known) if known else float("nan"), len(known))


def _guess_scores(examples: Sequence[Example]) -> list[float]:
    """Score of the best blind guess for every example: the most frequent answer to its type, or a blind pick among the
    choices where that is more on the whole."""
    counts: dict[str, Counter[str]] = {}
    for example in examples:
        if example.target is not None:
            counts.setdefault(_type(example), Counter())[example.target] += 1
    # An answer that no other example has is no guess, so that the second may be needed.
    leaders = {
        kind: sorted(counter.items(), key=lambda item: (-item[1], item[0]))[:2] for kind, counter in counts.items()
    }
    constant = [_guess_score(example, leaders, counts) for example in examples]
    picked = [
        _pick_score(example) if example.choices else score for example, score in zip(examples, constant, strict=True)
    ]
    return picked if np.nansum(picked) > np.nansum(constant) else constant


def _guess_score(
    example: Example, leaders: Mapping[str, Sequence[tuple[str, int]]], counts: Mapping[str, Counter[str]]
) -> float:
    if example.target is None:
        return float("nan")
    candidates = leaders[_type(example)]
    if example.choices:
        offered = ((choice, counts[_type(example)][choice]) for choice in example.choices)
        candidates = sorted(offered, key=lambda item: (-item[1], item[0]))
    # Among as many yes as no, the most frequent answer of all but the example itself would always be the wrong one.
    known = (answer for answer, count in candidates if count > (answer == example.target))
    guess = next(known, None)
    if guess is None:
        return _pick_score(example) if example.choices else 0.0
    if len(example.answers) > 3 and not example.choices:  # ten humans: the VQA rule
        return min(1.0, example.answers.count(guess) / 3)
    return float(guess == example.target)


def _pick_score(example: Example) -> float:
    """Score of a blind pick among the choices; unknown where none are offered."""
    return 1 / len(example.choices) if example.choices and example.target is not None else float("nan")


def _type(example: Example) -> str:
    return example.question_type or example.answer_type or " ".join(example.question.lower().split()[:2])
