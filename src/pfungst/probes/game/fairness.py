"""Are the moved scenes visually fair? Slot Attention must find the same objects before and after.

Appendix B.6 of Measuring CLEVRness: an object detector that learnt on other scenes looks at both images of a
fooled question; if it finds other objects or attributes, the adversary may have made an image that is hard to see
rather than hard to reason about. A detector errs now and then on any image, so legal moved scenes that fooled nobody
stand beside the fooled ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pfungst.core import Finding, PfungstError, Table
from pfungst.core.stats import interval_of
from pfungst.probes.game.rows import fooled_rows, image_of, scenes_of
from pfungst.probes.measure import finding

if TYPE_CHECKING:
    from pfungst.models import Trained

DETECTOR = "slot-attention"
_CHUNK = 32


@dataclass(frozen=True)
class Fairness:
    """What the detector says about two kinds of moved scenes."""

    fooled: Finding
    """Share of fooled scenes with the same objects found before and after."""
    others: Finding
    """The same for legal moved scenes that fooled nobody."""
    seen_before: Finding
    """Share of the original images in which exactly the objects of the scene are found."""
    seen_after: Finding
    """The same for the images that fooled the player."""

    def table(self) -> Table:
        rows = (
            ("same objects found before and after, fooled", self.fooled),
            ("same objects found before and after, not fooled", self.others),
            ("all objects found, before", self.seen_before),
            ("all objects found, after, fooled", self.seen_after),
        )
        note = (
            "Slot Attention looks at both images (B.6); what it misses in scenes that fooled nobody is its own error."
        )
        return Table("Visual fairness", ("what", "share of scenes"), rows, note)


def load_detector(place: str = "") -> Trained:
    """Slot Attention with the weights of the package, or from a folder."""
    from pathlib import Path

    from pfungst.models import Trained, load_shipped

    found = Trained.load(Path(place)) if place else load_shipped(DETECTOR)
    if not hasattr(found.model, "objects") or "image" not in found.model.reads:
        raise PfungstError(f"{place} is a {found.name}; the fairness check needs {DETECTOR}.")
    return found


def detect(scenes: Sequence[Mapping[str, Any]], detector: Trained) -> list[list[dict[str, str]]]:
    """The objects the detector finds in the images of scenes."""
    import torch

    from pfungst.models.encode import Encoder

    encoder, model = Encoder(detector), detector.model.eval()
    found: list[list[dict[str, str]]] = []
    for start in range(0, len(scenes), _CHUNK):
        part = scenes[start : start + _CHUNK]
        batch = encoder.batch([""] * len(part), [image_of(one) for one in part], [None] * len(part), [()] * len(part))
        with torch.inference_mode():
            found += model.objects(model(batch))  # type: ignore[operator]
    return found


def check_fairness(table: Any, detector: Trained, most: int = 200) -> Fairness:
    """Look at up to `most` fooled rows of moves.parquet (pyarrow Table), and at as many that fooled nobody."""
    fooled = fooled_rows(table)[:most]
    calm: dict[str, dict[str, Any]] = {}
    for row in table.to_pylist():
        if row["legal"] and not row["changed"] and row["after"] != row["before"]:
            calm.setdefault(row["example_id"], row)
    others = list(calm.values())[:most]
    same_fooled, before, after = _compare(fooled, detector)
    same_others, *_ = _compare(others, detector)
    return Fairness(
        _share("same objects", fooled, same_fooled),
        _share("same objects, not fooled", others, same_others),
        _share("objects found before", fooled, before),
        _share("objects found after", fooled, after),
    )


def _compare(rows: Sequence[Mapping[str, Any]], detector: Trained) -> tuple[list[bool], list[bool], list[bool]]:
    """For every row whether the same objects are found, and whether the right ones are, before and after."""
    from pfungst.models import same_objects

    if not rows:
        return [], [], []
    pairs = [scenes_of(row) for row in rows]
    before, after = (detect(scenes, detector) for scenes in zip(*pairs, strict=True))
    truths: list[list[dict[str, str]]] = [one["objects"] for one, _ in pairs]
    same, right_before, right_after = (
        list(map(same_objects, found, wanted)) for found, wanted in ((before, after), (before, truths), (after, truths))
    )
    return same, right_before, right_after


def _share(name: str, rows: Sequence[Mapping[str, Any]], values: Sequence[bool]) -> Finding:
    images = [row["image_id"] or row["example_id"] for row in rows]
    return finding(name, interval_of([float(one) for one in values], images))
