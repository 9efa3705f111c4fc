"""One split of a data set, as arrays: who asks what about which image, and what is right."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from pfungst.core import DataError, Example
from pfungst.core.flips import normalise
from pfungst.text.index import group, starts_of
from pfungst.text.words import spelled

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

FREQUENT = 10
"""Fallback of data sets without decoys of their own: one of so many most frequent targets (Sect. 5.1)."""

_POLAR = {"yes": 1, "no": 2}
_SWAP = {"yes": "no", "no": "yes", "true": "false", "false": "true"}
_SWAPPED = re.compile("|".join(_SWAP), re.IGNORECASE)


def letters(answer: str) -> str:
    """What containment compares: case, blanks and punctuation make no difference (`pony tail`, `ponytail`)."""
    text = unicodedata.normalize("NFKC", answer).casefold()
    return "".join(spelled(text)) or "".join(text.split())


@dataclass(frozen=True, eq=False)
class AnswerBook:
    """Distinct answers, numbered."""

    texts: tuple[str, ...]
    classes: Ints
    """(answers,) Answers of one class are the same answer (`Two.`, `2`)."""
    letters: npt.NDArray[np.uint8]
    starts: Longs
    """The letters of answer i are letters[starts[i] : starts[i + 1]]."""

    @classmethod
    def of(cls, answers: Iterable[str]) -> AnswerBook:
        texts = tuple(dict.fromkeys(answers))
        known: dict[str, int] = {}
        classes = np.fromiter((known.setdefault(normalise(text), len(known)) for text in texts), np.int32, len(texts))
        spelled = [letters(text).encode("utf-8", "surrogatepass") for text in texts]
        return cls(texts, classes, np.frombuffer(b"".join(spelled), np.uint8), starts_of([len(one) for one in spelled]))

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """text -> number."""
        return {text: number for number, text in enumerate(self.texts)}

    @cached_property
    def polar(self) -> npt.NDArray[np.int8]:
        """(answers,) 1 for yes, 2 for no, 0 for anything else."""
        return np.fromiter((_POLAR.get(normalise(text), 0) for text in self.texts), np.int8, len(self))

    @property
    def arrays(self) -> tuple[Any, ...]:
        """As the kernels take them."""
        return self.classes, self.letters, self.starts

    def same(self, ones: npt.NDArray[Any], others: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Whether answers are the same but for their spelling."""
        return np.asarray(self.classes[ones] == self.classes[others])

    def contained(self, ones: npt.NDArray[Any], others: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Whether one answer of each pair contains the other ("daytime", "during the daytime")."""
        from pfungst.probes.decoys import kernels

        result: npt.NDArray[np.bool_] = kernels.contained_pairs(self.letters, self.starts, ones, others)
        return result


@dataclass(frozen=True, eq=False)
class Lists:
    """A list of numbers an item, end to end: those of item i are values[starts[i] : starts[i + 1]]."""

    starts: Longs
    values: Ints

    @classmethod
    def of(cls, lists: Iterable[Sequence[int]]) -> Lists:
        rows = list(lists)
        return cls(starts_of([len(row) for row in rows]), np.array(list(chain.from_iterable(rows)), np.int32))

    @classmethod
    def none(cls) -> Lists:
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int32))

    def __getitem__(self, item: int) -> Ints:
        return self.values[self.starts[item] : self.starts[item + 1]]

    @property
    def arrays(self) -> tuple[Any, ...]:
        return self.starts, self.values

    def padded(self, items: npt.NDArray[Any]) -> Ints:
        """(items, longest list), -1 at the end."""
        lengths = self.starts[items + 1] - self.starts[items]
        width = int(lengths.max(initial=0))
        columns = np.arange(width)
        where = self.starts[items][:, None] + columns
        inside = columns < lengths[:, None]
        result = np.full((len(items), width), -1, np.int32)
        result[inside] = self.values[where[inside]]
        return result


@dataclass(frozen=True, eq=False)
class Split:
    """Triplets (image, question, target) 0 .. n - 1 with all that decoys are made from."""

    examples: Sequence[Example]
    without_target: int
    """Examples left out because nothing is known to be right, or the right answer is empty."""
    book: AnswerBook
    targets: Ints
    """(n,) answer numbers."""
    question: Ints
    """(n,) question numbers; equal texts share one."""
    questions: tuple[str, ...]
    by_question: Lists
    """Triplets of a question, in an order drawn from the seed."""
    image: Ints
    by_image: Lists
    originals: Lists
    """Answer numbers of the decoys the data set came with."""
    humans: Lists
    """Answer classes that some human gave, besides the target and its opposite."""
    opposite: Ints
    """(n,) "no" where the target is "yes" and the other way around, as answer numbers; -1 for other targets, and where
    the opposite is right nowhere in the split."""
    mined: Lists
    """Answer numbers of candidates given from outside."""
    frequent: Ints
    """The most frequent targets."""

    def __len__(self) -> int:
        return len(self.targets)

    def right_about(self, images: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Whether a question about the image has a target of this class, of each pair."""
        return np.isin(images.astype(np.int64) * len(self.book) + classes, self._right)

    @cached_property
    def _right(self) -> Longs:
        """The pairs of image and class that are right somewhere, each as one number."""
        return np.unique(self.image.astype(np.int64) * len(self.book) + self.book.classes[self.targets])

    @classmethod
    def of(cls, examples: Sequence[Example], seed: int, mined: Mapping[str, Sequence[str]] | None = None) -> Split:
        kept = [one for one in examples if one.target is not None and one.target.strip()]
        if not kept:
            raise DataError(
                f"None of the {len(examples)} examples has a right answer, and decoys are made from the right answers "
                "of other questions. Load a labelled split."
            )
        mined = mined or {}
        targets = [str(one.target) for one in kept]
        more = (text for one in kept for text in (*one.choices, *mined.get(one.id, ())) if text.strip())
        book = AnswerBook.of([*targets, *more])
        numbers, classes = book.numbers, book.classes
        codes = np.array([numbers[text] for text in targets], np.int32)
        # Grouping by class needs the human answers' classes too, but those never become decoys themselves.
        known = {normalise(text): one for text, one in zip(book.texts, classes.tolist(), strict=True)}
        question, questions = _coded(one.question for one in kept)
        image, images = _coded(one.image_id or f"\0{one.id}" for one in kept)
        rng = np.random.default_rng(seed)
        counts = np.bincount(codes, minlength=len(book))
        most = np.lexsort((np.arange(len(book)), -counts))[:FREQUENT]
        opposite = _opposites(book, counts)[codes]
        return cls(
            examples=kept,
            without_target=len(examples) - len(kept),
            book=book,
            targets=codes,
            question=question,
            questions=tuple(questions),
            by_question=_grouped(question, len(questions), rng),
            image=image,
            by_image=_grouped(image, len(images), rng),
            originals=Lists.of(
                [n for n in dict.fromkeys(numbers[c] for c in one.choices if c.strip()) if classes[n] != classes[code]]
                for one, code in zip(kept, codes, strict=True)
            ),
            humans=Lists.of(
                _humans(one, known, int(classes[code]), int(classes[other]) if other >= 0 else -1)
                for one, code, other in zip(kept, codes, opposite, strict=True)
            ),
            opposite=opposite,
            mined=Lists.of([numbers[text] for text in mined.get(one.id, ()) if text.strip()] for one in kept)
            if mined
            else Lists.none(),
            frequent=np.asarray(most[counts[most] > 0], np.int32),
        )


def _humans(example: Example, known: Mapping[str, int], target: int, opposite: int) -> list[int]:
    """Whoever says "no" where most say "yes" does not mean the same: the opposite stays a decoy."""
    if len(example.answers) < 2:
        return []
    found = dict.fromkeys(known[form] for form in map(normalise, example.answers) if form in known)
    return [one for one in found if one not in (target, opposite)]


def _opposites(book: AnswerBook, counts: npt.NDArray[Any]) -> Ints:
    """(answers,) The opposite of yes and no, -1 elsewhere: spelled alike ("Yes", "No") if there is such a target, else
    the most frequent spelling."""
    result = np.full(len(book), -1, np.int32)
    for number in np.flatnonzero(book.polar).tolist():
        others = np.flatnonzero((book.polar == 3 - book.polar[number]) & (counts > 0))
        if len(others):
            alike = book.numbers.get(_SWAPPED.sub(_swapped, book.texts[number]), -1)
            result[number] = alike if alike in others else others[np.argmax(counts[others])]
    return result


def _swapped(match: re.Match[str]) -> str:
    word = match.group()
    other = _SWAP[word.lower()]
    return other.upper() if word.isupper() else other.capitalize() if word[0].isupper() else other


def _coded(names: Iterable[str]) -> tuple[Ints, list[str]]:
    known: dict[str, int] = {}
    codes = np.fromiter((known.setdefault(name, len(known)) for name in names), np.int32)
    return codes, list(known)


def _grouped(codes: Ints, groups: int, rng: np.random.Generator) -> Lists:
    shuffled = rng.permutation(len(codes))
    starts, order = group(codes[shuffled], groups)
    return Lists(starts, shuffled[order].astype(np.int32))
