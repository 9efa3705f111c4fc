"""How many decoys may be right too: what annotators answered, and what encoders call the same as the right answer.

Nobody was asked about the decoys. Both shares are lower bounds: ten people do not say all that is right, and encoders
know no image.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pfungst.core import AnsweredTrial, Example, Finding, Table
from pfungst.core.flips import normalise
from pfungst.probes import measure
from pfungst.scores.vqa import process, tidy
from pfungst.text import encode, get_encoder
from pfungst.text.encoders.base import unit_rows

SAME = 0.9
"""Cosine from which an encoder calls two answers the same: "plate" and "plates", hardly "man" and "guy"."""
GIVEN, ALIKE = "an annotator gave it", "encoders call it the same"
_POLAR = frozenset({"yes", "no"})


class Alike:
    """Whether all of some encoders call two answers the same."""

    def __init__(self, texts: Iterable[str], encoders: Sequence[str]) -> None:
        self.rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        self.vectors = [unit_rows(encode(list(self.rows), get_encoder(name or None))) for name in encoders]

    def __call__(self, one: str, other: str) -> bool:
        first, second = self.rows[one], self.rows[other]
        return all(float(vectors[first] @ vectors[second]) >= SAME for vectors in self.vectors)


def note(example: Example, choices: Sequence[str], alike: Alike) -> dict[str, int]:
    """What a trial keeps of its decoys: how many there are, how many an annotator gave, how many are called the same.

    `given` is missing where fewer than two people answered.
    """
    target = str(example.target)
    decoys = [one for one in choices if one != target]
    told = {
        "decoys": len(decoys),
        "alike": sum(alike(target, one) for one in decoys),
        "polar": int(normalise(target) in _POLAR),
    }
    if len(example.answers) > 1:
        said = {process(tidy(answer)) for answer in example.answers}
        told["given"] = sum(process(tidy(one)) in said for one in decoys)
    return told


def ambiguity(trials: Sequence[AnsweredTrial], seed: int) -> list[Finding]:
    """The share of decoys that may be right too: of all questions, and of those whose answer is neither yes nor no,
    because these two are each other's decoy whatever annotators said."""
    known = [one for one in trials if one.trial.notes.get("ambiguous", {}).get("decoys")]
    open_ = [one for one in known if not one.trial.notes["ambiguous"]["polar"]]
    found = []
    for name, key in ((GIVEN, "given"), (ALIKE, "alike")):
        for condition, some in ((name, known), (f"{name}, neither yes nor no", open_)):
            notes = [one.trial.notes["ambiguous"] for one in some]
            shares = [one[key] / one["decoys"] if key in one else float("nan") for one in notes]
            found.append(measure.mean("decoys that may be right", shares, measure.clusters(some), seed, condition))
    return [one for one in found if one.n]


def table(found: Sequence[Finding]) -> Table:
    """The same for a report."""
    return Table(
        "Decoys that may be right too",
        ("because", "share of the decoys", "questions"),
        tuple((one.condition, one, one.n) for one in found),
        f"Lower bounds. Encoders: cosine with the right answer of {SAME} and above, by each of them. Decoys skip what "
        "annotators gave, but for yes and no, which are each other's decoy.",
    )


def sentence(found: Sequence[Finding]) -> str:
    """The same in words: of the questions whose answer is neither yes nor no, where there are some. That encoders
    call none the same says little: only the table has it."""
    said = []
    for name, words in ((GIVEN, "an annotator gave {} of them"), (ALIKE, "encoders call {} of them the same")):
        some = [one for one in found if one.condition.startswith(name) and (one.value or name == GIVEN)]
        if some:
            said.append(words.format(measure.with_interval(some[-1])))
    return f" Decoys that may be right too: {', '.join(said)}." if said else ""
