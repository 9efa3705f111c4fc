import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from pfungst.core import Answer, Dataset, Example, PfungstError, ProbeError, Query, UsageError
from pfungst.core.store import AnswerStore
from pfungst.probes.game import (
    GameSettings,
    fooled_rows,
    play,
    read_moves,
    read_result,
    table_2,
    table_4,
    table_b1,
    table_b3,
)
from pfungst.probes.game.extras import transfer_matrix
from pfungst.probes.game.playing import playable, sample_games
from pfungst.probes.game.results import Result, budget_figure, rarity, t_test
from pfungst.probes.game.rows import COLUMNS, BoardSummary, read_round, scene_after
from pfungst.probes.game.tables import apart
from pfungst.world import answer, answer_text
from tests.probes.game.scripted import ChancePlayer, ScenePlayer, first_object_in

QUICK = GameSettings(size=2, seeds=3, adversary="cross-entropy", budget=30)
CORNER = first_object_in(2.0, -3.0)


def data_of(examples: Sequence[Example]) -> Dataset:
    return Dataset("small world", list(examples), metric="exact", fingerprint="small")


def test_samples_are_mutually_exclusive_and_fixed_by_the_seed(examples: list[Example]) -> None:
    settings = GameSettings(size=4, seeds=30)
    games = sample_games(examples, settings, seed=3)
    ids = [one.id for game in games for one in game]
    assert len(ids) == len(set(ids)) == 4 * (len(examples) // 4)
    assert [[x.id for x in g] for g in sample_games(examples, settings, seed=3)] == [[x.id for x in g] for g in games]
    assert len(sample_games(examples, GameSettings(size=4, games=2))) == 2
    with pytest.raises(ProbeError, match="cannot be drawn from"):
        sample_games(examples, GameSettings(size=1000))


def test_what_cannot_be_played_is_counted(examples: list[Example]) -> None:
    twin = Example("twin", "again?", scene=examples[0].scene, program=examples[0].program, group=examples[0].group)
    blank, blind = Example("a", "Why?"), Example("b", "Why?", scene=examples[0].scene)
    lost = Example("c", "Why?", scene=examples[0].scene, program=[{"function": "jump", "inputs": []}])
    chosen, left_out = playable([*examples, twin, blank, blind, lost], GameSettings())
    assert len(chosen) == len(examples)
    assert left_out == {"rephrasing": 1, "no scene": 1, "no program": 1, "cannot be played": 1}
    about_places, left_out = playable(examples, GameSettings(relate_only=True))
    assert 0 < len(about_places) < len(examples) and left_out["no relate"] == len(examples) - len(about_places)


def test_a_whole_run_finds_the_weakness_and_every_row_can_be_trusted(small: list[Example], tmp_path: Path) -> None:
    result = play(ScenePlayer(small, CORNER), data_of(small), tmp_path / "run", QUICK)
    table = read_moves(tmp_path / "run")
    assert table.column_names == list(COLUMNS)
    rows = fooled_rows(table)
    (found,) = json.loads((tmp_path / "run" / "findings.json").read_text())["findings"]
    assert rows and found["drop"]["value"] > 0.4
    by_id = {one.id: one for one in small}
    for row in rows:
        example = by_id[row["example_id"]]
        scene = scene_after(row)
        assert row["verified"] and row["confirmed"] and row["legal"] and row["reward"] == 1.0
        assert answer_text(answer(example.program, scene)) == row["truth"] == row["old_answer"] != row["new_answer"]  # type: ignore[arg-type]
        assert scene["objects"][0]["3d_coords"][0] >= 2.0
        assert np.allclose(np.reshape(row["after"], (-1, 2)), [o["3d_coords"][:2] for o in scene["objects"]])
    lost = len(rows) / 6
    assert result.average("fooled") == pytest.approx(lost)
    assert result.average("after") == pytest.approx(result.average("before") - lost)
    assert found["drop"]["value"] == pytest.approx(lost) and len(found["failures"]) == len(rows)
    control = next(one for one in found["rows"] if one["name"] == "answers changed, same scene twice")
    assert control["value"] == 0.0 and control["n"] == 6
    assert result.counts["fooled"] == len(rows)


def test_a_perfect_player_loses_nothing(small: list[Example], tmp_path: Path) -> None:
    result = play(ScenePlayer(small), data_of(small), tmp_path, QUICK)
    assert result.p_value("fooled") == 1.0 and result.average("changed") == 0.0
    assert result.counts["fooled"] == 0 and result.counts["no legal move found"] == 0


def test_a_second_run_plays_and_asks_nothing(small: list[Example], tmp_path: Path) -> None:
    first = play(ScenePlayer(small, CORNER), data_of(small), tmp_path, QUICK)
    before = (tmp_path / "game" / "moves.parquet").read_bytes()
    again = ScenePlayer(small, CORNER)
    second = play(again, data_of(small), tmp_path, QUICK)
    assert again.seen == [] and (tmp_path / "game" / "moves.parquet").read_bytes() == before
    assert second.runs == first.runs
    more = play(again, data_of(small), tmp_path, GameSettings(size=2, seeds=2, adversary="cross-entropy", budget=30))
    assert again.seen == [] and more.runs == first.runs[:2]


class Mortal(ScenePlayer):
    """Dies after so many questions."""

    lives = 100

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        if len(self.seen) + len(queries) > self.lives:
            raise OSError("the machine is gone")
        return super().answer(queries)


def test_a_player_that_dies_is_reported_and_the_run_goes_on_later(small: list[Example], tmp_path: Path) -> None:
    dying = Mortal(small)
    with pytest.raises(PfungstError, match="is not whole.*could not be finished.*the machine is gone"):
        play(dying, data_of(small), tmp_path, QUICK)
    result = read_result(tmp_path)
    assert 0 < result.missing < 3 and result.counts["mini-games that are missing"] == result.missing
    assert f"({len(result.runs)} of 3 mini-games)" in result.player
    (found,) = json.loads((tmp_path / "findings.json").read_text())["findings"]
    assert f"{result.missing} of 3 mini-games could not be finished and are missing" in found["verdict"]
    known = len(dying.seen)
    revived = ScenePlayer(small)
    whole = play(revived, data_of(small), tmp_path, QUICK)
    assert not whole.missing and len(whole.runs) == 3
    assert not set(revived.seen) & set(dying.seen)
    with AnswerStore(tmp_path / "answers.sqlite") as store:
        assert len(store) == known + len(revived.seen)
    fresh = ScenePlayer(small)
    play(fresh, data_of(small), tmp_path / "other", QUICK)
    assert sorted(fresh.seen) == sorted(dying.seen + revived.seen)
    assert (tmp_path / "game" / "moves.parquet").read_bytes() == (
        tmp_path / "other" / "game" / "moves.parquet"
    ).read_bytes()


def test_a_player_that_never_answers_is_an_error_in_words(small: list[Example], tmp_path: Path) -> None:
    dead = Mortal(small)
    dead.lives = 0
    with pytest.raises(PfungstError, match="No mini-game could be finished.*the machine is gone"):
        play(dead, data_of(small), tmp_path, QUICK)


def test_another_players_folder_is_refused(small: list[Example], tmp_path: Path) -> None:
    play(ScenePlayer(small), data_of(small), tmp_path, GameSettings(size=2, seeds=1, adversary="rsg", budget=3))
    with pytest.raises(PfungstError, match="another player"):
        play(ScenePlayer(small, name="other"), data_of(small), tmp_path, QUICK)


class Fickle(ScenePlayer):
    """Right, except that it tosses a coin when it is asked about a moved scene for the first time."""

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        said = super().answer(queries)
        return [
            Answer("perhaps") if q.take == 0 and len(self.seen) > 8 else a for q, a in zip(queries, said, strict=True)
        ]


def test_a_fickle_player_is_not_called_fooled(small: list[Example], tmp_path: Path) -> None:
    result = play(Fickle(small), data_of(small), tmp_path, GameSettings(size=6, seeds=1, adversary="rsg", budget=20))
    assert result.counts["fooled"] > 0
    assert result.counts["fooled, not confirmed"] == result.counts["fooled"]
    assert result.average("fooled") == 0.0 and result.counts["nonsense answers"] > 0


def test_the_most_queries_bound_what_a_paid_player_is_asked(small: list[Example], tmp_path: Path) -> None:
    settings = GameSettings(size=2, seeds=2, adversary="rsg", max_queries=40)
    player = ScenePlayer(small)
    play(player, data_of(small), tmp_path, settings)
    assert settings.queries_each() == 5 and 20 < len(player.seen) <= 40 == settings.most_queries()
    with pytest.raises(UsageError, match="too few"):
        GameSettings(max_queries=10).queries_each()


def test_a_question_without_an_answer_is_counted_by_who_plays_and_by_who_reads(
    small: list[Example], tmp_path: Path
) -> None:
    class Silent(ScenePlayer):
        """Has no answer to one question."""

        def _one(self, query: Query) -> str:
            if query.question == small[0].question:
                raise ValueError("no idea")
            return super()._one(query)

    settings = GameSettings(size=6, seeds=1, adversary="rsg", budget=3)
    with pytest.raises(PfungstError, match="is not whole. 1 query got no answer, so 1 trial is left out.* no idea"):
        play(Silent(small), data_of(small), tmp_path, settings)
    counts = read_result(tmp_path).counts
    assert (counts["questions"], counts["questions without an answer"]) == (5, 1)
    (found,) = json.loads((tmp_path / "findings.json").read_text())["findings"]
    assert ["questions without an answer", 1] in found["tables"][0]["rows"]
    (played,) = (tmp_path / "game" / "rounds").glob("*.parquet")
    assert sum(board.old_answer is None for board in read_round(played).boards) == read_round(played).unanswered == 1


def test_bad_settings_are_explained() -> None:
    for bad in ({"size": 0}, {"seeds": 0}, {"budget": 0}, {"games": 0}):
        with pytest.raises(UsageError, match="must be at least 1"):
            GameSettings(**bad)
    with pytest.raises(UsageError, match="no game called"):
        _ = GameSettings(preset="chess").rules


def test_pixel_players_see_pictures_only(small: list[Example], tmp_path: Path) -> None:
    settings = GameSettings(size=2, seeds=1, adversary="rsg", budget=3, preset="code")
    result = play(ChancePlayer(), data_of(small), tmp_path, settings)
    assert result.counts["moved scenes asked about"] == 6


def test_the_t_test_is_the_one_sided_one_sample_test() -> None:
    values = [0.1, 0.0, 0.2, 0.3]
    mean, error = np.mean(values), np.std(values, ddof=1) / 2
    assert t_test(values) == pytest.approx(stats.t.sf(mean / error, 3))
    assert t_test([0.0, 0.0]) == 1.0 and t_test([0.2, 0.2]) == 0.0 and math.isnan(t_test([0.2]))


def test_rarity_is_that_of_the_paper() -> None:
    # One scene of three objects: 1 / 49^3, which the paper rounds to 0.00085%.
    assert rarity(1, 3) == pytest.approx(1 / 117_649) and 100 * rarity(1, 3) == pytest.approx(0.00085, abs=1e-5)


def summary(fooled_after: int | None, right: bool = True, **more: Any) -> BoardSummary:
    known: dict[str, Any] = {"confirmed": None, "verified": None, "again": None, "queries": 100, **more}
    return BoardSummary(
        "q", "i", "count", 3, True, "1", "1", right, known["queries"], fooled_after, fooled_after, known["confirmed"],
        known["verified"], known["again"], 5, 0,
    )  # fmt: skip


def success_by_budget(boards: list[BoardSummary]) -> dict[Any, float]:
    (line,) = budget_figure(boards).series
    return dict(zip(line.x, line.y, strict=True))


def test_success_by_budget_counts_questions_fooled_so_far() -> None:
    boards = [summary(1), summary(7), summary(60), summary(None), summary(None, right=False)]
    curve = success_by_budget(boards)
    assert (curve[1], curve[5], curve[10], curve[50], curve[100]) == (0.25, 0.25, 0.5, 0.5, 0.75)
    assert max(curve) == 100


def test_unverified_or_unconfirmed_scenes_do_not_count() -> None:
    boards = [summary(1, verified=False), summary(1, confirmed=False), summary(1, confirmed=True, verified=True)]
    assert success_by_budget(boards)[1] == pytest.approx(1 / 3)


def with_boards(result: Result, boards: Sequence[BoardSummary]) -> Result:
    """The result with something else become of its questions."""
    left, rounds = list(boards), []
    for played in result.rounds:
        count = len(played.boards)
        rounds.append(replace(played, boards=tuple(left[:count])))
        left = left[count:]
    return replace(result, rounds=tuple(rounds))


def test_tables_have_the_layout_of_the_paper(small: list[Example], tmp_path: Path) -> None:
    results = []
    for name in ("cross-entropy", "rsg"):
        settings = GameSettings(size=2, seeds=3, adversary=name, budget=30)
        play(ScenePlayer(small, CORNER), data_of(small), tmp_path / name, settings)
        results.append(read_result(tmp_path / name))
    two = table_2(results, columns={"cross-entropy": "State-Input"})
    assert two.columns[:4] == ("Model", "Mini-game size", "Model dataset performance", "Average Accuracy, State-Input")
    before, after = results[0].average("before"), results[0].average("after")
    assert two.rows[0][:4] == (
        "engine",
        2,
        f"{100 * before:.1f}",
        f"{100 * after:.1f} ({-100 * (1 - after / before):.1f}%)",
    )
    four = table_4(results, "rsg")
    assert len(four.rows) == 1 and float(four.rows[0][4]) == pytest.approx(results[1].p_value("changed"), abs=1e-3)
    assert len(table_b1(results).rows[0]) == 6 and "rsg: accuracy (drop)" in table_b3(results).columns
    assert table_b3(results).columns[-1] == "one scene, cross-entropy less rsg"
    assert table_b3(results).rows[0][-1] == ""  # it commits itself to no scene
    # A run with more queries stands beside, not in place of, the one with fewer.
    longer = replace(results[1], settings=replace(results[1].settings, budget=5000))
    assert [one.adversary for one in apart([*results, longer])] == ["cross-entropy", "rsg", "rsg, 5000 queries"]
    assert "rsg, 5000 queries: accuracy (drop)" in table_b3(apart([longer, *results])).columns
    with pytest.raises(PfungstError, match="against rsg in mini-games of 2 .* give only one of them"):
        table_2([*results, results[1]])
    single = replace(results[1], rounds=results[1].rounds[:1])
    assert table_4([single], "rsg").rows[0][4:] == ("", "")  # no t-test over one mini-game
    half = [replace(one, committed=number % 2 == 0) for number, one in enumerate(results[0].boards)]
    right = [replace(one, committed=True) for one in results[1].boards]
    shown = table_b3([with_boards(results[0], half), with_boards(results[1], right)])
    change, low, high = re.findall(r"[+-]?[\d.]+", str(shown.rows[0][-1]))
    assert change == "-50.0" and -100 <= float(low) < -50 < float(high) <= 100
    # Beside the best of its queries: what rsg fooled counts as wrong there, what it did not as it was before.
    kept = [replace(one, right=True, fooled_after=None) for one in results[1].boards]
    best = table_b3([with_boards(results[0], half), with_boards(results[1], kept)])
    assert best.columns[-2] == "one scene, cross-entropy less the best of rsg's queries"
    assert str(best.rows[0][-2]).startswith("-50.0")
    lost = [replace(one, right=True, fooled_after=3, confirmed=True, verified=True) for one in results[1].boards]
    best = table_b3([with_boards(results[0], half), with_boards(results[1], lost)])
    assert str(best.rows[0][-2]).startswith("+50.0")
    assert read_round(tmp_path / "rsg" / "game" / "rounds" / "round-00000.parquet").boards
    with pytest.raises(PfungstError, match=r"no exam\.json"):
        read_result(tmp_path)


def test_scenes_found_against_one_player_are_tried_on_the_others(small: list[Example], tmp_path: Path) -> None:
    play(ScenePlayer(small, CORNER), data_of(small), tmp_path, QUICK)
    rows = fooled_rows(read_moves(tmp_path))
    players = [ScenePlayer(small, CORNER), ScenePlayer(small, name="perfect")]
    matrix = transfer_matrix({"corner": rows}, players, small)
    assert matrix.columns == ("found against", "scenes", "engine", "perfect")
    assert (matrix.rows[0][2].value, matrix.rows[0][3].value) == (1.0, 0.0)
    # Other data may use the same ids for other questions: those scenes are not tried.
    others = [replace(one, question="Is it?") if one.id == rows[0]["example_id"] else one for one in small]
    assert transfer_matrix({"corner": rows}, players, others).rows[0][1] == len(rows) - 1


def test_strips_show_before_and_after(small: list[Example], tmp_path: Path) -> None:
    import PIL.Image

    from pfungst.probes.game.pictures import write_strips

    play(ScenePlayer(small, CORNER), data_of(small), tmp_path, QUICK)
    (path,) = write_strips(tmp_path, fooled_rows(read_moves(tmp_path)), 1)
    picture = np.asarray(PIL.Image.open(path))
    assert picture.shape == (292, 1120, 3)
    assert (picture[:240, :320] != picture[:240, 560:880]).any()


def test_the_probe_plays_outside_an_exam_too(small: list[Example]) -> None:
    from pfungst.core import AnsweredTrial, Asker
    from pfungst.probes.game import Game
    from pfungst.scores import get_metric

    asker, data = Asker(ScenePlayer(small, CORNER)), data_of(small)
    probe = Game(adversary="cross-entropy", size=3, seeds=2, budget=30)
    trials = list(probe.search(asker, data, 0))
    assert sorted(trial.example_id for trial in trials) == sorted(one.id for one in small)
    score, by_id = get_metric("exact"), {one.id: one for one in small}
    answered = []
    for trial in trials:
        said = tuple(asker.answers([variant.query for variant in trial.variants]))
        example = by_id[trial.example_id]
        answered.append(AnsweredTrial(trial, example, said, tuple(score(example, one) for one in said)))
    found = probe.findings(answered, 0)
    assert found.drop is not None and found.drop.value > 0.4 and found.failures
    fooled = [trial for trial in trials if trial.notes["board"]["fooled_after"] is not None]
    assert found.drop.value == pytest.approx(len(fooled) / len(small))
    assert found.figures[0].series[0].y[-1] == pytest.approx(len(fooled) / len(small))
    assert sum(row[1] for row in found.tables[2].rows) == len(small)
    assert all(trial.notes["board"]["verified"] is not False for trial in trials)
    still = [[v.name for v in trial.variants] for trial in probe.trials(data, 0)]
    assert still == [["clean", "again"]] * len(small)


def test_a_game_is_an_ordinary_run_that_is_rescored_reported_and_compared(small: list[Example], tmp_path: Path) -> None:
    from pfungst import compare, rescore
    from pfungst.report import write_report

    data = data_of(small)
    for name, weak in (("weak", CORNER), ("strong", lambda scene: False)):
        play(ScenePlayer(small, weak, name=name), data, tmp_path / name, QUICK)
    before = (tmp_path / "weak" / "findings.json").read_bytes()
    rescore(tmp_path / "weak", data)
    assert (tmp_path / "weak" / "findings.json").read_bytes() == before
    assert "Moving objects without changing" in write_report(tmp_path / "weak", data).read_text()
    rows = {(row.probe, row.variant): row for row in compare(tmp_path / "weak", tmp_path / "strong")}
    assert rows["game", "clean"].difference.value == 0.0 and rows["game", "moved"].difference.value < -0.4


def test_a_folder_of_an_earlier_version_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "game.json").write_text("{}")
    with pytest.raises(PfungstError, match="earlier version.*Play again into a new folder"):
        read_result(tmp_path)


def test_mini_games_of_other_settings_are_not_counted(examples: list[Example], tmp_path: Path) -> None:
    data, one = Dataset("w", examples, "exact", "x"), GameSettings("rsg", size=3, seeds=2, budget=2)
    play(ScenePlayer(examples), data, tmp_path, one)

    class Down(ScenePlayer):
        """Leaves before the second mini-game."""

        def answer(self, queries: Sequence[Query]) -> list[Answer]:
            if (tmp_path / "game" / "rounds" / "round-00000.parquet").exists():
                raise RuntimeError("gone")
            return super().answer(queries)

    with pytest.raises(PfungstError, match="round-00001.parquet could not be finished"):
        play(Down(examples), data, tmp_path, replace(one, budget=4))
    assert read_result(tmp_path).missing == 1
    assert {run.queries for run in read_result(tmp_path).runs} == {12}
