"""Many players, many adversaries, one set of workers: the same games as played one by one."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pfungst import load
from pfungst.core import PfungstError, UsageError
from pfungst.experiments.base import perform
from pfungst.experiments.games import EXPERIMENT, GamesConfig
from pfungst.probes.game.results import is_won
from pfungst.probes.game.rows import read_round

PLAYER = """
import multiprocessing, os, signal

from pfungst.core import Answer
from pfungst.world import answer, answer_text


class Weak:
    name, fingerprint, reads_scenes, edge = "weak", "weak-1", True, 2

    def __init__(self, data=None):
        self.programs = {one.question: one.program for one in data}

    def answer(self, queries):
        if multiprocessing.parent_process() and os.path.exists("deadly"):
            if any(query.question == open("deadly").read() for query in queries):
                os.kill(os.getpid(), signal.SIGKILL)
        return [Answer(self.say(query)) for query in queries]

    def say(self, query):
        text = answer_text(answer(self.programs[query.question], query.scene))
        x = query.scene["objects"][0]["3d_coords"][0]
        return {"yes": "no", "no": "yes"}.get(text, "none") if x >= self.edge else text


class Strong(Weak):
    name, fingerprint, edge = "strong", "strong-1", 99
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GamesConfig:
    (tmp_path / "mine.py").write_text(PLAYER)
    monkeypatch.chdir(tmp_path)
    return GamesConfig(
        ("mine.py:Weak", "mine.py:Strong"), ("rsg", "greedy"), data="world?scenes=8&rephrasings=0", size=2, seeds=2,
        budget=8,
    )  # fmt: skip


def test_all_games_stand_in_the_papers_tables_and_in_run_folders_of_their_own(config: GamesConfig) -> None:
    results = perform(EXPERIMENT, config, "out")
    assert [(r.player, r.adversary) for r in results] == [
        (player, adversary) for player in config.players for adversary in config.adversaries
    ]
    assert max(r.average("fooled") for r in results[:2]) > 0 and {r.average("fooled") for r in results[2:]} == {0.0}
    tables = {table["title"]: table for table in json.loads(Path("out/result.json").read_text())["tables"]}
    assert len(tables["Results of the games (Table 2)"]["rows"]) == 2
    beside = tables["Adversaries beside their controls"]["rows"]
    assert [(*row[:1], *row[2:4]) for row in beside] == [(player, "rsg", "greedy") for player in config.players]
    rsg, greedy = (results[at].average("fooled") for at in (0, 1))
    assert beside[0][6]["value"] == pytest.approx(rsg - greedy)  # the same questions in both
    figures = {
        figure["title"]: figure["series"] for figure in json.loads(Path("out/result.json").read_text())["figures"]
    }
    weak, strong = figures["Distribution over mini-games (rsg)"]
    assert (weak["name"], strong["name"]) == config.players and strong["y"] == [1.0] + [0.0] * 9 != weak["y"]
    converging = figures["Convergence against mine.py:Weak"]
    assert [line["name"] for line in converging] == list(config.adversaries)
    # A curve counts what fooled at once, before it is asked again and verified.
    assert all(line["y"][-1] >= result.average("fooled") for line, result in zip(converging, results[:2], strict=True))
    assert len(figures) == 3 * 2 + 2 == len(list(Path("out").glob("games*.svg")))
    assert json.loads(Path("out/mine.py-Weak-rsg-2/exam.json").read_text())["player"]["spec"] == "mine.py:Weak"


def test_sizes_are_compared_on_the_questions_they_share(config: GamesConfig) -> None:
    config = replace(config, players=config.players[:1], adversaries=("rsg",), also=("4x1",))
    small, large = perform(EXPERIMENT, config, "out")
    assert (small.size, large.size, len(large.boards)) == (2, 4, 4)
    won = [{board.example_id: is_won(board) for board in one.boards} for one in (small, large)]
    both = won[0].keys() & won[1].keys()
    assert len(both) >= 2
    tables = {table["title"]: table for table in json.loads(Path("out/result.json").read_text())["tables"]}
    (row,) = tables["Sizes side by side"]["rows"]
    assert row[:3] == ["mine.py:Weak", "rsg", "2, 4"]
    shares = [sum(one[name] for name in both) / len(both) for one in reversed(won)]
    assert [cell["value"] for cell in row[3:6]] == pytest.approx([*shares, shares[0] - shares[1]])
    titles = [figure["title"] for figure in json.loads(Path("out/result.json").read_text())["figures"]]
    assert len(set(titles)) == len(titles) == 2 * 4 and sum(one.endswith("mini-games of 4") for one in titles) == 4
    with pytest.raises(UsageError, match="written as 100x30"):
        replace(config, also=("100",)).sizes()


@pytest.mark.slow
def test_one_set_of_workers_plays_the_same_games_or_none_is_printed(config: GamesConfig) -> None:
    perform(EXPERIMENT, config, "one")
    names = [path.name for path in Path("one").glob("mine*")]
    assert len(names) == 4
    config = replace(config, on="processes", workers=2)
    first = read_round(Path("one/mine.py-Weak-rsg-2/game/rounds/round-00000.parquet")).boards[0]
    Path("deadly").write_text({example.id: example.question for example in load(config.data)}[first.example_id])
    with pytest.raises(PfungstError, match=r"(?s)2 of 4 shards failed.*its worker died .*\(tried 3 times\)"):
        perform(EXPERIMENT, config, "many")
    assert not Path("many/result.json").exists() and not Path("many/tables.md").exists()
    assert len(list(Path("many").glob("mine*/game/rounds/*.parquet"))) == 4  # those that could be played
    Path("deadly").unlink()
    perform(EXPERIMENT, config, "many")
    for name in names:
        for file in ("findings.json", "game/moves.parquet"):
            assert Path("one", name, file).read_bytes() == Path("many", name, file).read_bytes()
