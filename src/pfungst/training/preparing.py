"""From a data set to arrays on disk: words and programs to numbers, images to pixels or features."""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfungst.core import DataError, Dataset, Example, FileImage, Image, NamedImage
from pfungst.core.types import Progress
from pfungst.models import Inputs, Vocabulary
from pfungst.models.features import Backbone, FeatureCache, RegionFeatures, get_backbone
from pfungst.models.features.backbones import LiveBackbone
from pfungst.models.programs import encode_program
from pfungst.models.scene import encode_scenes
from pfungst.models.trained import is_cut, plain_answer
from pfungst.training.data import RECORD, Prepared

log = logging.getLogger("pfungst.training")

_CHUNK = 64
"""Pictures handled at once."""
_SOFT = 10
"""Different answers of one question that are kept."""


def prepare(
    splits: Mapping[str, Dataset],
    out: str | Path,
    *,
    inputs: Inputs | None = None,
    vocabulary: Vocabulary | None = None,
    min_count: int = 1,
    max_answers: int | None = None,
    regions: RegionFeatures | None = None,
    device: str = "cpu",
    reuse: bool = False,
    progress: Progress | None = None,
) -> Prepared:
    """Write the arrays of data sets to a folder, one below for each split, and describe them in prepared.json.

    The vocabulary is that of the first split unless one is given; later splits may hold words and answers it lacks.
    `inputs` says how images are encoded: `picture="pixels"` resizes them, the name of a backbone takes its features,
    `none` leaves them out. Questions whose image is missing are left out, and counted in a line of the log. With
    `regions` every question's image must have region features. Features are computed, and images of scenes rendered, on
    `device`. `reuse` takes what the folder holds where it was made from the same data in the same way.
    """
    if not splits:
        raise DataError("There is nothing to prepare: give at least one data set.")
    inputs = inputs or Inputs()
    folder = Path(out)
    looking = inputs.picture != "none" and regions is None
    if looking:
        splits = {name: _with_images(name, data) for name, data in splits.items()}
    files = _files(splits) if looking else "" if regions is None else _first(splits, regions)
    first = next(iter(splits.values()))
    if vocabulary is None:
        vocabulary = Vocabulary.build(
            (one.question for one in first),
            (answer for one in first for answer in _answers(one)),
            choices=(choice for one in first for choice in one.choices),
            min_count=min_count,
            max_answers=max_answers,
        )
    wanted = {
        "data": {name: {"name": data.name, "fingerprint": data.fingerprint} for name, data in splits.items()},
        "regions": None if regions is None else regions.size,
    }
    if reuse and (folder / RECORD).exists():
        known = Prepared.load(folder)
        same = (known.inputs, known.vocabulary) == (inputs, vocabulary) and known.images in (files, "")
        if same and wanted.items() <= known.notes.items():
            return known
    backbone = (
        None
        if inputs.picture == "none"
        else get_backbone(inputs.picture, width=inputs.width, height=inputs.height, device=device)
    )
    for name, data in splits.items():
        place = folder / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        _write_questions(place, data, vocabulary, inputs)
        images, scenes, rows = _by_picture(data)
        np.save(place / "picture.npy", rows)
        if scenes is not None:
            for part, array in encode_scenes(scenes, inputs.objects).items():
                np.save(place / f"{part}.npy", array)
        if regions is not None:
            np.save(place / "regions.npy", _regions(data, rows, len(images), regions))
        if backbone is not None and regions is None:
            _write_pictures(place, images, backbone, progress, name)
    result = Prepared(
        folder,
        vocabulary,
        inputs,
        {name: len(data) for name, data in splits.items()},
        {**wanted, "picture_shape": None if backbone is None else list(backbone.shape)},
        files,
    )
    result.save()
    return result


def _with_images(split: str, data: Dataset) -> Dataset:
    """Without the questions whose image is missing."""
    there = [one for one in data if one.image is not None and not isinstance(one.image, NamedImage)]
    if not there:
        raise DataError(
            f"The split {split} has questions whose image was not found, and no others. Say where the images are "
            "(--images FOLDER), or train a model that reads none."
        )
    if len(there) == len(data):
        return data
    lost = f"{len(data) - len(there):,} of {len(data):,}"
    log.info("%s: left out %s questions, because their images are missing.", split, lost)
    return data.subset(there)


def _files(splits: Mapping[str, Dataset]) -> str:
    """Which image files there are, by name and size: to know others again without reading them all. Empty if none."""
    seen = dict.fromkeys(one.image.path for data in splits.values() for one in data if isinstance(one.image, FileImage))
    content = "\n".join(f"{path.name} {path.stat().st_size}" for path in seen)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16] if seen else ""


def _first(splits: Mapping[str, Dataset], regions: RegionFeatures) -> str:
    """The region features of the first image: those of another network are others."""
    name = next((one.image_id for data in splits.values() for one in data), "")
    return hashlib.sha256(regions.get(name).features.tobytes()).hexdigest()[:16]


def _answers(example: Example) -> tuple[str, ...]:
    return example.answers or ((example.target,) if example.target is not None else ())


def _write_questions(place: Path, data: Dataset, vocabulary: Vocabulary, inputs: Inputs) -> None:
    cut = sum(is_cut(one.question, inputs.question_length) for one in data)
    if cut:
        few = f"{cut:,} of {len(data):,} questions have more than {inputs.question_length} words"
        log.info("%s: %s, and are cut at the end.", place.name, few)
    questions = vocabulary.encode([one.question for one in data], inputs.question_length)
    small = np.uint8 if vocabulary.size <= 256 else np.uint16
    np.save(place / "question.npy", questions.astype(small))
    targets = [one.target if one.target is not None else (one.answers or ("",))[0] for one in data]
    np.save(place / "answer.npy", np.array([vocabulary.answer_number(t) for t in targets], np.int32))
    if any(len(set(map(plain_answer, one.answers))) > 1 for one in data):
        numbers, scores = _soft(data, vocabulary)
        np.save(place / "soft_answers.npy", numbers)
        np.save(place / "soft_scores.npy", scores)
    if all(one.choices for one in data):
        most = max(len(one.choices) for one in data)
        choices = np.zeros((len(data), most, inputs.choice_length), small)
        right = np.full(len(data), -1, np.int16)
        for i, one in enumerate(data):
            choices[i, : len(one.choices)] = vocabulary.encode(one.choices, inputs.choice_length)
            plain = [plain_answer(choice) for choice in one.choices]
            if one.target is not None and plain_answer(one.target) in plain:
                right[i] = plain.index(plain_answer(one.target))
        np.save(place / "choices.npy", choices)
        np.save(place / "right_choice.npy", right)
    if any(one.group for one in data):
        groups: dict[str, int] = {}
        numbered = [groups.setdefault(one.group or f"\0{i}", len(groups)) for i, one in enumerate(data)]
        np.save(place / "group.npy", np.array(numbered, np.int32))
    if all(one.program for one in data):
        known: dict[int, NDArray[np.uint8]] = {}
        rows = []
        for one in data:
            # Rephrasings share the very program of their original.
            key = id(one.program)
            if key not in known:
                known[key] = encode_program(one.program or (), where=f"Question {one.id}")
            rows.append(known[key])
        np.save(place / "program.npy", np.stack(rows))


def _soft(data: Dataset, vocabulary: Vocabulary) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """VQA's scores min(people / 3, 1) of the answers that people gave."""
    numbers = np.full((len(data), _SOFT), -1, np.int32)
    scores = np.zeros((len(data), _SOFT), np.float32)
    for i, one in enumerate(data):
        given = Counter(number for text in _answers(one) if (number := vocabulary.answer_number(text)) >= 0)
        need = 3 if len(one.answers) >= 3 else 1
        for j, (number, count) in enumerate(given.most_common(_SOFT)):
            numbers[i, j], scores[i, j] = number, min(count / need, 1.0)
    return numbers, scores


def _by_picture(data: Dataset) -> tuple[list[Image | None], list[Mapping[str, Any]] | None, NDArray[np.int32]]:
    """Different images, their scenes (None if some have none), and the image of every question."""
    places: dict[str, int] = {}
    images: list[Image | None] = []
    scenes: list[Mapping[str, Any] | None] = []
    rows = np.zeros(len(data), np.int32)
    digests: dict[int, str] = {}
    for i, one in enumerate(data):
        if one.image is None:
            key = f"id:{one.image_id or one.id}"
        else:
            key = digests.setdefault(id(one.image), one.image.digest)
        if key not in places:
            places[key] = len(images)
            images.append(one.image)
            scenes.append(one.scene)
        rows[i] = places[key]
    known = [scene for scene in scenes if scene is not None]
    return images, known if len(known) == len(scenes) else None, rows


def _write_pictures(
    place: Path,
    images: Sequence[Image | None],
    backbone: Backbone,
    progress: Progress | None,
    split: str,
) -> None:
    there = [image for image in images if image is not None]
    live = isinstance(backbone, LiveBackbone)
    drawn = (backbone.extract(there[at : at + _CHUNK]) for at in range(0, len(there), _CHUNK))
    parts = drawn if live else _remembered(there, backbone, progress)
    dtype = np.uint8 if backbone.name == "pixels" else np.float16
    target = np.lib.format.open_memmap(place / "pictures.npy", "w+", dtype, (len(there), *backbone.shape))
    done = 0
    for part in parts:
        target[done : done + len(part)] = part
        done += len(part)
        if live and progress is not None:
            progress(f"images of {split}", done, len(there))
    target.flush()


def _remembered(images: Sequence[Image], backbone: Backbone, progress: Progress | None) -> Iterator[NDArray[Any]]:
    cache = FeatureCache(backbone)
    cache.add(images, progress)
    rows, stored = [cache.row(image) for image in images], cache.rows()
    yield from (stored[rows[start : start + _CHUNK]] for start in range(0, len(rows), _CHUNK))


def _regions(data: Dataset, rows: NDArray[np.int32], count: int, regions: RegionFeatures) -> NDArray[np.float16]:
    names = [""] * count
    for row, one in zip(rows.tolist(), data, strict=True):
        names[row] = names[row] or one.image_id
    found = [regions.get(name).features for name in names]
    for name, features in zip(names, found, strict=True):
        if np.abs(features).max() > np.finfo(np.float16).max:
            raise DataError(f"The region features of the image {name!r} are too large for fp16: scale them down.")
    padded = np.zeros((count, max(map(len, found)), regions.size), np.float16)
    for i, features in enumerate(found):
        padded[i, : len(features)] = features
    return padded
