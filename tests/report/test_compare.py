"""Comparing two runs, on answers that are known."""

import json
from dataclasses import dataclass, replace

import pytest
from typer.testing import CliRunner

import pfungst
from pfungst.cli.app import app
from pfungst.core import Answer, Exam, PfungstError, Run
from pfungst.core.files import jsonable
from pfungst.core.stats import Interval, holm
from pfungst.probes.blind import Blind
from pfungst.probes.control import Control
from pfungst.report.card import format_finding
from pfungst.report.compare import Pair, compare, groups_of, leaderboard
from pfungst.report.compare_html import drop_text, verdict, write_comparison
from tests.conftest import squares


@dataclass(frozen=True)
class Says:
    """Right about the pictures whose number is below `right`."""

    name: str
    answers: dict

    @property
    def fingerprint(self):
        return self.name

    def answer(self, queries):
        return [Answer(self.answers.get((q.question, q.image.digest if q.image else None), "?")) for q in queries]


def run(tmp_path, name, right, data, probes=(Control(),)):
    known = {(e.question, e.image.digest): e.target for e in data if int(e.id.split("-")[0]) < right}
    Exam(Says(name, known), data, probes, lambda e, a: float(a.text == e.target), tmp_path / name).run()
    return tmp_path / name


def test_the_difference_is_paired_and_tested(tmp_path):
    data = squares(20, 1)
    rows = compare(run(tmp_path, "a", 20, data), run(tmp_path, "b", 12, data))
    assert rows[0].variant == "clean" and rows[0].first.value == 1 and rows[0].second.value == 0.6
    assert rows[0].difference.value == pytest.approx(0.4)
    assert rows[0].flips.right_to_wrong == 8 and rows[0].flips.wrong_to_right == 0
    # 8 lost and none won: the exact test, McNemar's, says 2 / 2^8
    assert rows[0].difference.low > 0 and 2 / 2**9 < rows[0].p < 2 / 2**7 and rows[0].p_holm == rows[0].p


def test_asking_again_is_a_row_and_a_test_only_where_somebody_says_something_else(tmp_path):
    data = squares(20, 1)
    steady, other = run(tmp_path, "a", 20, data), run(tmp_path, "b", 12, data)
    assert [row.variant for row in compare(steady, other)] == ["clean"]

    class Wavers(Says):
        def answer(self, queries):
            return [Answer("?" if query.take else said.text) for query, said in zip(queries, super().answer(queries))]

    known = {(e.question, e.image.digest): e.target for e in data}
    Exam(Wavers("c", known), data, (Control(),), lambda e, a: float(a.text == e.target), tmp_path / "c").run()
    clean, again = compare(tmp_path / "c", other)
    assert (clean.variant, again.variant) == ("clean", "again") and again.first.value == 0
    # 8 to 0 and 0 to 12
    assert again.p < clean.p < 0.05 and [clean.p_holm, again.p_holm] == pytest.approx([clean.p, 2 * again.p])


def test_clean_answers_are_one_row_over_all_probes(tmp_path):
    data = squares(6, 2)
    rows = compare(run(tmp_path, "a", 6, data, (Control(), Blind())), run(tmp_path, "b", 3, data, (Control(), Blind())))
    assert [row.variant for row in rows].count("clean") == 1
    assert {row.probe for row in rows} == {"control", "blind"}


def test_a_player_compared_with_itself_differs_in_nothing(tmp_path):
    data = squares(8, 2)
    rows = compare(run(tmp_path, "a", 5, data), run(tmp_path, "b", 5, data))
    assert all(row.difference.value == 0 and row.p == 1 for row in rows)


@pytest.mark.parametrize("names", ["ab", "abc"])
def test_where_no_score_differs_it_is_said_how_many_might(tmp_path, names):
    """An interval around 0 that is as wide as a bound allows says nothing that can be read."""
    data = squares(20, 3)
    paths = [str(run(tmp_path, name, 12, data)) for name in names]
    (pair, *_) = leaderboard(paths).columns[0].pairs
    assert pair.difference.changed == 0
    told = f"0.0 points (0 of 60 scores changed, at most {100 * pair.difference.at_most:.1f}%; 95%, 20 images)"
    page = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["compare", *paths, "--html", str(page)], env={"COLUMNS": "400"})
    assert done.exit_code == 0 and told in page.read_text("utf-8")
    words = " ".join(done.stdout.replace("│", " ").split())
    assert "[-" not in words and ("0 of 60 scores changed" in words or names == "abc")


def test_runs_on_other_data_or_by_another_metric_are_refused(tmp_path):
    one = run(tmp_path, "a", 4, squares(8, 1))
    with pytest.raises(PfungstError, match="different data sets"):
        compare(one, run(tmp_path, "b", 4, squares(9, 1)))
    with pytest.raises(PfungstError, match="different metrics"):
        compare(one, run(tmp_path, "c", 4, replace(squares(8, 1), metric="vqa")))


def test_runs_without_a_probe_in_common_are_refused(tmp_path):
    data = squares(8, 1)
    with pytest.raises(PfungstError, match="no probe in common"):
        compare(run(tmp_path, "a", 4, data), run(tmp_path, "b", 4, data, (Blind(),)))


def test_a_leaderboard_tests_every_pair_and_joins_what_does_not_differ(tmp_path):
    data = squares(40, 1)
    paths = [run(tmp_path, name, right, data) for name, right in (("c", 12), ("a", 40), ("b", 36), ("d", 10))]
    board = leaderboard(paths)
    assert [one.name for one in board.runs] == ["a", "b", "c", "d"]
    clean = board.columns[0]
    assert clean.name == "clean" and [round(score.value, 3) for score in clean.scores] == [1, 0.9, 0.3, 0.25]
    # 4:0, 28:0, 30:0, 24:0, 26:0 and 2:0
    assert [pair.p < 0.05 for pair in clean.pairs] == [False, True, True, True, True, False]
    assert [pair.p_holm for pair in clean.pairs] == pytest.approx(holm([pair.p for pair in clean.pairs]))
    assert all((pair.p < 0.05) == (pair.difference.low > 0) for pair in clean.pairs)
    assert clean.groups == ((0, 1), (2, 3))
    assert clean.ties_with_best(1) and not clean.ties_with_best(2)
    # Of 40 questions 10 are right for all four, 2 for three, 24 for two, 4 for one.
    assert clean.ranks == pytest.approx(
        ((10 * 2.5 + 2 * 2 + 24 * 1.5 + 4) / 40, (10 * 2.5 + 2 * 2 + 24 * 1.5 + 4 * 3) / 40,
         (10 * 2.5 + 2 * 2 + 24 * 3.5 + 4 * 3) / 40, (10 * 2.5 + 2 * 4 + 24 * 3.5 + 4 * 3) / 40)
    )  # fmt: skip
    assert clean.friedman == pytest.approx(friedman(paths))


def friedman(paths):
    """The same test from the scores themselves."""
    from scipy.stats import friedmanchisquare

    scores = [[row["score"] for row in Run.open(path).rows() if row["variant"] == "clean"] for path in paths]
    return friedmanchisquare(*scores).pvalue


def test_groups_are_the_longest_stretches_without_a_difference():
    def pair(first, second, p):
        return Pair(first, second, Interval(0, 0, 0, 1, 1, ""), p, p)

    # 0 and 2 differ, as 1 and 3 do; 3 differs from all but 2.
    pairs = [pair(0, 1, 0.5), pair(0, 2, 0.01), pair(0, 3, 0.01), pair(1, 2, 0.5), pair(1, 3, 0.01), pair(2, 3, 0.5)]
    assert groups_of([1.0, 2.0, 3.0, 4.0], pairs) == ((0, 1), (1, 2), (2, 3))
    assert groups_of([1.0, 2.0], [pair(0, 1, 0.01)]) == ()


def test_the_columns_are_the_headlines_of_the_probes(tmp_path):
    data = squares(8, 2)
    paths = [run(tmp_path, name, right, data, (Control(), Blind())) for name, right in (("a", 8), ("b", 3))]
    board = leaderboard(paths)
    assert [(one.name, one.variants, one.role) for one in board.columns] == [
        ("clean", ("clean",), "clean"),
        ("blind, other image", ("other image",), "removes"),
    ]
    (control,) = board.controls
    assert (control.name, control.variants) == ("control", ("again",))
    for path, drop in zip(paths, board.columns[1].drops, strict=True):
        clean, other = (
            [row["score"] for row in Run.open(path).rows() if (row["probe"], row["variant"]) == ("blind", name)]
            for name in ("clean", "other image")
        )
        assert drop.value == (sum(clean) - sum(other)) / 16 > 0


def test_a_comparison_says_where_a_player_collapses_to_a_few_answers(tmp_path):
    data = squares(8, 2)
    paths = [
        str(run(tmp_path, name, right, data, (Control(), Blind()))) for name, right in (("a", 8), ("b", 3), ("c", 2))
    ]
    two = CliRunner().invoke(app, ["compare", *paths[:2]]).stderr
    assert (
        "a: With no image at all it collapses to a few answers (1 different ones, 2 with its own; most often ?" in two
    )
    assert leaderboard(paths).notes == ()  # its column is that with another image, where nobody does

    single = squares(1, 16)
    paths = [str(run(tmp_path / "single", name, 1, single, (Control(), Blind()))) for name in "abc"]
    note = leaderboard(paths).notes[0]
    assert note.startswith("a: With a blank image it collapses to a few answers (1 different ones, 2 with its own")
    page = tmp_path / "page.html"
    for text in (CliRunner().invoke(app, ["compare", *paths, "--html", str(page)]).stderr, page.read_text()):
        assert note in text


def test_imported_runs_are_compared_by_ids_and_right_answers(tmp_path):
    def log(name, answers, targets):
        rows = [
            {"question_id": f"q{n}", "question": f"{name} asks {n}?", "prediction": said, "answer": target}
            for n, (said, target) in enumerate(zip(answers, targets, strict=True))
        ]
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return pfungst.import_logs(path, tmp_path / f"run-{name}", name=name).path

    truth = ["red", "blue", "green", "red"]
    first, second = log("one", ["red", "blue", "red", "red"], truth), log("two", ["red", "red", "red", "red"], truth)
    (row,) = compare(first, second)
    assert (row.first.value, row.second.value, row.flips.right_to_wrong) == (0.75, 0.5, 1)
    assert [one.name for one in leaderboard([first, second]).runs] == ["one", "two"]
    assert leaderboard([first, second]).notes == ()
    with pytest.raises(PfungstError, match="4 have another right answer"):
        compare(first, log("other", truth, ["dog", "cat", "cow", "pig"]))


def test_questions_that_are_not_compared_are_counted(tmp_path):
    """The same answers by POPE's labels and by RePOPE's, which correct some and leave some out, do not differ."""

    def labelled(name, targets):
        rows = [{"id": n, "question": f"Is it {n}?", "answer": one, "response": "yes"} for n, one in targets.items()]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(pfungst.import_logs(tmp_path / f"{name}.jsonl", tmp_path / name, name=name).path)

    pope = labelled("pope", dict.fromkeys(range(20), "yes"))
    repope = labelled("repope", {n: "no" if n < 3 else "yes" for n in range(15)})
    told = "12 of 20 questions are compared: 5 are not in all runs and 3 have another right answer in one of them."
    assert leaderboard([pope, repope]).notes == (told,)
    for options in ([], ["--json"], ["--html", str(tmp_path / "page.html")]):
        assert f"pfungst: {told}" in CliRunner().invoke(app, ["compare", pope, repope, *options]).stderr
    assert told in (tmp_path / "page.html").read_text()


def test_runs_without_a_condition_or_a_known_answer_in_common_are_refused(tmp_path):
    row = {"question_id": "q", "question": "What?", "prediction": "red", "answer": "red"}
    (tmp_path / "log.jsonl").write_text(json.dumps(row) + "\n")

    def imported(name, *conditions):
        logs = [f"{condition}={tmp_path / 'log.jsonl'}" for condition in conditions]
        return pfungst.import_logs(logs, tmp_path / name, name=name).path

    paths = [imported("a", "early", "late"), imported("b", "old", "new")]
    with pytest.raises(
        PfungstError, match="no condition of the probe conditions in common: .*a has early, late; .*b has"
    ):
        leaderboard(paths)
    data = squares(4, 1)
    unknown = replace(data, examples=[replace(one, target=None, answers=()) for one in data])
    for name in ("c", "d"):
        Exam(Says(name, {}), unknown, [Control()], lambda e, a: float("nan"), tmp_path / name).run()
    with pytest.raises(PfungstError, match="no example with a known right answer"):
        leaderboard([tmp_path / "c", tmp_path / "d"])


def test_a_run_is_not_compared_with_itself_or_alone(tmp_path):
    path = run(tmp_path, "a", 4, squares(8, 1))
    with pytest.raises(PfungstError, match="named 2 times"):
        leaderboard([path, path])
    with pytest.raises(PfungstError, match="two or more runs"):
        leaderboard([path])


def test_the_page_holds_board_pairs_ranks_and_who_is_right(tmp_path):
    data = squares(12, 1)
    hostile = "<script>alert(1)</script>"
    paths = [run(tmp_path, name, right, data) for name, right in (("a", 12), ("b", 6), ("c", 2))]
    board = leaderboard(paths)
    board = replace(board, runs=(replace(board.runs[0], name=hostile), *board.runs[1:]))
    html = write_comparison(board, tmp_path / "compare.html", data).read_text()
    assert hostile not in html and html.count("<script>") == 1
    for words in ("3 runs compared", "Leaderboard", "Mean rank, clean", "Paired differences, clean", "10 answers on",
                  "50.0 points ["):  # fmt: skip
        assert words in html
    # b is wrong on 6 to 11, c on 2 to 11.
    assert html.count('data-right="110"') == 4 and html.count('data-right="100"') == 6


def test_the_command_prints_a_board_and_writes_a_page(tmp_path):
    data = squares(8, 1)
    paths = [str(run(tmp_path, name, right, data)) for name, right in (("a", 8), ("b", 4), ("c", 2))]
    told = CliRunner().invoke(app, ["compare", *paths, "--html", str(tmp_path / "page.html")])
    assert told.exit_code == 0 and "a leads with 100.0%" in told.stdout and (tmp_path / "page.html").exists()
    found = json.loads(CliRunner().invoke(app, ["compare", *paths, "--json"]).stdout)
    assert [one["name"] for one in found["runs"]] == ["a", "b", "c"]
    assert [score["value"] for score in found["columns"][0]["scores"]] == [1, 0.5, 0.25]


def test_two_runs_get_the_table_of_players_by_probes_in_the_terminal_too(tmp_path):
    """The drops of `compare.html`, each from the clean score on the same questions, and who is ahead of whom."""
    data = squares(12, 1)
    paths = [run(tmp_path, name, right, data, (Control(), Blind())) for name, right in (("b", 6), ("a", 12))]
    board = leaderboard(paths)
    words = [str(path) for path in paths]
    done = CliRunner().invoke(app, ["compare", *words], env={"COLUMNS": "400"})
    said = " ".join(done.stdout.replace("│", " ").split())
    for at, name in enumerate("ab"):
        shown = [drop_text(column, at) for column in board.columns[1:]]
        assert shown and all(f"{' '.join(text.split())}" in said for text in shown), name
    for column in board.columns:
        assert format_finding(jsonable(column.pairs[0].difference)) in said
    assert f" a minus b {format_finding(jsonable(board.columns[0].pairs[0].difference))}" in said
    assert " n 12 12 " in said and "first: " in said
    found = json.loads(CliRunner().invoke(app, ["compare", *words, "--json"]).stdout)
    assert [column["name"] for column in found["columns"]] == [column.name for column in board.columns]
    assert found["pairs"][0]["variant"] == "clean"


def test_runs_that_score_the_same_lead_together_and_many_are_not_all_named(tmp_path):
    data = squares(8, 1)
    level = [run(tmp_path, name, 8, data) for name in "abcdefgh"]
    behind = [run(tmp_path, name, 7, data) for name in "ij"]
    told = verdict(leaderboard([*level, *behind]))
    assert told.startswith("a, b, c, d, e and 3 others lead with 100.0%")
    assert "on clean questions, not significantly ahead of i and j." in told and "It has" not in told
    assert verdict(leaderboard(level[:2])).startswith("a and b lead with 100.0%")
    assert "ahead" not in verdict(leaderboard(level[:2]))
    assert verdict(leaderboard([level[0], *behind])).startswith("a leads with 100.0%")


@pytest.mark.parametrize("images, told", [(9, True), (10, False)])
@pytest.mark.parametrize("names", ["ab", "abc"])
def test_intervals_over_few_images_are_told_of(tmp_path, images, told, names):
    data = squares(images, 2)
    runs = [str(run(tmp_path, name, 3 + place, data)) for place, name in enumerate(names)]
    page = tmp_path / "page.html"
    for options in ([], ["--json"], ["--html", str(page)]):
        done = CliRunner().invoke(app, ["compare", *runs, *options])
        assert done.exit_code == 0
        assert ("rest on few images, the fewest: as many as 9.0 of equal size." in done.stderr) == told
    assert ("rest on few images" in page.read_text()) == told


def test_runs_by_different_metrics_are_compared_by_the_reading_that_both_have(tmp_path):
    def imported(name, **row):
        file = tmp_path / f"{name}.jsonl"
        rows = [{"id": n, "question": f"Q{n}?", "response": "red" if n % 2 else "crimson", **row} for n in range(10)]
        file.write_text("".join(json.dumps(one) + "\n" for one in rows))
        return pfungst.import_logs(file, tmp_path / name, name=name).path

    one, several = imported("one", answer="red"), imported("several", answers=["red", "crimson"])
    with pytest.raises(PfungstError, match=r"\(exact, any\).*rescore .*several --metric exact`.*--label exact"):
        compare(one, several)
    with pytest.raises(PfungstError, match="several has no reading 'exact'"):
        compare(one, several, label="exact")
    pfungst.rescore(several, metric="exact")
    (row,) = compare(one, several, label="exact")
    assert (row.first.value, row.second.value) == (0.5, 0.5)
    assert [score.value for score in leaderboard([one, several], label="exact").columns[0].scores] == [0.5, 0.5]
    pfungst.rescore(one, metric="any")
    (row,) = compare(one, several, label="any")
    assert (row.first.value, row.second.value) == (0.5, 1.0)


def test_replies_read_by_different_matchers_are_told(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps({"id": n, "answer": "red", "response": "It is red."}) + "\n" for n in range(12)))
    for matcher in ("lenient", "strict"):
        pfungst.import_logs(file, tmp_path / matcher, name=matcher, matcher=matcher)
    runs = [str(tmp_path / "lenient"), str(tmp_path / "strict")]
    done = CliRunner().invoke(app, ["compare", *runs])
    assert "read by different matchers (lenient, strict)" in done.stderr and "--label lenient" in done.stderr
    pfungst.rescore(runs[1], matcher="lenient")
    done = CliRunner().invoke(app, ["compare", *runs, "--label", "lenient"])
    assert done.exit_code == 0 and "different matchers" not in done.stderr and "0.0% [" in done.stdout


def test_the_order_of_runs_does_not_decide_which_images_are_known(tmp_path):
    def imported(name, **more):
        file = tmp_path / f"{name}.jsonl"
        rows = [
            {"id": n, "answer": "yes", "response": "yes" if n % 3 else name, **dict.fromkeys(more, f"i{n // 4}")}
            for n in range(40)
        ]
        file.write_text("".join(json.dumps(one) + "\n" for one in rows))
        return pfungst.import_logs(file, tmp_path / name, name=name).path

    with_images, without = imported("yes", image_id=True), imported("no")
    (one,), (other,) = compare(with_images, without), compare(without, with_images)
    assert one.difference.clusters == other.difference.clusters == 10 and one.p == other.p
    for runs in ([with_images, without], [without, with_images]):
        assert leaderboard(runs).columns[0].scores[0].clusters == 10
