"""VLMEvalKit: one TSV a data set, its images inside as base64.

    index             unique; from 1,000,000 up the same question with its options rotated (circular evaluation)
    image             base64 of an image, or the index of the row that holds it, or a Python list of either
    image_path        the file of the image, where the table does not hold it
    question, hint, A, B, C ..., answer (a letter, Yes or No, a text or a Python list of texts), category
    g_index           index of the row that is not rotated

The columns mean what they mean in other tables (`rows.py`). Images stay in the file until they are asked for.
"""

from __future__ import annotations

import ast
import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

from pfungst.core import BytesImage, DataError, Example, Image
from pfungst.data.formats.layouts import naturalbench
from pfungst.data.formats.rows import SEVERAL, ColumnOptions, Rows
from pfungst.data.images import StoredImage, from_base64, normal_path
from pfungst.data.job import Format, Found, Job
from pfungst.rows.fields import Bad, name, shown
from pfungst.rows.files import File
from pfungst.rows.json_records import MAX_RECORD
from pfungst.rows.tables import csv_rows
from pfungst.rows.vlmevalkit import CIRCLE, contrast_group

_LONGEST_INDEX = 64
"""A shorter text in `image` is the index of the row that holds the image."""
NATURALBENCH = "NaturalBench"
"""The data set whose options stand in the question."""
_PAIRED = ("MME", "MMVP", "NaturalBenchDataset", "HallusionBench")
"""Data sets made of contrast groups."""
_MARKS = frozenset({"image", "image_path", "A", "answer", "category"})

Place = tuple[int, int]
"""First byte of a row, and the one behind its last."""


class VlmEvalKit(Format):
    """A TSV of VLMEvalKit. Each file is a split named after it."""

    name = "vlmevalkit"
    title = "VLMEvalKit TSV"
    expects = "NAME.tsv with the columns index and question, and A, B ..., answer, image or image_path"
    options = ColumnOptions
    endings = frozenset({".tsv"})

    def claims(self, file: File, head: str) -> float:
        columns = {column.strip().strip('"') for column in head.partition("\n")[0].rstrip("\r").split("\t")}
        return 0.6 if {"index", "question"} <= columns and len(_MARKS & columns) > 1 else 0.0

    def read(self, job: Job) -> Iterator[Found]:
        splits = {file.stem: file for file in reversed(job.sorted(".tsv"))}
        if not splits:
            raise self.nothing(job, "there is no TSV in it.")
        chosen = job.choose(sorted(splits))
        job.name = "+".join(chosen)
        rows = Rows(job)
        tables = (_Table(splits[split], job) for split in job.in_turn(chosen))
        yield from rows.settled(
            example
            for table in tables
            for count, (number, row, place) in enumerate(csv_rows(table.file, rows.expect))
            for example in job.example((table.file, number), table.example, rows, count, number, row, place)
        )


def _plain(index: str) -> str:
    """42 and 42.0 are one index."""
    index = index.strip()
    return index[:-2] if index.endswith(".0") and index[:-2].isdecimal() else index


def first_of(cell: str, job: Job) -> str:
    """The cell, or the first item where it is the text of a Python list. Read as a literal; nothing is evaluated."""
    if not cell.lstrip().startswith("["):
        return cell
    try:
        items = ast.literal_eval(cell.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise Bad(f"the images {shown(cell)} are not a list.") from None
    if not isinstance(items, list) or not items or not all(isinstance(item, str | int) for item in items):
        raise Bad(f"the images {shown(cell)} are not a list of texts.")
    if len(items) > 1:
        job.count(SEVERAL)
    return str(items[0])


class _Table:
    """One file. A first look tells where its images are, and which of its questions are rotated."""

    def __init__(self, file: File, job: Job) -> None:
        self.file, self._job = file, job
        self._places: dict[str, Place] = {}
        """Index of a row that holds an image -> where it stands."""
        self._images: dict[Place, Image] = {}
        numbers: set[int] | None = set()
        for _, row, place in csv_rows(file):
            index = "" if isinstance(row, Bad) else _plain(row.get("index", ""))
            if index and not isinstance(row, Bad) and len(row.get("image", "")) > _LONGEST_INDEX:
                self._places[index] = place
            if not index.isdecimal() and not isinstance(row, Bad):
                numbers = None
            elif numbers is not None:
                numbers.add(int(index or 0))
        copied = {number % CIRCLE for number in numbers or () if number >= CIRCLE}
        # large numbers without an original are only large numbers
        self._circular = copied if copied <= (numbers or set()) else set()

    def example(self, rows: Rows, count: int, number: int, row: dict[str, str] | Bad, place: Place) -> Example:
        """The example of a row, the `count`-th of the table, in line `number` of the file."""
        if isinstance(row, Bad):
            raise row
        if "index" not in row:
            raise Bad('"index" is empty.')
        cell = row.pop("image", "")
        image = self._image(cell, place) if cell else None
        named = first_of(row.pop("image_path", ""), self._job)
        if named:
            row["image_id"] = normal_path(named) if not named.startswith("/") else named.rpartition("/")[2]
            if image is None:
                self._job.image_column = "image_path"
                # an absolute path is that of another machine: the name of the file is what counts
                image = self._job.images.at(row["image_id"])
        stem = self.file.stem
        of_naturalbench = stem.startswith(NATURALBENCH)
        asked = naturalbench({**row, "question_type": row.get("type", "")}) if of_naturalbench else row
        example = rows.example(asked, str(number), image)
        data = stem.removesuffix("_local")
        contrast = example.contrast
        if not contrast and data in _PAIRED:
            contrast = contrast_group(data, example.id, example.image_id, count)
        return replace(example, group=self._group(row), contrast=contrast)

    def _group(self, row: Mapping[str, str]) -> str:
        """The question that a circular evaluation asks again with its options rotated; it is part of its own group."""
        if given := row.get("g_index"):
            return name(_plain(given), '"g_index"')
        original = int(_plain(row["index"])) % CIRCLE if self._circular else -1
        return str(original) if original in self._circular else ""

    def _image(self, cell: str, place: Place) -> Image:
        """The image in a cell, or the one in the row that the cell names."""
        cell = first_of(cell, self._job)
        if len(cell) > _LONGEST_INDEX:
            return self._kept(from_base64(cell), place)
        index = _plain(cell)
        try:
            place = self._places[index]
            return (
                self._images[place]
                if place in self._images
                else self._kept(BytesImage(_fetch(self._source, *place)), place)
            )
        except (KeyError, DataError):
            raise Bad(f"the image is that of row {shown(index)}, which holds none.") from None

    def _kept(self, image: BytesImage, place: Place) -> Image:
        """The image as one that is read from the file again when it is needed."""
        return self._images.setdefault(place, StoredImage(partial(_fetch, self._source, *place), [image.digest]))

    @cached_property
    def _source(self) -> Path | io.BytesIO:
        return self.file.random_access()


def _fetch(source: Path | io.BytesIO, start: int, end: int) -> bytes:
    """The image of the row between two bytes of a file."""
    try:
        with source.open("rb") if isinstance(source, Path) else io.BytesIO(source.getbuffer()) as file:
            header = next(csv.reader([file.readline(MAX_RECORD).decode("utf-8-sig")], delimiter="\t"))
            file.seek(start)
            text = file.read(end - start).decode("utf-8", "surrogateescape")
        row = next(csv.reader((line + "\n" for line in text.split("\n")), delimiter="\t"))
        if len(row) != len(header):  # a quotation mark is only text
            row = text.rstrip("\r\n").split("\t")
        cell = row[[column.strip() for column in header].index("image")]
        items = ast.literal_eval(cell.strip()) if cell.lstrip().startswith("[") else [cell]
        return from_base64(items[0]).data
    except (OSError, ValueError, IndexError, SyntaxError, StopIteration, Bad) as error:
        name = source if isinstance(source, Path) else "packed table"
        raise DataError.at(name, f"byte {start}", "the image cannot be read again.", "Was the file changed?") from error
