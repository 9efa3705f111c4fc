"""The weights that come with the package: light, described, and as good as their cards say."""

from __future__ import annotations

import pytest
import torch

from pfungst.core import Example, PfungstError, Query
from pfungst.models import load_shipped, same_objects, shipped
from pfungst.models.encode import Encoder
from pfungst.models.names import SHIPPED, shipped_card
from pfungst.players import resolve
from pfungst.world import embedded

ON_WORLD = [
    "attention", "ban", "butd", "film", "hiecoatt", "hiecoatt-mc", "iep", "lstm-qi", "mdetr", "mlb", "mutan",
    "mutan-att", "pythia", "rn", "rn-state", "san", "state-transformer", "tbd",
]  # fmt: skip


def test_all_together_they_are_light() -> None:
    assert sum(file.stat().st_size for file in SHIPPED.iterdir()) < 50e6


@pytest.mark.parametrize("name", sorted(shipped()))
def test_each_loads_and_has_a_card(name: str) -> None:
    trained = load_shipped(name)
    card = trained.card
    assert 0 < card["low"] <= card["accuracy"] <= card["high"] < 1
    assert card["parameters"] == trained.model.parameter_count
    assert {"data", "seed", "command", "seconds", "asked_on", "versions"} <= card.keys()
    assert card["command"].startswith(("python scripts/train_", "pfungst reproduce "))
    text = shipped_card(name)
    assert text.startswith(f"# {name}\n")
    assert f"accuracy {card['accuracy']:.1%}" in text
    assert card["command"] in text


@pytest.mark.parametrize("name", sorted(shipped().keys() - {"slot-attention", "world-cnn"}))
def test_each_plays_under_the_name_that_is_listed(name: str) -> None:
    assert resolve(name).name == f"zoo:{name}"


@pytest.fixture(scope="module")
def originals() -> list[Example]:
    """Questions about 60 scenes; players of one process render and look at their images once."""
    return [one for one in embedded(scenes=60, seed=5) if one.id == one.group]


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


def test_slots_find_the_objects_of_new_scenes_as_often_as_the_card_says(originals: list[Example]) -> None:
    trained = load_shipped("slot-attention")
    seen = {one.image_id: one for one in originals}
    batch = Encoder(trained).batch(
        [""] * len(seen), [one.image for one in seen.values()], [None] * len(seen), [()] * len(seen)
    )
    with torch.inference_mode():
        found = trained.model.objects(trained.model.eval()(batch))  # type: ignore[operator]
    truths = [one.scene["objects"] for one in seen.values() if one.scene is not None]
    right = sum(same_objects(a, b) for a, b in zip(found, truths, strict=True))
    # 60 scenes: three standard errors.
    assert right / len(seen) == pytest.approx(trained.card["accuracy"], abs=0.16)


def test_the_card_of_a_model_on_photographs_says_what_the_image_is_worth_to_it() -> None:
    assert (
        "- mean of 3 seeds: 40.5%; the image is worth +1.9 points (95% interval 1.2 to 2.7) over a twin that learnt "
        "from the questions alone\n"
    ) in shipped_card("mutan-att-vqa2")
    assert "- 1 seed: 39.8%; the image is worth +1.4 points" in shipped_card("ban-vqa2")


def test_a_card_is_shown_on_demand() -> None:
    from typer.testing import CliRunner

    from pfungst.cli.app import app

    assert CliRunner().invoke(app, ["list", "models", "film"]).output == shipped_card("film")
    with pytest.raises(PfungstError, match="no weights called 'fillm'. There are: attention"):
        CliRunner().invoke(app, ["list", "models", "fillm"], catch_exceptions=False)
