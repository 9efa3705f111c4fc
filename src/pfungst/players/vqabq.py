"""A player that answers by Algorithm 1 of Assessing the Robustness of VQA: it appends good basic questions (VQABQ)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from pfungst.core import Answer, Dataset, Player, PlayerError, Query
from pfungst.core.fingerprint import digest
from pfungst.players.reference import PlayerAround
from pfungst.probes.noise.appending import append, count_appended
from pfungst.probes.noise.bqd import BasicQuestions, pool_questions
from pfungst.probes.noise.probe import Vqabq
from pfungst.probes.noise.ranking import rank

APPENDED = 3
"""Most basic questions that Algorithm 1 appends."""


class VqabqPlayer(PlayerAround):
    """Another player that is asked each question together with the basic questions whose scores pass the thresholds.

    settings : those of the probe `vqabq`: the pool or a ranked file, ranker and thresholds
    data : its questions are the pool where `settings` names none
    """

    def __init__(self, player: Player, settings: Vqabq, data: Dataset | None = None) -> None:
        super().__init__(player)
        self._settings = settings
        self._stored: BasicQuestions | None = None
        self._pool: list[str] = []
        if settings.ranked:
            self._stored = BasicQuestions.read(Path(settings.ranked))
        elif settings.pool or data is not None:
            self._pool = pool_questions(settings.pool, data or Dataset("", []), settings.pool_type, settings.pool_limit)
        else:
            raise PlayerError("The player 'vqabq' takes basic questions from a pool: give it one with pool=DATA.")
        self._ranker = settings.make()
        self._asked: dict[str, str] = {}
        rows = self._stored.rows if self._stored is not None else {}
        ranked_by = "" if rows else getattr(self._ranker, "fingerprint", "")
        self.name: str = f"vqabq:{player.name}"
        self.fingerprint: str = f"vqabq-1-{digest(replace(settings, ranked=''), rows, self._pool, ranked_by)} " + str(
            player.fingerprint
        )

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        new = list(dict.fromkeys(query.question for query in queries if query.question not in self._asked))
        # Nothing is similar to an empty question.
        self._asked.update((text, text) for text in new if not text.strip())
        if new := [text for text in new if text.strip()]:
            self._asked.update(zip(new, self.questions(new), strict=True))
        asked = [replace(query, question=self._asked[query.question]) for query in queries]
        return list(self._inner.answer(asked))

    def questions(self, main: Sequence[str]) -> list[str]:
        """What the other player is asked for these main questions."""
        rows = self._read(main) if self._stored is not None else self._rank(main)
        scores = np.asarray([scores for _, scores in rows], dtype=np.float64).reshape(len(main), APPENDED)
        counts = count_appended(scores, (self._settings.s1, self._settings.s2, self._settings.s3))
        return [
            append(text, basic[:count], self._settings.words)
            for text, (basic, _), count in zip(main, rows, counts.tolist(), strict=True)
        ]

    def _rank(self, main: Sequence[str]) -> list[tuple[Sequence[str], Sequence[float]]]:
        keep, same = self._settings.keep_main_questions, self._settings.same
        found = rank(main, self._pool, self._ranker, k=APPENDED, keep_main_questions=keep, same=same)
        return [
            ([self._pool[i] for i in row], scores)
            for row, scores in zip(found.indices.tolist(), found.scores.tolist(), strict=True)
        ]

    def _read(self, main: Sequence[str]) -> list[tuple[Sequence[str], Sequence[float]]]:
        assert self._stored is not None
        rows: list[tuple[Sequence[str], Sequence[float]]] = []
        for text in main:
            if text not in self._stored.rows:
                raise PlayerError(
                    f"{self._settings.ranked} has no basic questions for {text!r:.80}: rank it first, or name a pool."
                )
            basic, scores, _ = self._stored.rows[text]
            if len(basic) < APPENDED:
                raise PlayerError(
                    f"{self._settings.ranked} has fewer than {APPENDED} basic questions for {text!r:.80}."
                )
            rows.append((basic[:APPENDED], scores[:APPENDED]))
        return rows
