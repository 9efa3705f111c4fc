"""Reference players: they look at no image, but show what a number means.

`oracle` gives the best number possible on a data set, `prior` what blind guessing by question type gives, `random`
chance, and `flaky` what a player's noise looks like. Each is a pure function of (data set, seed, query).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pfungst.core import Answer, Dataset, Player, PlayerError, Query, Reading, UsageError
from pfungst.core.fingerprint import digest
from pfungst.core.types import as_player
from pfungst.players.hashing import pick, unit
from pfungst.players.lookup import Lookup, beginnings, content_digest, required, truth


class OraclePlayer(Player):
    """Answers the target of the example that was asked.

    It knows questions by heart and uses the image only to tell apart examples that share a question, so it stays
    right when the image is taken away, unless the same question stands elsewhere with other answers; then it says
    the most frequent of them. When words were appended to the question, the longest known beginning counts. A
    question it cannot place gets the most frequent answer of the data set. In a multiple choice it picks the choice
    that is the target; where that is not among the choices, any one, fixed by the query.
    """

    reads_images = False

    def __init__(self, data: Dataset | None) -> None:
        data = required(data, "oracle")
        self._lookup = Lookup(data)
        known = _counts(truth(example) for example in data)
        if not known:
            raise PlayerError(f"The data set '{data.name}' has no answers, which the oracle needs.")
        self._usual = _most_frequent(known)
        self.name = "oracle"
        self.fingerprint: str = f"oracle-1-{content_digest(data)}"

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        return [self._one(query) for query in queries]

    def _one(self, query: Query) -> Answer:
        examples = self._lookup.best(query)
        votes = _counts(truth(example) for example in examples)
        if not query.choices:
            return Answer(_most_frequent(votes) if votes else self._usual)
        chosen = _matching(query.choices, sorted(votes, key=lambda text: (-votes[text], text)))
        return Answer(chosen if chosen is not None else pick(query.choices, 0, "oracle", _steady(query)))


class PriorPlayer(Player):
    """Answers the most frequent answer of the question's type: the score a player gets without looking.

    The type is that of the same question (or its longest known beginning) in the data set; else the longest type
    whose words the question begins with; else the whole data set. Where the data set has no types, the first two
    words of the question stand in for one. The frequencies come from the data given, usually the one examined, so
    this is the best that guessing by type can do there. In a multiple choice it picks the most frequent choice.
    """

    reads_images = False

    def __init__(self, data: Dataset | None) -> None:
        data = required(data, "prior")
        types: dict[str, Counter[str]] = {}
        # Answers by type; None stands for the whole data set.
        self._counts: dict[str | None, Counter[str]] = {None: Counter()}
        for example in data:
            kind = (example.question_type or " ".join(example.question.split()[:2])).casefold()
            text = truth(example)
            types.setdefault(example.question, Counter())[kind] += 1
            if text is not None:
                self._counts[None][text] += 1
                self._counts.setdefault(kind, Counter())[text] += 1
        if not self._counts[None]:
            raise PlayerError(f"The data set '{data.name}' has no answers: there is no most frequent one.")
        self._type_of = {question: _most_frequent(kinds) for question, kinds in types.items()}
        self._usual: dict[str | None, Answer] = {}
        for kind_or_all, counts in self._counts.items():
            text = _most_frequent(counts)
            self._usual[kind_or_all] = Answer(text, confidence=counts[text] / counts.total())
        self.name = "prior"
        self.fingerprint: str = f"prior-1-{content_digest(data)}"

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        return [self._one(query) for query in queries]

    def _one(self, query: Query) -> Answer:
        kind = self._kind(query.question)
        if not query.choices:
            return self._usual[kind]
        seen = [self._counts[kind][choice] for choice in query.choices]
        if not any(seen):
            seen = [self._counts[None][choice] for choice in query.choices]
        total = sum(seen)
        scores = tuple(count / total if total else 1 / len(seen) for count in seen)
        best = [i for i, score in enumerate(scores) if score == max(scores)]
        chosen = pick(best, 0, "prior", _steady(query))
        return Answer(query.choices[chosen], confidence=scores[chosen], scores=scores)

    def _kind(self, question: str) -> str | None:
        for beginning in beginnings(question):
            if beginning in self._type_of:
                kind = self._type_of[beginning]
                return kind if kind in self._counts else None
        return next((beginning for beginning in beginnings(question.casefold()) if beginning in self._counts), None)


class RandomPlayer(Player):
    """Answers uniformly at random among the distinct answers of the data set, or among the choices: chance.

    The draw depends on seed and query alone; the same question asked again (`take` 1) is a new draw.
    """

    reads_images = False

    def __init__(self, data: Dataset | None = None, seed: int = 0) -> None:
        self._answers = sorted(_counts(truth(example) for example in data)) if data is not None else []
        self._seed = seed
        self.name = "random"
        self.fingerprint: str = f"random-1-{digest(seed, self._answers)}"

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        return [Answer(pick(query.choices or self._pool(), self._seed, "random", query)) for query in queries]

    def _pool(self) -> Sequence[str]:
        if not self._answers:
            raise PlayerError("The player 'random' draws open answers from a data set: give it one that has answers.")
        return self._answers


class PlayerAround(Player):
    """A player that asks another one; what is optional about that one stays visible."""

    def __init__(self, inner: Player) -> None:
        self._inner = inner = as_player(inner)
        self.reads_scenes = inner.reads_scenes
        self.reads_images = inner.reads_images
        self.reads_ids = inner.reads_ids
        self.batch_size = inner.batch_size
        self.samples = inner.samples
        self.matcher = inner.matcher


class FlakyPlayer(PlayerAround):
    """Another player that changes its mind with probability p, by a draw that depends on (seed, query, take) alone.

    It then says the other of yes and no, another choice, or another answer of the data set. Because nothing else
    enters the draw, a run that was killed goes on with the same answers. Without another player, the oracle.
    """

    def __init__(
        self, data: Dataset | None = None, p: float = 0.1, player: Player | None = None, seed: int = 0
    ) -> None:
        if not 0.0 <= p <= 1.0:
            raise UsageError(f"The player 'flaky' changes its mind with a probability between 0 and 1, not {p}.")
        super().__init__(player if player is not None else OraclePlayer(data))
        self._p = p
        self._seed = seed
        self._answers = sorted(_counts(truth(example) for example in data)) if data is not None else []
        self.name: str = f"flaky:{p:g}" + (f":{player.name}" if player is not None else "")
        self.fingerprint: str = f"flaky-1-{digest(p, seed, self._answers, self._inner.fingerprint)}"

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        return [self._second_thought(q, a) for q, a in zip(queries, self._inner.answer(queries), strict=True)]

    def reading(self, queries: Sequence[Query]) -> Sequence[Reading | None]:
        return self._inner.reading(queries)

    def _second_thought(self, query: Query, first: Answer) -> Answer:
        if unit(self._seed, "flaky", query) >= self._p:
            return first
        if query.choices:
            others = [choice for choice in query.choices if choice != first.text]
            return Answer(pick(others, self._seed, "other", query)) if others else first
        if first.text in ("yes", "no"):
            return Answer("no" if first.text == "yes" else "yes")
        if not self._answers:
            raise PlayerError(
                "The player 'flaky' takes its other answers from a data set: give it one that has answers."
            )
        # Uniform over all answers but the first one, without a list of tens of thousands for every question.
        place = bisect_left(self._answers, first.text)
        known = place < len(self._answers) and self._answers[place] == first.text
        if known and len(self._answers) == 1:
            return first
        drawn = pick(range(len(self._answers) - known), self._seed, "other", query)
        return Answer(self._answers[drawn + (known and drawn >= place)])


def _steady(query: Query) -> Query:
    """The same draw however often the question is asked: these players have no sampling noise."""
    return replace(query, take=0)


def _counts(texts: Iterable[str | None]) -> Counter[str]:
    return Counter(text for text in texts if text is not None)


def _most_frequent(counts: Counter[str]) -> str:
    """Ties go to the first in the alphabet, so that the order of the data set does not matter."""
    return min(counts, key=lambda text: (-counts[text], text))


def _matching(choices: Sequence[str], wanted: Sequence[str]) -> str | None:
    for text in wanted:
        if text in choices:
            return text
        for choice in choices:
            if choice.strip().casefold() == text.strip().casefold():
                return choice
    return None
