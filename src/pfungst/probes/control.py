"""The control: the same question twice.

A player that samples, or runs on hardware that rounds differently each time, changes its mind without any disturbance.
Every drop must be read against this noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pfungst.core import AnsweredTrial, Dataset, Figure, Findings, Probe, Table, Trial, Variant
from pfungst.probes import measure

KEEPS = "the answer: image, question and choices are the same"


@dataclass(frozen=True)
class Control(Probe):
    """Ask everything twice, unchanged."""

    name: str = "control"
    role = "control"

    def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
        for example in data:
            query = measure.clean_query(example)
            again = replace(query, take=1)
            yield Trial(example.id, (Variant("clean", query), Variant("again", again)), KEEPS)

    def findings(self, trials: Sequence[AnsweredTrial], seed: int) -> Findings:
        clean = measure.accuracy(trials, "clean", seed)
        again = measure.accuracy(trials, "again", seed)
        drop = measure.drop(trials, "clean", "again", seed)
        changed = measure.changed(trials, "clean", "again", seed)
        flips = measure.flips(trials, "clean", "again")
        first = next(iter(trials), None)
        if first is not None and first.trial.variants[0].query.example_id:
            # The second time the same record was read: that says nothing about the model.
            told = f"Recorded answers, {measure.with_interval(clean)} of them right. A file has one answer per question"
            verdict = f"{told}, so the control cannot tell how much of it is sampling noise."
            return Findings(self.name, (clean,), verdict, clean, tables=tuple(_by_type(trials, seed)))
        if changed.value == 0:
            every = "the one question" if changed.n == 1 else f"all {changed.n} questions"
            known = f" ({measure.unchanged(changed, 'answers')})" if changed.at_most == changed.at_most else ""
            verdict = f"Asked twice, the player gave the same answer to {every}: no sampling noise{known}."
        elif changed.value != changed.value:
            verdict = (
                "Asked twice, the player gave no pair of replies that could be read: how often it changes its answer "
                "is unknown. Look at the raw replies, or read them with another --matcher."
            )
        else:
            verdict = (
                f"Asked twice, the player changed {measure.with_interval(changed)} of its answers without any "
                "disturbance: compare every other change with this."
            )
        table = Table(
            "Asked twice",
            ("right to wrong", "wrong to right", "wrong to other wrong", "unchanged", "n"),
            ((flips.right_to_wrong, flips.wrong_to_right, flips.wrong_to_other_wrong, flips.unchanged, flips.n),),
        )
        types = _by_type(trials, seed)
        bars = measure.series("accuracy", ("first time", "second time"), (clean, again))
        figure = Figure("Accuracy, the same question twice", "bar", (bars,), y_label="accuracy")
        return Findings(
            self.name, (clean, again, drop, changed), verdict, clean, again, drop, (table, *types), (figure,),
            measure.worst(trials, "clean", "again"),
        )  # fmt: skip


def _by_type(trials: Sequence[AnsweredTrial], seed: int) -> list[Table]:
    """Clean accuracy by answer type and by question type, where the data set knows them."""
    tables = []
    for title, kind in (("answer type", "answer_type"), ("question type", "question_type")):
        groups = measure.by_kind(trials, kind)
        if len(groups) > 1:
            found = [
                (name or "unknown", measure.accuracy(some, "clean", seed)) for name, some in sorted(groups.items())
            ]
            rows = tuple((name, accuracy, accuracy.n) for name, accuracy in found)
            tables.append(Table(f"Accuracy by {title}", (title, "accuracy", "n"), rows))
    return tables
