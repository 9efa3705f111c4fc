"""The contrast probe: where the right answer changes, the player's must change with it.

The other probes change what does not matter and count every change of the answer as a fault; a player that always says
the same looks perfectly robust to them. This one asks for the opposite. Its groups come from the data set
(NaturalBench, MMVP, HallusionBench, MME, complementary pairs of VQA v2 ...), or are made in the world, where one
attribute of one object is changed so that the question's program gives another answer.

Contrast sets: Evaluating Models' Local Decision Boundaries via Contrast Sets. Question, image and group accuracy:
NaturalBench: Evaluating Vision-Language Models on Natural Adversarial Samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from pfungst.core import AnsweredTrial, Dataset, Example, Findings, Probe, ProbeError, Trial, Variant
from pfungst.probes import measure
from pfungst.probes.contrast.groups import Member, published, same_question
from pfungst.probes.contrast.minimal import changed, drawn, minimal_pair
from pfungst.probes.contrast.results import IDLE, read

DIFFERS = (
    "everything but what decides: the members of the group look alike, and their right answers are not all the same"
)
ONE_QUESTION = "the question: it is asked about two images, and its right answer differs"
ONE_OBJECT = (
    "the question and the scene but for one attribute of one object, after which the question's program gives another "
    "answer (q0i1) or the same one (idle)"
)


@dataclass(frozen=True)
class Contrast(Probe):
    """Questions whose right answers differ: question, image and group accuracy, and how often it says the same."""

    by: Literal["any", "data", "world", "question"] = "any"
    """Where groups come from: the data set's own (`data`), one object changed (`world`), the same question about two
    images in any data set (`question`), or the first of `data` and `world` that is available (`any`)."""
    missing: tuple[str, ...] = ()
    """Ids of examples that were not answered."""
    name: str = "contrast"
    role = "changes"

    def finds(self, data: Dataset) -> bool:
        """Whether there is anything to contrast."""
        return next(self._groups(data, 0), None) is not None or self._made(data)

    def check_data(self, data: Dataset) -> None:
        """Raises ProbeError where there is nothing to contrast."""
        if not self.finds(data):
            told = {
                "any": f"{data.name} has neither contrast groups nor scenes and programs to make them from. To pair "
                "the same question about two images, say contrast:by=question.",
                "data": f"{data.name} names no groups whose right answers differ.",
                "world": f"no example of {data.name} has a scene and a program.",
                "question": f"{data.name} asks no question about two images with different right answers.",
            }
            raise ProbeError(f"The probe contrast found nothing to contrast: {told[self.by]}")

    def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
        self.check_data(data)
        found = False
        for members in self._groups(data, seed):
            found = True
            yield _trial(members, ONE_QUESTION if self.by == "question" else DIFFERS)
        if found or not self._made(data):
            return
        for example in data.originals:
            if (trial := _made(example, seed)) is not None:
                found = True
                yield trial
        if not found:
            raise ProbeError(
                f"The probe contrast found no change of one object in the scenes of {data.name} that changes an answer."
            )

    def findings(self, trials: Sequence[AnsweredTrial], seed: int) -> Findings:
        return read(self.name, trials, seed)

    def _groups(self, data: Dataset, seed: int) -> Iterator[list[Member]]:
        if self.by == "question":
            yield from same_question(data, seed, frozenset(self.missing))
        elif self.by != "world":
            yield from published(data, frozenset(self.missing))

    def _made(self, data: Dataset) -> bool:
        """Whether groups may be made from scenes."""
        return self.by in ("any", "world") and any(one.scene is not None and one.program is not None for one in data)


def _trial(members: Sequence[Member], keeps: str) -> Trial:
    return Trial(
        members[0].example.id,
        tuple(
            Variant(one.name, measure.clean_query(one.example), one.example.id, one.example.target) for one in members
        ),
        keeps,
        {"images": [one.example.image_id for one in members], "group": members[0].example.contrast},
    )


def _made(example: Example, seed: int) -> Trial | None:
    """The example, its scene changed so that the answer changes, and, where there is one, an idle change."""
    pair = minimal_pair(example, seed)
    if pair is None:
        return None
    clean = measure.clean_query(example)
    # both images must come from one renderer, or they would differ in more than the object
    clean = replace(clean, image=drawn(pair.scene, example.image), scene=pair.scene.to_json())
    variants = [Variant("q0i0", clean, target=example.target)]
    for name, change in (("q0i1", pair.matters), (IDLE, pair.idle)):
        if change is not None:
            after = changed(pair.scene, change)
            query = replace(clean, image=drawn(after, example.image), scene=after.to_json())
            variants.append(Variant(name, query, target=change.answer, role="keeps" if name == IDLE else ""))
    notes = {"change": asdict(pair.matters), **({"idle": asdict(pair.idle)} if pair.idle is not None else {})}
    return Trial(example.id, tuple(variants), ONE_OBJECT, notes)
