"""A judge as metric and as matcher: `judge:PLAYER,key=value,...`. A player reads question, reference answers and reply,
and says right or wrong; or it reads question, options and reply, and says which answer was given."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pfungst.core import (
    Answer,
    AnsweredTrial,
    Asker,
    BudgetSpent,
    DataError,
    Example,
    Findings,
    Player,
    PlayerDied,
    PlayerError,
    Query,
    UsageError,
)
from pfungst.core.fingerprint import digest
from pfungst.core.settings import parse_settings, settings_of, split_settings, split_spec
from pfungst.core.store import AnswerStore
from pfungst.core.types import Progress, Variant
from pfungst.players.hashing import unit
from pfungst.players.judging import section
from pfungst.players.judging.prompt import (
    JUDGE,
    READ,
    SEEING,
    answer_of,
    filled,
    judge_data,
    read_data,
    read_template,
    references,
    verdict,
)
from pfungst.players.resolving import writer
from pfungst.rows import cells
from pfungst.rows.fields import Bad
from pfungst.rows.source import open_source
from pfungst.scores.matchers import answer_kind, get_matcher, read
from pfungst.scores.matchers.reply import said as spoken
from pfungst.scores.matchers.words import numbers_in, value_of, words

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSettings:
    """How a judge scores answers."""

    labels: Path | None = None
    """A table of what people say about the same answers: id and right, and if known probe, condition, reply."""
    repeat: float = 1.0
    """Share of the judgements that are asked for twice."""
    prompt: Path | None = None
    """A text file with the judge's prompt; {data} stands for question, reference answers and reply."""
    image: bool = False
    """Show the judge the image too."""
    max_errors: int | None = None
    """How many judgements may fail before the run stops; none: 10, or 1% if that is more."""

    def __post_init__(self) -> None:
        if not 0 <= self.repeat <= 1:
            raise UsageError(f"The judge's setting repeat is a share from 0 to 1, not {self.repeat:g}.")
        if self.max_errors is not None and self.max_errors < 0:
            raise UsageError(f"The judge's setting max_errors must be 0 or more, not {self.max_errors}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderSettings:
    """How a judge reads replies."""

    first: str | None = "lenient"
    """The matcher that reads what it can; the judge is asked about the rest. none: about everything."""


def parse(argument: str, kind: type[T], what: str) -> tuple[Player, T]:
    """The player and the settings in what follows `judge:`; options that are not the judge's are the player's."""
    words = split_spec(f"judge:{argument}")[1]
    spec = words[0].strip() if words else ""
    if not spec or not argument.strip() or "=" in spec.partition(":")[0]:
        raise UsageError(f"Say who judges: --{what} judge:openai:MODEL@http://localhost:8000/v1.")
    own = {setting.name for setting in settings_of(kind)}
    given = split_settings(words[1:], what="judge")
    settings = parse_settings(kind, {key: word for key, word in given.items() if key in own}, what="judge")
    options = {key: word for key, word in given.items() if key not in own}
    try:
        player = writer(spec, **options)
    except UsageError as error:
        if not options:
            raise
        raise UsageError(f"{error} The judge's own settings are: {', '.join(sorted(own))}.") from error
    return player, settings


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
        return _answer(self._said[key], example.choices, answer_kind(example.answer_type), answer_of(answer))

    def __call__(self, reply: str, choices: Sequence[str], kind: str) -> str | None:
        return self.read(Example("", "(not known)", choices=tuple(choices), answer_type=kind), Answer(reply))

    def _sure(self, example: Example, answer: Answer) -> str | None:
        if self._first is None:
            return None
        return self._first(answer.reply, example.choices, answer_kind(example.answer_type))

    def _query(self, example: Example, answer: Answer) -> Query | None:
        """What is asked about a reply; None where there is nothing to ask."""
        reply = answer_of(answer)
        if not reply or answer.scores is not None or self._sure(example, answer) is not None:
            return None
        kind = "choice" if example.choices else answer_kind(example.answer_type)
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


COLUMNS = {
    "id": ("id", "example_id", "question_id"),
    "probe": ("probe",),
    "condition": ("condition", "variant"),
    "right": ("right", "human", "label", "correct"),
    "reply": ("reply", "raw"),
}
"""What is read, and the columns it is read from: also those that `pfungst export --to csv` writes."""
_RIGHT = frozenset(("1", "1.0", "true", "yes", "right", "correct", "y", "t"))
_WRONG = frozenset(("0", "0.0", "false", "no", "wrong", "incorrect", "n", "f"))


@dataclass(frozen=True, slots=True)
class Label:
    """One answer, labelled by a person."""

    id: str
    right: bool
    probe: str = ""
    """Empty: any probe."""
    condition: str = ""
    """Empty: the clean one."""
    reply: str | None = None
    """The reply that the person saw, where the file says."""

    def fits(self, reply: str) -> bool:
        """Whether the person saw this reply. A spreadsheet may have changed its signs, not its words."""
        return self.reply is None or _bare(self.reply) == _bare(reply)


def read_labels(path: Path) -> dict[str, list[Label]]:
    """The labels by id. Rows without a label are left out: a person may have labelled some rows of a table."""
    if not path.is_file():
        raise DataError.at(path, "", "there is no such label file.")
    source = open_source(path)
    for wanted in ("id", "right"):
        if not set(COLUMNS[wanted]) & set(source.columns):
            raise DataError.at(
                path, "", f"there is no column {' or '.join(COLUMNS[wanted])}; the columns are "
                f"{', '.join(source.columns[:30])}.", "Labels need an id and right or wrong."
            )  # fmt: skip
    found: dict[str, list[Label]] = {}
    for label in _labels(path, source.rows):
        found.setdefault(label.id, []).append(label)
    if not found:
        raise DataError.at(path, "", f"no row has a label in the column {COLUMNS['right'][0]}.")
    return found


def _labels(path: Path, rows: Any) -> Iterator[Label]:
    for where, row in rows:
        value = cells.first(row, COLUMNS["right"])
        try:
            word = cells.optional(value, "the label").strip().casefold()
            if not word:
                continue
            if word not in _RIGHT | _WRONG:
                raise Bad(f"the label {word!r} is neither right nor wrong (1 and 0 will do).")
            # In an exported table a text that a spreadsheet would run has an apostrophe in front.
            id_ = re.sub(r"^'(?=[=+@-])", "", cells.identifier(cells.first(row, COLUMNS["id"]), "id"))
            texts = {name: _text(row, name) for name in ("probe", "condition", "reply")}
        except Bad as problem:
            raise DataError.at(path, where, str(problem)) from None
        yield Label(id_, word in _RIGHT, texts["probe"] or "", texts["condition"] or "", texts["reply"])


def _text(row: Mapping[str, Any], name: str) -> str | None:
    value = cells.first(row, COLUMNS[name])
    return None if value is None else cells.text(value, name)


def _bare(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()
