"""Hardening with found scenes, on a tiny model that reads scenes."""

from pathlib import Path

import numpy as np
import pytest

from pfungst.core import Dataset, Example, PfungstError

torch = pytest.importorskip("torch")

from pfungst.experiments.harden import HardenConfig, found_examples, harden, record, split_images, tables  # noqa: E402
from pfungst.models import Inputs, Sizes, Trained, Vocabulary, build  # noqa: E402
from pfungst.probes.game import GameSettings, play  # noqa: E402
from pfungst.training import FitConfig  # noqa: E402
from pfungst.training.augment import mixed_rows  # noqa: E402
from pfungst.world import answer, answer_text, embedded  # noqa: E402
from tests.probes.game.scripted import ScenePlayer, first_object_in  # noqa: E402


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    return [one for one in embedded(scenes=12, seed=5, cache=False) if one.id == one.group]


@pytest.fixture(scope="module")
def run(examples: list[Example], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with fooling scenes of several pictures."""
    folder = tmp_path_factory.mktemp("run")
    few = [one for one in examples if one.scene is not None and len(one.scene["objects"]) <= 6]
    settings = GameSettings(size=len(few), seeds=1, adversary="cross-entropy", budget=25)
    play(ScenePlayer(few, first_object_in(1.0, -3.0)), Dataset("w", few, "exact", "x"), folder, settings)
    return folder


def tiny(examples: list[Example]) -> Trained:
    words = Vocabulary.build((one.question for one in examples), (one.target or "" for one in examples))
    model = build("rn-state", Sizes(words.size, len(words.answers)), "tiny", seed=0)
    return Trained("rn-state", model.eval(), words, Inputs(picture="none"), {"accuracy": 0.0}, "tiny-1")


def test_found_scenes_become_examples_with_their_true_answers(run: Path) -> None:
    found = found_examples([run, run])
    assert len(found) >= 2 and len({one.id for one in found}) == len(found)
    for one in found:
        assert one.program is not None and one.scene is not None
        value = answer(one.program, one.scene)
        assert value is not None and answer_text(value) == one.target
    with pytest.raises(PfungstError, match="nowhere"):
        found_examples([run / "nowhere"])


def test_pictures_are_on_one_side_only_and_found_scenes_have_their_share(run: Path) -> None:
    found = found_examples([run])
    learnt, held = split_images(found, 0.3, seed=0)
    assert learnt and held and {x.image_id for x in learnt}.isdisjoint(x.image_id for x in held)
    rows = mixed_rows(70, 4, 0.3, seed=0)
    assert len(rows) == 100 and sorted(set(rows[rows >= 70])) == [70, 71, 72, 73]
    counts = np.bincount(rows[rows >= 70] - 70)
    assert counts.max() - counts.min() <= 1


def test_hardening_trains_measures_and_plays_new_games_with_two_adversaries(
    run: Path, examples: list[Example], tmp_path: Path
) -> None:
    clean, test = Dataset("clean", examples[:20], "exact", "c"), Dataset("test", examples[20:], "exact", "t")
    old = tiny(examples)
    before = {name: value.clone() for name, value in old.model.state_dict().items()}
    config = HardenConfig(
        "tiny", (str(run),), adversary="rsg", size=2, seeds=1, budget=3,
        fit=FitConfig(steps=12, batch=8, check_every=6, checkpoint_every=6),
    )  # fmt: skip
    result = harden(old, clean, test, config, tmp_path)
    names = [one.name for one in result.changes]
    assert names[0] == "accuracy, untouched scenes" and names[2:] == ["game, rsg", "game, cross-entropy"]
    assert result.changes[0].before.n == len(test) and result.changes[1].after.n == result.held > 0
    # The old model is as it was, the new one is another and can be loaded.
    assert all(torch.equal(before[k], v) for k, v in old.model.state_dict().items())
    again = Trained.load(tmp_path)
    assert any(not torch.equal(before[k], v) for k, v in again.model.state_dict().items())
    assert again.card["hardened"]["found"] == result.found
    assert "fewer questions" in record(result)["verdict"] and len(tables(result)[0].rows) == 4
    games = result.changes[2]
    assert games.gain.value == pytest.approx(games.before.value - games.after.value)


def test_what_cannot_be_hardened_is_explained(run: Path, examples: list[Example], tmp_path: Path) -> None:
    data = Dataset("clean", examples, "exact", "c")
    with pytest.raises(PfungstError, match="between 0 and 1"):
        harden(tiny(examples), data, data, HardenConfig("tiny", (str(run),), share=1.5), tmp_path)
    empty = tmp_path / "empty"
    few = [one for one in examples if one.scene is not None and len(one.scene["objects"]) <= 6][:2]
    quick = GameSettings(size=2, seeds=1, adversary="rsg", budget=2)
    play(ScenePlayer(few), Dataset("w", few, "exact", "x"), empty, quick)
    with pytest.raises(PfungstError, match="fewer than two images"):
        harden(tiny(examples), data, data, HardenConfig("tiny", (str(empty),)), tmp_path / "out")
