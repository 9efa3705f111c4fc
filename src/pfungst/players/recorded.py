"""Answers from a file: score predictions without the model that made them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pfungst.core import Answer, DataError, Dataset, Example, NoAnswer, Player, PlayerError, Query
from pfungst.core.fingerprint import digest
from pfungst.logs import read_log
from pfungst.logs.pairing import pair
from pfungst.players.lookup import Lookup, content_digest, required, with_image


class RecordedPlayer(Player):
    """Gives the answers of a file to the examples of a data set.

    The file is anything that `pfungst.logs.read_log` reads: official VQA results, LLaVA answers, lmms-eval, lm-eval,
    VLMEvalKit, inspect or evalscope logs, results of a batch API, or a table whose columns are named:
    `FILE?reply=output&id=qid`.

    Answers go by id: two questions of the same words about the same image keep their own. A query is answered only if
    it is the example as it stands: same question, image and choices. A disturbed question has no recorded answer, so
    it is refused, never answered with that of the clean question; `knows(query)` tells beforehand. `missing` is the
    answer for examples that the file leaves out; without it they are an error when asked. `notes` holds sentences
    about the match that a user should see.
    """

    reads_images = False
    reads_ids = True

    def __init__(self, file: str | Path, data: Dataset | None, *, missing: str | None = None, name: str = "") -> None:
        data = required(data, "recorded")
        log = read_log(file)
        try:
            pairing = pair(log, data)
        except DataError as error:
            raise PlayerError(str(error)) from None
        self._file = Path(log.path)
        self._missing = missing
        self._other = pairing.other
        self._examples = {example.id: example for example in data}
        self._lookup = Lookup(data)
        self._answers: dict[str, Answer] = {}
        for record, example in zip(log.records, pairing.examples, strict=True):
            if example is not None and record.reply is not None and record.take == 0:
                self._answers[example.id] = _answer(record.answer(), example)
        notes = [*log.notes, *pairing.notes]
        more = sum(record.take > 0 for record in log.records)
        if more:
            notes.append(
                f"{more} answers repeat a question, of which the first counts; `pfungst import` reads them all."
            )
        lacking = len(data) - len(self._answers)
        if lacking:
            notes.append(f"{self._file} has no answer for {lacking} of {len(data)} questions.")
        if pairing.found < len(log.records):
            notes.append(f"{len(log.records) - pairing.found} answers in {self._file} belong to no question here.")
        self.notes: tuple[str, ...] = tuple(notes)
        self.name: str = name or f"recorded:{self._file.name}"
        self.matcher = "strict" if log.format == "vqa-results" else "lenient"
        self.fingerprint: str = f"recorded-2-{digest(log.fingerprint, content_digest(data), missing)}"

    def knows(self, query: Query) -> bool:
        """Whether this query is an example as it stands, with an answer in the file."""
        return any(example.id in self._answers or self._missing is not None for example in self._asked(query))

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        return [self._one(query) for query in queries]

    def _asked(self, query: Query) -> list[Example]:
        """The example of this id, if the query is it as it stands; without an id all that look like it."""
        if not query.example_id:
            return self._lookup.exact(query)
        example = self._examples.get(query.example_id)
        if example is None or example.question != query.question or example.choices != query.choices:
            return []
        return with_image([example], query.image)

    def _one(self, query: Query) -> Answer:
        examples = self._asked(query)
        if not examples:
            raise PlayerError(
                f"{self.name} has no answer to '{query.question}' asked in this way: recorded answers cover only the "
                "unchanged questions of the data set. Leave out probes that change question, image or choices."
            )
        known = {example.id: self._answers[example.id] for example in examples if example.id in self._answers}
        if len({answer.reply for answer in known.values()}) > 1:
            raise PlayerError(
                f"{self.name} cannot tell the questions {', '.join(sorted(known)[:3])} apart: they have the same "
                "words, image and choices, and different answers. Ask with Query.example_id, as an exam does."
            )
        if known:
            return next(iter(known.values()))
        if self._missing is not None:
            return Answer(self._missing)
        raise NoAnswer(
            f"{self._file} has no answer for question {examples[0].id} ('{query.question}'). "
            f"Add it, or name the text that counts instead (--option missing=TEXT). {self._other}".rstrip()
        )


class LoggedPlayer(Player):
    """Gives answers that were read from logs before, by the id of the example."""

    reads_images = False
    reads_ids = True
    batch_size = 500

    def __init__(self, name: str, answers: Mapping[str, Answer], fingerprint: str, matcher: str = "lenient") -> None:
        self.name = name
        self.fingerprint = fingerprint
        self.matcher = matcher
        self._answers = answers

    def knows(self, query: Query) -> bool:
        return query.example_id in self._answers

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        unknown = [query for query in queries if query.example_id not in self._answers]
        if unknown:
            raise PlayerError(f"The logs of {self.name} contain no answer to the example {unknown[0].example_id!r}.")
        return [self._answers[query.example_id] for query in queries]


def _answer(answer: Answer, example: Example) -> Answer:
    """Scores stand for choices: those of another list of choices mean nothing here."""
    if answer.scores is not None and len(answer.scores) != len(example.choices):
        return Answer(answer.text, answer.confidence)
    return answer
