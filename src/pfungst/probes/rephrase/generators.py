"""Other words for the questions of data sets that have none: where they come from and what they keep.

A rephraser is anything with a `name`, a sentence `keeps` that says how the answer is kept, and
`rephrase(examples, count, seed)`. Every one passes its texts through `Gate`, a check of meaning by sentence vectors.

    from pfungst.probes.rephrase import Rephrase, get_rephraser

    get_rephraser("rules").rephrase(data, 3, seed=0)       # up to three new texts an example
    Rephrase(generator="rules")                              # the probe on any data set
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pfungst.core import Dataset, Example, ProbeError, UsageError
from pfungst.core.registry import Registry
from pfungst.core.settings import REQUIRED, read_settings, settings_of
from pfungst.probes import measure

KINDS = (
    ("count", r"\bhow many\b|\bnumber of\b|\bcount\b"),
    ("amount", r"\bhow much\b"),
    ("place", r"\bwhere\b|\blocation\b"),
    ("person", r"\bwho(?:se|m)?\b|\b(?:which|what) person\b"),
    ("time", r"\bwhen\b|\b(?:what|which) (?:time|day|year|season|month)\b"),
    ("reason", r"\bwhy\b|\breason\b"),
    ("manner", r"\bhow\b"),
    ("thing", r"\bwhat(?:'s)?\b|\bwhich\b"),
)
"""What a question asks for; the first that fits. All others are yes/no questions."""
_FREE = """
    a an the this that these those is are be being do does can could would you i we me see seen tell show shows shown
    visible what what's which who whose whom where when why how of whether there it have has any some kind type sort
    please
"""
FREE = frozenset(_FREE.split())
"""Words that may come and go. Prepositions may not, what is on a table is not under it, nor may the past."""
_COUNTING = frozenset({"many", "number", "count"})
"""So may these, where it is asked how many there are."""
_SHOWN = re.compile(r"\b(?:in|on) (?:the|this) (?:picture|image|photo|photograph)\b")


def keeps_meaning(question: str, other: str) -> bool:
    """Whether both say the same content words, as often, and ask for the same kind of thing."""
    return content(question) == content(other) and kind_of(question) == kind_of(other)


def content(question: str) -> list[str]:
    """The words that must stay, in the order of the alphabet."""
    text = _SHOWN.sub(" ", question.lower()).replace("colour", "color")
    free = FREE | _COUNTING if kind_of(question) == "count" else FREE
    return sorted(word for word in re.findall(r"[^\W_]+(?:['’][^\W_]+)*", text) if word not in free)


def kind_of(question: str) -> str:
    """What a question asks for."""
    text = question.lower()
    return next((kind for kind, pattern in KINDS if re.search(pattern, text)), "yes/no")


REPHRASERS = Registry(
    "rephraser",
    "pfungst.rephrasers",
    {
        "asked": "pfungst.probes.rephrase.generators:AskedRephraser",
        "rules": "pfungst.probes.rephrase.rules:RuleRephraser",
        "world": "pfungst.probes.rephrase.world_words:WorldWords",
        "world-forms": "pfungst.probes.rephrase.world_words:forms",
    },
)
"""By name: `rules`, `world`, `asked:POOL`; `pfungst.players` adds `model:PLAYER` (a player that writes), `vqg:FOLDER`
(our own question generator) and `learnt:FOLDER` (a paraphraser learnt from pairs)."""


@runtime_checkable
class Rephraser(Protocol):
    """Says questions in other words."""

    @property
    def name(self) -> str: ...

    @property
    def keeps(self) -> str:
        """The label-preservation contract: why the answer stays the same."""
        ...

    def rephrase(self, examples: Sequence[Example], count: int, seed: int) -> list[tuple[str, ...]]:
        """Up to `count` new texts an example, none where it finds none; a pure function of what it is given."""
        ...


@dataclass(frozen=True)
class Gate:
    """Lets a text pass whose sentence vector points where the original's does."""

    least: float
    """Smallest cosine of the two vectors."""
    encoder: str = "skip-thoughts"

    def passing(self, pairs: Sequence[tuple[str, str]]) -> list[bool]:
        """For pairs (original, rephrasing)."""
        if not pairs or self.least <= -1:
            return [True] * len(pairs)
        return [bool(one) for one in self.cosines(pairs) >= self.least]

    def cosines(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """(N,) float64; 0 where a text has no words the encoder knows."""
        from pfungst.text import encode

        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        rows = np.asarray(encode(texts, self.encoder), np.float64)
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        place = {text: i for i, text in enumerate(texts)}
        one, two = (rows[[place[pair[side]] for pair in pairs]] for side in (0, 1))
        cosines: NDArray[np.float64] = np.einsum("nd,nd->n", one, two)
        return cosines


def get_rephraser(spec: str, **settings: Any) -> Rephraser:
    """A rephraser from a word: `rules`, `world`, `asked:POOL`, `model:openai:MODEL@URL`, or one of another package.

    Settings it does not have are refused, but `least` and `encoder`, which set the gate, may stay unused.
    """
    name, _, argument = spec.partition(":")
    kind = REPHRASERS.get(name)
    known = {setting.name: setting for setting in settings_of(kind)}
    if argument and "argument" not in known:
        raise UsageError(f"The rephraser {name} takes nothing after a colon, but {argument!r} was given.")
    if not argument and "argument" in known and known["argument"].default is REQUIRED:
        raise UsageError(f"Say which: {name}:{'PLAYER' if name == 'model' else 'FOLDER'}.")
    # The gate's settings come from the probe, which does not know whether this rephraser has a gate.
    given = {key: settings[key] for key in settings if key in known or key not in ("least", "encoder")}
    given = {key: value for key, value in given.items() if value is not None}
    given = read_settings(kind, given, what=f"rephraser {name}", hidden=("argument",))
    made: Rephraser = kind(**({"argument": argument} if argument else {}), **given)
    return made


def gated(
    originals: Sequence[str], candidates: Sequence[Sequence[str]], count: int, gate: Gate
) -> list[tuple[str, ...]]:
    """The first `count` candidates of every question that pass the gate, differ from it and from each other."""
    pairs = [(text, one) for text, offered in zip(originals, candidates, strict=True) for one in offered]
    passed = iter(gate.passing(pairs))
    found = []
    for text, offered in zip(originals, candidates, strict=True):
        kept: list[str] = []
        seen = {plain(text)}
        for one in offered:
            if next(passed) and plain(one) not in seen and len(kept) < count:
                seen.add(plain(one))
                kept.append(one)
        found.append(tuple(kept))
    return found


def plain(text: str) -> str:
    """A question as it is compared: words alone."""
    return " ".join(re.findall(r"\w+", text.lower()))


def with_rephrasings(data: Dataset, rephraser: Rephraser | str, count: int = 3, seed: int = 0) -> Dataset:
    """A data set in groups: every question that has rephrasings, and these behind it as `ID.1`, `ID.2` ...

    For training and for exports; the probe needs only `generator=`.
    """
    writer = get_rephraser(rephraser) if isinstance(rephraser, str) else rephraser
    originals = data.originals.examples
    kind = str(getattr(writer, "wording", ""))
    grouped: list[Example] = []
    for one, texts in zip(originals, writer.rephrase(originals, count, seed), strict=True):
        if texts:
            grouped.append(replace(one, group=one.id))
            grouped += [
                replace(one, id=f"{one.id}.{number}", question=text, group=one.id, wording=kind)
                for number, text in enumerate(texts, 1)
            ]
    if not grouped:
        raise ProbeError(f"The rephraser {writer.name} could not rephrase any question of {data.name}.")
    digest = hashlib.sha256(f"{data.fingerprint} {writer!r} {count} {seed}".encode()).hexdigest()
    notes = {**data.notes, "rephrased": writer.keeps}
    return replace(data, name=f"{data.name}, rephrased", examples=tuple(grouped), fingerprint=digest, notes=notes)


Index = dict[tuple[str, ...], list[str]]


@dataclass(frozen=True)
class AskedRephraser:
    """`asked:POOL`: questions of a pool with the same content words that ask for the same kind of thing."""

    argument: str
    """A data set, or a text file with one question per line."""
    least: float = 0.6
    """Smallest cosine of the sentence vectors; the words are checked more strictly than those of the rules."""
    encoder: str = "skip-thoughts"
    name: str = "asked"

    @property
    def keeps(self) -> str:
        return (
            "the answer: somebody asked it about another image, with the same content words and for the same kind of "
            f"thing, and the sentence vectors ({self.encoder}) have a cosine of at least {self.least:g}"
        )

    def rephrase(self, examples: Sequence[Example], count: int, seed: int) -> list[tuple[str, ...]]:
        questions = [one.question for one in examples]
        offered = []
        for text in questions:
            same = list(self._index.get(_key(text), ()))
            Random(f"{seed} {text}").shuffle(same)
            offered.append(same)
        return gated(questions, offered, count, Gate(self.least, self.encoder))

    @cached_property
    def _index(self) -> Index:
        """What is asked about, and what for -> the questions of the pool, each wording once."""
        from pfungst.probes.noise.bqd import pool_questions

        different = {plain(text): text for text in pool_questions(self.argument, Dataset("", []), "all")}
        groups = measure.grouped((different[words] for words in sorted(different)), _key)
        return {key: [" ".join(text.split()) for text in texts] for key, texts in groups.items()}


def _key(question: str) -> tuple[str, ...]:
    return (kind_of(question), *content(question))
