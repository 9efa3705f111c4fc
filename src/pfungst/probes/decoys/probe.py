"""The decoys probe: the same question with other wrong choices (Being Negative but Constructively).

The right answer stays; what changes is what it stands among. A player that finds the target by eliminating what does
not fit the question, or is not in the image, falls where the decoys fit both.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pfungst.core import AnsweredTrial, Dataset, Example, Findings, Probe, ProbeError, Trial, UsageError, Variant
from pfungst.core.files import cache_dir
from pfungst.core.flips import normalise
from pfungst.core.types import Progress, no_progress
from pfungst.probes import measure
from pfungst.probes.decoys.building import NEIGHBOURS, K, build
from pfungst.probes.decoys.filters import THRESHOLD
from pfungst.probes.decoys.reading import OPEN, read, turn_name
from pfungst.probes.decoys.sets import DecoySet

Sets = dict[str, tuple[str, ...]]
"""Choice set -> choices, of one example."""
Sources = Mapping[str, tuple[int, int]]
"""Kind -> how many decoys one example has of it, and how many of these come from the fallback."""
KEEPS = "the answer: image and question are the same, and the right answer stands among the choices"
_REFERS = re.compile(
    r"\W*[A-J]\W*|.*\b(?:[A-J](?: and |, | or | & )[A-J]|options? [A-J]|"
    r"(?:all|any|both|either|neither|none) of (?:the )?(?:above|answers|below|choices|options|these|those))\b.*",
    re.IGNORECASE | re.DOTALL,
)
STRENGTHS = (10, 100, 1000, 10_000)
"""Neighbours passed over by the weaker decoys of the strength curve."""


@dataclass(frozen=True)
class Decoys(Probe):
    """Other wrong choices: accuracy on Orig, QoU, IoU, QoU+IoU and All, open-ended twin, order of the options."""

    kinds: str = "qou+iou"
    """Kinds of decoys, joined by +; see `build`."""
    k: int = K
    encoder: str = ""
    """What finds similar questions: `words:FILE` as in the paper; empty for the embedded encoder."""
    neighbours: int = NEIGHBOURS
    threshold: float = THRESHOLD
    fallback: str = "frequent"
    """If a procedure finds too few: `frequent` targets as in the paper, or `neutral`."""
    made: str = ""
    """A file written by `pfungst decoys`, to use instead of making decoys."""
    pool_limit: int = 0
    """Maximum number of examples to take decoys from, in addition to those asked; 0 means all of them."""
    circular: str = "headline"
    """Ask with the options in every rotated order: the `headline` set (QoU+IoU), `all` sets, or `none`."""
    strength: bool = False
    """Ask with weaker QoU decoys too, for the curve of accuracy against strength."""
    name: str = "decoys"

    def check_data(self, data: Dataset) -> None:
        if self.circular not in ("headline", "all", "none"):
            raise ProbeError(
                f"The setting circular of the probe decoys is headline, all or none, not {self.circular!r}."
            )
        if self.pool_limit < 0:
            raise UsageError(f"pool_limit is {self.pool_limit}, but must be at least 0; 0 means all examples.")
        given = [example for example in data.whole if example.target and example.target.strip()]
        targets = {normalise(example.target or "") for example in given if not refers(example)}
        if not self.made and len(targets) < 2:
            why = f"all have the answer {min(targets)!r:.60}" if targets else "none has a right answer"
            if given and not targets:
                why = f"all right answers refer to the options they stand among, such as {given[0].target!r:.60}"
            raise ProbeError(
                f"The probe decoys makes wrong choices from the right answers of other questions, and in {data.name} "
                f"there are none: {why}."
            )

    def prepare(self, data: Dataset, seed: int, progress: Progress) -> None:
        if not self.made:
            self._build(data, seed, progress)

    def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
        self.check_data(data)
        sets, sources = self._from_file(data) if self.made else self._make(data, seed)
        if not sets:
            raise ProbeError(
                f"No question of {data.name} has a decoy"
                + (f" in {self.made}: it was made for other questions." if self.made else ".")
            )
        for example in data:
            if example.id in sets and not refers(example):
                yield self._trial(example, sets[example.id], sources.get(example.id, {}))

    def findings(self, trials: Sequence[AnsweredTrial], seed: int) -> Findings:
        return read(self.name, trials, seed)

    def _trial(self, example: Example, sets: Mapping[str, tuple[str, ...]], sources: Sources) -> Trial:
        query = measure.clean_query(example)
        variants = [Variant("clean", query)]
        if example.choices:
            variants.append(Variant(OPEN, replace(query, choices=())))
        headline = "QoU+IoU" if "QoU+IoU" in sets else list(sets)[-1]
        for name, choices in sets.items():
            variants.append(Variant(name, replace(query, choices=choices)))
            if self.circular == "all" or (self.circular == "headline" and name == headline):
                for turn in range(1, len(choices)):
                    turned = choices[turn:] + choices[:turn]
                    variants.append(Variant(turn_name(name, turn), replace(query, choices=turned), role="control"))
        fallbacks = {kind: strange for kind, (_, strange) in sources.items() if strange}
        decoys = {kind: count for kind, (count, _) in sources.items()}
        notes = {"headline": headline, "fallbacks": fallbacks, "decoys": decoys}
        return Trial(example.id, tuple(variants), KEEPS, notes)

    def _build(self, data: Dataset, seed: int, progress: Progress = no_progress) -> DecoySet:
        """Decoys for the examples of `data` from the answers of the whole data set; finished work is in the cache."""
        kinds = [kind for kind in self.kinds.split("+") if kind]
        whole = data.whole.examples[: self.pool_limit or None]
        pool = {example.id: example for example in (*whole, *data) if not refers(example)}
        if self.strength:
            kinds += [f"qou@{rank}" for rank in STRENGTHS if rank < len(pool) // 2]
        kinds += ["random"] if "random" not in kinds else []
        settings = (data.whole.fingerprint, len(pool), sorted(example.id for example in data), kinds, seed, self)
        digest = hashlib.sha256(repr(settings).encode("utf-8", "surrogatepass")).hexdigest()[:24]
        return build(
            list(pool.values()), kinds, self.k, seed,
            encoder=self.encoder or None, neighbours=self.neighbours, threshold=self.threshold, fallback=self.fallback,
            only={example.id for example in data if example.id in pool}, folder=cache_dir("decoys") / digest,
            progress=progress,
        )  # fmt: skip

    def _make(self, data: Dataset, seed: int) -> tuple[dict[str, Sets], dict[str, Sources]]:
        made = self._build(data, seed)
        names = [name for name in made.variants if name != "Orig"]
        asked = {example.id for example in data}
        numbers = [number for number, example in enumerate(made.examples) if example.id in asked]
        keys = [made.examples[number].id for number in numbers]
        sets: dict[str, Sets] = {}
        for key, *choices in zip(keys, *(made.all_choices(name, numbers) for name in names), strict=True):
            options = {name: some for name, some in zip(names, choices, strict=True) if some}
            if options:
                sets[key] = options
        return sets, dict(zip(keys, made.of_each(numbers), strict=True))

    def _from_file(self, data: Dataset) -> tuple[dict[str, Sets], dict[str, Sources]]:
        from pfungst.probes.decoys.files import read_sets

        stored = read_sets(Path(self.made))
        sets: dict[str, Sets] = {}
        sources: dict[str, Sources] = {}
        for example in data:
            if example.id in stored:
                target, choices, sources[example.id] = stored[example.id]
                if target != example.target:
                    raise ProbeError(
                        f"{self.made} has decoys for another data set: the target of {example.id} is {target!r:.60} "
                        f"there and {example.target!r:.60} here."
                    )
                sets[example.id] = {name: found for name, found in choices.items() if found and name != "Orig"}
        return {key: value for key, value in sets.items() if value}, sources


def refers(example: Example) -> bool:
    """Whether the right choice means something only among its own options: `all of the above`, `A and B`, a letter."""
    return bool(example.choices and example.target and _REFERS.fullmatch(example.target))
