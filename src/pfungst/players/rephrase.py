"""Rephrasings written by a player: any model that follows an instruction, behind a server or on this machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pfungst.core import Asker, Example, Player, Query
from pfungst.core.files import cache_dir
from pfungst.core.store import AnswerStore
from pfungst.players.resolving import writer
from pfungst.probes.rephrase.generators import Gate, gated

PROMPT = (
    "Rephrase the following question about an image in {count} different ways. Keep its meaning exactly, so that the "
    "answer stays the same; do not answer it. Write one rephrasing per line, nothing else.\n\nQuestion: {question}"
)
_LISTED = re.compile(r"^\s*(?:[-*•]|\(?\d{1,2}[.):]|[a-z][.)])\s*")
_MORE = 2
"""Times as many are asked for as are wanted: the gate takes some."""


@dataclass(frozen=True)
class Asked:
    """`model:PLAYER`: a player that writes, with a check of the meaning.

    For example `model:openai:MODEL@http://localhost:8000/v1` or `model:hf:FOLDER`. Replies are kept in an answer store
    in the cache folder: the same questions are not paid for twice, and a run can be rescored.
    """

    argument: str | Player
    """A player, or a word for one. It sees no image: words are rephrased, not answered."""
    least: float = 0.75
    """Smallest cosine of the sentence vectors: a writer is freer than a rule, so the check is stricter."""
    encoder: str = "skip-thoughts"
    prompt: str = PROMPT
    name: str = "model"

    @cached_property
    def player(self) -> Player:
        return writer(self.argument)

    @property
    def keeps(self) -> str:
        named = self.argument if isinstance(self.argument, str) else self.argument.name
        return (
            f"the answer: {named} was told to keep the meaning, and the sentence vectors ({self.encoder}) have a "
            f"cosine of at least {self.least:g}; nobody has read the texts, so let people judge a sample"
        )

    def rephrase(self, examples: Sequence[Example], count: int, seed: int) -> list[tuple[str, ...]]:
        questions = [one.question for one in examples]
        distinct = list(dict.fromkeys(questions))
        written = dict(zip(distinct, self._written(distinct, count * _MORE, seed), strict=True))
        return gated(questions, [written[text] for text in questions], count, Gate(self.least, self.encoder))

    def _written(self, questions: Sequence[str], count: int, seed: int) -> list[list[str]]:
        asked = [Query(self.prompt.format(count=count, question=text), take=seed) for text in questions]
        with AnswerStore(cache_dir("rephrasings") / "answers.sqlite") as store:
            replies = Asker(self.player, store).answers(asked, "rephrasing")
        return [lines(reply.text, text) for text, reply in zip(questions, replies, strict=True)]


def lines(reply: str, question: str) -> list[str]:
    """The rephrasings in a reply: one per line, without numbering, quotation marks and the question itself."""
    found = []
    for line in reply.splitlines():
        text = _LISTED.sub("", line).strip().strip("\"'“”").strip()
        if text and text.lower() != question.lower() and len(text.split()) > 1:
            found.append(text)
    return list(dict.fromkeys(found))
