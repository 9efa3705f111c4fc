"""The Porter2 ("Snowball English") stemmer as METEOR 1.5 uses it: words of one stem match for 0.6 of a word.

The stems are those of the jar for every word of its synonym lists (`tests/text/test_meteor_parts.py`). Later releases
of Snowball changed a few rules, so a newer stemmer would not do. Algorithm: M. F. Porter, "Snowball: a language for
stemming algorithms" (2001), the English stemmer.
"""

from __future__ import annotations

import re

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
