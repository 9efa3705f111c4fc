"""The check of a probe: our own pass, and a contract that is broken is found out where the truth can be computed."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import pytest

from pfungst.core import AnsweredTrial, Dataset, Findings, ProbeError, Trial, Variant
from pfungst.core.types import as_probe
from pfungst.probes import PROBES, check_probe, get_probe
from pfungst.probes.control import Control
from pfungst.probes.game.adversaries import ADVERSARIES
from pfungst.probes.measure import clean_query
from pfungst.world import embedded

TINY = {"game": "game:adversary=rsg,size=3,seeds=1,budget=5"}


@pytest.mark.parametrize("name", PROBES.names())
def test_our_probes_keep_the_rules(name: str) -> None:
    assert check_probe(get_probe(TINY.get(name, name))) == []


CHEAP = {"committee": ',options={"members": "rn-state", "candidates": 6}'}


@pytest.mark.parametrize("name", ADVERSARIES.names())
def test_the_game_keeps_the_rules_with_every_adversary(name: str) -> None:
    assert check_probe(get_probe(f"game:adversary={name},size=1,seeds=1,budget=2{CHEAP.get(name, '')}")) == []


@dataclass(frozen=True)
class Tampering:
    """The control with something changed in its second variant."""

    keeps: str = "the answer, it says"
    name: str = "tampering"

    def tamper(self, variant: Variant, data: Dataset, number: int) -> Variant:
        raise NotImplementedError

    def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
        for number, example in enumerate(data):
            clean = Variant("clean", clean_query(example))
            changed = Variant("changed", replace(clean.query, take=1))
            yield Trial(example.id, (clean, self.tamper(changed, data, number)), self.keeps)

    def findings(self, trials: Sequence[AnsweredTrial], seed: int) -> Findings:
        return Control().findings([replace(one, trial=_as_control(one.trial)) for one in trials], seed)


def _as_control(trial: Trial) -> Trial:
    return replace(trial, variants=tuple(replace(v, name=n) for v, n in zip(trial.variants, ("clean", "again"))))


class Harmless(Tampering):
    """Puts the objects of the scene in another order: every program answers as before."""

    def tamper(self, variant: Variant, data: Dataset, number: int) -> Variant:
        if variant.query.scene is None:
            return variant
        scene = {**variant.query.scene, "image_index": 99}
        return replace(variant, query=replace(variant.query, scene=scene))


class Repainting(Tampering):
    """Paints every object red, which changes what colours and counts are."""

    def tamper(self, variant: Variant, data: Dataset, number: int) -> Variant:
        if variant.query.scene is None:
            return variant
        scene: dict[str, Any] = copy.deepcopy(dict(variant.query.scene))
        for thing in scene["objects"]:
            thing["color"] = "red"
        return replace(variant, query=replace(variant.query, scene=scene))


class Dropping(Tampering):
    """Offers choices without the right answer."""

    def tamper(self, variant: Variant, data: Dataset, number: int) -> Variant:
        wrong = tuple(text for text in ("yes", "no", "maybe") if text != data[number].target)
        return replace(variant, query=replace(variant.query, choices=wrong))


class Mixing(Tampering):
    """Asks the next example and says that it has the same answer."""

    def tamper(self, variant: Variant, data: Dataset, number: int) -> Variant:
        other = data[(number + 1) % len(data)]
        return replace(variant, query=clean_query(other), example_id=other.id)


class Rephrased(Tampering):
    """Asks another member of the same group, as the probe rephrase does."""

    wordings: ClassVar[bool] = True

    def tamper(self, variant: Variant, data: Dataset, number: int) -> Variant:
        example = data[number]
        other = next(one for one in data if one.group == example.group and one.id != example.id)
        return replace(variant, query=clean_query(other), example_id=other.id)


@pytest.mark.parametrize("probe", [Harmless(), Rephrased()])
def test_what_keeps_the_answer_passes(probe: Tampering) -> None:
    assert check_probe(probe) == []


@pytest.mark.parametrize(
    ("probe", "sentence"),
    [
        (Repainting(), "shows a scene on which the program answers"),
        (Dropping(), "does not offer the right answer"),
        (Mixing(), "whose answer is"),
    ],
)
def test_a_broken_contract_is_found_out(probe: Tampering, sentence: str) -> None:
    told = check_probe(probe)
    assert sentence in told[0]
    assert any("more of this kind" in line for line in told)


@pytest.mark.parametrize("kind", [Repainting, Dropping, Mixing])
def test_a_probe_that_removes_the_evidence_may_change_the_answer(kind: type[Tampering]) -> None:
    class Removing(kind):  # type: ignore[misc, valid-type]
        role = "removes"

    assert check_probe(Removing()) == []


def test_wrong_roles_are_told() -> None:
    class Unknown(Tampering):
        role = "destroys"

    class Twice(Tampering):
        def tamper(self, variant: Variant, data: Dataset, number: int) -> Variant:
            return replace(variant, query=replace(variant.query, take=9), role="clean")

    class Odd(Tampering):
        def tamper(self, variant: Variant, data: Dataset, number: int) -> Variant:
            return replace(variant, query=replace(variant.query, take=9), role="odd")

    assert check_probe(Unknown()) == [
        "The probe's role is 'destroys'; a probe is one of: keeps, removes, changes, control."
    ]
    assert "the first variant, and no other, is the clean one" in check_probe(Twice())[0]
    assert "a variant has the role 'odd'; roles are: clean, keeps" in check_probe(Odd())[0]


def test_two_trials_that_ask_the_same_are_told() -> None:
    class Doubled(Control):
        def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
            for trial in super().trials(data, seed):
                yield trial
                yield trial

    assert "ask the very same: every answer would count twice" in check_probe(Doubled())[0]


def test_an_example_that_is_not_in_the_data_is_told() -> None:
    class Lost(Tampering):
        def tamper(self, variant: Variant, data: Dataset, number: int) -> Variant:
            return replace(variant, example_id="nobody")

    assert check_probe(Lost()) == ["A trial names the example 'nobody', which is not in the data."]


def test_a_probe_that_can_work_on_no_sample_is_told_why() -> None:
    class Picky(Control):
        def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
            raise ProbeError("It wants films.")

    assert check_probe(Picky()) == [
        "The probe cannot work on the sample data (It wants films.); pass data that it can work on."
    ]


def test_data_of_ones_own_are_used() -> None:
    data = embedded(scenes=2, width=48, height=36, cache=False)
    assert check_probe(Control(), data) == []
    assert "which is not in the data" not in str(check_probe(Repainting(), data))
    assert "the program answers" in str(check_probe(Repainting(), data))


@dataclass(frozen=True, slots=True)
class Slim:
    """A probe of somebody else: it derives from nothing, and has no dictionary of its own."""

    times: int = 2
    name: str = "slim"

    def trials(self, data: Dataset, seed: int) -> Iterator[Trial]:
        return Control().trials(data, seed)

    def findings(self, trials: Sequence[AnsweredTrial], seed: int) -> Findings:
        return Control().findings(trials, seed)


def test_a_probe_of_another_class_gets_the_defaults_and_stays_what_it_was() -> None:
    probe = as_probe(Slim(3))
    assert isinstance(probe, Slim) and (probe.times, probe.name, probe.role) == (3, "slim", "keeps")
    assert not probe.searches and not probe.has("prepare") and probe.most_queries() == 0
    assert type(probe).__qualname__ == "Slim" and [field.name for field in fields(probe)] == ["times", "name"]
    assert as_probe(probe) is probe
