"""Answers with notes or tags as a data set that `pfungst examine --data tagged.jsonl` reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pfungst.core import Image, PfungstError
from pfungst.probes import probe_again
from pfungst.report.page import data_url
from pfungst.web.moves import moved_scene
from pfungst.web.notes import Note
from pfungst.web.runs import NotHere, RunFolder
from pfungst.web.site import Site

_FEW = 5000
"""Examples of a data set that a probe goes through once more to find an image it showed."""


def tagged_lines(site: Site, tag: str = "") -> Iterator[str]:
    """One line of JSON for each answer with a note or tag: the question as it was put, with its image inside.

    An answer whose run or image is gone is left out: another image would make it another question.
    """
    for note in site.notes.all(tag):
        row = _row(site, note)
        if row is not None:
            yield json.dumps(row, ensure_ascii=False) + "\n"


def _row(site: Site, note: Note) -> dict[str, Any] | None:
    place = note.place
    try:
        run = site.runs.get(place.run)
    except NotHere:
        return None
    row = site.index.row(run, place)
    if row is None:
        return None
    example = site.pictures.example(run, place.example_id)
    image, scene = shown_image(site, run, row)
    if image is None and row["image"]:
        return None
    found: dict[str, Any] = {
        "id": f"{place.run}/{place.probe}/{place.example_id}/{place.variant}",
        "question": row["question"],
        "image_id": row["image_id"],
        "target": row["target"],
        "answers": list(example.answers) if example is not None and row["target"] == example.target else [],
        "choices": row["choices"],
        "answer_type": row["answer_type"],
        "question_type": row["question_type"],
        "scene": scene,
        "program": example.program if example is not None and row["question"] == example.question else None,
        "tags": list(note.tags),
        "note": note.note,
        "said": row["reply"],
    }
    if image is not None:
        found["image"] = _data_url(image)
    return {name: value for name, value in found.items() if value not in (None, "", [], ())}


def shown_image(site: Site, run: RunFolder, row: dict[str, Any]) -> tuple[Image | None, dict[str, Any] | None]:
    """The very image that was shown, by its digest, and its scene; (None, None) where it cannot be had again."""
    example = site.pictures.example(run, row["example_id"])
    if example is None or not row["image"]:
        return None, None
    if example.image is not None and example.image.digest == row["image"]:
        return example.image, None if example.scene is None else dict(example.scene)
    moved = moved_scene(run, row["example_id"]) if row["probe"] == "game" else None
    if moved is not None and row["variant"] == "moved":
        return moved.image("after"), dict(moved.after)
    if row["probe"] == "game":  # the scene as it stands, drawn by the game
        return example.image, None if example.scene is None else dict(example.scene)
    return _variant_image(site, run, row), None


def _variant_image(site: Site, run: RunFolder, row: dict[str, Any]) -> Image | None:
    """The image of a variant, made again by its probe: trials are a pure function of data and seed."""
    try:
        config = run.config()
        about = next(one for one in config["probes"] if one["name"] == row["probe"])
        probe = probe_again(about["name"], about["settings"])
        data = site.pictures.data(run)
        example = next(one for one in data if one.id == row["example_id"])
        for part in (data.subset([example]), *([probe.sees(data)] if len(data) <= _FEW else [])):
            for trial in probe.trials(part, config["seed"]):
                if trial.example_id == example.id:
                    for variant in trial.variants:
                        image: Image | None = variant.query.image
                        if variant.name == row["variant"] and image is not None and image.digest == row["image"]:
                            return image
                    break
    except (PfungstError, StopIteration, KeyError, TypeError, ValueError):
        return None
    return None


def _data_url(image: Image) -> str:
    content = image.read()
    kinds = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp", b"BM": "bmp"}
    kind = next((name for start, name in kinds.items() if content.startswith(start)), "png")
    return data_url(f"image/{kind}", content)
