"""CLEVR: rendered scenes, generated questions, and the functional program behind every answer.

`questions/CLEVR_val_questions.json`: {"questions": [{"question_index": 0, "image_index": 0, "image_filename":
    "CLEVR_val_000000.png", "question": "...", "answer": "yes", "program": [{"function": "scene", "inputs": [],
    "value_inputs": []}, ...]}]}. `scenes/CLEVR_val_scenes.json`: {"scenes": [{"image_index": 0, "objects": [...]}]}.
The question generator writes `type` for `function`, `side_inputs` for `value_inputs`, and answers that are no texts;
both spellings load, as that of the release. One file may hold both lists, the scenes first. `pfungst world make` adds
`template_kind` (read as question type), `choices`, `phrasing_split` (read as wording: `train` or `heldout`), and
`group`, the question_index of the original of a rephrasing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from pfungst.core import DataError, Example, Image
from pfungst.data.images import ImageFinder
from pfungst.data.job import Format, Found, Job, canonical
from pfungst.rows.fields import (
    Bad,
    Programs,
    Scene,
    answer_text,
    answer_type,
    checked_scene,
    kind,
    name,
    optional_text,
    record,
    text,
)
from pfungst.rows.files import File, Listing, list_place
from pfungst.rows.json_records import JsonRecords

_QUESTIONS = re.compile(r"(?:CLEVR_)?(\w+?)_questions(?:_\w+)?|questions", re.IGNORECASE)
_SCENES = re.compile(r"(?:CLEVR_)?(\w+?)_scenes(?:_\w+)?|scenes", re.IGNORECASE)


@dataclass(frozen=True)
class ClevrOptions:
    """What the examples carry."""

    scenes: bool = True
    """Give every example its scene, if there is a scenes file next to the questions."""
    render: bool = False
    """Render images from the scenes when they are needed, instead of reading image files."""


class Clevr(Format):
    """CLEVR. If there is a scenes file next to the questions, every example has its scene (`?scenes=no`: none).
    `?render=yes` renders the images from the scenes, as for a world made without images."""

    name = "clevr"
    title = "CLEVR"
    expects = "CLEVR_SPLIT_questions.json, with CLEVR_SPLIT_scenes.json if you want scenes"
    metric = "exact"
    endings = frozenset({".json"})
    options = ClevrOptions

    def claims(self, file: File, head: str) -> float:
        if file.stem.upper().startswith("CLEVR") and (_QUESTIONS.fullmatch(file.stem) or _SCENES.fullmatch(file.stem)):
            return 0.95
        if '"program"' in head and '"image_index"' in head:
            return 0.9
        return 0.6 if '"scenes"' in head and '"3d_coords"' in head else 0.0

    def read(self, job: Job) -> Iterator[Found]:
        splits = _by_split(job.files, _QUESTIONS)
        jsons = job.sorted(".json")
        if not splits and len(jsons) == 1 and not _SCENES.fullmatch(jsons[0].stem):
            splits = {"": jsons[0]}
        if not splits:
            raise DataError.at(
                job.place,
                "",
                "there are no CLEVR questions in it.",
                f"Expected: {self.expects}. To read only scenes, use pfungst.data.scenes.",
            )
        chosen = job.choose(list(splits))
        job.name = " ".join(filter(None, ["clevr", *chosen]))
        for split in job.in_turn(chosen):
            yield from self._read(job, splits[split], split, f"{split}-" if len(chosen) > 1 else "")

    def _read(self, job: Job, file: File, split: str, prefix: str) -> Iterator[Found]:
        programs = Programs()
        reader = JsonRecords(file)

        def asked(value: Any) -> tuple[dict[str, Any], str, int]:
            of = record(value)
            image = image_of(of)
            return _fields(job, of, programs, prefix, reader.number), image, reader.number

        questions = job.each(reader, "questions", asked)
        wanted: set[str] | None = None  # the first few questions need few scenes
        if job.limit is not None:
            few = list(islice(questions, job.limit))
            wanted, questions = {image for _, image, _ in few}, iter(few)
        known: dict[str, Scene] = {}
        if job.options.get("scenes", True):
            known = self._scenes(job, file, split, wanted)
        if job.options.get("render") and not known:
            raise DataError.at(
                job.place, "", "there are no scenes in it to render images from.", "Leave out ?render=yes."
            )
        rendered: dict[str, Image] = {}
        for fields, image, number in questions:
            scene = known.get(image)
            if known and scene is None:
                job.count("questions without a scene")
            try:
                if job.options.get("render") and scene is not None:
                    picture: Image | None = rendered.setdefault(image, _rendered(scene))
                else:
                    picture = job.images.named(image.rpartition(".")[0] or image, ".png", split)
                yield Example(**fields, image=picture, image_id=job.share(image), scene=scene), file, number
            except Bad as problem:
                job.bad(file, number, problem)

    def _scenes(self, job: Job, questions: File, split: str, wanted: set[str] | None) -> dict[str, Scene]:
        files = _by_split(job.companions, _SCENES)
        file = questions if '"scenes"' in questions.head() else files.get(split)
        if file is None and len(files) == 1 and not split:
            file = next(iter(files.values()))
        if file is None:
            return {}
        found: dict[str, Scene] = {}
        for image, scene in read_scenes(job, file):
            found[image] = scene
            if wanted is not None:
                wanted.discard(image)
                if not wanted:
                    break
        return found


def _fields(job: Job, of: Mapping[str, Any], programs: Programs, prefix: str, number: int) -> dict[str, Any]:
    """An example as far as the `number`-th question tells."""
    program = programs(of.get("program"))
    target = None if of.get("answer") is None else job.share(answer_text(of["answer"], '"answer"'))
    index = of.get("question_index")
    return {
        "id": prefix + (name(index, '"question_index"') if index is not None else str(number - 1)),
        "question": text(of, "question"),
        "answers": () if target is None else (target,),
        "target": target,
        "answer_type": answer_type(target),
        "question_type": optional_text(of, "template_kind") or (program[-1]["function"] if program else ""),
        "program": program,
        "choices": _choices(of.get("choices"), target),
        "group": "" if of.get("group") is None else prefix + name(of["group"], '"group"'),
        "wording": job.share(optional_text(of, "phrasing_split")),
    }


def scenes(path: str | os.PathLike[str], *, split: str | None = None, skip_bad: bool = False) -> dict[str, Scene]:
    """The scenes of a CLEVR scenes file (plain, .gz or .zip) or of a folder that holds one, by image name
    (`CLEVR_val_000000.png`), in published order."""
    place = Path(path)
    listing = list_place(place)
    if listing is None:
        raise DataError(f"There is no file or folder {str(place)!r}.")
    files = _by_split(listing.files, _SCENES)
    jsons = [file for file in listing.files if file.suffix == ".json"]
    if not files and len(jsons) == 1:
        files = {"": jsons[0]}
    if not files:
        raise DataError.at(place, "", "there are no CLEVR scenes in it.", "Expected: CLEVR_SPLIT_scenes.json.")
    job = Job(str(place), [], [], ImageFinder(Listing, []), split=split, skip_bad=skip_bad)
    found: dict[str, Scene] = {}
    for chosen in job.choose(list(files)):
        found.update(read_scenes(job, files[chosen]))
    return found


def read_scenes(job: Job, file: File) -> Iterator[tuple[str, Scene]]:
    """(image name, scene) of a file of scenes."""
    seen: set[str] = set()

    def named(value: object) -> tuple[str, Scene]:
        scene = checked_scene(value)
        image = image_of(scene)
        if image in seen:
            raise Bad(f"there is a second scene for {image}.")
        seen.add(image)
        return image, scene

    return job.each(JsonRecords(file), "scenes", named)


def _by_split(files: Sequence[File], pattern: re.Pattern[str]) -> dict[str, File]:
    found: dict[str, File] = {}
    for file in sorted(files):
        named = pattern.fullmatch(file.stem) if file.suffix == ".json" else None
        if named:
            found.setdefault(canonical(named[1] or ""), file)
    return found


def _rendered(scene: Scene) -> Image:
    from pfungst.world.constants import DEFAULT_HEIGHT, DEFAULT_WIDTH
    from pfungst.world.renderers.raycast import SceneImage

    width, height = scene.get("image_size") or (DEFAULT_WIDTH, DEFAULT_HEIGHT)
    return SceneImage(scene, int(width), int(height))


def image_of(of: Mapping[str, Any]) -> str:
    """The file name of an image; put together from split and index where it is not given."""
    filename = optional_text(of, "image_filename")
    if filename:
        return filename
    index = of.get("image_index")
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < 10**9:
        raise Bad('neither "image_filename" nor "image_index" names the image.')
    return f"CLEVR_{optional_text(of, 'split') or 'new'}_{index:06d}.png"


def _choices(value: object, target: str | None) -> tuple[str, ...]:
    """Options of a multiple choice, which the published files do not have and `pfungst world make` adds."""
    if value is None:
        return ()
    if not isinstance(value, list) or not value:
        raise Bad(f'"choices" is {kind(value)}, not a list of answers.')
    choices = tuple(answer_text(one, '"choices"') for one in value)
    if target is not None and target not in choices:
        raise Bad(f'the answer {target!r} is not among the "choices".')
    return choices
