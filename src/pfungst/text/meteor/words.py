"""The words METEOR 1.5 compares, their stems, and the lists it matches them with.

Words: METEOR's option -norm cuts the tokenised sentence once more. It takes hyphenated words apart, sets every other
sign apart, and decides for each full stop whether it belongs to its word.

Stems: the Porter2 ("Snowball English") stemmer; words of one stem match for 0.6 of a word. The stems are those of the
jar for every word of its synonym lists (`tests/text/test_meteor_parts.py`). Later releases of Snowball changed a few
rules, so a newer stemmer would not do. Algorithm: M. F. Porter, "Snowball: a language for stemming algorithms" (2001),
the English stemmer.

Lists: the jar in the installed pycocoevalcap holds function words, abbreviations and WordNet synonyms; beside it lies a
table of 5.3 million English paraphrases. The table is read once and kept as arrays in the cache folder.
"""

from __future__ import annotations

import importlib.util
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core import MissingExtra, PfungstError, Progress
from pfungst.core.files import cache_dir, write_atomic

_ALPHA = (
    "A-Za-z\u0160\u017d\u0161\u017e\u0178\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u017e\u0400-\u04ff\u0500-\u0527"
    "\ua640-\ua66e\ua67e-\ua697\u1d00-\u1d7f"
)
"""Latin and Cyrillic: letters of other alphabets count as signs there."""
_PLAIN = re.compile("[a-z0-9 ]*")
_SPACE = " \t\n\r\f\x0b"
_SIGN = re.compile(f"([^0-9{_ALPHA}{_SPACE}.'`,\\-\u2018\u2019])")
_DOTS = re.compile(r"\.\.+")
_COMMA = (re.compile("([^0-9]),([^0-9])"), re.compile("([0-9]),([^0-9])"), re.compile("([^0-9]),([0-9])"))
_DOUBLE_QUOTE = re.compile("[\u201c\u201d]|''")
_HYPHEN = re.compile(f"([0-9{_ALPHA}.])-([0-9{_ALPHA}])")
_LONE_QUOTE = (
    re.compile(f"([^{_ALPHA}])'([^{_ALPHA}])"),
    re.compile(f"([^{_ALPHA}0-9])'([{_ALPHA}])"),
    re.compile(f"([{_ALPHA}])'([^{_ALPHA}])"),
)
_CLITIC = (re.compile(f"([{_ALPHA}])'([{_ALPHA}])"), re.compile("([0-9])'(s)"))
_LETTER = re.compile(f"[{_ALPHA}]")
_ELLIPSIS = "D"
"""Stands for each of a row of full stops while single ones are looked at. Tokens are lower case: they hold no D."""
_BLANK = re.compile(f"[{_SPACE}\u2000-\u200a\u202f\u205f\u3000\u00a0]+")
ALWAYS, BEFORE_NUMBERS = 1, 2
"""When the full stop of an abbreviation stays with it."""


def read_prefixes(text: str) -> dict[str, int]:
    """Abbreviations from METEOR's list: one a line, comments behind #."""
    lines = [line.split() for line in text.splitlines()]
    return {
        line[0]: BEFORE_NUMBERS if line[1:2] == ["#NUMERIC_ONLY#"] else ALWAYS
        for line in lines
        if line and not line[0].startswith("#")
    }


def words_of(tokens: Sequence[str], prefixes: Mapping[str, int]) -> tuple[str, ...]:
    """The words that METEOR compares, from the tokens of `pfungst.text.tokenize`."""
    line = " ".join(tokens)
    if _PLAIN.fullmatch(line):  # nineteen in twenty questions
        return tuple(tokens)
    line = _SIGN.sub(r" \1 ", f" {line} ")
    line = _DOTS.sub(lambda row: f" {_ELLIPSIS * len(row.group())} ", line)
    # Each pattern takes the character on both sides, so every second of several neighbours stays: so in the jar.
    for pattern in _COMMA:
        line = pattern.sub(r"\1 , \2", line)
    line = re.sub("[`\u2018\u2019]", "'", line)
    line = _DOUBLE_QUOTE.sub(' " ', line)
    line = line.replace("\u2013", "-").replace("--", "-")
    line = _HYPHEN.sub(r"\1 \2", line)
    for pattern in _LONE_QUOTE:
        line = pattern.sub(r"\1 ' \2", line)
    for pattern in _CLITIC:
        line = pattern.sub(r"\1 '\2", line)
    parts = [word for word in _BLANK.split(line) if word]
    return tuple(_stops(parts, prefixes))


def _stops(parts: Sequence[str], prefixes: Mapping[str, int]) -> list[str]:
    words: list[str] = []
    for place, word in enumerate(parts):
        following = parts[place + 1][:1] if place + 1 < len(parts) else ""
        before = word[:-1]
        kind = prefixes.get(before)
        if len(word) < 2 or not word.endswith("."):
            words.append(word)
        elif "." in before and _LETTER.search(before):
            words.append(word.replace(".", ""))
        elif kind == ALWAYS or "a" <= following <= "z" or (kind == BEFORE_NUMBERS and "0" <= following <= "9"):
            words.append(word)
        else:
            words += [before, "."]
    return [word.replace(_ELLIPSIS, ".").lower() for word in words if word]


def java_hash(word: str) -> int:
    """METEOR compares words by Java's 32-bit hash codes, and takes words whose codes collide for the same."""
    code = 0
    units = word.encode("utf-16-le", "surrogatepass")
    for low, high in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + low + 256 * high) & 0xFFFFFFFF
    return code


_VOWELS = "aeiouy"
_WHOLE = {
    "skis": "ski", "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie", "idly": "idl", "gently": "gentl",
    "ugly": "ugli", "early": "earli", "only": "onli", "singly": "singl",
    **{word: word for word in ("sky", "news", "howe", "atlas", "cosmos", "bias", "andes")},
}  # fmt: skip
_SETTLED = frozenset({"inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed"})
"""Done once the plural is off."""
_REGION = re.compile(f"[{_VOWELS}][^{_VOWELS}]")
_SHORT_END = re.compile(f"(?:[^{_VOWELS}][{_VOWELS}][^{_VOWELS}wxY]|^[{_VOWELS}][^{_VOWELS}])$")
_LONG_BEGINNING = re.compile("gener|commun|arsen")
_DOUBLE = ("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt")
_STEP_2 = {
    "tional": "tion", "enci": "ence", "anci": "ance", "abli": "able", "entli": "ent", "izer": "ize", "ization": "ize",
    "ational": "ate", "ation": "ate", "ator": "ate", "alism": "al", "aliti": "al", "alli": "al", "fulness": "ful",
    "ousli": "ous", "ousness": "ous", "iveness": "ive", "iviti": "ive", "biliti": "ble", "bli": "ble", "ogi": "og",
    "fulli": "ful", "lessli": "less", "li": "",
}  # fmt: skip
_STEP_3 = {
    "tional": "tion", "ational": "ate", "alize": "al", "icate": "ic", "iciti": "ic", "ical": "ic", "ful": "",
    "ness": "", "ative": "",
}  # fmt: skip
_STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ism", "ate", "iti", "ous",
    "ive", "ize", "ion",
)  # fmt: skip


def stem(word: str) -> str:
    """The stem of a lower-case word."""
    if word in _WHOLE:
        return _WHOLE[word]
    if len(word) < 3:
        return word
    word = _mark(word.removeprefix("'"))
    long = _LONG_BEGINNING.match(word)
    first = long.end() if long else _after(word, 0)
    second = _after(word, first)
    word = _plural(word)
    if word in _SETTLED:
        return word.replace("Y", "y")
    word = _past(word, first)
    if len(word) > 2 and word[-1] in "yY" and word[-2] not in _VOWELS:
        word = word[:-1] + "i"
    word = _suffix(word, first, second)
    return word.replace("Y", "y")


def _mark(word: str) -> str:
    """A y that is a consonant (at the beginning, after a vowel) becomes Y."""
    out: list[str] = []
    for letter in word:
        consonant = letter == "y" and (not out or out[-1] in _VOWELS)
        out.append("Y" if consonant else letter)
    return "".join(out)


def _after(word: str, start: int) -> int:
    """Place behind the first consonant that follows a vowel."""
    match = _REGION.search(word, start)
    return match.end() if match else len(word)


def _longest(word: str, suffixes: tuple[str, ...] | dict[str, str]) -> str:
    return max((suffix for suffix in suffixes if word.endswith(suffix)), key=len, default="")


def _has_vowel(part: str) -> bool:
    return any(letter in _VOWELS for letter in part)


def _plural(word: str) -> str:
    for ending in ("'s'", "'s", "'"):
        if word.endswith(ending):
            word = word[: -len(ending)]
            break
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ied", "ies")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith("s") and not word.endswith(("us", "ss")) and _has_vowel(word[:-2]):
        return word[:-1]
    return word


def _past(word: str, first: int) -> str:
    suffix = _longest(word, ("eed", "eedly", "ed", "edly", "ing", "ingly"))
    if suffix in ("eed", "eedly"):
        return word[: -len(suffix)] + "ee" if len(word) - len(suffix) >= first else word
    if not suffix or not _has_vowel(word[: -len(suffix)]):
        return word
    word = word[: -len(suffix)]
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if word.endswith(_DOUBLE):
        return word[:-1]
    return word + "e" if first >= len(word) and _SHORT_END.search(word) else word


def _suffix(word: str, first: int, second: int) -> str:
    """Steps 2 to 5: derivational endings, inside the regions behind the first and second syllable."""
    suffix = _longest(word, _STEP_2)
    start = len(word) - len(suffix)
    allowed = {"ogi": "l", "li": "cdeghkmnrt"}.get(suffix, word)
    if suffix and start >= first and word[start - 1 : start] in allowed:
        word = word[:start] + _STEP_2[suffix]
    suffix = _longest(word, _STEP_3)
    start = len(word) - len(suffix)
    if suffix and start >= (second if suffix == "ative" else first):
        word = word[:start] + _STEP_3[suffix]
    suffix = _longest(word, _STEP_4)
    start = len(word) - len(suffix)
    if suffix and start >= second and (suffix != "ion" or word[:start].endswith(("s", "t"))):
        word = word[:start]
    last = len(word) - 1
    if word.endswith("e") and (last >= second or (last >= first and not _SHORT_END.search(word[:-1]))):
        return word[:-1]
    if word.endswith("ll") and last >= second:
        return word[:-1]
    return word


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
