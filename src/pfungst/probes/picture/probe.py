"""The picture probe: what should not matter in the pixels.

Shifted, padded, compressed, blurred ... images must get the same right answer. Severities and the mean over them follow
Benchmarking Neural Network Robustness to Common Corruptions and Perturbations (ImageNet-C).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from pfungst.core import (
    AnsweredTrial,
    Dataset,
    Example,
    Findings,
    Image,
    LazyImage,
    Probe,
    ProbeError,
    Query,
    Trial,
    UsageError,
    Variant,
)
from pfungst.core.images import as_rgb
from pfungst.core.registry import Registry
from pfungst.probes import measure
from pfungst.probes.cells import lost
from pfungst.probes.picture.kernels import Pixels
from pfungst.probes.picture.operations import SEVERITIES, Operation, made_later
from pfungst.probes.picture.redrawn import Stage
from pfungst.probes.picture.results import operation_of, read, reference_drops
from pfungst.probes.picture.topics import topics

_PIXELS = (
    "shift", "crop", "pad", "rescale", "rotate", "gamma", "brightness", "contrast", "grey", "blur", "noise", "fog",
    "jpeg", "webp",
)  # fmt: skip
OPERATIONS = Registry(
    "image operation",
    "pfungst.image_operations",
    {
        **{name: f"pfungst.probes.picture.operations:{name.upper()}" for name in _PIXELS},
        "mirror": "pfungst.probes.picture.redrawn:MIRROR",
        "camera": "pfungst.probes.picture.redrawn:CAMERA_MOVED",
        "light": "pfungst.probes.picture.redrawn:LIGHT_MOVED",
        "backdrop": "pfungst.probes.picture.redrawn:BACKDROP",
        "gloss": "pfungst.probes.picture.redrawn:GLOSS",
        "occlusion": "pfungst.probes.picture.redrawn:OCCLUSION",
    },
)
DEFAULT = tuple(name for name in OPERATIONS.builtin if name != "webp")
"""All of ours that give the same pixels on every machine."""

KEEPS = "the answer: the pixels change in ways that the question's words do not ask about"
PROVED = (
    "the answer: the pixels change in ways that the question's words do not ask about, no object leaves the image, and "
    "on a scene drawn anew the program gives the same answer and every object shows"
)


@dataclass(frozen=True)
class Picture(Probe):
    """The same image shifted, padded, compressed, blurred ...: severity curves, worst of n, where accuracy halves."""

    operations: tuple[str, ...] = DEFAULT
    """What is done to the image, joined by +: jpeg+blur."""
    severities: tuple[int, ...] = SEVERITIES
    """How much of it, from 1 to 5, joined by +."""
    reference: str = ""
    """Run folder of a player whose drops this one's are compared with."""
    name: str = "picture"

    def __post_init__(self) -> None:
        wrong = [one for one in self.severities if one not in SEVERITIES]
        if wrong or not self.severities or len(set(self.severities)) != len(self.severities):
            raise UsageError(
                f"The severities of the probe picture are different numbers from 1 to 5, joined by +, not "
                f"{'+'.join(map(str, self.severities)) or 'none'}."
            )
        if not self.operations or len(set(self.operations)) != len(self.operations):
            raise UsageError("The operations of the probe picture are different names, joined by +; name at least one.")
        for one in self.operations:
            OPERATIONS.get(one)

    def check_data(self, data: Dataset) -> None:
        """Whether there are images to disturb; with a reference, whether it can be read."""
        if self.reference:
            reference_drops(Path(self.reference), self.severities)
        if all(example.image is None for example in data):
            raise ProbeError(
                f"The probe picture disturbs images, but none of the {len(data)} examples of {data.name} has one. "
                "Tell the loader where the images are."
            )
        if not self._pixels() and all(Stage.of(example) is None for example in data):
            raise ProbeError(
                f"The operations {', '.join(self.operations)} redraw scenes, but {data.name} has no images that are "
                "drawn from scenes. Name others, such as picture:operations=jpeg+blur."
            )

    def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
        self.check_data(data)
        held: Trial | None = None
        lost = 0
        for example in data:
            if example.image is None:
                continue
            trial = self._trial(example, example.image, seed)
            if len(trial.variants) < 2:
                lost += 1
                continue
            if held is not None:
                yield held
            held = trial
        if held is None:
            raise ProbeError(
                f"The probe picture cannot apply any of {', '.join(self.operations)} to the images of {data.name}: "
                "every question is about what they change. Name other operations."
            )
        # questions that nothing may be done to have no trial of their own
        yield replace(held, notes={**held.notes, "left out": lost}) if lost else held

    def findings(self, trials: Sequence[AnsweredTrial], seed: int) -> Findings:
        drops = reference_drops(Path(self.reference), self.severities) if self.reference else None
        about = {name: OPERATIONS.get(name).about for name in self.operations}
        return read(self.name, trials, about, self.severities, drops, seed)

    def lost(self, trial: AnsweredTrial) -> float:
        """What the drop is the mean of."""
        return lost(trial, operation_of)

    def _pixels(self) -> bool:
        """Whether some operation needs no scene."""
        return any(OPERATIONS.get(one).change is not None for one in self.operations)

    def _trial(self, example: Example, image: Image, seed: int) -> Trial:
        variants = [Variant("clean", measure.clean_query(example))]
        refused: dict[str, str] = {}
        stage = Stage.of(example)
        spoken = topics(example)
        for name in self.operations:
            part: Operation = OPERATIONS.get(name)
            redraw = part.proved if stage is not None else None
            if redraw is None and part.change is None:
                continue
            if redraw is None and (of := spoken & part.spoils):
                refused[name] = f"speaks of {min(of)}"
                continue
            for severity in self.severities if part.graded else self.severities[:1]:
                key = _key(seed, name, severity, image)
                made: Query | str
                if redraw is not None:
                    made = redraw(stage, severity, key)
                elif stage is not None and part.band is not None and not stage.inside(part.band, severity):
                    made = "an object would leave the image"
                else:
                    made = replace(variants[0].query, image=disturbed(image, name, severity, key))
                if isinstance(made, str):
                    refused[f"{name} {severity}"] = made
                else:
                    variants.append(Variant(f"{name} {severity}", made, level=severity))
        notes: Mapping[str, object] = {"refused": refused} if refused else {}
        return Trial(example.id, tuple(variants), KEEPS if stage is None else PROVED, notes)


def disturbed(image: Image, name: str, severity: int, key: int) -> LazyImage:
    """The image after an operation, made when somebody looks at it. Its PNG file holds exactly these pixels."""
    named = [name, OPERATIONS.get(name).version(), severity, key, image.digest]
    return made_later(named, partial(change, image, name, severity, key))


def change(image: Image, name: str, severity: int, key: int) -> Pixels:
    """The disturbed pixels, uint8 (height, width, 3)."""
    part: Operation = OPERATIONS.get(name)
    return part(np.array(as_rgb(image)), severity, key)


def _key(seed: int, name: str, severity: int, image: Image) -> int:
    """A random number of 64 bits: questions about one image see the same disturbance."""
    text = f"{seed} {name} {severity} {image.digest}"
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "little")
