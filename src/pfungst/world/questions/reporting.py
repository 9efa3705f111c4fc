"""What a set of questions is made of, and how far a player gets without looking."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pfungst.world.questions.balance import possible_answers
from pfungst.world.questions.generating import Question


@dataclass(frozen=True)
class Report:
    """Counts over originals, unless said otherwise: a rephrasing adds no new question."""

    questions: int
    """With rephrasings."""
    originals: int
    images: int
    kinds: Mapping[str, int]
    families: Mapping[str, int]
    """`KIND/FAMILY` -> count."""
    answers: Mapping[str, Mapping[str, int]]
    """Kind of answer (`bool`, `integer`, an attribute) -> answer -> count."""
    family_balance: float
    """Entropy of the families over its maximum: 1 where all occur equally often."""
    answer_balance: Mapping[str, float]
    """Entropy of the answers of a kind over its maximum."""
    blind: float
    """Accuracy of always giving the most frequent answer of the kind of answer."""
    blind_by_family: float
    """The same with the most frequent answer of the family: what knowing the answers, but no image, is worth."""
    group_sizes: Mapping[str, int]
    """Wordings a question -> number of questions."""
    phrasing_splits: Mapping[str, int]
    """`train` and `heldout` wordings, rephrasings counted."""
    phrasings: int
    """Different phrasings in use."""
    words: float
    """Mean length of a question, in words, rephrasings counted."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        lines = [
            f"{self.questions} questions: {self.originals} originals about {self.images} images, "
            f"{self.phrasings} phrasings, {self.words:.1f} words on average",
            f"wordings: {_listed(self.phrasing_splits)}; group sizes: {_listed(self.group_sizes)}",
            f"kinds: {_listed(self.kinds)}",
            f"families: {len(self.families)} in use, {min(self.families.values(), default=0)} to "
            f"{max(self.families.values(), default=0)} questions each, balance {self.family_balance:.3f}",
        ]
        for kind, counts in self.answers.items():
            lines.append(f"answers, {kind}: {_listed(counts)}; balance {self.answer_balance[kind]:.3f}")
        lines.append(f"blind: {self.blind:.3f} by kind of answer, {self.blind_by_family:.3f} by family")
        return "\n".join(lines)


def report(questions: Iterable[Question | Mapping[str, Any]]) -> Report:
    """Answer distributions, family balance, wordings and blind baselines of a set of questions."""
    listed = [one if isinstance(one, Question) else Question.from_json(one) for one in questions]
    sizes = Counter(one.group for one in listed)
    originals = [one for one in listed if one.index == one.group]
    families = Counter((one.kind, one.family) for one in originals)
    by_kind: dict[str, Counter[str]] = {}
    by_family: dict[tuple[str, int], Counter[str]] = {}
    for one in originals:
        by_kind.setdefault(one.answer_kind, Counter())[one.answer] += 1
        by_family.setdefault((one.kind, one.family), Counter())[one.answer] += 1
    answers = {kind: _in_order(counts, kind) for kind, counts in sorted(by_kind.items())}
    return Report(
        questions=len(listed),
        originals=len(originals),
        images=len({one.image_filename for one in listed}),
        kinds=dict(sorted(Counter(one.kind for one in originals).items())),
        families={f"{kind}/{family}": families[kind, family] for kind, family in sorted(families)},
        answers=answers,
        family_balance=_evenness(families.values()),
        answer_balance={kind: _evenness(counts.values()) for kind, counts in answers.items()},
        blind=_majority(by_kind.values(), len(originals)),
        blind_by_family=_majority(by_family.values(), len(originals)),
        group_sizes={str(size): count for size, count in sorted(Counter(sizes.values()).items())},
        phrasing_splits=dict(sorted(Counter(one.phrasing_split for one in listed).items())),
        phrasings=len({one.phrasing for one in listed}),
        words=sum(len(one.question.split()) for one in listed) / len(listed) if listed else 0.0,
    )


def _in_order(counts: Counter[str], kind: str) -> dict[str, int]:
    """All possible answers, those that never occur with 0, and any beyond them."""
    possible = dict.fromkeys((*possible_answers(kind), *sorted(counts)))
    return {answer: counts[answer] for answer in possible}


def _evenness(counts: Iterable[int]) -> float:
    """Shannon entropy over that of the uniform distribution on as many outcomes; 1 for a single outcome."""
    listed = list(counts)
    total = sum(listed)
    if len(listed) < 2 or total == 0:
        return 1.0
    entropy = -sum(count / total * math.log(count / total) for count in listed if count)
    return entropy / math.log(len(listed))


def _majority(groups: Iterable[Counter[str]], total: int) -> float:
    return sum(max(counts.values()) for counts in groups) / total if total else 0.0


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
