"""Files that list images, each with its questions: Visual Genome and Visual7W."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pfungst.core import Example
from pfungst.data.job import Format, Found, Job
from pfungst.rows.fields import items, record
from pfungst.rows.files import File
from pfungst.rows.json_records import JsonRecords

Image = Mapping[str, Any]
"""The record of an image."""


def find_file(job: Job, format_: Format, of_name: Callable[[str], bool]) -> File:
    """The file whose name without ending is right; any other JSON file where there is none."""
    files = [file for file in job.files if file.suffix == ".json"]
    files = [file for file in files if of_name(file.stem.lower())] or files
    if not files:
        raise format_.nothing(job, f"there is no {format_.title} file in it.")
    return min(files, key=lambda file: (file.preference, file))


def read_pairs(
    job: Job,
    reader: JsonRecords,
    pictures: str,
    pairs: str,
    make: Callable[[Job, Image, Mapping[str, Any]], Example],
    wanted: Callable[[Image], bool] = lambda image: True,
) -> Iterator[Found]:
    """An example of every question in the list `pairs` of every wanted record in the list `pictures`."""

    def questions(value: object) -> tuple[Image, list[Any]]:
        image = record(value)
        asked = items(image.get(pairs), f'"{pairs}"')
        return image, asked if wanted(image) else []

    for image, asked in job.each(reader, pictures, questions):
        for pair in asked:
            yield from job.example(reader, lambda image, pair: make(job, image, record(pair)), image, pair)
