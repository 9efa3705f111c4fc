"""What a metric makes of case, punctuation and articles, and of few right answers: a score may be low although the
answers are right."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace

from pfungst.core import Answer, Example
from pfungst.scores.metrics import Metric, get_metric
from pfungst.scores.vqa import ENOUGH

WORTH_TELLING = 0.02
"""Two points: below that nothing is said."""

_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")
# A point, colon or slash between digits belongs to a number: 3.5, 10:30.
_MARKS = re.compile(r"(?:(?<!\d)|(?![.:/]\d))(?:[^\w\s]|_)")
_ARTICLES = frozenset(("a", "an", "the"))


@dataclass(frozen=True, slots=True)
class Gap:
    """A score, and what it would be if case, punctuation and articles did not count."""

    metric: str
    score: float
    """Mean score as it is, a fraction; NaN if there are no answers with a known truth."""
    normalised: float
    """The same with answers and truths normalised."""
    n: int
    differ: int
    """Answers that score more when normalised."""
    few: int = 0
    """Questions with too few right answers for full marks by VQA accuracy."""
    matcher: str = ""
    """That read the answers; empty where none did, or it is not known."""

    @property
    def size(self) -> float:
        return self.normalised - self.score

    @property
    def sentence(self) -> str:
        """For the end of a run; empty where nothing is worth telling."""
        return " ".join(filter(None, (self._few, self._spelling)))

    @property
    def _few(self) -> str:
        if not self.few or self.few < WORTH_TELLING * self.n:
            return ""
        return (
            f"{self.few:,} of {self.n:,} questions have two or three right answers, too few for full marks by "
            f"`{self.metric}`, which is made for ten people. Try --metric any: each of them is right."
        )

    @property
    def _spelling(self) -> str:
        if not self.n or not self.size >= WORTH_TELLING:
            return ""
        read = self.matcher == "lenient"
        fixed = self.metric == "vqa" or (read and self.metric == "exact")
        other = [*(["--metric vqa-fixed"] if fixed else []), *([] if read else ["--matcher lenient"])]
        noun, verb = ("answer", "differs") if self.differ == 1 else ("answers", "differ")
        return (
            f"By `{self.metric}`, {100 * self.score:.1f}% is right; {100 * self.normalised:.1f}% would be if case, "
            f"punctuation and articles did not count: {self.differ:,} {noun} {verb} only in these."
            + (f" Try {' or '.join(other)}." if other else "")
        )


def spelling_gap(
    examples: Iterable[Example], answers: Iterable[Answer], metric: str | Metric, matcher: str = ""
) -> Gap:
    """Score answers as they are, and with case, punctuation and articles taken off answers and truths alike.

    matcher: that read the answers, so that nobody is advised to try it.
    """
    judge = get_metric(metric) if isinstance(metric, str) else metric
    name = metric if isinstance(metric, str) else getattr(metric, "__name__", type(metric).__name__)
    total = normalised = 0.0
    n = differ = few = 0
    for example, answer in zip(examples, answers, strict=True):
        score = judge(example, answer)
        if math.isnan(score):
            continue
        bare = judge(bare_example(example), replace(answer, text=bare_text(answer.text)))
        n += 1
        few += name.startswith("vqa") and 1 < len(example.answers) <= ENOUGH
        total += score
        # Normalising may make two human answers one, or none at all: never count that against an answer.
        normalised += max(score, bare)
        differ += bare > score
    return Gap(name, total / n if n else math.nan, normalised / n if n else math.nan, n, differ, few, matcher)


def bare_example(example: Example) -> Example:
    return replace(
        example,
        answers=tuple(map(bare_text, example.answers)),
        target=None if example.target is None else bare_text(example.target),
        choices=tuple(map(bare_text, example.choices)),
    )


def bare_text(text: str) -> str:
    """A text without case, punctuation (except inside numbers) and articles; itself where nothing would be left."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("'", "").replace("’", "")
    plain = _MARKS.sub(" ", _THOUSANDS.sub("", folded))
    words = plain.split()
    return " ".join(word for word in words if word not in _ARTICLES) or " ".join(words) or text
