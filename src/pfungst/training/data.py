"""Training data: anything that can make a batch of given rows; arrays on disk do."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pfungst.core import DataError
from pfungst.core.files import write_json
from pfungst.models import Batch, Inputs, Model, Scenes, Sizes, Vocabulary
from pfungst.models.programs import tokens
from pfungst.models.trained import reading_record

FORMAT = 1
RECORD = "prepared.json"


@runtime_checkable
class Data(Protocol):
    """What `fit` learns from."""

    def __len__(self) -> int: ...

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        """The examples of these numbers, on whatever device is convenient."""
        ...


def batches(data: Data, size: int, device: torch.device | str) -> Iterator[Batch]:
    """All examples in their order, on a device."""
    for start in range(0, len(data), size):
        yield data.batch(np.arange(start, min(start + size, len(data)))).to(device)


def held_images(images: Sequence[Any] | NDArray[Any], share: float, rng: np.random.Generator) -> set[Any]:
    """About this share of the images, at least one, to be kept apart from the others; none where there is only one."""
    names = np.unique(np.asarray(images))
    count = min(max(1, round(share * len(names))), len(names) - 1)
    return set(rng.permutation(names)[:count].tolist())


PARTS = {
    "question": np.int64,
    "answer": np.int64,
    "picture": np.int64,
    "program": np.int64,
    "choices": np.int64,
    "right_choice": np.int64,
    "soft_answers": np.int64,
    "soft_scores": np.float32,
    "group": np.int64,
    "sets": np.int64,
}
"""Arrays with one row per question, and the type they have in a batch."""
PICTURES = ("pictures", "attributes", "positions", "pixels", "regions", "camera")
"""Arrays with one row per image."""
_HELD = {
    "image": ("pictures", "regions"),
    "scene": ("attributes", "positions", "pixels", "sets"),
    "choices": ("choices",),
    "program": ("program",),
}
"""Arrays that a part of a batch is made of."""
NO_SET = 1 << 15
"""Stands in `sets` where there is none."""


@dataclass(frozen=True)
class ArrayData:
    """Questions and images as arrays.

    question (N, T), answer (N,), picture (N,) the row of the image; where known program (N, P), choices (N, K, L),
    right_choice (N,), soft_answers and soft_scores (N, S), group (N,) the number of the rephrasing group, whose first
    row is the original, sets (N, S) what `pfungst.training.grounding` makes; and by image: pictures (M, C, H, W)
    uint8 pixels or float16 features, attributes (M, O, 4), positions and pixels (M, O, 2), regions (M, R, D), camera
    (M, 3).
    """

    arrays: Mapping[str, Any]
    """Numpy arrays (memory-mapped from disk), or tensors once they were moved to a device."""
    answers: int
    """Size of the answer vocabulary."""
    parts: frozenset[str] = frozenset({"question", "image", "scene", "choices", "program", "answer"})
    """What the batches hold."""
    choosing: bool = False
    """Whether `Batch.answer` is the number of the right choice."""
    ids: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        for name in ("question", "answer", "picture"):
            if name not in self.arrays:
                raise DataError(f"Training data needs the array {name}.")

    def __len__(self) -> int:
        return int(self.arrays["question"].shape[0])

    @property
    def picture(self) -> NDArray[np.int64]:
        """(N,) the image of every question."""
        rows = self.arrays["picture"]
        return rows.cpu().numpy() if isinstance(rows, Tensor) else np.asarray(rows)

    def for_model(self, model: Model) -> ArrayData:
        """The same data, with batches that hold what this model reads and learns from; DataError if they lack it."""
        parts = model.reads | model.learns_from
        choosing = model.objective == "choice"
        needed = {
            "image": ("images", "regions" if model.sizes.regions else "pictures"),
            "scene": ("scenes", "attributes"),
            "choices": ("choices", "choices"),
            "program": ("programs", "program"),
        }
        for part, (words, array) in needed.items():
            if part in parts and array not in self.arrays:
                raise DataError(f"This model needs {words} to learn from, and the data has none.")
        return dataclasses.replace(self, parts=parts, choosing=choosing)

    def with_sets(self, sets: NDArray[np.uint16]) -> ArrayData:
        """The same data, with scenes that say which of their objects are in these sets (N, S), bit by bit."""
        return dataclasses.replace(self, arrays={**self.arrays, "sets": sets}, parts=self.parts | {"scene"})

    def to(self, device: torch.device | str) -> ArrayData:
        """What the batches hold, as tensors on a device: no copying during training, if it fits."""
        wanted = {"question", "answer", "picture", "soft_answers", "soft_scores"}
        wanted |= {"right_choice"} if self.choosing else set()
        wanted |= {name for part in self.parts for name in _HELD.get(part, ())}
        kept = {name: _tensor(array).to(device) for name, array in self.arrays.items() if name in wanted}
        return dataclasses.replace(self, arrays=kept)

    def rows(self, rows: NDArray[np.int64]) -> ArrayData:
        """Some of the questions; the images are shared."""
        chosen = {name: _take(array, rows) if name in PARTS else array for name, array in self.arrays.items()}
        ids = tuple(self.ids[i] for i in rows) if self.ids else ()
        return dataclasses.replace(self, arrays=chosen, ids=ids)

    def each_picture(self) -> ArrayData:
        """The first question about every image: for models that read no question."""
        _, first = np.unique(self.picture, return_index=True)
        return self.rows(np.sort(first))

    def split_by_picture(self, share: float, seed: int) -> tuple[ArrayData, ArrayData]:
        """Two parts without a common image; the second has about `share` of the images."""
        chosen = held_images(self.picture, share, np.random.default_rng([seed, 0x5EED]))
        if not chosen:
            raise DataError("There is only one image: give separate validation data.")
        held = np.isin(self.picture, list(chosen))
        return self.rows(np.flatnonzero(~held)), self.rows(np.flatnonzero(held))

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        picture = _take(self.arrays["picture"], rows)
        return Batch(
            self._row("question", rows),
            image=self._pictures("pictures", picture),
            regions=self._pictures("regions", picture),
            scene=self._scenes(picture, rows) if self._holds("scene", "attributes") else None,
            choices=self._row("choices", rows) if self._holds("choices", "choices") else None,
            program=self._row("program", rows) if self._holds("program", "program") else None,
            answer=self._answer(rows),
        )

    def _holds(self, part: str, array: str) -> bool:
        return part in self.parts and array in self.arrays

    def _row(self, name: str, rows: NDArray[np.int64]) -> Tensor:
        return _tensor(_take(self.arrays[name], rows), PARTS[name])

    def _answer(self, rows: NDArray[np.int64]) -> Tensor:
        if self.choosing or "soft_answers" not in self.arrays:
            return self._row("right_choice" if self.choosing else "answer", rows)
        numbers, scores = self._row("soft_answers", rows), self._row("soft_scores", rows)
        dense = torch.zeros(len(numbers), self.answers + 1, device=numbers.device)
        # -1 is padding; it lands in a column that is cut off.
        dense.scatter_(1, torch.where(numbers < 0, self.answers, numbers), scores)
        return dense[:, :-1]

    def _pictures(self, name: str, picture: Any) -> Tensor | None:
        if not self._holds("image", name):
            return None
        chosen = _tensor(_take(self.arrays[name], picture))
        return chosen if chosen.dtype == torch.uint8 else chosen.float()

    def _scenes(self, picture: Any, rows: NDArray[np.int64]) -> Scenes:
        attributes, positions = (_tensor(_take(self.arrays[name], picture)) for name in PICTURES[1:3])
        pixels = _tensor(_take(self.arrays["pixels"], picture)) if "pixels" in self.arrays else None
        members = None
        if "sets" in self.arrays:
            sets = self._row("sets", rows)[:, None]
            bits = torch.arange(attributes.shape[1], device=sets.device)[None, :, None]
            members = (sets >> bits & 1).masked_fill(sets >= NO_SET, -1).to(torch.int8)
        return Scenes(attributes.long(), positions.float(), None if pixels is None else pixels.float(), members)


def _take(array: Any, rows: Any) -> Any:
    if isinstance(array, Tensor):
        index = rows if isinstance(rows, Tensor) else torch.from_numpy(np.asarray(rows)).to(array.device)
        return array[index.long()]
    return np.asarray(array[np.asarray(rows)])


def _tensor(array: Any, dtype: Any = None) -> Tensor:
    if isinstance(array, Tensor):
        return array if dtype is None else array.to(torch.float32 if dtype is np.float32 else torch.int64)
    wanted = np.ascontiguousarray(array, dtype=dtype)
    # torch knows no uint16 or uint32 arithmetic.
    if wanted.dtype in (np.uint16, np.uint32):
        wanted = wanted.astype(np.int64)
    return torch.from_numpy(wanted if wanted.flags.writeable else wanted.copy())


@dataclass(frozen=True)
class Prepared:
    """A folder of arrays, made by `prepare`.

    FOLDER/prepared.json (words, answers, how images were encoded) and FOLDER/SPLIT/NAME.npy.
    """

    folder: Path
    vocabulary: Vocabulary
    inputs: Inputs
    splits: Mapping[str, int]
    """Name -> questions."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Where the data come from: name, fingerprint, settings."""
    images: str = ""
    """Changes with the names and sizes of the image files, or with the region features; empty where there are none."""

    @staticmethod
    def is_there(folder: str | Path) -> bool:
        """Whether this is a folder of prepared arrays."""
        return (Path(folder) / RECORD).exists()

    def save(self) -> None:
        write_json(
            self.folder / RECORD,
            {
                "format": FORMAT,
                "vocabulary": self.vocabulary.to_json(),
                "inputs": dataclasses.asdict(self.inputs),
                "splits": dict(self.splits),
                "notes": dict(self.notes),
                **({"images": self.images} if self.images else {}),
            },
        )

    @classmethod
    def load(cls, folder: str | Path) -> Prepared:
        path = Path(folder) / RECORD
        with reading_record(path, "prepared data", part="description of the data"):
            record = json.loads(path.read_bytes())
            vocabulary = Vocabulary.from_json(record["vocabulary"], str(path))
            inputs, images = Inputs(**record["inputs"]), str(record.get("images", ""))
            found = cls(Path(folder), vocabulary, inputs, record["splits"], record["notes"], images)
        if record.get("format") != FORMAT:
            raise DataError.at(path, "", f"this is format {record.get('format')}; this version reads {FORMAT}.")
        return found

    def split(self, name: str, pictures: bool = True) -> ArrayData:
        """The arrays of one split, memory-mapped; without the images where `pictures` is false."""
        if name not in self.splits:
            raise DataError.at(self.folder, "", f"there is no split {name!r}; there are {', '.join(self.splits)}.")
        arrays: dict[str, Any] = {}
        for part in (*PARTS, *PICTURES[0 if pictures else 1 :]):
            path = self.folder / name / f"{part}.npy"
            if path.exists():
                try:
                    arrays[part] = np.load(path, mmap_mode="r", allow_pickle=False)
                except (OSError, ValueError) as error:
                    raise DataError.at(path, "", "the array is damaged.", "Prepare the data again.") from error
        data = ArrayData(arrays, len(self.vocabulary.answers))
        if len(data) != self.splits[name]:
            raise DataError.at(self.folder / name, "", "the arrays do not have the length that prepared.json says.")
        return data

    def sizes(self) -> Sizes:
        """What the data decide about a model."""
        shape = tuple(self.notes.get("picture_shape") or (3, self.inputs.height, self.inputs.width))
        return Sizes(
            self.vocabulary.size,
            len(self.vocabulary.answers),
            (shape[0], shape[1], shape[2]),
            int(self.notes.get("regions") or 0),
            len(tokens()),
        )
