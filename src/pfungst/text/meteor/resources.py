"""The lists METEOR 1.5 matches words with, read from the installed pycocoevalcap.

Its jar holds function words, abbreviations and WordNet synonyms; beside it lies a table of 5.3 million English
paraphrases. The table is read once and kept as arrays in the cache folder.
"""

from __future__ import annotations

import importlib.util
import zipfile
from dataclasses import dataclass
from functools import cached_property, lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core import MissingExtra, PfungstError, Progress
from pfungst.core.files import cache_dir, write_atomic
from pfungst.text.meteor.text import read_prefixes

Ints = npt.NDArray[np.int32]
JAR = "meteor-1.5.jar"
TABLE = Path("data") / "paraphrase-en.gz"
LAYOUT = 1
"""Goes up when the cached arrays change their meaning."""
_ENDINGS = (
    ("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y"),
    ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", ""), ("er", ""), ("est", ""), ("er", "e"),
    ("est", "e"),
)  # fmt: skip
"""WordNet's rules of detachment, in the order in which they are tried."""


@dataclass(frozen=True)
class Lists:
    """What the jar holds."""

    function_words: frozenset[str]
    prefixes: dict[str, int]
    """Abbreviations, and when they keep their full stop."""
    synsets: dict[str, str]
    """Word -> numbers of its synsets, separated by spaces."""
    bases: dict[str, list[str]]
    """Irregular form -> base forms."""

    def synsets_of(self, word: str) -> frozenset[int]:
        """Synsets of the word as it stands and of its base form. Words that share one are synonyms."""
        bases = self.bases.get(word) or [self._base(word)]
        return frozenset(int(number) for form in (word, *bases) for number in self.synsets.get(form, "").split())

    def _base(self, word: str) -> str:
        if word.endswith("ss") or len(word) < 3:
            return word
        for ending, other in _ENDINGS:
            if word.endswith(ending) and (form := word[: -len(ending)] + other) in self.synsets:
                return form
        return ""


@dataclass(frozen=True)
class Paraphrases:
    """Pairs of phrases in the order of the file: `phrase_from[i]` may be said as `phrase_to[i]`."""

    letters: npt.NDArray[np.uint8]
    """All words in UTF-8, each followed by a line feed."""
    words: Ints
    """Phrase p is `words[starts[p]:starts[p + 1]]`."""
    starts: npt.NDArray[np.int64]
    phrase_from: Ints
    phrase_to: Ints

    @cached_property
    def vocabulary(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.letters.tobytes().decode("utf-8").split("\n")[:-1])}


def folder() -> Path:
    """Where METEOR lies; MissingExtra where it is not installed."""
    try:
        found = importlib.util.find_spec("pycocoevalcap")
    except (ImportError, ValueError):
        found = None
    if found is None or not found.submodule_search_locations:
        raise MissingExtra("METEOR", "meteor")
    home = Path(found.submodule_search_locations[0]) / "meteor"
    for part in (home / JAR, home / TABLE):
        if not part.is_file():
            raise PfungstError(f"METEOR's file {part} is missing: reinstall pycocoevalcap.")
    return home


@lru_cache(maxsize=1)
def lists() -> Lists:
    with zipfile.ZipFile(folder() / JAR) as jar:

        def read(name: str) -> str:
            return jar.read(name).decode("utf-8")

        bases: dict[str, list[str]] = {}
        exceptions = read("synonym/english.exceptions").splitlines()
        for base, forms in zip(exceptions[::2], exceptions[1::2], strict=True):
            for form in forms.split():
                bases.setdefault(form, []).append(base)
        synsets = read("synonym/english.synsets").splitlines()
        return Lists(
            frozenset(read("function/english.words").splitlines()),
            read_prefixes(read("nonbreaking/english.prefixes")),
            dict(zip(synsets[::2], synsets[1::2], strict=True)),
            bases,
        )


def paraphrases(progress: Progress) -> Paraphrases:
    """The table, from the cache folder; the first time it is read from the published file (some seconds)."""
    source = folder() / TABLE
    with source.open("rb") as file:
        file.seek(-8, 2)
        # A gzip file ends with the check sum and length of its content.
        name = f"paraphrases-{LAYOUT}-{file.read(8).hex()}.npz"
    kept = cache_dir("meteor") / name
    if not kept.is_file():
        progress("reading the paraphrases of METEOR, once", 0, 1)
        buffer = BytesIO()
        np.savez(buffer, **_read_table(source))
        write_atomic(kept, buffer.getvalue())
        progress("reading the paraphrases of METEOR, once", 1, 1)
    return _load(kept)


@lru_cache(maxsize=1)
def _load(kept: Path) -> Paraphrases:
    try:
        with np.load(kept, allow_pickle=False) as arrays:
            return Paraphrases(**{key: arrays[key] for key in arrays.files})
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise PfungstError(f"{kept} cannot be read ({error}); delete it; it will be made again.") from error


def _read_table(source: Path) -> dict[str, Any]:
    """A record of the file is three lines: a probability and two phrases."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pc_csv

    try:
        lines = pc_csv.read_csv(
            source,
            read_options=pc_csv.ReadOptions(column_names=["line"], block_size=1 << 24),
            # No line holds this character, so a line is one cell.
            parse_options=pc_csv.ParseOptions(delimiter="\x01", quote_char=False, ignore_empty_lines=False),
            convert_options=pc_csv.ConvertOptions(column_types={"line": pa.string()}, strings_can_be_null=False),
        )["line"]
    except (OSError, pa.ArrowInvalid) as error:
        raise PfungstError(f"{source} cannot be read ({error}): reinstall pycocoevalcap.") from error
    if len(lines) % 3:
        raise PfungstError(f"{source} ends in the middle of a record: reinstall pycocoevalcap.")
    phrases = lines.filter(pa.array(np.arange(len(lines)) % 3 > 0)).combine_chunks().dictionary_encode()
    parts = pc.ascii_split_whitespace(phrases.dictionary)
    words = parts.values.dictionary_encode()
    pairs = phrases.indices.to_numpy().reshape(-1, 2)
    return {
        "letters": np.frombuffer("".join(f"{word}\n" for word in words.dictionary.to_pylist()).encode(), np.uint8),
        "words": words.indices.to_numpy(),
        "starts": parts.offsets.to_numpy().astype(np.int64),
        "phrase_from": np.ascontiguousarray(pairs[:, 0]),
        "phrase_to": np.ascontiguousarray(pairs[:, 1]),
    }
