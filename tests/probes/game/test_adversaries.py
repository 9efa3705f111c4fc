from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pfungst.core import Asker, Example, PfungstError, ProbeError, UsageError
from pfungst.models import load_shipped
from pfungst.players import resolve
from pfungst.probes.game import GAMES, GameRules, MiniGame, boards_of
from pfungst.probes.game.adversaries import ADVERSARIES, get_adversary
from pfungst.probes.game.adversaries.committee import Committee, Judge, log_odds
from pfungst.probes.game.board import Board, Floats
from tests.probes.game.scripted import ScenePlayer, first_object_in

torch = pytest.importorskip("torch")

PAPER = GAMES["paper-places"]
QUICK: dict[str, dict[str, Any]] = {
    "committee": {"members": "rn-state"},
    "rsg": {"batch": 10},
}
DRAWS = {"a2c-pixel": 240, "a2c-plain": 480}


def attack(
    name: str,
    examples: list[Example],
    weak: Callable[[Mapping[str, Any]], bool] = lambda scene: False,
    budget: int = 60,
    seed: int = 0,
    rules: GameRules = PAPER,
    draws: int | None = None,
    **settings: Any,
) -> MiniGame:
    boards, asker = boards_of(examples, rules)[0], Asker(ScenePlayer(examples, weak))
    game = MiniGame(boards, asker, rules, budget=budget, draws=draws or DRAWS.get(name))
    get_adversary(name, **{**QUICK.get(name, {}), **settings}).attack(game, np.random.default_rng(seed))
    return game


@pytest.mark.parametrize("name", ADVERSARIES.names())
def test_a_known_weakness_is_found_within_the_budget(name: str, small: list[Example]) -> None:
    game = attack(name, small, first_object_in(2.0, -3.0))
    right = [n for n in range(len(small)) if game.was_right(n)]
    found = [game.fooled(n) for n in right if game.fooled(n) is not None]
    assert len(found) >= len(right) - 2 and len(right) >= 4
    for move in found:
        assert move is not None and move.positions[0, 0] >= 2.0 and move.query <= 60
    assert all(game.queries(n) <= 60 for n in range(len(small)))


@pytest.mark.parametrize("name", ADVERSARIES.names())
def test_a_perfect_player_is_never_fooled(name: str, small: list[Example]) -> None:
    game = attack(name, small[:3], budget=25)
    assert all(game.changed(n) is None for n in range(3))
    assert sum(game.queries(n) for n in range(3)) > 0
    player = game.asker.player  # type: ignore[attr-defined]
    assert len(player.seen) == len(set(player.seen))


@pytest.mark.parametrize("name", ["rsg", "greedy", "cross-entropy", "a2c"])
def test_the_same_seed_plays_the_same_game(name: str, small: list[Example]) -> None:
    games = [attack(name, small[:2], budget=12, seed=seed) for seed in (1, 1, 2)]
    played = [[(m.board, m.positions.tobytes(), m.status) for m in game.moves()] for game in games]
    assert played[0] == played[1] != played[2]


@pytest.mark.parametrize("name", ["rsg", "greedy", "cross-entropy", "a2c", "a2c-plain"])
def test_a_scene_without_a_legal_move_is_left_without_a_query(name: str, small: list[Example]) -> None:
    rules = replace(PAPER, max_objects=2)  # no CLEVR scene has so few: the count enforcer refuses everything
    settings = {"patience": 3} if name != "greedy" else {}
    game = attack(name, small[:2], rules=rules, **settings)
    assert [game.queries(n) for n in range(2)] == [0, 0]
    assert all(move.status == "invalid" for move in game.moves())


def test_a_player_that_tells_its_confidence_guides_the_greedy_search(small: list[Example]) -> None:
    from pfungst.core import Answer

    class Nervous(ScenePlayer):
        """Less sure the further object 0 stands to the right of the grid; wrong at its edge."""

        def answer(self, queries: Any) -> list[Answer]:
            said = super().answer(queries)
            return [
                Answer(one.text, confidence=0.5 - q.scene["objects"][0]["3d_coords"][0] / 10)
                for one, q in zip(said, queries, strict=True)
            ]

    player = Nervous(small, lambda s: s["objects"][0]["3d_coords"][0] >= 3.0)
    game = MiniGame(boards_of(small[:1], PAPER)[0], Asker(player), PAPER, budget=150)
    get_adversary("greedy").attack(game, np.random.default_rng(0))
    moves = [move for move in game.moves() if move.step > 0]
    assert game.fooled(0) is not None and len(moves) <= 150


def test_a2c_log_probabilities_are_those_of_the_moves_it_draws(small: list[Example]) -> None:
    from pfungst.probes.game.adversaries import a2c

    settings = a2c.A2C(samples=3, redraw=1, explore=0.0, features="own")
    game = MiniGame(boards_of(small[:1], PAPER)[0], Asker(ScenePlayer(small)), PAPER)
    policy, network = a2c.make_policy(settings, 7, seed=1)
    table = a2c.BoardTable(game, settings, network, np.random.default_rng(0))
    with torch.no_grad():
        x, y, value = policy.decide(policy.features(table.seen, table.tokens), table.objects)
        cells, log_p = table.sample(0, x[0], y[0], np.random.default_rng(3))
        chosen, masks, _ = table.layouts[0].sequential(
            np.random.default_rng(3),
            (x[0][table.heads[0], :, None] + y[0][table.heads[0], None, :]).flatten(1).exp().double().numpy(),
            3,
        )
    order = [int(np.flatnonzero((chosen == one).all(1))[0]) for one in cells]
    for row, at in enumerate(order):
        expected = 0.0
        for mover, head in enumerate(table.heads[0]):
            odds = np.exp(np.add.outer(x[0, head].numpy(), y[0, head].numpy())).ravel()
            expected += np.log(odds[cells[row, mover]] / odds[masks[at, mover]].sum())
        assert float(log_p[row]) == pytest.approx(expected, abs=1e-3)
    assert network is None and abs(float(value[0])) <= 1.2
    assert x.shape == (1, 10, 7) and float(x.exp().sum(-1).mean()) == pytest.approx(1.0)


@pytest.mark.slow
def test_a2c_learns_to_repeat_what_pays(small: list[Example]) -> None:
    game = attack(
        "a2c", small[3:4], first_object_in(1.0, -3.0), budget=10**6, leave_fooled=False, draws=480,
        learning_rate=3e-3, features="own", redraw=1,
    )  # fmt: skip
    assert game.was_right(0)
    early = np.mean([point.hits for point in game.curve[:5]])
    late = np.mean([point.hits for point in game.curve[-20:]])
    assert early < 0.6 and late > early + 0.3


def test_a_policy_can_be_saved_loaded_and_played_without_learning(small: list[Example], tmp_path: Any) -> None:
    from pfungst.probes.game.adversaries import a2c, a2c_networks

    settings = a2c.A2C(features="own")
    game = MiniGame(boards_of(small[:2], PAPER)[0], Asker(ScenePlayer(small)), PAPER, budget=20, draws=12)
    policy = a2c.train(settings, game, np.random.default_rng(0))
    whole = tmp_path / "whole.safetensors"
    a2c_networks.save_policy(policy, whole, settings)
    again, _ = a2c.make_policy(replace(settings, weights=str(whole), learn=False), 7, seed=9)
    assert all(
        torch.equal(a, b) for a, b in zip(policy.state_dict().values(), again.state_dict().values(), strict=True)
    )
    fixed = attack(
        "a2c", small[2:4], budget=8, weights=str(whole), learn=False, draws=12, features="own"
    )  # fmt: skip
    assert sum(fixed.queries(n) for n in range(2)) > 0


def relation_network(name: str, examples: Sequence[Example], folder: Any) -> Any:
    """An untrained relation network of the zoo in a folder, as `pfungst train` leaves one."""
    from pfungst.models import Inputs, Sizes, Trained, Vocabulary, build

    words = Vocabulary.build((one.question for one in examples), ("yes", "no"))
    model = build(name, Sizes(words.size, len(words.answers), (3, 24, 32)), "tiny", seed=0)
    inputs = Inputs(picture="pixels" if name == "rn" else "none", width=32, height=24)
    Trained(name, model, words, inputs, {"accuracy": 0.5}).save(folder)
    return Trained.load(folder)


@pytest.mark.parametrize(("sees", "name"), [("state", "rn-state"), ("pixels", "rn")])
def test_a2c_decides_on_what_a_pretrained_relation_network_says(
    small: list[Example], tmp_path: Any, sees: str, name: str
) -> None:
    from pfungst.probes.game.adversaries import a2c

    trained = relation_network(name, small, tmp_path)
    settings = a2c.A2C(sees=sees, features=str(tmp_path))
    game = MiniGame(boards_of(small[:2], PAPER)[0], Asker(ScenePlayer(small)), PAPER, budget=12, draws=12)
    policy, network = a2c.make_policy(settings, 7, seed=0)
    assert network is not None and network.size == 16 == policy.given
    said = network(game.boards)
    assert said.shape == (2, 16) and not torch.equal(said[0], said[1])
    before = {key: value.clone() for key, value in trained.model.state_dict().items()}
    a2c.train(settings, game, np.random.default_rng(0))
    assert sum(game.queries(n) for n in range(2)) > 0
    after = a2c.find_features(sees, str(tmp_path))[0]
    assert after is not None and all(torch.equal(before[k], v) for k, v in after.trained.model.state_dict().items())
    assert "pretrained relation network" in settings.about and "50.0%" in settings.about
    assert settings.fingerprint == trained.fingerprint


def test_a_missing_or_wrong_relation_network_is_told(small: list[Example], tmp_path: Any, monkeypatch: Any) -> None:
    import pfungst.models.trained as shelf
    from pfungst.probes.game.adversaries import a2c

    monkeypatch.setattr(shelf, "SHIPPED", tmp_path / "nothing")
    assert "no weights for rn-state" in a2c.A2C().about and "randomly initialised" in a2c.A2C(features="own").about
    relation_network("rn-state", small, tmp_path / "state")
    with pytest.raises(ProbeError, match="sees pixels needs rn"):
        a2c.make_policy(a2c.A2C(sees="pixels", features=str(tmp_path / "state")), 7, 0)
    with pytest.raises(PfungstError, match="no trained model"):
        a2c.make_policy(a2c.A2C(features=str(tmp_path / "lost")), 7, 0)
    with pytest.raises(PfungstError, match="no weights to read"):
        _ = a2c.A2C(weights=str(tmp_path / "lost.safetensors"), features="own").fingerprint


def test_weights_that_do_not_fit_and_settings_that_do_not_exist_are_explained(tmp_path: Any) -> None:
    from pfungst.probes.game.adversaries import a2c

    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(b"not weights")
    with pytest.raises(PfungstError, match="do not fit"):
        a2c.make_policy(a2c.A2C(weights=str(broken)), 7, 0)
    with pytest.raises(UsageError, match="no setting 'speed'"):
        get_adversary("rsg", speed=3)
    with pytest.raises(PfungstError, match="Did you mean greedy"):
        get_adversary("gredy")


def test_a_committee_asks_first_where_its_members_are_least_sure_of_the_truth(small: list[Example]) -> None:
    game = attack("committee", small[:2], budget=4, candidates=12, batch=2)
    judge = Judge(load_shipped("rn-state"))
    for number in range(2):
        asked = [move.positions for move in game.moves() if move.board == number]
        sure = judge.sure(game.boards[number], np.stack(asked))
        assert (np.diff(sure) >= 0).all() and len(asked) == 4
        first = game.committed_to(number)
        assert first is not None and (first == asked[0]).all()


def test_a_player_does_not_sit_in_the_committee_against_itself(small: list[Example]) -> None:
    player = resolve("rn-state")
    game = MiniGame(boards_of(small[:2], PAPER)[0], Asker(player), PAPER, budget=3)
    with pytest.raises(ProbeError, match="no member but the player"):
        get_adversary("committee", members="rn-state").attack(game, np.random.default_rng(0))
    with pytest.raises(ProbeError, match="no members"):
        get_adversary("committee", members="").attack(game, np.random.default_rng(0))


def test_a_committee_goes_by_the_mean_over_its_members_whoever_they_are(small: list[Example]) -> None:
    class Westward(Judge):
        """A member who finds it hard when object 0 stands in the west."""

        def __init__(self, weight: float) -> None:
            self.weight = weight

        def sure(self, board: Board, layouts: Floats) -> Floats:
            assert game.enforcers.allow(board, layouts).all()
            return self.weight * layouts[:, 0, 0]

    class Elsewhere(Committee):
        def judges(self, asker: Asker) -> list[Judge]:
            return [Westward(4.0), Westward(-1.0)]

    game = MiniGame(boards_of(small[:2], PAPER)[0], Asker(ScenePlayer(small)), PAPER, budget=6)
    Elsewhere(candidates=40).attack(game, np.random.default_rng(0))
    for number in range(2):
        west = [move.positions[0, 0] for move in game.moves() if move.board == number]
        assert west == sorted(west) and west[0] < west[-1] and len(west) == 6


def test_odds_tell_layouts_apart_on_which_a_member_is_all_but_certain() -> None:
    trained = load_shipped("rn-state")
    logits = torch.zeros(3, len(trained.vocabulary.answers))
    yes = trained.vocabulary.answer_number("yes")
    logits[:, yes] = torch.tensor([1.0, 30.0, 40.0])
    found = log_odds(trained, logits, ["yes"] * 3)
    others = len(trained.vocabulary.answers) - 1
    assert found == pytest.approx(np.array([1.0, 30.0, 40.0]) - np.log(others), abs=1e-5)
    assert log_odds(trained, logits, ["yes", "an answer that nobody gives", "yes"])[1] == 0.0


def test_members_that_look_at_pictures_and_at_scenes_sit_together(small: list[Example]) -> None:
    game = attack("committee", small[:1], budget=2, candidates=3, members="san+rn-state")
    assert game.queries(0) == 2


def test_the_next_player_on_a_board_is_shown_the_same_random_scenes_drawn_once(
    small: list[Example], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pfungst.probes.game.layouts import Layouts

    drawn = [0]
    uniform = Layouts.uniform

    def counted(self: Layouts, rng: np.random.Generator, count: int) -> Any:
        drawn[0] += 1
        return uniform(self, rng, count)

    monkeypatch.setattr(Layouts, "uniform", counted)
    boards = boards_of(small, PAPER)[0]

    def asked(weak: Callable[[Mapping[str, Any]], bool]) -> list[list[bytes]]:
        game = MiniGame(boards, Asker(ScenePlayer(small, weak)), PAPER, budget=40)
        get_adversary("rsg", batch=10).attack(game, np.random.default_rng(3))
        return [[move.positions.tobytes() for move in game.moves() if move.board == n] for n in range(len(boards))]

    whole = asked(lambda scene: False)
    once = drawn[0]
    short = asked(first_object_in(2.0, -3.0))
    assert drawn[0] == once > 0
    assert all(long[: len(part)] == part for long, part in zip(whole, short, strict=True))
    assert sum(map(len, short)) < sum(map(len, whole))
