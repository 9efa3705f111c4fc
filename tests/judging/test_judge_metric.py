"""A judge as metric, asked over HTTP."""

import csv
import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import pfungst
from pfungst.core import Answer, Example, Finding, Findings, PfungstError, PlayerError, UsageError
from pfungst.core.store import AnswerStore
from pfungst.core.types import no_progress
from pfungst.players.judging import Judge, JudgeSettings
from pfungst.players.judging.judge import STORE
from pfungst.scores import get_metric
from tests.judging.court import Talker, court, data_in, honest, judging, spec
from tests.players.api_server import Exchange, serving


def row(found: Findings | None, name: str, condition: str = "") -> Finding:
    assert found is not None
    return next(one for one in found.rows if (one.name, one.condition) == (name, condition))


def examined(out: Path, url: str, probes: tuple[str, ...] = ("control", "blind"), **settings: Any) -> pfungst.Run:
    data = court()
    return pfungst.examine(Talker(data), data, list(probes), out, metric=spec(url, **settings))


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[pfungst.Run, list[str]]:
    """An exam judged by an honest judge, and the prompts it was asked."""
    prompts: list[str] = []

    def behave(exchange: Exchange) -> None:
        prompts.append(exchange.prompt)
        judging()(exchange)

    with serving(behave) as server:
        run = examined(tmp_path_factory.mktemp("runs") / "judged", server.url)
    return run, prompts


def test_an_exam_is_scored_by_what_the_judge_says(judged: tuple[pfungst.Run, list[str]]) -> None:
    run, _ = judged
    control, blind = run.findings
    assert control.clean is not None and control.clean.value == pytest.approx(0.8)
    accuracies = {row.condition: row.value for row in blind.rows if row.name == "accuracy"}
    assert accuracies["question only"] == 0.0 < accuracies["other image"]
    told = json.loads((run.path / "findings.json").read_text())
    assert told["judge"]["verdict"] == run.judge.verdict and "umpire judged" in told["judge"]["verdict"]  # type: ignore[union-attr]


def test_a_reply_that_the_matcher_cannot_read_is_judged_as_it_was_said(judged: tuple[pfungst.Run, list[str]]) -> None:
    run, _ = judged
    rows = run.answers("control", unread=True)
    assert rows and any(one["score"] == 1 for one in rows)
    assert any("were judged as written" in note for note in run.notes)
    assert any(note.startswith("umpire, the judge: ") and "requests" in note for note in run.notes)


def test_the_same_words_to_the_same_question_are_judged_once_and_again_for_repeatability(
    judged: tuple[pfungst.Run, list[str]],
) -> None:
    run, prompts = judged
    answers = run.answers()
    distinct = len({(one["question"], one["target"], one["reply"]) for one in answers})
    assert set(Counter(prompts).values()) == {2} and len(set(prompts)) == distinct < len(answers)
    twice = row(run.judge, "same verdict", "asked twice")
    assert (twice.value, twice.n) == (1.0, distinct) and twice.low < 1
    assert row(run.judge, "kappa", "asked twice").value == 1.0


def test_the_prompt_shows_question_references_and_reply_and_no_image(judged: tuple[pfungst.Run, list[str]]) -> None:
    _, prompts = judged
    data = data_in(prompts[0])
    assert set(data) == {"question", "reference answers", "reply"}
    assert data["question"] == "Is number 0 shown?" and data["reference answers"] in (["yes"], ["no"])
    assert "exactly one word, CORRECT or INCORRECT" in prompts[0]


def test_what_was_judged_is_not_asked_again_when_a_run_is_rescored(judged: tuple[pfungst.Run, list[str]]) -> None:
    run, _ = judged
    before = (run.path / "findings.json").read_bytes()
    config = json.loads((run.path / "exam.json").read_text())
    with AnswerStore(run.path / STORE) as store:
        known = len(store)
    # The server is gone: every judgement must come from the store.
    again = pfungst.rescore(run.path, court())
    assert again.judge == run.judge and (run.path / "findings.json").read_bytes() == before
    assert config["data"]["metric"].startswith("judge:openai:umpire@")
    with AnswerStore(run.path / STORE) as store:
        assert len(store) == known


def test_rescore_by_a_judge_stands_beside_the_first_findings(tmp_path: Path) -> None:
    data = court(6)
    with serving(judging()) as server:
        pfungst.examine(Talker(data), data, ["control"], tmp_path / "run")
        before = (tmp_path / "run" / "findings.json").read_bytes()
        done = pfungst.rescore(tmp_path / "run", data, metric=spec(server.url, model="org/umpire"))
    assert done.label == "judge-org-umpire"
    assert (tmp_path / "run" / "findings-judge-org-umpire.json").exists()
    assert (tmp_path / "run" / "findings.json").read_bytes() == before
    assert done.findings[0].clean.value == pytest.approx(4 / 6)  # type: ignore[union-attr]


def test_a_judge_that_contradicts_itself_is_found_out(tmp_path: Path) -> None:
    def fickle(exchange: Exchange) -> None:
        word = honest(data_in(exchange.prompt))
        other = {"CORRECT": "INCORRECT", "INCORRECT": "CORRECT"}[word]
        exchange.say(word if exchange.body["seed"] == 0 else other)

    with serving(fickle) as server:
        run = examined(tmp_path, server.url, ("control",))
    assert row(run.judge, "same verdict", "asked twice").value == 0.0
    assert row(run.judge, "kappa", "asked twice").value < 0
    assert run.findings[0].clean.value == pytest.approx(0.8)  # type: ignore[union-attr]


def test_only_a_share_is_asked_twice_and_always_the_same_one(tmp_path: Path) -> None:
    asked = []
    for name in ("one", "two"):
        with serving(judging()) as server:
            examined(tmp_path / name, server.url, ("control",), repeat=0.3, version="v")
            asked.append({json.loads(raw)["messages"][0]["content"]
                          for raw in server.requests if json.loads(raw)["seed"] == 1})  # fmt: skip
    assert asked[0] == asked[1] and 0 < len(asked[0]) < 20


def test_a_judgement_without_a_clear_word_is_missing_and_the_bounds_say_what_it_could_mean(tmp_path: Path) -> None:
    def mumbling(data: dict[str, Any]) -> str:
        if "picture 7)" in data["reply"]:
            return "That is not correct, or is it?"
        if "picture 8)" in data["reply"]:
            return "CORRECT ... no, INCORRECT"
        return honest(data)

    with serving(judging(mumbling)) as server:
        run = examined(tmp_path, server.url)
    clean = run.findings[0].clean
    assert clean is not None and clean.n == 18 and clean.value == pytest.approx(14 / 18)
    assert row(run.judge, "accuracy if missing are wrong", "control: clean").value == pytest.approx(14 / 20)
    assert row(run.judge, "accuracy if missing are right", "control: clean").value == pytest.approx(16 / 20)
    assert row(run.judge, "least drop with missing counted", "blind: blank image").value == pytest.approx(14 / 20)
    assert row(run.judge, "largest drop with missing counted", "blind: blank image").value == pytest.approx(16 / 20)
    assert run.judge is not None and "neither word" in run.judge.verdict and "both words" in run.judge.verdict
    scores = {one["example_id"]: one["score"] for one in run.answers("control")}
    assert scores["7-0"] is None or math.isnan(scores["7-0"])


def test_a_flaky_judge_is_tried_again_and_what_fails_for_good_is_missing_until_the_next_run(tmp_path: Path) -> None:
    down = {"picture 3)", "picture 4)"}

    def flaky(exchange: Exchange) -> None:
        reply = data_in(exchange.prompt)["reply"]
        if any(name in reply for name in down):
            exchange.fail(503)
        elif exchange.attempt == 0:
            exchange.hang_up()
        else:
            judging()(exchange)

    with serving(flaky) as server:
        first = examined(tmp_path, server.url, ("control",), retries=2, repeat=0, concurrency=1)
        assert first.findings[0].clean.n == 18  # type: ignore[union-attr]
        assert "no reply: 4" in first.judge.verdict  # type: ignore[union-attr]
        assert "2 judgements of umpire failed; their answers are left out of all numbers" in " ".join(first.problems)
        allowed = examined(
            tmp_path / "allowed", server.url, ("control",), retries=2, repeat=0, concurrency=1, max_errors=4
        )
        assert not allowed.problems
        down.clear()
        count = server.count
        second = examined(tmp_path, server.url, ("control",), retries=2, repeat=0, concurrency=1)
        assert second.findings[0].clean.n == 20 and server.count - count <= 4  # type: ignore[union-attr]
        assert not second.problems


def test_a_judge_that_is_too_slow_fails_with_a_sentence_and_keeps_what_it_said(tmp_path: Path) -> None:
    slow = {"is": True}

    def behave(exchange: Exchange) -> None:
        if slow["is"] and "picture 11)" in exchange.prompt:
            exchange.drip(5.0)
        else:
            judging()(exchange)

    with serving(behave) as server:
        settings = {"max_errors": 0, "repeat": 0, "concurrency": 1}
        with pytest.raises(PlayerError, match=r"judge umpire failed on \d+ of 20 judgements"):
            examined(tmp_path, server.url, ("control",), timeout=0.3, **settings)
        slow["is"] = False
        with AnswerStore(tmp_path / STORE) as store:
            kept, count = len(store), server.count
        run = examined(tmp_path, server.url, ("control",), **settings)
        assert run.findings[0].clean.n == 20  # type: ignore[union-attr]
        assert server.count - count == 20 - kept < 20


def test_a_judge_that_is_not_there_ends_the_run_and_the_player_is_not_asked_again(tmp_path: Path) -> None:
    with serving(judging()) as server:
        gone = server.url
    with pytest.raises(PlayerError):
        examined(tmp_path, gone, ("control",))
    assert (tmp_path / "answers.sqlite").exists() and not (tmp_path / "findings.json").exists()

    class Silent(Talker):
        def answer(self, queries: Any) -> Any:
            raise AssertionError("asked again")

    data = court()
    with serving(judging()) as server:
        run = pfungst.examine(Silent(data), data, ["control"], tmp_path, metric=spec(server.url))
    assert run.findings[0].clean.n == 20  # type: ignore[union-attr]


def test_a_judge_that_never_says_either_word_is_refused(tmp_path: Path) -> None:
    with serving(lambda x: x.say("A fine reply!")) as server, pytest.raises(PlayerError, match="gave no verdict"):
        examined(tmp_path, server.url, ("control",))


def test_one_unclear_word_about_a_small_probe_ends_nothing(tmp_path: Path) -> None:
    judge = Judge(Says({"cat": "CORRECT", "dog": "well"}), JudgeSettings(repeat=0))
    asked = Example("q", "What?", target="cat")
    for reply in ("a cat", "a dog"):
        judge.prepare([(asked, Answer(reply))], tmp_path, no_progress)
    assert judge(asked, Answer("a cat")) == 1.0 and math.isnan(judge(asked, Answer("a dog")))


class Says:
    """A player that says the word of the first key that stands in the reply."""

    name = fingerprint = "says"

    def __init__(self, words: dict[str, str]) -> None:
        self.words = words

    def answer(self, queries: Any) -> list[Answer]:
        replies = [data_in(query.question)["reply"] for query in queries]
        return [Answer(next(word for key, word in self.words.items() if key in reply)) for reply in replies]


def test_the_probability_that_a_judge_gives_its_word_is_kept(tmp_path: Path) -> None:
    def sure(exchange: Exchange) -> None:
        tokens = [{"token": "x", "logprob": math.log(0.8)}]
        exchange.say(honest(data_in(exchange.prompt)), logprobs={"content": tokens})

    with serving(sure) as server:
        run = examined(tmp_path, server.url, ("control",), logprobs="yes", repeat=0)
    assert row(run.judge, "own probability").value == pytest.approx(0.8)


def test_the_same_model_judging_itself_is_told(tmp_path: Path) -> None:
    with serving(judging()) as server:
        run = examined(tmp_path, server.url, ("control",), name="Talker", repeat=0)
    assert "favour what they said themselves" in run.judge.verdict  # type: ignore[union-attr]


def test_an_empty_reply_is_wrong_without_asking_and_an_unknown_truth_stays_unknown() -> None:
    def never(image: Any, question: str) -> str:
        raise AssertionError("asked")

    from pfungst.players import resolve

    judge = Judge(resolve(never))
    assert judge(Example("q", "What?", target="cat"), Answer("<think>a cat")) == 0.0
    assert math.isnan(judge(Example("q", "What?"), Answer("cat")))


def test_outside_an_exam_a_judge_is_asked_on_the_spot() -> None:
    with serving(judging()) as server:
        metric = get_metric(spec(server.url))
        assert metric(Example("q", "What?", target="cat"), Answer("It is a cat.")) == 1.0
        assert metric(Example("q", "What?", target="cat"), Answer("It is a dog.")) == 0.0


# --- labels -----------------------------------------------------------------------------------------------------------


def lenient_judge(data: dict[str, Any]) -> str:
    """Calls replies about the pictures 0 and 5, which are wrong, right."""
    return "CORRECT" if re.search(r"picture [05]\)", data["reply"]) else honest(data)


def write_labels(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_human_labels_give_sensitivity_specificity_and_a_corrected_accuracy(tmp_path: Path) -> None:
    rows = [{"id": f"{n}-0", "right": "wrong" if n % 5 == 0 else "right"} for n in range(20)]
    labels = write_labels(tmp_path / "labels.csv", rows)
    with serving(judging(lenient_judge)) as server:
        run = examined(tmp_path / "run", server.url, labels=labels, repeat=0)
    judge = run.judge
    assert (row(judge, "sensitivity").value, row(judge, "sensitivity").n) == (1.0, 16)
    assert (row(judge, "specificity").value, row(judge, "specificity").n) == (0.5, 4)
    assert row(judge, "sensitivity").low == pytest.approx(0.7941, abs=1e-4)  # Clopper-Pearson, 16 of 16
    # 18 of 20 are called right: (0.9 + 0.5 - 1) / (1 + 0.5 - 1) = 0.8, which is the truth.
    corrected = row(judge, "corrected accuracy", "control: clean")
    assert run.findings[0].clean.value == pytest.approx(0.9)  # type: ignore[union-attr]
    assert corrected.value == pytest.approx(0.8) and corrected.low < 0.8 < corrected.high
    # Blank images: everything is called wrong. The drop 0.9 - 0 is corrected to 0.9 / 0.5, cut at 1.
    assert row(judge, "corrected drop", "blind: blank image").value == 1.0
    assert "Against 20 human labels" in judge.verdict  # type: ignore[union-attr]


def test_labels_of_a_table_that_was_exported_count_for_their_condition_and_reply(tmp_path: Path) -> None:
    rows = [
        {"example_id": "1-0", "probe": "control", "variant": "clean", "raw": "", "right": "1"},
        {"example_id": "2-0", "probe": "control", "variant": "clean", "raw": "another reply", "right": "1"},
        {"example_id": "5-0", "probe": "blind", "variant": "blank image", "raw": "", "right": "0"},
        {"example_id": "99-0", "probe": "control", "variant": "clean", "raw": "", "right": "0"},
        {"example_id": "3-0", "probe": "control", "variant": "clean", "raw": "", "right": ""},
    ]
    labels = write_labels(tmp_path / "labels.csv", rows)
    with serving(judging()) as server:
        run = examined(tmp_path / "run", server.url, labels=labels, repeat=0)
    assert row(run.judge, "same verdict", "people").n == 2
    told = run.judge.verdict  # type: ignore[union-attr]
    assert "1 belong to no answer of this run" in told and "1 were given to another reply" in told


def test_a_judge_no_better_than_a_coin_cannot_be_corrected(tmp_path: Path) -> None:
    labels = write_labels(tmp_path / "labels.csv",
                          [{"id": f"{n}-0", "right": int(n % 5 != 0)} for n in range(20)])  # fmt: skip
    with serving(judging(lambda data: "INCORRECT" if honest(data) == "CORRECT" else "CORRECT")) as server:
        run = examined(tmp_path / "run", server.url, ("control",), labels=labels, repeat=0)
    assert "No correction is possible: sensitivity and specificity add up to 1 or less" in run.judge.verdict  # type: ignore[union-attr]
    assert math.isnan(row(run.judge, "corrected accuracy", "control: clean").value)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("id,score\nq,1\n", "no column right"),
        ("name,right\nq,1\n", "no column id"),
        ("id,right\nq,perhaps\n", "neither right nor wrong"),
        ("id,right\nq,\n", "no row has a label"),
    ],
)
def test_bad_labels_are_refused_before_anything_is_asked(tmp_path: Path, content: str, error: str) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(content)
    with pytest.raises(PfungstError, match=error):
        Judge(Talker(court(1)), JudgeSettings(labels=path))


# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "error"),
    [
        ("judge", "Say who judges"),
        ("judge:", "Say who judges"),
        ("judge:repeat=0.5", "Say who judges"),
        ("judge:openai:m@http://127.0.0.1:1/v1,repaet=0.5", "judge's own settings are: image, labels, max_errors"),
        ("judge:openai:m@http://127.0.0.1:1/v1,repeat=2", "from 0 to 1"),
        ("judge:openai:m@http://127.0.0.1:1/v1,prompt=gone.txt", "cannot be read"),
    ],
)
def test_wrong_words_are_wrong_usage(word: str, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        get_metric(word)


def test_a_prompt_of_ones_own_is_asked_and_names_the_reading(tmp_path: Path) -> None:
    own = tmp_path / "prompt.txt"
    own.write_text("Strictly: {data} CORRECT or INCORRECT? {braces} stay.")
    seen: list[str] = []
    with serving(lambda x: (seen.append(x.prompt), judging()(x))[1]) as server:
        run = examined(tmp_path / "run", server.url, ("control",), prompt=own, repeat=0)
        judge = get_metric(spec(server.url, prompt=own))
    assert run.findings[0].clean.value == pytest.approx(0.8)  # type: ignore[union-attr]
    assert all(text.startswith("Strictly: ---- DATA-") and text.endswith("{braces} stay.") for text in seen)
    assert re.fullmatch(r"judge-umpire-[0-9a-f]{6}", judge.label)  # type: ignore[attr-defined]
    own.write_text("no field: CORRECT or INCORRECT")
    with pytest.raises(UsageError, match=re.escape("{data}")):
        get_metric(spec("http://127.0.0.1:1/v1", prompt=own))


def test_the_image_is_shown_only_on_demand(tmp_path: Path) -> None:
    seen: list[str | None] = []
    with serving(lambda x: (seen.append(x.image_url), judging()(x))[1]) as server:
        examined(tmp_path, server.url, ("control",), image="yes", repeat=0)
    assert seen and all(url is not None and url.startswith("data:image/png") for url in seen)
