"""From replies to scores: the matcher reads, the metric judges."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
    Progress,
    Score,
    Trial,
    notes_of,
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

    def scored(
        self, trials: Asked, answers: Mapping[str, Answer], *, asking: bool = True
    ) -> tuple[list[AnsweredTrial], list[Row]]:
        """The trials with all their answers, and their keys. Those that lack an answer are left out.

        asking: whether judges have not seen these answers yet.
        """
        whole, told = [], []
        for trial, row in trials:
            if any(key not in answers for key in row):
                continue
            whole.append(row)
            example = self.examples[trial.example_id]
            said = []
            for variant, key in zip(trial.variants, row, strict=True):
                other = variant.example_id
                asked = example if not other or other == example.id else self.examples[other]
                said.append((variant.asked(asked), answers[key]))
            told.append((trial, example, said))
        parts: tuple[object, ...] = (self.matcher, self.score)
        for part in parts:
            if asking and isinstance(part, AskingPart):
                part.prepare([pair for *_, said in told for pair in said], self.folder, self.progress)
        judging, reading = isinstance(self.score, JudgingScore), isinstance(self.matcher, AskingMatcher)
        scored = []
        for trial, example, said in told:
            read = tuple(
                self._read(answer, asked, reading, variant.read)
                for variant, (asked, answer) in zip(trial.variants, said, strict=True)
            )
            scores = tuple(self._judge(asked, answer, judging) for (asked, _), answer in zip(said, read, strict=True))
            scored.append(AnsweredTrial(trial, example, read, scores))
        return scored, whole

    def _judge(self, asked: Example, answer: Answer, judging: bool) -> float:
        score = self.score(asked, answer)
        if not answer.unread or judging:
            return score
        # What could not be read is not right; where the truth is unknown the score stays unknown.
        return score if math.isnan(score) else 0.0

    def _read(self, answer: Answer, asked: Example, reading: bool, own: Matcher | None) -> Answer:
        """The answer in a reply, by the matcher."""
        if self.matcher is None or answer.scores is not None:
            return answer  # chosen by its scores, not said
        if own is not None:
            text = own(answer.reply, asked.choices, asked.answer_type)
        elif reading:
            text = cast(AskingMatcher, self.matcher).read(asked, answer)
        else:
            text = self.matcher(answer.reply, asked.choices, asked.answer_type)
        if text is None:
            return replace(answer, text=answer.reply, raw=answer.reply, unread=True)
        return answer if text == answer.text else replace(answer, text=text, raw=answer.reply)

    def notes(self) -> tuple[str, ...]:
        """What the players that judge and read used."""
        asking: tuple[object, ...] = (self.score, self.matcher)
        players = [part.player for part in asking if isinstance(part, AskingPart)]
        return tuple(f"{player.name}, the judge: {note}" for player in players for note in notes_of(player))
