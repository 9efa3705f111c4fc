"""The shorthand our own template files are written in, spelled out.

- `<D2>` stands for `<Z2> <C2> <M2> <S2>`, in texts and in side inputs.
- `"each": [{"A": "size", "P": "Z"}, ...]` makes one family of every entry, with `$A` and `${P}` filled in everywhere;
  an entry's `family` says its place in the file.
- `"text": {"train": [...], "heldout": [...]}` splits the phrasings. An entry `{"frames": NAME, "@": PHRASE}` takes the
  frames of that name and split from `frames.json` and puts PHRASE for `@`; `#` stands for a plural.

A published template uses none of these and comes out as it went in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from string import Template as Dollar
from typing import Any

from pfungst.core import DataError
from pfungst.world.questions.template import SPLITS, TRAIN

Frames = Mapping[str, Mapping[str, list[str]]]

_DESCRIPTION = re.compile(r"<D(\d*)>")
_SLOT = re.compile(r"[@#]\d?")


def expand(records: list[Any], frames: Frames, file: str) -> list[tuple[int, dict[str, Any]]]:
    """All families of a file: (place in the file as authored, template in the published shape plus `split`)."""
    families: list[tuple[int, int, dict[str, Any]]] = []
    for authored, record in enumerate(records):
        where = f"template {authored}"
        if not isinstance(record, dict):
            raise DataError.at(file, where, f"a template must be an object, not {type(record).__name__}.")
        for variables in _variants(record, file, where):
            plain = _fill({key: value for key, value in record.items() if key != "each"}, variables, file, where)
            texts, splits = _texts(plain.get("text"), variables, frames, file, where)
            place = variables.get("family", len(families))
            families.append((place, authored, {**plain, "text": texts, "split": splits}))
    if sorted(place for place, _, _ in families) != list(range(len(families))):
        raise DataError.at(file, "", "the family numbers are not 0, 1, 2, ... without gaps and repeats.")
    return [(authored, record) for _, authored, record in sorted(families, key=lambda one: one[0])]


def describe(text: str) -> str:
    return _DESCRIPTION.sub(r"<Z\1> <C\1> <M\1> <S\1>", text)


def _variants(record: Mapping[str, Any], file: str, where: str) -> list[dict[str, Any]]:
    each = record.get("each", [{}])
    if not isinstance(each, list) or not each or not all(isinstance(one, dict) for one in each):
        raise DataError.at(file, where, "`each` must be a list of objects.")
    return each


def _fill(value: Any, variables: Mapping[str, Any], file: str, where: str) -> Any:
    if isinstance(value, str):
        if "$" not in value:
            return value
        try:
            return Dollar(value).substitute(variables)
        except (KeyError, ValueError) as error:
            raise DataError.at(file, where, f"{value!r} has a variable that `each` does not set ({error}).") from error
    if isinstance(value, list):
        return [_fill(one, variables, file, where) for one in value]
    if isinstance(value, dict):
        return {key: _fill(one, variables, file, where) for key, one in value.items()}
    return value


def _texts(
    given: Any, variables: Mapping[str, Any], frames: Frames, file: str, where: str
) -> tuple[list[str], list[str]]:
    by_split = {TRAIN: given} if isinstance(given, list) else given
    if not isinstance(by_split, dict) or not by_split:
        raise DataError.at(file, where, "it needs `text`: a list of phrasings, or one list per split.")
    texts: list[str] = []
    splits: list[str] = []
    for split, entries in by_split.items():
        if split not in SPLITS or not isinstance(entries, list):
            raise DataError.at(
                file, where, f"`text` has {split!r}; it may have lists of phrasings for {' and '.join(SPLITS)}."
            )
        for entry in entries:
            for text in _phrases(entry, split, frames, file, where):
                texts.append(describe(_fill(text, variables, file, where)))
                splits.append(split)
    if not texts:
        raise DataError.at(file, where, "it has no phrasing.")
    return texts, splits


def _phrases(entry: Any, split: str, frames: Frames, file: str, where: str) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
        return
    if not isinstance(entry, dict) or not isinstance(entry.get("frames"), str):
        raise DataError.at(file, where, f"a phrasing must be a text or name its `frames`, not {entry!r}.")
    name = entry["frames"]
    if name not in frames:
        raise DataError.at(file, where, f"there are no frames called {name!r} in frames.json.")
    for frame in frames[name][split]:
        missing = [slot for slot in _SLOT.findall(frame) if slot not in entry]
        if missing:
            raise DataError.at(file, where, f"the frame {frame!r} of {name} needs a phrase for {missing[0]!r}.")
        text = _SLOT.sub(lambda found: str(entry[found.group()]), frame)
        yield re.sub(r"\b([Aa]) other\b", lambda found: f"{found.group(1)}nother", text)
