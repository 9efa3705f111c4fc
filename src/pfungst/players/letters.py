"""Multiple choice in words: ask with lettered options. A matcher reads the reply (`pfungst.scores.matchers`)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pfungst.core import Query, UsageError

SHORT_PROMPT = "{question}\nAnswer in one word or a short phrase."
"""Default template of an open question."""
LETTERS_PROMPT = "{question}\n{options}\nAnswer with the letter of the right option only."
"""Default template; `{question}` and `{options}` are filled in."""

_FIELD = re.compile(r"\{(\w+)\}")


def label(index: int) -> str:
    """A, B, ..., Z, AA, AB, ... (702 labels)."""
    if not 0 <= index < 26 * 27:
        raise ValueError(f"there is no letter for option {index}; 702 options are the most that can be asked")
    return chr(65 + index) if index < 26 else chr(64 + index // 26) + chr(65 + index % 26)


def lettered(question: str, choices: Sequence[str], template: str = LETTERS_PROMPT) -> str:
    """The question with its options, one per line: `A. red`."""
    options = "\n".join(f"{label(index)}. {choice}" for index, choice in enumerate(choices))
    return fill(template, question=question, options=options)


def fill(template: str, **values: str) -> str:
    """Put values in for `{name}`. Unlike `str.format` it leaves other braces alone, in template and values."""
    return _FIELD.sub(lambda match: values.get(match[1], match[0]), template)


def in_words(query: Query, prompt: str, choices_prompt: str) -> str:
    """What a model is asked: the question by the one template, a multiple choice by the other."""
    if query.choices:
        return lettered(query.question, query.choices, choices_prompt)
    return fill(prompt, question=query.question)


def check_prompts(prompt: str, choices_prompt: str) -> None:
    """Raise UsageError where a template would lose what is asked."""
    if "{question}" not in prompt or "{options}" not in choices_prompt:
        raise UsageError("The option prompt must contain {question}, and choices_prompt {question} and {options}.")
