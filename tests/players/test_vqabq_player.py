"""vqabq:PLAYER asks another player by Algorithm 1."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pfungst.core import Answer, PfungstError, PlayerError, Query
from pfungst.players import check_player, resolve
from pfungst.players.vqabq import VqabqPlayer
from pfungst.probes.noise import rank
from pfungst.probes.noise.probe import Vqabq
from pfungst.world import embedded

BASIC = ["How old is the truck?", "How old is this car?", "How old is the vehicle?"]


@dataclass
class Echo:
    """Says what it was asked."""

    name: str = "echo"
    fingerprint: str = "echo 1"
    reads_scenes: bool = True
    batch_size: int = 7
    asked: list[str] = field(default_factory=list)

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        self.asked += [query.question for query in queries]
        return [Answer(query.question) for query in queries]


def written(folder: Path, **scores: tuple[float, float, float]) -> str:
    """A file of the papers' authors: the question `NAME?` has these scores."""
    rows = [
        {"question": f"{name}?", "basic": [{"question": q, "score": s} for q, s in zip(BASIC, three, strict=True)]}
        for name, three in scores.items()
    ]
    (folder / "ranked.json").write_text(json.dumps(rows))
    return str(folder / "ranked.json")


@pytest.mark.parametrize(
    ("scores", "appended"),
    [
        ((0.60, 0.59, 0.58), 0),  # the first must be above s1, not at it
        ((0.61, 0.30, 0.29), 1),
        ((0.61, 0.40, 0.10), 2),
        ((0.61, 0.40, 0.20), 3),
        ((0.30, 0.29, 0.28), 0),  # the conditions are nested
    ],
)
def test_basic_questions_are_appended_where_their_scores_pass(
    tmp_path: Path, scores: tuple[float, float, float], appended: int
) -> None:
    player = VqabqPlayer(Echo(), Vqabq(ranked=written(tmp_path, Why=scores)))
    assert player.answer([Query("Why?")])[0].text == " ".join(["Why?", *BASIC[:appended]])


def test_scores_come_from_ranking_the_pool_and_a_question_is_ranked_once() -> None:
    data = embedded(scenes=6, width=48, height=36, cache=False)
    main = data[0].question
    top = rank([main], [one.question for one in data], k=3, tol=1e-6).scores[0]
    echo = Echo()
    player = VqabqPlayer(echo, Vqabq(s1=float(top[0]) - 1e-3, s2=2.0, tol=1e-6), data)
    said = [player.answer([Query(main)])[0].text for _ in range(2)]
    assert said[0] == said[1] == echo.asked[0] and said[0].startswith(main + " ") and len(player._asked) == 1
    assert VqabqPlayer(echo, Vqabq(s1=float(top[0]) + 1e-3, tol=1e-6), data).questions([main]) == [main]


def test_it_keeps_the_promises_of_a_player_and_passes_on_what_the_other_declares() -> None:
    data = embedded(scenes=6, width=48, height=36, cache=False)
    player = resolve("vqabq:oracle", data=data, s1="0.2")
    queries = [Query(one.question, one.image, scene=one.scene) for one in data[:3]]
    assert check_player(player, queries) == []
    assert player.name == "vqabq:oracle"
    wrapped = VqabqPlayer(Echo(), Vqabq(), data)
    assert wrapped.reads_scenes and wrapped.batch_size == 7
    other = VqabqPlayer(Echo(), Vqabq(s1=0.1), data)
    assert other.fingerprint != wrapped.fingerprint


def test_what_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(PlayerError, match="Say which player"):
        resolve("vqabq")
    with pytest.raises(PlayerError, match="pool=DATA"):
        VqabqPlayer(Echo(), Vqabq())
    player = VqabqPlayer(Echo(), Vqabq(ranked=written(tmp_path, Why=(0.1, 0.1, 0.1))))
    with pytest.raises(PlayerError, match=r"no basic questions for 'How\?'"):
        player.answer([Query("How?")])
    with pytest.raises(PfungstError, match="no option 'pol'|pol"):
        resolve("vqabq:oracle", data=embedded(scenes=2, width=48, height=36, cache=False), pol="x")
