"""The data of a study: what is learnt from, what is asked, and which wordings belong together."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfungst.core import DataError
from pfungst.models import Sizes, Vocabulary
from pfungst.training.cycle.config import StudyConfig
from pfungst.training.data import PARTS, ArrayData, Prepared

SPLITS = ("train", "val", "heldout")
OBJECT_FEATURES = 18
"""8 colours, 3 shapes, 2 sizes, 2 materials, presence, x and y."""


@dataclass(frozen=True)
class StudyData:
    """Training, validation (training wordings, new pictures) and held-out wordings in groups."""

    train: ArrayData
    val: ArrayData
    heldout: ArrayData
    sizes: Sizes
    groups: NDArray[np.int64]
    """(N,) group of every held-out question."""
    pictures: NDArray[np.int64]
    """(N,) their pictures."""
    notes: Mapping[str, Any]
    vocabulary: Vocabulary
    choose: ArrayData | None = None
    """Validation questions that the best step is chosen on, about other pictures than those of `val`; None where none
    is chosen."""


def load_study(prepared: Prepared, config: StudyConfig) -> StudyData:
    """The three splits as the study uses them."""
    parts = {name: prepared.split(name, config.see == "image") for name in SPLITS}
    sizes = prepared.sizes()
    if "group" not in parts["heldout"].arrays:
        raise DataError.at(
            prepared.folder, "heldout", "there is no array `group` that says which wordings belong together."
        )
    if config.see == "objects":
        parts = {name: with_objects(data) for name, data in parts.items()}
        sizes = dataclasses.replace(sizes, regions=OBJECT_FEATURES)
    train = one_wording(parts["train"])
    if config.questions and len(train) > config.questions:
        order = np.argsort(np.asarray(train.arrays["picture"]), kind="stable")[: config.questions]
        train = train.rows(np.sort(order))
    train = only_pictures(train)
    held, val, choose = parts["heldout"], one_wording(parts["val"]), None
    if config.early_stop:
        val, choose = val.split_by_picture(0.5, seed=0)
        held = about_others(held, choose)
    return StudyData(
        train,
        val,
        held,
        sizes,
        np.asarray(held.arrays["group"]).astype(np.int64),
        np.asarray(held.arrays["picture"]).astype(np.int64),
        prepared.notes,
        prepared.vocabulary,
        choose,
    )


def one_wording(data: ArrayData) -> ArrayData:
    """The first wording of every group."""
    if "group" not in data.arrays:
        return data
    _, first = np.unique(np.asarray(data.arrays["group"]), return_index=True)
    return data.rows(np.sort(first))


def only_pictures(data: ArrayData) -> ArrayData:
    """Without the pictures nobody asks about: they need not travel to the device."""
    used, places = np.unique(np.asarray(data.arrays["picture"]), return_inverse=True)
    arrays = {
        name: array if name in PARTS else np.ascontiguousarray(np.asarray(array)[used]) if len(array) else array
        for name, array in data.arrays.items()
    }
    return dataclasses.replace(data, arrays={**arrays, "picture": places.astype(np.int32)})


def about_others(data: ArrayData, chosen: ArrayData) -> ArrayData:
    """Without the questions about pictures that `chosen` asks about: where a data set is rephrased, validation and
    held-out wordings ask about the same ones. Pictures are compared by content, as splits count them apart."""
    taken = set(_contents(chosen).values())
    same = [number for number, content in _contents(data).items() if content in taken]
    kept = np.flatnonzero(~np.isin(np.asarray(data.arrays["picture"]), same))
    if not len(kept):
        raise DataError("No held-out question is left for a best step: all are about pictures that it is chosen on.")
    return data.rows(kept) if same else data


def _contents(data: ArrayData) -> dict[int, bytes]:
    """Number of every picture asked about -> hash of all that is known of it; none where nothing is."""
    known = [np.asarray(array) for name, array in sorted(data.arrays.items()) if name not in PARTS and len(array)]
    asked = np.unique(np.asarray(data.arrays["picture"])).tolist() if known else []
    return {number: hashlib.sha256(b"".join(one[number].tobytes() for one in known)).digest() for number in asked}


def with_objects(data: ArrayData) -> ArrayData:
    """Regions (M, O, 18) from the scenes: one-hot attributes, presence, place on the ground."""
    from pfungst.world.constants import BOUND

    if "attributes" not in data.arrays:
        raise DataError("The data have no scenes to make objects of; let the study see `image`.")
    attributes = np.asarray(data.arrays["attributes"]).astype(np.int64)
    there = (attributes[..., :1] > 0).astype(np.float32)
    places = np.asarray(data.arrays["positions"], np.float32) / BOUND * there
    known = [np.eye(n + 1, dtype=np.float32)[attributes[..., i]][..., 1:] for i, n in enumerate((8, 3, 2, 2))]
    regions = np.concatenate([*known, there, places], -1).astype(np.float16)
    arrays = {name: array for name, array in data.arrays.items() if name != "pictures"}
    return dataclasses.replace(data, arrays={**arrays, "regions": regions})
