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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
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

CIRCLE = 1_000_000
"""Rotation r of a question has the index of the original plus r times this."""
_LONGEST_INDEX = 64
"""A shorter text in `image` is the index of the row that holds the image."""
NATURALBENCH = "NaturalBench"
"""The data set whose options stand in the question."""
_MARKS = frozenset({"image", "image_path", "A", "answer", "category"})

Row = dict[str, str]
Cell = Callable[[], Image]
"""Gives the image of one row."""


class VlmEvalKit(Format):
    """A TSV of VLMEvalKit. Each file is a split named after it."""

    name = "vlmevalkit"
    title = "VLMEvalKit TSV"
    expects = "NAME.tsv with the columns index and question, and A, B ..., answer, image or image_path"
    options = ColumnOptions

    def claims(self, file: File, head: str) -> float:
        if file.suffix != ".tsv":
            return 0.0
        columns = {column.strip().strip('"') for column in head.partition("\n")[0].rstrip("\r").split("\t")}
        return 0.6 if {"index", "question"} <= columns and len(_MARKS & columns) > 1 else 0.0

    def read(self, job: Job) -> Iterator[Found]:
        splits = {file.stem: file for file in sorted(job.files, reverse=True) if file.suffix == ".tsv"}
        if not splits:
            raise self.nothing(job, "there is no TSV in it.")
        chosen = job.choose(sorted(splits))
        job.name = "+".join(chosen)
        rows = Rows(job)
        for split in job.in_turn(chosen):
            tsv = _Table(splits[split], job)
            for place, (number, row, cell) in enumerate(tsv.rows(rows.expect)):
                yield from job.example((tsv.file, number), tsv.example, rows, place, number, row, cell)


def _circular(file: File) -> frozenset[int]:
    """The questions of a circular evaluation that stand there again with rotated options."""
    numbers = set()
    for _, row, _ in csv_rows(file):
        index = "" if isinstance(row, Bad) else _plain(row.get("index", ""))
        if not index.isdecimal() and not isinstance(row, Bad):
            return frozenset()
        numbers.add(int(index or 0))
    copied = {number % CIRCLE for number in numbers if number >= CIRCLE}
    # large numbers without an original are only large numbers
    return frozenset(copied) if copied <= numbers else frozenset()


def _group(row: Mapping[str, str], circular: frozenset[int]) -> str:
    """The question that a circular evaluation asks again with rotated options; the original is part of its group."""
    if given := row.get("g_index"):
        return name(_plain(given), '"g_index"')
    index = _plain(row["index"])
    return str(int(index) % CIRCLE) if circular and int(index) % CIRCLE in circular else ""


def _contrast(name: str, example: Example, place: int) -> str:
    """The contrast group, which these tables tell by their name and the order of their rows alone."""
    if example.contrast:
        return example.contrast
    match name.removesuffix("_local"):
        case "MME":  # two questions an image
            return example.image_id
        case "MMVP":  # one question on two images
            return str(place // 2)
        case "NaturalBenchDataset":  # two questions on two images
            return str(place // 4)
        case "HallusionBench":  # category, subcategory, with image or not, set, figure, question
            parts = example.id.split("_")
            return "_".join((*parts[:2], parts[3])) if len(parts) == 6 else ""
    return ""


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
    """One file, and where its images are."""

    def __init__(self, file: File, job: Job) -> None:
        self.file, self._job = file, job
        self._circular = _circular(file)
        self._images: dict[str, Image] = {}
        self._searched = False

    def rows(
        self, named: Callable[[Sequence[str]], None] | None = None
    ) -> Iterator[tuple[int, Row | Bad, Cell | None]]:
        for number, row, place in csv_rows(self.file, named):
            if isinstance(row, Bad):
                yield number, row, None
                continue
            text = row.pop("image", "")
            cell: Cell | None = cache(partial(self._image, text, place)) if text else None
            if cell is not None and "index" in row and len(text) > _LONGEST_INDEX and not self._searched:
                with suppress(Bad):  # reported with its own row
                    self._images[_plain(row["index"])] = cell()
            yield number, row, cell

    def example(self, rows: Rows, place: int, number: int, row: Row | Bad, cell: Cell | None) -> Example:
        """The example of a row, the `place`-th of the table, in line `number` of the file."""
        if isinstance(row, Bad):
            raise row
        if "index" not in row:
            raise Bad('"index" is empty.')
        image = cell() if cell is not None else None
        named = first_of(row.pop("image_path", ""), self._job)
        if named:
            row["image_id"] = normal_path(named) if not named.startswith("/") else named.rpartition("/")[2]
            if image is None:
                self._job.image_column = "image_path"
                # an absolute path is that of another machine: the name of the file is what counts
                image = self._job.images.at(row["image_id"])
        inside = self.file.stem.startswith(NATURALBENCH)
        asked = naturalbench({**row, "question_type": row.get("type", "")}) if inside else row
        example = rows.example(asked, str(number), image)
        contrast = _contrast(self.file.stem, example, place)
        return replace(example, group=_group(row, self._circular), contrast=contrast)

    def _image(self, text: str, place: tuple[int, int]) -> Image:
        text = first_of(text, self._job)
        if len(text) <= _LONGEST_INDEX:
            return self._of_index(_plain(text))
        return self._late(_decoded(text), place)

    def _of_index(self, index: str) -> Image:
        """The image that another row holds, before this one or behind it."""
        if index not in self._images and not self._searched:
            for _ in self.rows():
                pass
            self._searched = True
        if index not in self._images:
            raise Bad(f"the image is that of row {shown(index)}, which holds none.")
        return self._images[index]

    def _late(self, image: BytesImage, place: tuple[int, int]) -> Image:
        """An image that is read from the file again when it is needed; kept in memory where the file is packed."""
        path = self.file.random_access() if not self.file.member and self.file.preference == 0 else None
        if not isinstance(path, Path):
            return image
        return StoredImage(partial(_fetch, path, *place), [image.digest])


def _decoded(text: str) -> BytesImage:
    return from_base64(text.partition(",")[2] if text.startswith("data:") else text)


def _fetch(path: Path, start: int, end: int) -> bytes:
    try:
        with path.open("rb") as file:
            header = next(csv.reader([file.readline(MAX_RECORD).decode("utf-8-sig")], delimiter="\t"))
            file.seek(start)
            text = file.read(end - start).decode("utf-8", "surrogateescape")
        row = next(csv.reader((line + "\n" for line in text.split("\n")), delimiter="\t"))
        if len(row) != len(header):  # a quotation mark is only text
            row = text.rstrip("\r\n").split("\t")
        cell = row[[column.strip() for column in header].index("image")]
        items = ast.literal_eval(cell.strip()) if cell.lstrip().startswith("[") else [cell]
        return _decoded(items[0]).data
    except (OSError, ValueError, IndexError, SyntaxError, StopIteration, Bad) as error:
        raise DataError.at(path, f"byte {start}", "the image cannot be read again.", "Was the file changed?") from error
