"""Finding the examples a query may come from, for players that know the data set instead of looking at images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pfungst.core import Dataset, Example, Image, PlayerError, Query
from pfungst.core.fingerprint import digest
from pfungst.core.images import NAMED
from pfungst.rows.fields import most_frequent


def truth(example: Example) -> str | None:
    """The right answer: the target, else the most frequent human answer (the first of those said equally often)."""
    return example.target if example.target is not None else most_frequent(example.answers)


def content_digest(data: Dataset) -> str:
    """A name of what the players of this package take from a data set.

    Not `Dataset.fingerprint`: that one names the files, and stays the same when a subset is taken.
    """
    return digest([(e.id, e.question, e.image_id, truth(e), e.question_type, e.choices) for e in data])


class Lookup:
    """Examples by question, then by image. Images are read only where a question occurs with several."""

    def __init__(self, data: Dataset) -> None:
        self._by_question: dict[str, list[Example]] = {}
        for example in data:
            self._by_question.setdefault(example.question, []).append(example)

    def exact(self, query: Query) -> list[Example]:
        """Examples with this question, this image and these choices."""
        asked = [e for e in self._by_question.get(query.question, ()) if e.choices == query.choices]
        return with_image(asked, query.image)

    def best(self, query: Query) -> list[Example]:
        """The examples the query most likely comes from, empty where nothing fits.

        In this order: the question with the image; the longest known beginning of the question (something was
        appended) with the image; the question with any image; the longest known beginning with any image.
        """
        anywhere: list[Example] = []
        for beginning in beginnings(query.question):
            asked = self._by_question.get(beginning, [])
            here = with_image(asked, query.image) if asked and query.image is not None else []
            if here:
                return [e for e in here if e.choices == query.choices] or here
            anywhere = anywhere or asked
        return anywhere


def beginnings(question: str) -> Iterator[str]:
    """The question, then what is left as words are taken off its end, longest first."""
    yield question
    for position in range(len(question) - 1, 0, -1):
        if question[position].isspace() and not question[position - 1].isspace():
            yield question[:position]


def with_image(examples: Sequence[Example], image: Image | None) -> list[Example]:
    """Those of the examples that are about this image; contents are compared only if no object or path is equal."""
    if image is None:
        return [e for e in examples if e.image is None]
    same = [e for e in examples if e.image is not None and (e.image is image or e.image == image)]
    if same:
        return same
    wanted = image.digest
    if wanted.startswith(NAMED):
        return [e for e in examples if e.image is None and wanted == NAMED + e.image_id]
    return [e for e in examples if e.image is not None and e.image.digest == wanted]


def required(data: Dataset | None, player: str) -> Dataset:
    if data is None or len(data) == 0:
        raise PlayerError(
            f"The player '{player}' knows a data set instead of looking at images: give it one with examples."
        )
    return data
