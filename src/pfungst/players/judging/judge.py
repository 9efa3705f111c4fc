"""A judge as metric: `judge:PLAYER`. A player reads question, reference answers and reply, and says right or wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from pfungst.core import Answer, AnsweredTrial, Asker, BudgetSpent, Example, Findings, Player, PlayerDied, PlayerError
from pfungst.core.store import AnswerStore
from pfungst.core.types import Progress, Query, Variant
from pfungst.players.hashing import digest, unit
from pfungst.players.judging import section
from pfungst.players.judging.labels import read_labels
from pfungst.players.judging.prompt import JUDGE, SEEING, answer_of, filled, judge_data, read_template, references
from pfungst.players.judging.settings import JudgeSettings, parse
from pfungst.players.judging.verdict import verdict

STORE = "judgements.sqlite"
"""In the run folder: every judgement and reading that was asked for. What is in it is not asked again."""


class Judge:
    """judge:PLAYER, a player that says whether an answer is right, such as judge:openai:MODEL@URL."""

    def __init__(self, player: Player, settings: JudgeSettings | None = None) -> None:
        self.player = player
        self.settings = settings or JudgeSettings()
        self.template: str = read_template(self.settings.prompt)
        self.labels = read_labels(self.settings.labels) if self.settings.labels is not None else {}
        self.failures: list[tuple[str, str]] = []
        """Judgements that could not be had: the prompt, and what went wrong."""
        self._examples: dict[str, Example] = {}
        self._said: dict[str, Answer] = {}
        self._asked: set[str] = set()

    @classmethod
    def of(cls, argument: str) -> Judge:
        """The judge that `judge:ARGUMENT` names."""
        return cls(*parse(argument, JudgeSettings, "metric"))

    @property
    def label(self) -> str:
        """Names a second reading by this judge: `judge-MODEL`, and the prompt where it is not ours."""
        own = "" if self.template == JUDGE else f"-{digest(self.template)[:6]}"
        return f"judge-{self.player.name}{own}"

    def prepare(self, answers: Sequence[tuple[Example, Answer]], folder: Path, progress: Progress) -> None:
        """Ask for every judgement that the run folder does not hold yet."""
        queries: dict[str, Query] = {}
        for example, answer in answers:
            self._examples.setdefault(example.id, example)
            query = self.query(example, answer)
            if query is not None:
                for one in self._takes(query):
                    queries[one.key(self.player.fingerprint)] = one
        if not queries:
            return
        with AnswerStore(folder / STORE) as store:
            asker = Asker(self.player, store, progress=progress)
            most = self.settings.max_errors
            most = max(10, len(queries) // 100) if most is None else most
            try:
                self._said.update(asker.fill(queries, f"{self.player.name} judges", tolerate=most))
            except (PlayerDied, BudgetSpent):
                raise
            except PlayerError as error:
                raise PlayerError(
                    f"The judge {self.player.name} failed on {max(1, asker.failed)} of {len(queries):,} judgements: "
                    f"{asker.last_error or error} Those it gave are kept: run the same command again to ask for the "
                    "rest, or allow more failures with max_errors=N after the judge."
                ) from error
            self.failures += asker.failures
        self._asked.update(queries)
        if not any(isinstance(verdict(said.text), bool) for said in self._said.values()):
            first = next((said.text for said in self._said.values()), "")
            raise PlayerError(
                f"The judge {self.player.name} gave no verdict in {len(self._said):,} judgements. It was asked for "
                f"one word and said, for example, {first!r:.200}. Choose another judge, or let it say more: "
                "max_tokens=N after the judge."
            )

    def __call__(self, example: Example, answer: Answer) -> float:
        """1 for right, 0 for wrong; NaN where the truth is unknown or the judgement failed."""
        if not references(example):
            return math.nan
        query = self.query(example, answer)
        if query is None:
            return 0.0
        key = query.key(self.player.fingerprint)
        if key not in self._asked:
            self._asked.add(key)
            self._said.update(Asker(self.player).fill({key: query}, "judging"))
        judged = self.judged(key)
        return float(judged) if isinstance(judged, bool) else math.nan

    @property
    def problems(self) -> tuple[str, ...]:
        """That judgements failed, where the user has not allowed it."""
        if not self.failures or self.settings.max_errors is not None:
            return ()
        return (
            f"{len(self.failures):,} judgements of {self.player.name} failed; their answers are left out of all "
            f"numbers. The first: {self.failures[0][1]:.300} The same exam asks for them again; max_errors=N after the "
            "judge allows them.",
        )

    def query(self, example: Example, answer: Answer) -> Query | None:
        """What the judge is asked about an answer; None where there is nothing to ask."""
        reply = answer_of(answer)
        if not reply or not references(example):
            return None
        data = judge_data(example, reply)
        image = example.image if self.settings.image else None
        return Query(filled(self.template, data, seeing=SEEING[image is not None]), image)

    def judged(self, key: str) -> bool | str | None:
        """The verdict, why there is none, or None where the judge did not reply at all."""
        said = self._said.get(key)
        return None if said is None else verdict(said.text)

    def confidence(self, key: str) -> float | None:
        """The probability that the judge gives its own word, where it tells."""
        said = self._said.get(key)
        return None if said is None else said.confidence

    def key(self, trial: AnsweredTrial, variant: Variant, answer: Answer, take: int = 0) -> str | None:
        """The name of a judgement; None where none was needed: no known truth, or no reply."""
        # Another member of a group was asked: it is known from `prepare`.
        example = self._examples.get(variant.example_id, trial.example)
        query = self.query(variant.asked(example), answer)
        if query is None:
            return None
        takes = self._takes(query)
        return takes[take].key(self.player.fingerprint) if take < len(takes) else None

    def findings(self, trials: Mapping[str, Sequence[AnsweredTrial]], player: Player, seed: int) -> Findings:
        """How far the judge can be trusted, and what its accuracies are worth."""
        return section.findings(self, trials, player, seed)

    def _takes(self, query: Query) -> tuple[Query, ...]:
        """The query, and again where it belongs to the sample that is asked twice."""
        if unit(0, "judged twice", query) >= self.settings.repeat:
            return (query,)
        return query, Query(query.question, query.image, take=1)
