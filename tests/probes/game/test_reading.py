"""Players that talk: the game judges what a matcher reads in their replies, as the exam does."""

import pytest

from pfungst.core import Answer, Asker
from pfungst.probes.game import read_moves
from pfungst.probes.game.board import boards_of
from pfungst.probes.game.extras import Tried
from pfungst.probes.game.minigame import MiniGame
from pfungst.probes.game.playing import play
from pfungst.probes.game.rows import fooled_rows
from pfungst.probes.game.rules import GameSettings, rules_of
from pfungst.report.card import read_findings
from pfungst.world import embedded
from tests.probes.game.scripted import ScenePlayer

SETTINGS = GameSettings("rsg", size=5, seeds=2, budget=8)


def to_the_left(scene):
    return scene["objects"][0]["3d_coords"][0] < -1.5


class Talker(ScenePlayer):
    """Says the same in a sentence."""

    matcher = "lenient"

    def answer(self, queries):
        return [Answer(f"Let me look at the image. The answer is {said.text}.") for said in super().answer(queries)]


@pytest.fixture(scope="module")
def data():
    return embedded(scenes=12, seed=5, cache=False)


def numbers(result):
    return [(run.before, run.fooled, run.changed, run.queries, run.one_scene, run.scenes) for run in result.runs]


def test_a_sentence_is_fooled_as_often_as_a_word(data, tmp_path):
    terse = play(ScenePlayer(data, to_the_left), data, tmp_path / "terse", SETTINGS)
    talker = play(Talker(data, to_the_left), data, tmp_path / "talker", SETTINGS)
    assert terse.average("fooled") > 0
    assert numbers(talker) == numbers(terse)
    drops = [read_findings(tmp_path / name)[0]["drop"]["value"] for name in ("terse", "talker")]
    assert drops[0] == drops[1] == pytest.approx(terse.average("fooled"))


def test_rows_hold_the_answer_that_was_read(data, tmp_path):
    play(Talker(data, to_the_left), data, tmp_path / "run", SETTINGS)
    rows = read_moves(tmp_path / "run").to_pylist()
    right = [row for row in rows if row["status"] == "same" and row["old_answer"] == row["truth"]]
    assert right
    assert all(row["new_answer"] == row["truth"] for row in right)


def test_transfer_reads_replies(data, tmp_path):
    play(ScenePlayer(data, to_the_left), data, tmp_path / "run", SETTINGS)
    rows = fooled_rows(read_moves(tmp_path / "run"))
    assert Tried.of("terse", rows, Talker(data, to_the_left), data).share.value == 1.0


def test_another_matcher_plays_another_game(data):
    boards = boards_of(data[:1], rules_of("paper-places"))[0]
    asker = Asker(Talker(data))
    asker.reading = "strict"
    assert not MiniGame(boards, asker, rules_of("paper-places")).was_right(0)
    assert MiniGame(boards, Asker(Talker(data)), rules_of("paper-places")).was_right(0)
