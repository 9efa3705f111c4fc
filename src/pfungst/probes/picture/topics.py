"""What a question is about, as far as its words tell: an operation is refused where it could change the answer.

The question, its answers and its choices are read. The rules err on the side of refusing: a word that has
several meanings counts ("right", "light"). They know English; a question in another script counts as being about
everything.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from pfungst.core import Example

DIRECTION, TEXT, CLOCK, COLOR, COUNT = "directions", "text", "clocks", "colour", "counting"
LIGHT, SHARPNESS, ANGLE, EDGE = "light or shade", "sharpness or quality", "angles", "the border of the image"

_WORDS = {
    DIRECTION: "left right above below under underneath beneath over top bottom behind front beside between upper "
    "lower leftmost rightmost north south east west up down upside next side sides direction directions facing "
    "faces face towards toward where position positioned located location opposite clockwise higher arrow pointing",
    TEXT: "text read reads reading say says said saying write writes written writing word words letter letters sign "
    "signs label labels labeled labelled logo brand brands spell spelled spelt title caption name named called license "
    "licence plate digit digits print printed inscription symbol character characters company website url address "
    "number numbers date year price headline banner screen display displayed formula equation "
    "chart graph table diagram axis legend map",
    CLOCK: "clock clocks watch watches time hour hours minute minutes o'clock dial gauge meter thermometer speedometer",
    COLOR: "color colors colour colours colored coloured colorful colourful hue hues shade shades tint red orange "
    "yellow green blue purple violet pink brown black white grey gray cyan magenta teal turquoise gold golden silver "
    "beige tan maroon navy blond blonde brunette ripe unripe rainbow",
    COUNT: "many count counts number numbers amount total fewer more most least less zero one two three four five six "
    "seven eight nine ten eleven twelve both several pair pairs couple single double alone only none",
    LIGHT: "light lights lighting lit bright brighter brightness dark darker darkness dim sun sunny sunlight shadow "
    "shadows shade shaded night day daytime nighttime evening morning dusk dawn sunset sunrise weather fog foggy mist "
    "misty haze hazy smoke smog cloud clouds cloudy overcast rain rainy raining snow snowing pale faded black white "
    "grey gray silver beige exposure exposed contrast shiny glossy",
    SHARPNESS: "blur blurry blurred blurriness focus focused sharp sharpness clear clarity noisy noise grain grainy "
    "quality resolution pixelated pixels compressed compression artifact artifacts jpeg smooth texture fuzzy",
    ANGLE: "angle angles angled tilt tilted tilting slanted slant level leaning lean upright straight horizontal "
    "vertical diagonal degree degrees slope sloped steep parallel perpendicular rotated rotation crooked horizon",
    EDGE: "edge edges border borders corner corners margin cropped cut frame framed outside partially partly visible "
    "center centre centered centred middle background foreground size width height resolution aspect",
}
TOPICS = frozenset(_WORDS)
_LISTED = {topic: frozenset(words.split()) for topic, words in _WORDS.items()}
_NUMBER = re.compile(r"\d")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


def topics(example: Example) -> frozenset[str]:
    """What a question, its answers or its choices are about: a wrong choice must stay wrong."""
    answers = " ".join(dict.fromkeys((*example.answers, example.target or "", *example.choices)))
    return _topics(example.question, answers, example.answer_type)


@lru_cache(maxsize=4096)
def _topics(question: str, answers: str, answer_type: str) -> frozenset[str]:
    text = f"{question} {answers}".casefold().replace("\u2019", "'")
    if _foreign(text):
        return TOPICS
    words = set(_WORD.findall(text))
    found = {topic for topic, listed in _LISTED.items() if words & listed}
    if answer_type == "number" or _NUMBER.search(text):
        found.add(COUNT)
    return frozenset(found)


def _foreign(text: str) -> bool:
    """Whether there is a letter that is not Latin."""
    return not text.isascii() and any(
        letter.isalpha() and not unicodedata.name(letter, "").startswith("LATIN") for letter in text
    )
