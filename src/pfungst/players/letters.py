"""Multiple choice in words: ask with lettered options. A matcher reads the reply (`pfungst.scores.matchers`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from pfungst.core import Answer, Framing, Query, UsageError

SHORT_PROMPT = "{question}\nAnswer in one word or a short phrase."
"""Default template of an open question."""
LETTERS_PROMPT = "{question}\n{options}\nAnswer with the letter of the right option only."
"""Default template; `{question}` and `{options}` are filled in."""

_FIELD = re.compile(r"\{(\w+)\}")
_LETTER = re.compile(r"\bletter\b")


def label(index: int) -> str:
    """A, B, ..., Z, AA, AB, ... (702 labels)."""
    if not 0 <= index < 26 * 27:
        raise ValueError(f"there is no letter for option {index}; at most 702 options can be asked")
    return chr(65 + index) if index < 26 else chr(64 + index // 26) + chr(65 + index % 26)


STYLES: Mapping[str, tuple[Callable[[int], str], str]] = {
    "A.": (lambda index: f"{label(index)}. ", "letter"),
    "A)": (lambda index: f"{label(index)}) ", "letter"),
    "(a)": (lambda index: f"({label(index).lower()}) ", "letter"),
    "1)": (lambda index: f"{index + 1}) ", "number"),
    "text": (lambda index: "", "text"),
}
"""Ways to label options, and what an instruction calls such a label."""


def lettered(question: str, choices: Sequence[str], template: str = LETTERS_PROMPT, style: str = "") -> str:
    """The question with its options, one per line: `A. red`. Where a style has no letters, a template that asks for a
    letter asks for the number or the text instead."""
    before, called = STYLES[style or "A."]
    options = "\n".join(f"{before(index)}{choice}" for index, choice in enumerate(choices))
    return fill(_LETTER.sub(called, template), question=question, options=options)


def fill(template: str, **values: str) -> str:
    """Put values in for `{name}`. Unlike `str.format` it leaves other braces alone, in template and values."""
    return _FIELD.sub(lambda match: values.get(match[1], match[0]), template)


def in_words(query: Query, prompt: str, choices_prompt: str) -> str:
    """What a model is asked: the question by the one template, a multiple choice by the other, unless the query comes
    with a framing."""
    framing = query.framing or Framing()
    if query.choices:
        return lettered(query.question, query.choices, framing.template or choices_prompt, framing.options)
    return fill(framing.template or prompt, question=query.question)


def best_choice(choices: Sequence[str], chances: Sequence[float | None]) -> Answer | None:
    """The choice with the largest chance; one without scores 0. None where no choice has any."""
    if all(chance is None for chance in chances):
        return None
    scores = tuple(chance or 0.0 for chance in chances)
    best = max(range(len(scores)), key=lambda i: (chances[i] is not None, scores[i]))
    total = sum(scores)
    return Answer(choices[best], confidence=scores[best] / total if total else None, scores=scores)


def check_prompts(prompt: str, choices_prompt: str) -> None:
    """Raise UsageError where a template would lose what is asked."""
    if "{question}" not in prompt or "{options}" not in choices_prompt:
        raise UsageError("The option prompt must contain {question}, and choices_prompt {question} and {options}.")
