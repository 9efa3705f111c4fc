"""The weights that come with the package: light, described, and as good as their cards say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pfungst.core import BytesImage, Example, Query
from pfungst.models import load_shipped, shipped
from pfungst.models._names import SHIPPED
from pfungst.players import resolve
from pfungst.world import embedded

ON_WORLD = [
    "attention", "ban", "butd", "film", "iep", "lstm-qi", "mdetr", "mlb", "mutan", "pythia", "rn", "rn-state", "san",
    "state-transformer", "tbd",
]  # fmt: skip


def test_all_together_they_are_light() -> None:
    assert sum(file.stat().st_size for file in SHIPPED.iterdir()) < 30e6


@pytest.mark.parametrize("name", sorted(shipped()))
def test_each_loads_and_has_a_card(name: str) -> None:
    trained = load_shipped(name)
    card = trained.card
    assert 0 < card["low"] <= card["accuracy"] <= card["high"] < 1
    assert card["parameters"] == trained.model.parameter_count
    assert {"data", "seed", "command", "seconds", "asked_on", "versions"} <= card.keys()
    assert card["command"].startswith("python scripts/train_")
    assert (SHIPPED / f"{name}.md").read_text().startswith("# ")


@pytest.mark.parametrize("name", [name for name in sorted(shipped()) if name != "world-cnn"])
def test_each_plays_under_the_name_that_is_listed(name: str) -> None:
    assert resolve(name).name == f"zoo:{name}"


@pytest.fixture(scope="module")
def originals() -> list[Example]:
    """Questions about 60 scenes, their pictures drawn once for all players."""
    drawn: dict[str, BytesImage] = {}
    questions = []
    for one in embedded(scenes=60, seed=5):
        if one.id == one.group:
            assert one.image is not None
            if one.image_id not in drawn:
                drawn[one.image_id] = BytesImage(one.image.read())
            questions.append(replace(one, image=drawn[one.image_id]))
    return questions


@pytest.mark.parametrize("name", ON_WORLD)
def test_a_player_of_the_world_is_as_good_as_its_card_says(name: str, originals: list[Example]) -> None:
    player, reads = resolve(name), load_shipped(name).model.reads
    answers = player.answer(
        [
            Query(
                one.question,
                one.image,
                one.choices if "choices" in reads else (),
                one.scene if player.reads_scenes else None,
            )
            for one in originals
        ]
    )
    right = sum(answer.text == one.target for answer, one in zip(answers, originals, strict=True))
    # 150 questions: three standard errors.
    assert right / len(originals) == pytest.approx(load_shipped(name).card["accuracy"], abs=0.12)


def test_the_cnn_finds_the_objects_of_most_scenes() -> None:
    card = load_shipped("world-cnn").card
    assert card["asked_on"] == "scenes found whole"
    assert card["accuracy"] > 0.8
