import warnings

import numpy as np
import pytest

from pfungst.core import Example, ProbeError
from tests.probes.game.scripted import ChancePlayer, ScenePlayer, first_object_in

pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env

from pfungst.probes.game import SceneGame


@pytest.mark.parametrize(
    ("preset", "observation", "ood"),
    [
        ("paper-places", "state", False),
        ("paper", "state", False),
        ("code", "pixels", False),
        ("paper-places", "state", True),
    ],
)
def test_it_passes_the_check_of_gymnasium(small: list[Example], preset: str, observation: str, ood: bool) -> None:
    env = SceneGame(ScenePlayer(small), small, preset, observation=observation, ood=ood)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env, skip_render_check=True)


def test_a_known_weakness_pays_and_everything_is_told(small: list[Example]) -> None:
    env = SceneGame(ScenePlayer(small, first_object_in(2.0, -3.0)), small, render_mode="rgb_array")
    seen = set()
    for episode in range(400):
        _, told = env.reset(seed=3 if episode == 0 else None, options={"board": 0})
        assert told["example_id"] == small[0].id and told["old_answer"] == told["truth"]
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert terminated and not truncated and env.observation_space.contains(observation)
        assert info["fooled"] == (reward == 1.0) == (info["status"] == "fooled")
        if info["fooled"]:
            assert info["positions"][0][0] >= 2.0 and info["new_answer"] != told["truth"]
        assert (info["status"] == "invalid") == (info["refused_by"] != "") == (reward == -0.8)
        seen.add(info["status"])
    assert {"invalid", "fooled", "same"} <= seen
    picture = env.render()
    assert picture.dtype == np.uint8 and picture.shape[2] == 3


def test_the_same_seed_gives_the_same_questions(small: list[Example]) -> None:
    env = SceneGame(ChancePlayer(), small)
    one = [env.reset(seed=9 if i == 0 else None)[1]["board"] for i in range(8)]
    two = [env.reset(seed=9 if i == 0 else None)[1]["board"] for i in range(8)]
    assert one == two and len(set(one)) > 1


def test_what_cannot_be_played_is_explained(small: list[Example]) -> None:
    with pytest.raises(ProbeError, match="None of the 1 questions can be played.*has no scene"):
        SceneGame(ChancePlayer(), [Example("x", "Why?")])
    env = SceneGame(ChancePlayer(), [*small, Example("x", "Why?")])
    assert [name for name, _ in env.unfit] == ["x"]
    env.reset(seed=0)
    with pytest.raises(ProbeError, match="two bins"):
        env.step(np.full(20, 7))
    with pytest.raises(ProbeError, match="no board 99"):
        env.reset(options={"board": 99})
