import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pfungst.core import Asker, Dataset, Example, PfungstError, ProbeError, UsageError
from pfungst.core.files import jsonable
from pfungst.experiments.universal import UniversalConfig, figures, play_universal, record, split_by_scene, tables
from pfungst.probes.game import MiniGame
from pfungst.probes.game.adversaries.universal import Universal
from pfungst.probes.game.board import boards_of
from pfungst.probes.game.rules import rules_of
from pfungst.world import embedded
from tests.probes.game.scripted import ScenePlayer, first_object_in

torch = pytest.importorskip("torch")

from pfungst.experiments.universal_learning import Fit, Learning, learn  # noqa: E402

QUICK = UniversalConfig(
    "scripted", train=6, test=4, train_queries=8, budget=6, size=2, candidates=20, test_candidates=30,
    options={"features": "own", "samples": 2, "boards": 4},
)  # fmt: skip


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    """Thirty original questions about twelve scenes, with images, scenes and programs."""
    return [one for one in embedded(scenes=12, seed=5, cache=False) if one.id == one.group]


def test_no_scene_has_questions_on_both_sides(examples: list[Example]) -> None:
    learnt, held = split_by_scene(examples, 100, 8, seed=1)
    assert len(held) == 8 and {x.image_id for x in learnt}.isdisjoint(x.image_id for x in held)
    assert len(split_by_scene(examples, 5, 8, seed=1)[0]) == 5
    with pytest.raises(ProbeError, match="too few"):
        split_by_scene(examples[:3], 10, 20, 0)


def test_one_policy_is_trained_saved_and_tried_on_unseen_questions(examples: list[Example], tmp_path: Path) -> None:
    few = [one for one in examples if one.scene is not None and len(one.scene["objects"]) <= 6]
    player = ScenePlayer(few, first_object_in(1.0, -3.0))
    result = play_universal(player, Dataset("small world", few, "exact", "x"), tmp_path, QUICK)
    assert list(result.findings) == ["universal", "fresh", "rsg"]
    assert result.trained_on == min(6, len(few) - 4) and result.tested_on == 4 and result.weights.exists()
    (table,) = tables(result)
    assert len(table.rows) == 3 and table.columns[-1] == "fooled within 6"
    assert [line.name for line in figures(result)[0].series] == ["universal", "fresh", "rsg"]
    assert record(result)["trained_on"] == result.trained_on and (tmp_path / "report.html").exists()
    saved = json.loads((tmp_path / "findings.json").read_text())
    assert [found["probe"] for found in saved["findings"]] == ["universal", "fresh", "rsg"]
    # The test questions are the same for all three, and none was trained on.
    assert len({tuple(board.example_id for board in boards) for boards in result.boards.values()}) == 1
    assert len(player.seen) == len(set(player.seen))  # not even by two of the three adversaries
    again = ScenePlayer(few, first_object_in(1.0, -3.0))
    second = play_universal(again, Dataset("small world", few, "exact", "x"), tmp_path, QUICK)
    assert again.seen == [] and jsonable(second.findings) == jsonable(result.findings)  # NaN equals nothing


def test_what_it_learnt_on_other_scenes_fools_at_the_first_try(examples: list[Example], tmp_path: Path) -> None:
    # Wrong wherever the first object stands far to the right: the same weakness on every scene, so it can be learnt.
    few = [one for one in examples if one.scene is not None and len(one.scene["objects"]) <= 6]
    player = ScenePlayer(few, first_object_in(1.9, -3.0))
    game = MiniGame(boards_of(few[4:], rules_of("paper"))[0], Asker(player), rules_of("paper"))
    how = Learning(first=30, rounds=1, each=10, candidates=60, fit=Fit(hidden=32, passes=15, batch=128, rate=5e-3))
    network, curve = learn(game, how, np.random.default_rng(0))
    assert [round(point["queries"] / len(game.boards)) for point in curve] == [30, 40]
    network.save(tmp_path / "network.safetensors")
    unseen = MiniGame(boards_of(few[:4], rules_of("paper"))[0], Asker(player), rules_of("paper"), budget=3)
    Universal(weights=str(tmp_path / "network.safetensors"), candidates=60).attack(unseen, np.random.default_rng(1))
    wrong = [unseen.committed(number) is False for number in range(len(unseen.boards))]
    assert sum(wrong) >= 3  # one random legal layout in four or five does it


def test_it_needs_weights_that_are_its_own(examples: list[Example], tmp_path: Path) -> None:
    game = MiniGame(boards_of(examples[:1], rules_of("paper"))[0], Asker(ScenePlayer(examples)), rules_of("paper"))
    with pytest.raises(ProbeError, match="needs weights"):
        Universal().attack(game, np.random.default_rng(0))
    (tmp_path / "bad.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(PfungstError):
        Universal(weights=str(tmp_path / "bad.safetensors")).attack(game, np.random.default_rng(0))


@pytest.mark.parametrize("bad", [{"train": 0}, {"budget": 0}, {"test": 5, "size": 10}])
def test_bad_settings_are_explained(bad: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        UniversalConfig("scripted", **bad)


def test_a_limit_of_queries_is_kept_before_anything_is_asked() -> None:
    with pytest.raises(UsageError, match="too few for the universal"):
        UniversalConfig("scripted", train=100, test=10, max_queries=50)
