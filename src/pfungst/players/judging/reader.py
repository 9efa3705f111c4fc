"""A judge as matcher: `judge:PLAYER`. A player reads question, options and reply, and says which answer was given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pfungst.core import Answer, Asker, Example, Player, Query
from pfungst.core.store import AnswerStore
from pfungst.core.types import Progress
from pfungst.players.judging.judge import STORE
from pfungst.players.judging.prompt import READ, answer_of, filled, read_data
from pfungst.players.judging.settings import ReaderSettings, parse
from pfungst.scores.matchers import get_matcher, kind_of, read
from pfungst.scores.matchers.reply import said as spoken
from pfungst.scores.matchers.words import numbers_in, value_of, words

_WANTED = {
    "choice": "Which option does the reply choose? Answer with the letter of that option.",
    "yes/no": "Does the reply answer the question with yes or with no? Answer with YES or NO.",
    "number": "Which number does the reply give? Answer with that number, in digits.",
    "": "Which answer does the reply give? Answer with the shortest words of the reply that hold it.",
}
NONE = "none"
_NOTHING = frozenset(("no", "none", "zero", "nothing", "any", "not", "neither"))
"""Words by which a reply says 0."""


class ReplyReader:
    """judge:PLAYER, a player that finds the answer in a reply, such as judge:openai:MODEL@URL."""

    def __init__(self, player: Player, settings: ReaderSettings | None = None) -> None:
        self.player = player
        self.settings = settings or ReaderSettings()
        self._first = get_matcher(self.settings.first) if self.settings.first else None
        self._said: dict[str, str] = {}

    @classmethod
    def of(cls, argument: str) -> ReplyReader:
        """The matcher that `judge:ARGUMENT` names."""
        return cls(*parse(argument, ReaderSettings, "matcher"))

    @property
    def label(self) -> str:
        """Names a second reading by this matcher."""
        return f"reader-{self.player.name}"

    def prepare(self, answers: Sequence[tuple[Example, Answer]], folder: Path, progress: Progress) -> None:
        """Ask about every reply that the run folder does not know yet. A player that fails stops the run: a reply must
        not count as unread because a server was busy."""
        queries = {}
        for example, answer in answers:
            query = self._query(example, answer)
            if query is not None:
                queries[query.key(self.player.fingerprint)] = query
        with AnswerStore(folder / STORE) as store:
            said = Asker(self.player, store, progress=progress).fill(queries, f"{self.player.name} reads replies")
        self._said.update((key, one.text) for key, one in said.items())

    def read(self, example: Example, answer: Answer) -> str | None:
        """The answer in a reply to this question; None where there is none."""
        sure = self._sure(example, answer)
        if sure is not None:
            return sure
        query = self._query(example, answer)
        if query is None:
            return None
        key = query.key(self.player.fingerprint)
        if key not in self._said:
            self._said[key] = Asker(self.player).answers([query], "reading")[0].text
        return _answer(self._said[key], example.choices, kind_of(example.answer_type), answer_of(answer))

    def __call__(self, reply: str, choices: Sequence[str], kind: str) -> str | None:
        return self.read(Example("", "(not known)", choices=tuple(choices), answer_type=kind), Answer(reply))

    def _sure(self, example: Example, answer: Answer) -> str | None:
        if self._first is None:
            return None
        return self._first(answer.reply, example.choices, kind_of(example.answer_type))

    def _query(self, example: Example, answer: Answer) -> Query | None:
        """What is asked about a reply; None where there is nothing to ask."""
        reply = answer_of(answer)
        if not reply or answer.scores is not None or self._sure(example, answer) is not None:
            return None
        kind = "choice" if example.choices else kind_of(example.answer_type)
        wanted = _WANTED.get(kind, _WANTED[""])
        return Query(filled(READ, read_data(example, reply), wanted=wanted))


def _answer(said: str, choices: Sequence[str], kind: str, reply: str) -> str | None:
    """What the judge read, held against the reply: a judge may pick an answer out of it, not bring one along."""
    if (spoken(said) or "").strip(" .\"'*`").casefold() == NONE:
        return None
    found = read(said, choices, kind)
    if found is None or choices or kind == "yes/no":
        return found
    told = words(reply)
    if kind == "number":
        given = {value_of(number) for number, *_ in numbers_in(reply, told)}
        given |= {0.0} if any(word.key in _NOTHING for word in told) else set()
        value = value_of(found)
        return found if value is not None and value in given else None
    wanted = [word.key for word in words(found)]
    return found if wanted and {word.key for word in told}.issuperset(wanted) else None
