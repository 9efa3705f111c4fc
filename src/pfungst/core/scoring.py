"""From replies to scores: the matcher reads, the metric judges."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from pfungst.core.trials import Row
from pfungst.core.types import (
    Answer,
    AnsweredTrial,
    AskingMatcher,
    AskingPart,
    Example,
    JudgingScore,
    Matcher,
    Player,
    Progress,
    Reading,
    Score,
    Trial,
)

Asked = Sequence[tuple[Trial, Row]]
"""Trials with the keys of their queries."""


@dataclass(frozen=True)
class Scoring:
    """Reads and judges the answers of a run. Judges are asked what they have not been asked before."""

    score: Score
    matcher: Matcher | None
    examples: Mapping[str, Example]
    folder: Path
    progress: Progress
    player: Player

    def scored(
        self, trials: Asked, answers: Mapping[str, Answer], *, asking: bool = True
    ) -> tuple[list[AnsweredTrial], list[Row]]:
        """The trials with all their answers, and their keys. Those that lack an answer are left out.

        asking: whether judges have not seen these answers yet.
        """
        whole = [(trial, row) for trial, row in trials if all(key in answers for key in row)]
        parts: tuple[object, ...] = (self.matcher, self.score)
        for part in parts:
            if asking and isinstance(part, AskingPart):
                said = [
                    (asked, answers[key])
                    for trial, row in whole
                    for asked, key in zip(self._asked(trial, self.examples[trial.example_id]), row, strict=True)
                ]
                part.prepare(said, self.folder, self.progress)
        judging, reading = isinstance(self.score, JudgingScore), isinstance(self.matcher, AskingMatcher)
        readings = self._readings(whole)
        scored = []
        for trial, row in whole:
            example = self.examples[trial.example_id]
            read, scores = [], []
            for variant, asked, key in zip(trial.variants, self._asked(trial, example), row, strict=True):
                answer = answers[key]
                if self.matcher is not None and answer.scores is None:  # else it was chosen by its scores, not said
                    matcher = variant.read or self.matcher
                    answer = read_answer(answer, asked, matcher, reading and matcher is self.matcher)
                read.append(answer)
                scores.append(self._judge(asked, answer, judging))
            told = tuple(readings[key] for key in row) if readings else ()
            scored.append(AnsweredTrial(trial, example, tuple(read), tuple(scores), told))
        return scored, [row for _, row in whole]

    def _readings(self, trials: Asked) -> Mapping[str, Reading | None]:
        """What the player read of each query, by key; nothing where it does not tell."""
        if not self.player.has("reading"):
            return {}
        queries = {key: v.query for trial, row in trials for v, key in zip(trial.variants, row, strict=True)}
        return dict(zip(queries, self.player.reading(list(queries.values())), strict=True))

    def _asked(self, trial: Trial, example: Example) -> Iterator[Example]:
        """What each variant of a trial asks."""
        for variant in trial.variants:
            other = variant.example_id
            yield variant.asked(example if not other or other == example.id else self.examples[other])

    def _judge(self, asked: Example, answer: Answer, judging: bool) -> float:
        score = self.score(asked, answer)
        if not answer.unread or judging:
            return score
        # What could not be read is not right; where the truth is unknown the score stays unknown.
        return score if math.isnan(score) else 0.0

    def notes(self) -> tuple[str, ...]:
        """What the players that judge and read used."""
        asking: tuple[object, ...] = (self.score, self.matcher)
        players = [part.player for part in asking if isinstance(part, AskingPart)]
        return tuple(f"{player.name}, the judge: {note}" for player in players for note in player.last_words)


def read_answer(answer: Answer, asked: Example, matcher: Matcher, asking: bool) -> Answer:
    """The answer in a reply, by the matcher; `asking` where that is an AskingMatcher."""
    if asking:
        text = cast(AskingMatcher, matcher).read(asked, answer)
    else:
        text = matcher(answer.reply, asked.choices, asked.answer_type)
    if text is None and not asked.choices and _is_right_as_it_is(answer.reply, asked):
        text = answer.reply.strip()
    return read_as(answer, text)


def _is_right_as_it_is(reply: str, asked: Example) -> bool:
    """Whether a reply is a right answer word for word: "unanswerable" is a refusal, but also what people said about
    many images of VizWiz."""
    said = reply.strip().casefold()
    return bool(said) and said in {one.strip().casefold() for one in (*asked.answers, asked.target or "")}


def read_as(answer: Answer, text: str | None) -> Answer:
    """The answer that a matcher found in a reply; None where it found none."""
    if text is None:
        return replace(answer, text=answer.reply, raw=answer.reply, unread=True)
    return answer if text == answer.text else replace(answer, text=text, raw=answer.reply)


class ById(Mapping[str, Example]):
    """The examples of a data set by id, without holding them.

    Asked in the order of the data it walks along; otherwise it looks up the place of an id, which it notes for all when
    it first has to.
    """

    def __init__(self, examples: Sequence[Example]) -> None:
        self._examples = examples
        self._walk = iter(examples)
        self._last: Example | None = None
        self._places: dict[str, int] | None = None

    def __len__(self) -> int:
        return len(self._examples)

    def __iter__(self) -> Iterator[str]:
        return (example.id for example in self._examples)

    def __getitem__(self, name: str) -> Example:
        last = self._last
        if last is None or last.id != name:
            last = next(self._walk, None)
            if last is None or last.id != name:
                if self._places is None:
                    self._places = {example.id: place for place, example in enumerate(self._examples)}
                place = self._places[name]
                last = self._examples[place]
                self._walk = (self._examples[at] for at in range(place + 1, len(self._examples)))
            self._last = last
        return last
