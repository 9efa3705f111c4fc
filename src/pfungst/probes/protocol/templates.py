"""What harnesses do differently: prompts, labels and order of options, place and encoding of the image, reading.

The prompts are laid out as those of lmms-eval (tasks vqav2, mmbench) and VLMEvalKit (ImageMCQDataset, ImageVQADataset)
are; the sentences are ours and say the same. A file of your own can hold any others, letter for letter.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pfungst.core import Image, UsageError
from pfungst.core.images import as_rgb
from pfungst.scores import same_answer
from pfungst.scores.matchers import get_matcher

if TYPE_CHECKING:
    import PIL.Image

OWN = "own"
"""The player's own prompt: what its options say, such as the model card's."""
JPEG_QUALITY = 95


@dataclass(frozen=True)
class Template:
    """A prompt for open questions, and one for multiple choice."""

    open: str
    choices: str


TEMPLATES: Mapping[str, Template] = {
    "lmms-eval": Template(
        "{question}\nAnswer the question with one word or phrase.",
        "{question}\n{options}\nAnswer directly with the letter of the option from the given choices.",
    ),
    "VLMEvalKit": Template(
        "{question}\nGive the answer as one word or phrase.",
        "Question: {question}\nOptions:\n{options}\nPlease choose the right answer from the options above.",
    ),
    "none": Template("{question}", "{question}\n{options}"),
}
STYLES = ("A.", "(a)", "1)", "text")
ORDERS = ("as given", "reversed", "rotated", "shuffled")


def read_templates(file: str) -> Mapping[str, Template]:
    """Templates from a JSON file: name to {"open": ..., "choices": ...}, up to three."""
    try:
        told = json.loads(Path(file).read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"The templates {file} cannot be read ({error.strerror}).") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The templates {file} are not a JSON file ({error}).") from error
    if not isinstance(told, dict) or not 1 <= len(told) <= 3 or OWN in told or any("|" in name for name in told):
        raise UsageError(
            f"{file} must hold one JSON object with one to three templates, by names without a |; the player's own "
            f"prompt, '{OWN}', is always tried too."
        )
    found = {}
    for name, parts in told.items():
        known = isinstance(parts, dict) and set(parts) == {"open", "choices"}
        if not known or not all(isinstance(text, str) and "{question}" in text for text in parts.values()):
            raise UsageError(
                f'{file}, template {name!r}: give "open" and "choices", each a text with {{question}}; "choices" also '
                "with {options}."
            )
        if "{options}" not in parts["choices"]:
            raise UsageError(f'{file}, template {name!r}: "choices" must contain {{options}}.')
        found[name] = Template(parts["open"], parts["choices"])
    return found


# --- options ----------------------------------------------------------------------------------------------------------


_LETTER = re.compile(r"\W*[A-Za-z]\W*\Z")
_NUMBER = re.compile(r"\W*\d")
_REFERS = re.compile(
    r"\b(?:above|below|previous|following|preceding|both|neither|either|all of|none of|[A-H] and [A-H]|"
    r"options? [A-H1-9])\b",
    re.IGNORECASE,
)


def are_free(choices: Sequence[str]) -> bool:
    """Whether the options mean the same in any order and under any label: none refers to others or is itself a letter,
    and there are at least two."""
    return len(choices) > 1 and not any(_REFERS.search(choice) or _LETTER.match(choice) for choice in choices)


def style_for(style: str, choices: Sequence[str]) -> str:
    """The style as it can be used: options that are numbers are not numbered, or a reply `2` would mean two things."""
    if style == "1)" and any(_NUMBER.match(choice) for choice in choices):
        return "A)"
    return style


def ordered(choices: Sequence[str], order: str, key: str) -> tuple[str, ...]:
    """The options in this order; `key` is what a shuffle is drawn from."""
    if order == "reversed":
        return tuple(reversed(choices))
    if order == "rotated":
        half = (len(choices) + 1) // 2
        return (*choices[half:], *choices[:half])
    if order == "shuffled":
        drawn = [hashlib.sha256(f"{key} {at}".encode("utf-8", "surrogatepass")).digest() for at in range(len(choices))]
        return tuple(choices[at] for at in sorted(range(len(choices)), key=lambda at: drawn[at]))
    return tuple(choices)


# --- images -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JPEGImage:
    """An image as a harness sends it that saves it as JPEG of quality 95. Made when somebody looks at it."""

    image: Image

    @property
    def digest(self) -> str:
        named = f"jpeg {JPEG_QUALITY} by {_codec()} of {self.image.digest}"
        return hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()

    def read(self) -> bytes:
        buffer = io.BytesIO()
        as_rgb(self.image).save(buffer, "JPEG", quality=JPEG_QUALITY)
        return buffer.getvalue()

    def pil(self) -> PIL.Image.Image:
        import PIL.Image

        found = PIL.Image.open(io.BytesIO(self.read()))
        found.load()
        return found


def _codec() -> str:
    """JPEG codecs differ in their rounding, so the codec is a part of the digest."""
    import PIL.features

    return str(PIL.features.version("libjpeg_turbo") or PIL.features.version("jpg"))


# --- replies ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reader:
    """A matcher that reads replies to options of this style; by themselves matchers know the labels A, B, C alone."""

    matcher: str
    style: str = ""

    def __call__(self, reply: str, choices: Sequence[str], kind: str) -> str | None:
        return get_matcher(self.matcher)(with_letters(reply, self.style, choices), choices, kind)


def with_letters(reply: str, style: str, choices: Sequence[str]) -> str:
    """The reply with capital letters where it names an option by the label that it was shown: `(b)`, `2)`, or, where
    options have none, the option itself.

    A label counts where it stands alone, at the start before a mark, in brackets, or after words such as `answer is`.
    """
    if style == "text":
        named = [at for at, choice in enumerate(choices[:26]) if same_answer(reply.strip(" .\n"), choice)]
        return chr(65 + named[0]) if len(named) == 1 else reply
    if style not in ("(a)", "1)") or not choices or any(reply.strip() == choice.strip() for choice in choices):
        return reply
    for pattern in _patterns(style, min(len(choices), 26)):
        reply = pattern.sub(lambda found: found[1] + _capital(found[2]) + found[3], reply)
    return reply


@lru_cache(maxsize=64)
def _patterns(style: str, count: int) -> tuple[re.Pattern[str], ...]:
    labels = [chr(97 + at) if style == "(a)" else str(at + 1) for at in range(count)]
    label = "(" + "|".join(sorted(labels, key=len, reverse=True)) + ")"
    cue = r"(?:answer|option|choice|number|letter)(?:\s+is)?(?:\s+(?:option|number|letter))?\s*:?"
    return (
        re.compile(rf"\A(\W*){label}(\W*)\Z"),
        re.compile(rf"\A(\W*){label}([).:](?!\d))"),
        re.compile(rf"(\(){label}(\))"),
        re.compile(rf"(\b{cue}\s+\W?){label}((?=\s*(?:[.,;:)!?\n]|\Z)))", re.IGNORECASE),
    )


def _capital(label: str) -> str:
    return label.upper() if label.isalpha() else chr(64 + int(label))
