"""The world that comes with the package: a seed, not files.

Scenes, questions and rephrasings are made when they are first asked for and kept in the cache; images are rendered when
somebody looks at them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pfungst import __version__
from pfungst.core import DataError, Dataset, Example
from pfungst.core.files import cache_root, write_atomic
from pfungst.core.fingerprint import fingerprint
from pfungst.world.constants import DEFAULT_HEIGHT, DEFAULT_WIDTH
from pfungst.world.making import FORMAT, check_split, draw_scene
from pfungst.world.questions import Question, generate, load_templates
from pfungst.world.questions.generating import REPHRASINGS, check_phrasings
from pfungst.world.questions.template import HELDOUT, MIXED, TRAIN
from pfungst.world.renderers.raycast import SceneImage, compact, renderer_version

SCENES = 200
QUESTIONS_PER_SCENE = 2.5
"""Originals; with three rephrasings each, 200 scenes carry 2,000 questions."""

_ANSWER_TYPES = {"bool": "yes/no", "integer": "number"}


def embedded(
    scenes: int = SCENES,
    seed: int = 0,
    *,
    split: str = "val",
    rephrasings: int = REPHRASINGS,
    width: int = DEFAULT_WIDTH,
    height: int = DEFAULT_HEIGHT,
    cache: bool = True,
) -> Dataset:
    """The embedded CLEVR world: 200 scenes, 500 questions in 4 wordings each, with choices, scenes and programs.

    The same arguments give the same data set everywhere. `split="train"` gives other scenes, and rephrasings in the
    wordings of the training split only; every other split mixes in wordings that `train` never has.

    Ids tell the wordings apart: `q0012` is an original, `q0012.1` its first rephrasing, and `q0012.2h` one in held-out
    words; all three have the group `q0012`. Images are rendered on demand.

    Kept in the folder $PFUNGST_CACHE, else in the user's cache folder, unless `cache` is false.
    """
    for name, value in (("scenes", scenes), ("width", width), ("height", height)):
        if not isinstance(value, int) or value < 1:
            raise DataError(f"The embedded world needs {name} of at least 1, not {value!r}.")
    if not isinstance(seed, int) or seed < 0:
        raise DataError(f"The seed of the embedded world must be a whole number of at least 0, not {seed!r}.")
    check_split(split)
    templates = load_templates()
    phrasings = TRAIN if split == "train" else MIXED
    check_phrasings(templates, phrasings, rephrasings)
    key = [
        __version__,
        FORMAT,
        renderer_version(),
        templates.fingerprint,
        scenes,
        seed,
        split,
        rephrasings,
        width,
        height,
    ]
    name = hashlib.sha256(compact(key).encode()).hexdigest()
    path = cache_root() / "world" / f"{name[:32]}.json" if cache else None
    content = None if path is None else _read(path)
    if content is None:
        drawn = [draw_scene(i, split=split, seed=seed, width=width, height=height) for i in range(scenes)]
        counts = [int((i + 1) * QUESTIONS_PER_SCENE) - int(i * QUESTIONS_PER_SCENE) for i in range(scenes)]
        asked = generate(
            drawn,
            counts,
            rephrasings=rephrasings,
            phrasings=phrasings,
            templates=templates,
            split=split,
            seed=seed,
        )
        content = {"scenes": [one.to_json() for one in drawn], "questions": [one.to_json() for one in asked]}
        if path is not None:
            _keep(path, content)
    questions = [Question.from_json(one) for one in content["questions"]]
    examples = tuple(examples_of(content["scenes"], questions, width, height))
    return Dataset(
        "world",
        examples,
        metric="exact",
        fingerprint=fingerprint(examples),
        notes={"scenes": scenes, "seed": seed, "split": split, "originals": len({one.group for one in questions})},
    )


def examples_of(
    scenes: Sequence[Mapping[str, Any]], questions: Sequence[Question], width: int, height: int
) -> list[Example]:
    by_image = {scene["image_filename"]: (scene, SceneImage(scene, width, height)) for scene in scenes}
    examples: list[Example] = []
    original = -1
    for one in questions:
        original += one.index == one.group
        group = f"q{original:04d}"
        number = one.index - one.group
        scene, image = by_image[one.image_filename]
        examples.append(
            Example(
                id=f"{group}.{number}{'h' if one.phrasing_split == HELDOUT else ''}" if number else group,
                question=one.question,
                image=image,
                image_id=one.image_filename,
                answers=(one.answer,),
                target=one.answer,
                answer_type=_ANSWER_TYPES.get(one.answer_kind, "other"),
                question_type=one.kind,
                choices=one.choices,
                scene=scene,
                program=one.program,
                group=group,
                wording=one.phrasing_split,
            )
        )
    return examples


def _read(path: Path) -> dict[str, Any] | None:
    """The cached content; None where there is none or it does not have the bytes it was written with."""
    try:
        digest, _, body = path.read_bytes().partition(b"\n")
        if hashlib.sha256(body).hexdigest().encode() != digest:
            return None
        content: dict[str, Any] = json.loads(body)
        return content
    except (OSError, ValueError):
        return None


def _keep(path: Path, content: Mapping[str, Any]) -> None:
    body = compact(content).encode()
    try:
        write_atomic(path, hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    except OSError:
        # A cache that cannot be written costs seconds next time; it is no reason to fail.
        return
