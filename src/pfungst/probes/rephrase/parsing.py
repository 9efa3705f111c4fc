"""The questions of the world, read back: which program a sentence asks for.

It knows the phrasings and the words for values, and nothing of how a question was made, so it can tell whether a
disturbed question still asks the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from pfungst.world.programs import WORDS, Program
from pfungst.world.questions.search import program_of
from pfungst.world.questions.template import Template, TemplateSet, Values

_PARTS = re.compile(r"(<\w+>)(s\b)?|\[([^\]]*)\]|([^<\[]+)")


class Parser:
    """Reads sentences by the phrasings of a set of templates."""

    def __init__(self, families: TemplateSet) -> None:
        self._families = families

    def asks(self, question: str, program: Program) -> bool | None:
        """Whether a sentence asks for this program; None where it is no sentence of the world, or may ask several
        things."""
        meanings = {meaning(program_of(template, values)) for template, values in self.readings(question)}
        return meanings.pop() == meaning(program) if len(meanings) == 1 else None

    def readings(self, question: str) -> Iterator[tuple[Template, Values]]:
        """All that a sentence may ask for: a template and what is said in its open places."""
        text = _plain(question)
        for template, pattern in self._patterns:
            if found := pattern.fullmatch(text):
                values = self._values(template, found.groupdict())
                if _complete(template, values):
                    yield template, values

    def _values(self, template: Template, said: dict[str, str | None]) -> dict[str, str | None]:
        values: dict[str, str | None] = {}
        for name, kind in template.params.items():
            word = said.get(name[1:-1]) or said.get(f"{name[1:-1]}_after")
            values[name] = None if word is None else self._words[kind].get(word.lower())
        return values

    @cached_property
    def _words(self) -> dict[str, dict[str, str]]:
        """By kind of parameter: word -> value; words for things of any shape stand for none."""
        known = self._families.synonyms
        return {
            kind: {
                word.removeprefix("+"): value
                for value in values
                for word in (*known.train.get(value, (value,)), *known.heldout.get(value, ()))
            }
            for kind, values in WORDS.items()
        }

    @cached_property
    def _patterns(self) -> list[tuple[Template, re.Pattern[str]]]:
        return [
            (template, re.compile(self._pattern(template, _plain(phrasing.text)), re.IGNORECASE))
            for template in self._families.templates
            for phrasing in template.phrasings
        ]

    def _pattern(self, template: Template, text: str) -> str:
        said = ""
        for name, plural, optional, literal in _PARTS.findall(text):
            if name:
                said += self._place(name[1:-1], template.params[name], "(?:e?s)" if plural else "")
            elif optional:
                said += f"(?:{self._pattern(template, optional)})?"
            else:
                said += _literal(literal)
        return said

    def _place(self, name: str, kind: str, plural: str) -> str:
        words = self._words[kind]
        listed = "|".join(sorted(map(re.escape, words), key=len, reverse=True))
        if kind == "relation":
            return f"(?P<{name}>{listed})"
        if kind != "shape":
            return rf"(?:(?P<{name}>{listed})\b\s*)?"
        known = self._families.synonyms
        things = "|".join((*known.train.get("thing", ("thing",)), *known.heldout.get("thing", ())))
        after = name.replace("S", "M", 1)
        material = "|".join(sorted((word for word in self._words["material"] if " " in word), key=len))
        behind = rf"(?:\s+(?P<{after}_after>{material}))?" if material else ""
        return rf"(?:(?P<{name}>{listed})|{things}){plural}{behind}"


def _complete(template: Template, values: Values) -> bool:
    """Whether all is said that the template needs, and nothing that it asks for."""
    needed = [name for node in template.nodes if not node.composite for name in node.params]
    needed += [name for name, kind in template.params.items() if kind == "relation"]
    return all(values[name] for name in needed) and not any(values[name] for name in template.nulls)


def meaning(program: Program) -> tuple[Any, ...]:
    """A program as what it computes: the same for two that differ in the order of equal parts alone."""
    known: list[tuple[Any, ...]] = []
    for node in program.nodes:
        name, inputs = node.function, [known[place] for place in node.inputs]
        if name == "less_than":
            name, inputs = "greater_than", inputs[::-1]
        if name.startswith("equal_") or name in ("union", "intersect"):
            inputs.sort(key=repr)
        known.append((name, node.values, *inputs))
    return known[-1]


def _plain(text: str) -> str:
    """Without the mark at the end, and what may be written in two ways written in one."""
    return " ".join(re.sub(r"['’]s\b", " is", text, flags=re.IGNORECASE).split()).rstrip("?!. ")


def _literal(text: str) -> str:
    """As `say` leaves it: articles agree, "other" may be dropped, blanks are single."""
    said = re.sub(r"\s+", " ", text)
    said = re.escape(said).replace(r"\ ", r"\s*")
    said = re.sub(r"\banother\\s\*", r"an?(?:other)?\\s*", said, flags=re.IGNORECASE)
    said = re.sub(r"\bother\\s\*", r"(?:other)?\\s*", said)
    return re.sub(r"\b([Aa])\\s\*$", r"\1n?\\s+", said)
