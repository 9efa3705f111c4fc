"""Minimal pairs of the world: one attribute of one object, proved by the program."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pfungst.core import Dataset, Example
from pfungst.probes.contrast.groups import Pair, changed, drawn, minimal_pair
from pfungst.world import answer, answer_text, embedded, is_legal, visible_pixels
from pfungst.world.constants import ATTRIBUTES, MIN_VISIBLE_PIXELS


@pytest.fixture(scope="module")
def world() -> Dataset:
    return embedded(scenes=16, rephrasings=0, width=48, height=36, cache=False)


@pytest.fixture(scope="module")
def pairs(world: Dataset) -> list[tuple[Example, Pair]]:
    found = [(example, minimal_pair(example, 0)) for example in world]
    return [(example, pair) for example, pair in found if pair is not None]


def test_most_questions_have_one(world: Dataset, pairs: list[tuple[Example, Pair]]) -> None:
    assert len(pairs) > len(world) / 2
    assert {pair.matters.attribute for _, pair in pairs} == set(ATTRIBUTES)


def test_the_change_that_matters_changes_the_answer_and_the_idle_one_does_not(
    pairs: list[tuple[Example, Pair]],
) -> None:
    for example, pair in pairs:
        assert example.program is not None
        before = answer(example.program, pair.scene)
        after = answer(example.program, changed(pair.scene, pair.matters).to_json())
        assert before is not None and after is not None
        assert answer_text(before) == example.target != answer_text(after) == pair.matters.answer
        assert pair.matters.answer in example.choices
        if pair.idle is not None:
            told = answer(example.program, changed(pair.scene, pair.idle).to_json())
            assert told is not None and answer_text(told) == pair.idle.answer == example.target
            assert pair.idle.attribute == pair.matters.attribute


def test_nothing_else_changes(pairs: list[tuple[Example, Pair]]) -> None:
    for _, pair in pairs:
        for change in filter(None, (pair.matters, pair.idle)):
            before, after = pair.scene, changed(pair.scene, change)
            assert after.relationships == before.relationships and after.extra == before.extra
            for place, (old, new) in enumerate(zip(before.objects, after.objects, strict=True)):
                differs = {name for name in ATTRIBUTES if getattr(old, name) != getattr(new, name)}
                assert differs == ({change.attribute} if place == change.object else set())
                assert old.coords[:2] == new.coords[:2] and old.rotation == new.rotation


def test_changed_scenes_are_legal_and_every_object_can_be_seen(pairs: list[tuple[Example, Pair]]) -> None:
    for _, pair in pairs:
        for change in filter(None, (pair.matters, pair.idle)):
            after = changed(pair.scene, change)
            assert is_legal(after) and visible_pixels(after).min() >= MIN_VISIBLE_PIXELS


def test_the_images_differ_where_the_scenes_do(pairs: list[tuple[Example, Pair]]) -> None:
    example, pair = pairs[0]
    clean, other = drawn(pair.scene, example.image), drawn(changed(pair.scene, pair.matters), example.image)
    assert example.image is not None and clean.digest == example.image.digest != other.digest
    assert clean.size == other.size == (48, 36) and clean.read() != other.read()


def test_a_pair_depends_on_the_seed_and_the_example_alone(world: Dataset, pairs: list[tuple[Example, Pair]]) -> None:
    for example, pair in pairs[:5]:
        assert minimal_pair(example, 0) == pair
    assert any(minimal_pair(example, 1) != pair for example, pair in pairs)


def test_without_scene_program_or_answer_there_is_none(world: Dataset) -> None:
    for lacking in ({"scene": None}, {"program": None}, {"target": None}):
        assert minimal_pair(replace(world[0], **lacking), 0) is None  # type: ignore[arg-type]
