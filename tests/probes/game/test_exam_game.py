"""The game in a real exam: it searches through the store, and a second run asks nothing."""

from dataclasses import dataclass, field

import pytest

from pfungst.core import Answer, Exam
from pfungst.probes.game.probe import Game
from pfungst.scores import get_metric
from pfungst.world import answer, answer_text, embedded


@dataclass
class Engine:
    """Answers from the scene; with `weak`, wrong when the first object stands on the left side."""

    data: list
    weak: bool = False
    reads_scenes: bool = True
    asked: list = field(default_factory=list)

    @property
    def name(self):
        return "weak" if self.weak else "engine"

    @property
    def fingerprint(self):
        return self.name

    def answer(self, queries):
        self.asked += queries
        programs = {example.question: example.program for example in self.data}
        return [Answer(self._say(query, programs[query.question])) for query in queries]

    def _say(self, query, program):
        if self.weak and query.scene["objects"][0]["3d_coords"][0] < -1.5:
            return "?"
        return answer_text(answer(program, query.scene))


@pytest.mark.parametrize("weak", [False, True])
def test_only_a_weak_player_is_fooled_and_nothing_is_asked_twice(tmp_path, weak):
    data = embedded(scenes=8)
    player = Engine(list(data), weak)
    probe = Game(adversary="rsg", size=4, seeds=1, budget=40)
    found = Exam(player, data, [probe], get_metric("exact"), tmp_path).run().findings[0]
    assert bool(found.failures) == weak  # right on the scene as it stands, wrong on a fair one that was found
    keys = [query.key("") for query in player.asked]
    assert len(keys) == len(set(keys))
    before, player.asked = (tmp_path / "findings.json").read_bytes(), []
    Exam(player, data, [probe], get_metric("exact"), tmp_path).run()
    assert player.asked == [] and (tmp_path / "findings.json").read_bytes() == before
