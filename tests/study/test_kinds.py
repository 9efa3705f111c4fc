"""The kinds: their items, what they make of answers, and exports that the rest of the package reads."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pfungst
from pfungst.core import Answer, PfungstError, ProbeError, Query, UsageError
from pfungst.data import load
from pfungst.experiments.audit import audit, read_people
from pfungst.study import export_study, study_results
from pfungst.study.items import ITEM, TRAINING, BadAnswer
from tests.study.conftest import fill, work

Make = Callable[..., Any]


class Fooled:
    """Right wherever the objects stand as the data set has them; on moved scenes wrong about every other question."""

    name, fingerprint, reads_scenes, reads_images = "fooled", "fooled 1", True, False

    def __init__(self, examples: Sequence[Any]) -> None:
        self.targets = {one.question: one.target for one in examples}
        self.places = {one.question: _places(one.scene) for one in examples}
        self.questions = sorted(self.targets)

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        return [Answer(self._say(query)) for query in queries]

    def _say(self, query: Query) -> str:
        moved = not np.allclose(_places(query.scene), self.places[query.question])
        target = str(self.targets[query.question])
        if moved and self.questions.index(query.question) % 2:
            return "no" if target != "no" else "yes"
        return target


def _places(scene: Any) -> Any:
    return np.array([one["3d_coords"][:2] for one in scene["objects"]])


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a game that fooled a player about half of its questions."""
    folder = tmp_path_factory.mktemp("game")
    data = load("world?scenes=8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PFUNGST_CACHE", str(folder / "cache"))
        player = Fooled([one for one in data if not one.group or one.group == one.id])
        pfungst.examine(player, data, ["game:adversary=rsg,size=12,seeds=1,budget=2"], folder / "run")
    return folder / "run"


@pytest.fixture
def people(make: Make, game: Path) -> Any:
    return make("same-different:per_condition=2,training=2", data=str(game), wanted=2, check_every=0)


def test_same_different_has_scenes_of_three_conditions(people: Any) -> None:
    items = people.book.items()
    assert Counter(row["condition"] for row in items) == {"fooled": 2, "control": 2, "changed": 2}
    for row in items:
        same = row["about"]["before"] == row["about"]["after"]
        assert same == (row["condition"] != "changed")
        assert row["about"]["after"], "the moved scene has an answer"
        assert len({name for name, _ in json.loads(row["content"])["images"]}) == 2
    assert not any(row["about"]["player"] == row["about"]["after"] for row in items if row["condition"] == "fooled")


def test_people_who_look_get_everything_right(people: Any) -> None:
    truth = {json.loads(row["content"])["question"]: row["about"] for row in people.book.items()}

    def answer(turn: Any) -> dict[str, str]:
        about = truth[turn.content.question]
        value = {"before": about["before"], "same": "same" if about["before"] == about["after"] else "different"}
        return value if value["same"] == "same" else {**value, "after": about["after"]}

    for code in ("a", "b", "c"):
        worker = people.book.join(code)
        while (turn := people.book.next(worker)) is not None:
            known = turn.role == ITEM
            saved = people.book.submit(worker, turn.id, answer(turn) if known else fill(turn)).turn
            if turn.role == TRAINING:
                assert saved.right is not None
                assert turn.content.explanation
    results = study_results(people)
    confusion = results.outcome.tables[0].rows
    assert [row[1] for row in confusion] == [8, 4]
    assert [cell.value for cell in confusion[0][2:]] == [1.0, 0.0, 0.0]
    assert [cell.value for cell in confusion[1][2:]] == [0.0, 1.0, 0.0]
    assert results.outcome.numbers["right after, fooled"].value == 1.0
    assert results.agreement.alpha.value == 1.0


def test_those_who_always_say_the_same_are_wrong_about_changed_scenes(people: Any) -> None:
    work(people, "lazy")
    found = {row[0]: row[3].value for row in study_results(people).outcome.tables[1].rows}
    assert found == {"fooled": 1.0, "control": 1.0, "changed": 0.0}


def test_different_images_with_one_answer_are_asked_about_again(people: Any) -> None:
    worker = people.book.join("hasty")
    turn = people.book.next(worker)
    first, second = (value for value, _ in turn.content.fields[0].options[:2])
    with pytest.raises(BadAnswer, match="the same answer for both"):
        people.book.submit(worker, turn.id, {"before": first, "same": "different", "after": first})
    assert people.book.next(worker).id == turn.id
    people.book.submit(worker, turn.id, {"before": first, "same": "different", "after": second})


def test_a_run_without_fooled_scenes_is_refused(make: Make, tmp_path: Path) -> None:
    pfungst.examine("oracle", "world?scenes=4", ["game:adversary=rsg,size=2,seeds=1,budget=2"], tmp_path / "run")
    with pytest.raises(PfungstError, match="fooled its player"):
        make("same-different", data=str(tmp_path / "run"))


def test_withheld_shows_what_it_says_and_its_row_is_read_by_the_audit(make: Make, tmp_path: Path) -> None:
    study = make("withheld:training=1", limit=4, wanted=1, check_every=0)
    for row in study.book.items():
        content, condition = json.loads(row["content"]), row["about"]["condition"]
        assert bool(content["images"]) == ("I" in condition)
        assert bool(content["question"]) == ("Q" in condition)
        texts = [words for _, words in content["fields"][0]["options"]]
        assert sorted(texts) == ["=1+1", "cat", "cow", "dog"]
        assert "target" not in row["content"]
    truth = {row["id"]: row["about"]["target"] for row in study.book.items()}
    for code in range(4):
        worker = study.book.join(f"w{code}")
        while (turn := study.book.next(worker)) is not None:
            right = truth.get(turn.item, "0")
            sees = "IQA" if turn.content.images and turn.content.question else ""
            study.book.submit(worker, turn.id, {"choice": right if sees else str((int(right) + 1) % 4)})
    results = study_results(study)
    assert {row[0]: row[2].value for row in results.outcome.tables[0].rows} == {"A": 0, "I+A": 0, "Q+A": 0, "I+Q+A": 1}
    export_study(study, results, tmp_path / "found")
    cells = json.loads((tmp_path / "found" / "human.json").read_text())["cells"]
    assert [(cell["variant"], cell["model"], cell["accuracy"]["value"]) for cell in cells] == [
        ("Orig", "Human-A", 0.0), ("Orig", "Human-IA", 0.0), ("Orig", "Human-QA", 0.0), ("Orig", "Human-IQA", 1.0)
    ]  # fmt: skip
    people = read_people(tmp_path / "found" / "human.json")
    columns, rows = audit(load(study.settings.data), kinds=(), models=(), people=people).table()
    by_name = {row[0]: row[columns.index("Orig")] for row in rows}
    assert by_name["Human-IQA"].startswith("100.0")
    assert by_name["Human-A"].startswith("0.0")


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_choice_sets_of_a_file_of_decoys_have_the_names_of_the_audit(make: Make, tmp_path: Path, ending: str) -> None:
    from pfungst.probes.decoys import build
    from pfungst.probes.decoys.sets import write

    rows = [
        {"id": n, "question": f"What is {n % 5}?", "answer": f"thing{n % 5}", "image_id": n // 2} for n in range(20)
    ]
    (tmp_path / "open.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    file = tmp_path / f"decoys.{ending}"
    write(build(load(tmp_path / "open.jsonl"), kinds=("qou", "random"), k=2), file, "QoU")
    headline = make("withheld:conditions=A+QA", data=str(file), limit=3).book.items()
    assert {row["about"]["set"] for row in headline} == {"QoU"}
    both = make("withheld:conditions=QA,sets=qou+random,training=0", data=str(file), limit=3).book.items()
    assert Counter(row["condition"] for row in both) == {"Q+A QoU": 3, "Q+A Random": 3}
    assert len({row["source"] for row in both}) == 3, "nobody sees a question with two sets of choices"


def test_withheld_needs_an_image_to_show(make: Make, tmp_path: Path) -> None:
    rows = [{"id": n, "question": "What?", "answer": "a", "choices": ["a", "b"]} for n in range(3)]
    (tmp_path / "plain.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(UsageError, match="conditions=A\\+QA"):
        make("withheld", data=str(tmp_path / "plain.jsonl"))
    assert make("withheld:conditions=A+QA", data=str(tmp_path / "plain.jsonl")).book.items()
    with pytest.raises(UsageError, match="no question with a right answer among its choices in the choice sets qou"):
        make("withheld:sets=qou", data=str(tmp_path / "plain.jsonl"))


TEXTS = iter(range(10_000))


def say(field: Any) -> str:
    return "yes" if field.options else f"Which creature, please, number {next(TEXTS)}?"


def object_to(words: str) -> Callable[[Any], dict[str, str]]:
    """Somebody who finds fault with what has these words in it."""

    def judge(turn: Any) -> dict[str, str]:
        bad = words in turn.content.question
        return {field.name: "no" if bad and field.name == "meaning" else say(field) for field in turn.content.fields}

    return judge


def test_rephrasings_go_through_two_stages_and_back(make: Make, tmp_path: Path, address: str) -> None:
    study = make("rephrase", address, limit=2, wanted=2, check_every=0)
    book = study.book
    author, *judges = (book.join(name) for name in ("author", "b", "c", "d"))
    while (turn := book.next(author)) is not None:
        value = fill(turn, say)
        if turn.role == ITEM:
            value["text1"] = "Is this one wrong, perhaps?"
        book.submit(author, turn.id, value)
    assert Counter(row["stage"] for row in book.items()) == {1: 2, 2: 6}
    assert book.next(author) is None, "nobody judges what they wrote"
    answer = object_to("wrong, perhaps")
    for _ in range(3):
        for worker in judges:
            while (turn := book.next(worker)) is not None:
                book.submit(worker, turn.id, answer(turn))
    rows = book.items()
    again = [row for row in rows if row["name"].startswith("again ")]
    assert len(again) == 2, "what failed was written again, once each"
    results = study_results(study)
    progress = dict(zip(results.outcome.tables[0].columns, results.outcome.tables[0].rows[0], strict=True))
    assert progress["questions"] == 2
    assert progress["rephrasings written"] == 8
    assert progress["valid"] == 6
    assert progress["questions with all rephrasings"] == 2
    export_study(study, results, tmp_path / "found")
    data = load(tmp_path / "found" / "rephrasings")
    assert Counter(one.group for one in data) == {row["about"]["original"]: 4 for row in rows}
    originals = {one.id: one for one in data if one.id == one.group}
    assert set(originals) == {row["about"]["original"] for row in rows}
    assert all(one.target == originals[one.group].target for one in data)
    assert not any("wrong, perhaps" in one.question for one in data)
    run = pfungst.examine("oracle", data, ["rephrase"], tmp_path / "run")
    assert run.path.exists()


def test_a_rephrasing_must_be_another_question(make: Make) -> None:
    study = make("rephrase", limit=1)
    book, worker = study.book, study.book.join("w")
    while (turn := book.next(worker)).role == TRAINING:
        book.submit(worker, turn.id, fill(turn))
    original = dict(turn.content.facts)["Original question"]
    good = {"text0": "Name the animal, please.", "text1": "Which beast is this?", "text2": "What creature is it?"}
    for bad, why in (
        ({"text0": original.upper() + " !"}, "original"),
        ({"text1": "name the animal please"}, "same"),
        ({"text2": "Animal?"}, "two words"),
        ({"text2": " \u200b\n "}, "answer this too"),
        ({"text2": "x " * 400}, "at most"),
    ):
        with pytest.raises(BadAnswer, match=why):
            book.submit(worker, turn.id, {**good, **bad})
    assert book.submit(worker, turn.id, good).now


def test_forgetting_an_author_takes_back_what_they_wrote(make: Make, address: str) -> None:
    study = make("rephrase", address, limit=1, wanted=1, check_every=0)
    work(study, "author", choose=say)
    work(study, "judge", most=5, choose=say)
    assert study.book.forget("author") == 1 + 3
    left = study.book.items()
    assert [row["stage"] for row in left] == [1]
    assert left[0]["answered"] == 0
    assert study_results(study).outcome.files == {}
    work(study, "second", choose=say)
    work(study, "judge", choose=say)
    assert len(study_results(study).outcome.files["validated.jsonl"].splitlines()) == 3


def test_rephrasings_that_rules_made_can_be_validated(make: Make, tmp_path: Path) -> None:
    study = make("validate:generator=rules,count=2", limit=5, wanted=1, check_every=0)
    texts = [json.loads(row["content"])["question"] for row in study.book.items()]
    assert len(texts) == 5
    for code in ("a", "b"):
        work(study, code, choose=lambda field: "yes")
    results = study_results(study)
    assert results.outcome.numbers["valid"].value == 1.0
    export_study(study, results, tmp_path / "found")
    assert {one.question for one in load(tmp_path / "found" / "rephrasings")} >= set(texts)


class Misled:
    """Right, except about these questions."""

    name, fingerprint = "misled", "misled 1"

    def __init__(self, data: Any, by: set[str]) -> None:
        self.targets = {one.image.digest: one.target for one in data}
        self.by = by

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        return [
            Answer("nothing" if query.question in self.by else self.targets[query.image.digest]) for query in queries
        ]


def test_the_probe_says_how_many_rephrasings_keep_the_meaning(make: Make, tmp_path: Path) -> None:
    study = make("validate:generator=rules,count=2", limit=8, wanted=3, check_every=0)
    texts = [json.loads(row["content"])["question"] for row in study.book.items()]
    refused = set(texts[:2])
    for code in ("a", "b", "c"):
        worker = study.book.join(code)
        while (turn := study.book.next(worker)) is not None:
            bad = turn.content.question in refused and code != "c"
            said = {field.name: "no" if bad and field.name == "meaning" else "yes" for field in turn.content.fields}
            study.book.submit(worker, turn.id, said)
    export_study(study, study_results(study), tmp_path / "found")
    asked = f"rephrase:generator=rules,count=2,validated={tmp_path / 'found'}"
    data = load(study.settings.data)
    run = pfungst.examine(Misled(data, refused), data, [asked], tmp_path / "run")
    findings = json.loads((run.path / "findings.json").read_text())["findings"][0]
    found = {(row["name"], row["condition"]): row for row in findings["rows"]}
    assert found["share", "rephrasings of the same meaning"]["value"] == pytest.approx(6 / 8)
    assert found["share", "rephrasings of the same meaning"]["n"] == 8
    assert found["share", "rephrasings of the same answer"]["value"] == 1.0
    assert found["drop", "rephrasings"]["value"] > 0
    assert found["drop", "all but the refused"]["value"] == 0
    assert found["drop", "refused"]["value"] == 1
    assert "People say that 75.0% [" in findings["verdict"]
    html = (run.path / "report.html").read_text()
    assert "What people say about the rephrasings" in html
    assert html.count("<strong>refused</strong>: same meaning 1, same answer 3, grammar 3 of 3") == len(refused)
    with pytest.raises(ProbeError, match="none of these is among the"):
        pfungst.examine("oracle", "world", [asked], tmp_path / "other", limit=5)


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory, questions: Path) -> Path:
    out = tmp_path_factory.mktemp("judged") / "run"
    pfungst.examine("flaky:0.5", str(questions), ["control"], out)
    return out


def test_labels_of_people_are_read_by_judges(make: Make, answered: Path, tmp_path: Path) -> None:
    from pfungst.players.judging.judge import read_labels

    study = make("judge:items=8", data=str(answered), wanted=1, check_every=0)
    assert len(study.book.items()) == 8
    said: dict[str, bool] = {}
    worker = study.book.join("w")
    while (turn := study.book.next(worker)) is not None:
        facts = dict(turn.content.facts)
        right = facts.get("Reply") == facts.get("Reference answers")
        saved = study.book.submit(worker, turn.id, {"right": "right" if right else "wrong"}).turn
        if turn.role == TRAINING:
            assert saved.right
    for row in study.book.answers():
        if row["role"] == ITEM:
            said[f"{row['about']['example_id']} {row['about']['variant']}"] = row["value"]["right"] == "right"
    export_study(study, study_results(study), tmp_path / "found")
    labels = read_labels(tmp_path / "found" / "labels.csv")
    assert {f"{one.id} {one.condition}": one.right for some in labels.values() for one in some} == said


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the probe noise."""
    folder = tmp_path_factory.mktemp("noisy")
    data = "world?scenes=8"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PFUNGST_CACHE", str(folder / "cache"))
        pfungst.examine("prior", data, ["noise:ranker=rouge,k=3,partitions=3"], folder / "run", limit=12)
    return folder / "run"


def test_people_say_whether_disturbed_questions_keep_their_answers(make: Make, noisy: Path, tmp_path: Path) -> None:
    study = make("kept:items=12", data=str(noisy), wanted=1, check_every=0)
    run = {(row["example_id"], row["variant"]): row for row in pfungst.Run.open(noisy).rows()}
    items = [one for one in study.book.items() if one["role"] == ITEM]
    assert len(items) == len({one["about"]["example_id"] for one in items}) == 12, "nobody sees a question twice"
    for one in items:
        row = run[one["about"]["example_id"], one["about"]["variant"]]
        assert (row["question"], row["target"]) == (one["about"]["question"], one["about"]["target"])
        assert row["role"] in ("keeps", "control")
    worker = study.book.join("w")
    while (turn := study.book.next(worker)) is not None:
        right = dict(turn.content.facts)["Answer"]
        random = "random" in json.dumps(
            [one["about"] for one in items if one["about"].get("question") == turn.content.question]
        )
        study.book.submit(worker, turn.id, {"fits": "no" if random else "yes", "clear": "yes"})
        assert right
    results = study_results(study)
    numbers = results.outcome.numbers
    shown = Counter(one["about"]["variant"] for one in items)
    assert numbers["fits, all"].value == pytest.approx(1 - shown["random"] / 12)
    assert numbers["clear, all"].value == 1.0
    assert {name for name in numbers if name.startswith("fits")} == {"fits, all", *(f"fits, {name}" for name in shown)}
    export_study(study, results, tmp_path / "found")
    assert len((tmp_path / "found" / "kept.csv").read_text().splitlines()) == 13


def test_a_study_of_kept_answers_needs_a_run_with_that_probe(make: Make, noisy: Path) -> None:
    with pytest.raises(PfungstError, match="has no probe surface"):
        make("kept:probe=surface", data=str(noisy))


def test_an_unknown_kind_or_setting_is_a_sentence(make: Make) -> None:
    with pytest.raises(UsageError, match="Did you mean withheld"):
        make("withhold")
    with pytest.raises(UsageError, match="conditions"):
        make("withheld:condition=A")
    with pytest.raises(UsageError, match="no condition 'B'"):
        make("withheld:conditions=A+B")
