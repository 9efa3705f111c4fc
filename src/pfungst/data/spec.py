"""What a user writes to name a data set: `[format:]place[#split][?option=value&...]`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl

from pfungst.core import DataError
from pfungst.core.files import exists
from pfungst.data.formats import FORMATS


@dataclass(frozen=True, slots=True)
class Spec:
    """A parsed specification."""

    place: str
    format: str = ""
    """Empty: to be recognised from the files."""
    split: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


def parse(spec: str | os.PathLike[str]) -> Spec:
    """Take a specification apart. A text that names an existing path is that path, whatever characters it holds."""
    text = os.fspath(spec)
    if not text or text.isspace():
        raise DataError("The data set is not named: give a path, or a format and a path such as vqa:FOLDER.")
    if isinstance(spec, Path) or exists(text):
        return Spec(text)
    names = FORMATS.names()
    bare = text.partition("#")[0].partition("?")[0]
    head, colon, _ = bare.partition(":")
    known = head if head in names and (colon or not _reads_files(head)) else ""
    rest = text[len(head) + len(colon) :] if known else text
    if known and exists(rest):
        return Spec(rest, known)
    if colon and not known and len(head) > 1 and "/" not in head and os.sep not in head:
        FORMATS.get(head)  # says which formats there are, and which was probably meant
    place, question, query = rest.partition("?")
    place, mark, split = place.partition("#")
    if "#" in query:
        query, mark, split = query.partition("#")
    try:
        options = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=True)) if question and query else {}
    except ValueError as error:
        raise DataError(
            f"The options of {text!r} cannot be read ({error}); write them as ?name=value&name=value."
        ) from error
    return Spec(place, known, split if mark else None, options)


def _reads_files(name: str) -> bool:
    from pfungst.data.formats import get_format

    return get_format(name).reads_files
