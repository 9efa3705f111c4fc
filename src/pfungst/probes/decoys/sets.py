"""Decoys that were made, and the choice sets they combine to."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core import Dataset, Example, ProbeError
from pfungst.probes.decoys.maker import FREQUENT_TARGET, NONE, OPPOSITE, ORIGINAL, PROCEDURE, UNFILTERED
from pfungst.probes.decoys.split import Ints, Split

_NAMES = {"qou": "QoU", "iou": "IoU", "both": "Both", "random": "Random", "mined": "Mined"}
_BLOCK = 4096
MOSTLY = 0.5
"""Share of fallbacks above which a kind is one in name only."""


@dataclass(frozen=True, eq=False)
class Kind:
    """The decoys of one kind: arrays (examples, k)."""

    answers: Ints
    """Answer numbers, -1 where there is none."""
    origins: npt.NDArray[np.uint8]
    ranks: Ints
    """How many neighbours had been looked at when it was found; -1 for fallbacks."""
    reserve: Ints | None = None
    """(examples,) One more IoU decoy, for sets in which "yes" or "no" stands among the QoU decoys already; -1: none."""

    @property
    def fallbacks(self) -> Ints:
        """(examples,) How many decoys the procedure did not find; yes and no, each other's decoy, are no fallback."""
        return np.asarray(((self.answers >= 0) & ((self.origins & 3) != PROCEDURE)).sum(1), np.int32)

    @property
    def fallback_share(self) -> float:
        """Of all decoys; 0 where there are none."""
        total = int((self.answers >= 0).sum())
        return int(self.fallbacks.sum()) / total if total else 0.0


@dataclass(frozen=True, eq=False)
class DecoySet:
    """Decoys for the examples of a split; see `build`."""

    split: Split
    kinds: dict[str, Kind]
    k: int
    seed: int
    vectors: Any
    """Unit vectors of the distinct questions, where a kind needed them."""
    about: dict[str, Any]

    @property
    def examples(self) -> Sequence[Example]:
        """The examples with a target; the others have no decoys."""
        return self.split.examples

    def __len__(self) -> int:
        return len(self.split)

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the choice sets: Orig, QoU, IoU, QoU+IoU, All as in the paper, and those of other kinds."""
        names = ["Orig"] if len(self.split.originals.values) else []
        names += [kind_name(kind) for kind in self.kinds]
        if {"qou", "iou"} <= set(self.kinds):
            names += ["QoU+IoU"] + (["All"] if "Orig" in names else [])
        return tuple(names)

    @property
    def headline(self) -> str:
        """The choice set that all three rules ask for, or what comes closest."""
        return "QoU+IoU" if "QoU+IoU" in self.variants else self.variants[-1]

    def decoys(self, variant: str, number: int) -> tuple[str, ...]:
        """The wrong choices of example `number`, none twice."""
        return tuple(self.split.book.texts[one] for one in self.distinct(variant, [number])[0])

    def choices(self, variant: str, number: int) -> tuple[str, ...]:
        """Target and decoys, in an order drawn from the seed. Empty where there is no decoy at all."""
        return next(self.all_choices(variant, [number]))

    def all_choices(self, variant: str, numbers: Sequence[int] | None = None) -> Iterator[tuple[str, ...]]:
        """`choices` of these examples, by default of all, in order."""
        from pfungst.probes.decoys import kernels

        salt = self.seed + zlib.crc32(variant.encode())
        numbers = range(len(self)) if numbers is None else numbers
        for start in range(0, len(numbers), _BLOCK):
            block = numbers[start : start + _BLOCK]
            decoys = self.distinct(variant, block)
            keys = kernels.mix_table(salt, np.asarray(block, np.int64), 1 + max(map(len, decoys)))
            for number, wrong, row in zip(block, decoys, keys, strict=True):
                options = [str(self.examples[number].target), *(self.split.book.texts[one] for one in wrong)]
                order = np.argsort(row[: len(options)], kind="stable")
                yield tuple(options[at] for at in order) if wrong else ()

    def dataset(self, variant: str = "", name: str = "") -> Dataset:
        """A multiple-choice data set; examples for which there is no decoy at all are left out and counted."""
        variant = variant or self.headline
        examples = [
            replace(one, choices=choices)
            for one, choices in zip(self.examples, self.all_choices(variant), strict=True)
            if choices
        ]
        if not examples:
            raise ProbeError(
                f"No example has a {variant} decoy, because all targets are the same answer. "
                "Multiple choice needs at least two different answers."
            )
        about = {**self.about, **self.sources(), "variant": variant, "left out": len(self) - len(examples)}
        return Dataset(name or f"decoys {variant}", examples, metric="choice", notes=about)

    def counts(self, kind: str) -> dict[str, int]:
        """Where the decoys of a kind came from, and how many examples have fewer than they should."""
        one = self.kinds[kind]
        fallback = self.about.get("fallback", "frequent")
        origin = one.origins & 3
        real = one.answers >= 0
        opposite = (one.origins & OPPOSITE) > 0
        return {
            "decoys": int(real.sum()),
            "procedure": int(((origin == PROCEDURE) & ~opposite & real).sum()),
            "opposite": int((opposite & real).sum()),
            "original": int(((origin == ORIGINAL) & real).sum()),
            f"{fallback} target": int(((origin == FREQUENT_TARGET) & real).sum()),
            "unfiltered": int((((one.origins & UNFILTERED) > 0) & real).sum()),
            "missing": int((origin == NONE).sum()),
            "examples with a fallback": int((origin != PROCEDURE).any(1).sum()),
            "examples too short": int((origin == NONE).any(1).sum()),
            "examples without any": int((origin == NONE).all(1).sum()),
        }

    def of_each(self, numbers: Sequence[int] | slice = slice(None)) -> Iterator[dict[str, tuple[int, int]]]:
        """Of these examples: kind -> how many decoys it has, and how many of these come from the fallback."""
        counts = [((made.answers[numbers] >= 0).sum(1), made.fallbacks[numbers]) for made in self.kinds.values()]
        for row in zip(*(zip(all_.tolist(), strange.tolist()) for all_, strange in counts), strict=True):
            yield dict(zip(self.kinds, row, strict=True))

    def sources(self) -> dict[str, Any]:
        """Where the decoys of every kind came from, and which kinds are so in name only; part of the set's notes."""
        return {"counts": {kind: self.counts(kind) for kind in self.kinds}, "mostly fallback": self.fallen}

    def numbers(self, variant: str, items: npt.NDArray[Any] | None = None) -> Ints:
        """Decoys as answer numbers, (examples, at most), none twice; -1 where there is none."""
        items = np.arange(len(self)) if items is None else items
        names = self._parts(variant)
        parts = [
            self.split.originals.padded(items) if part == "orig" else self.kinds[part].answers[items] for part in names
        ]
        if {"qou", "iou"} <= set(names) and (reserve := self.kinds["iou"].reserve) is not None:
            parts.append(reserve[items][:, None])
        found = np.concatenate(parts, axis=1)
        classes = np.where(found >= 0, self.split.book.classes[found], -1)
        for column in range(1, found.shape[1]):
            again = (classes[:, :column] == classes[:, column, None]).any(1)
            found[again, column] = -1
        return found

    @property
    def fallen(self) -> dict[str, float]:
        """Kinds whose decoys mostly come from the fallback, with its share: they do not do what their name says."""
        shares = {kind: made.fallback_share for kind, made in self.kinds.items()}
        return {kind: share for kind, share in shares.items() if share > MOSTLY}

    def warnings(self) -> list[str]:
        """What a user should know before trusting the set, in sentences."""
        said = []
        if self.split.without_target:
            said.append(f"{self.split.without_target} examples have no target, or an empty one, and get no decoys.")
        if len(np.unique(self.split.book.classes[self.split.targets])) < 2:
            said.append("All targets are the same answer, so there is nothing to choose between.")
        if "iou" in self.kinds and int(np.diff(self.split.by_image.starts).max()) < 2:
            said.append("No image has two questions, so no IoU decoy is an answer about the image.")
        unknown = 0 if self.vectors is None else int((~self.vectors.any(1)).sum())
        if unknown:
            count = f"{unknown:,} of {len(self.vectors):,} distinct questions"
            said.append(f"{count} have no word that the encoder knows, so no other question is similar to them.")
        for kind in self.kinds:
            counts = self.counts(kind)
            name = kind_name(kind)
            if kind in self.fallen:
                said.append(fallen_note(name, self.fallen[kind]))
            elif counts["examples with a fallback"] > 0.2 * len(self):
                share = 100 * counts["examples with a fallback"] / len(self)
                said.append(f"{share:.0f}% of the examples have too few {name} decoys; the fallback fills them up.")
            if counts["examples too short"]:
                said.append(f"{counts['examples too short']} examples have fewer {name} decoys than asked for.")
        return said

    def _parts(self, variant: str) -> list[str]:
        if variant not in self.variants:
            raise ProbeError(f"There is no choice set {variant!r} here; there are: {', '.join(self.variants)}.")
        fixed = {"Orig": ["orig"], "QoU+IoU": ["qou", "iou"], "All": ["orig", "qou", "iou"]}
        return fixed.get(variant) or [next(kind for kind in self.kinds if kind_name(kind) == variant)]

    def distinct(self, variant: str, numbers: Sequence[int] | None = None) -> list[list[int]]:
        """The decoys of these examples, by default of all, as answer numbers, none twice."""
        rows = self.numbers(variant, None if numbers is None else np.asarray(numbers, np.int64))
        return [[one for one in row if one >= 0] for row in rows.tolist()]


def kind_name(kind: str) -> str:
    """`qou@10` is the choice set `QoU@10`."""
    return _NAMES.get(kind, kind.replace("qou", "QoU"))


def fallen_note(name: str, share: float) -> str:
    """What to say of a kind whose decoys mostly come from the fallback."""
    sets = "IoU and QoU+IoU are not IoU sets" if name == "IoU" else f"{name} is not a set of {name} decoys"
    return f"{100 * share:.0f}% of the {name} decoys come from the fallback, so {sets}."
