"""The contrast probe: question, image and group accuracy, and players that say the same whatever they see."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pfungst
from pfungst.core import Answer, AnsweredTrial, Dataset, Example, Findings, ProbeError, Query
from pfungst.core.files import jsonable
from pfungst.logs import read_log
from pfungst.logs.grouping import contrasts
from pfungst.probes import check_probe, get_probe
from pfungst.probes.check import broken_contracts
from pfungst.probes.contrast import Contrast
from pfungst.probes.contrast.groups import same_question
from pfungst.report.card import blindness, card_rows
from pfungst.world import answer, answer_text, embedded


def two_by_two(groups: int) -> Dataset:
    """NaturalBench in small: two questions on two images, the right answers crossed."""
    examples = [
        Example(
            id=f"{number}-q{question}i{image}",
            question=f"Is it {question}?",
            image_id=f"{number}-i{image}",
            answers=(target,),
            target=target,
            contrast=str(number),
        )
        for number in range(groups)
        for question in (0, 1)
        for image in (0, 1)
        for target in ("yes" if question == image else "no",)
    ]
    return Dataset("natural", examples, metric="exact")


def answered(data: Dataset, say: Callable[[Example], str], probe: Contrast | None = None) -> list[AnsweredTrial]:
    examples = {example.id: example for example in data}
    rows = []
    for trial in (probe or Contrast()).trials(data, 0):
        asked = [examples[variant.example_id or trial.example_id] for variant in trial.variants]
        said = [say(example) for example in asked]
        scores = tuple(float(text == variant.target) for text, variant in zip(said, trial.variants, strict=True))
        rows.append(AnsweredTrial(trial, examples[trial.example_id], tuple(map(Answer, said)), scores))
    return rows


def value(found: Findings, name: str, condition: str = "") -> float:
    return next(row.value for row in found.rows if (row.name, row.condition) == (name, condition))


def test_a_group_is_asked_whole_and_named_as_in_the_paper() -> None:
    (trial,) = Contrast().trials(two_by_two(1), 0)
    assert [variant.name for variant in trial.variants] == ["q0i0", "q0i1", "q1i0", "q1i1"]
    assert [variant.target for variant in trial.variants] == ["yes", "no", "no", "yes"]
    assert trial.notes == {"images": ["0-i0", "0-i1", "0-i0", "0-i1"], "group": "0"}


def test_accuracies_are_those_of_naturalbench() -> None:
    """Worked by hand: of group 0 all is right, of group 1 one answer (q1i1) is wrong, of group 2 all are yes."""
    data = two_by_two(3)

    def say(example: Example) -> str:
        if example.contrast == "2":
            return "yes"
        return "no" if example.id == "1-q1i1" else str(example.target)

    found = Contrast().findings(answered(data, say), 0)
    assert value(found, "accuracy") == pytest.approx((4 + 3 + 2) / 12)
    assert value(found, "question accuracy") == pytest.approx((2 + 1 + 0) / 6)
    assert value(found, "image accuracy") == pytest.approx((2 + 1 + 0) / 6)
    assert value(found, "group accuracy") == pytest.approx(1 / 3)
    assert value(found, "same answer", "another image") == pytest.approx((0 + 1 + 2) / 6)
    assert value(found, "same answer", "another question") == pytest.approx((0 + 1 + 2) / 6)
    chances = {row.condition: row.value for row in found.rows if row.name == "chance"}
    assert chances == {"accuracy": 0.5, "question accuracy": 0.25, "image accuracy": 0.25, "group accuracy": 0.0625}


def test_a_player_that_always_says_the_same_is_found_out() -> None:
    found = Contrast().findings(answered(two_by_two(40), lambda example: "yes"), 0)
    assert (value(found, "accuracy"), value(found, "question accuracy"), value(found, "group accuracy")) == (0.5, 0, 0)
    assert value(found, "same answer", "another image") == 1.0
    assert "says the same whatever it sees" in found.verdict
    seeing = Contrast().findings(answered(two_by_two(40), lambda example: str(example.target)), 0)
    assert value(seeing, "same answer", "another image") == 0.0 and "the same whatever" not in seeing.verdict


def test_pairs_on_one_image_show_who_always_says_yes() -> None:
    data = two_by_two(5)
    pairs = data.subset([example for example in data if example.image_id.endswith("i0")])  # as in MME
    found = Contrast().findings(answered(pairs, lambda example: "yes"), 0)
    assert value(found, "image accuracy") == 0 and value(found, "same answer", "another question") == 1
    assert not any(row.name == "question accuracy" for row in found.rows)
    assert "Of two questions about one image" in found.verdict


def test_open_questions_have_no_chance_level() -> None:
    examples = [Example("a", "What?", image_id="1", target="cat", contrast="g")]
    examples.append(Example("b", "What?", image_id="2", target="dog", contrast="g"))
    found = Contrast().findings(answered(Dataset("open", examples), lambda example: "cat"), 0)
    assert not any(row.name == "chance" for row in found.rows)
    assert value(found, "question accuracy") == 0 and "chance" not in found.verdict
    mixed = Contrast().findings(answered(Dataset("mixed", [*examples, *two_by_two(3)]), lambda example: "yes"), 0)
    assert [row.condition for row in mixed.rows if row.name == "chance"] == ["image accuracy"]


def test_unread_replies_are_not_the_same_answer() -> None:
    trials = answered(two_by_two(1), lambda example: "yes")
    unread = Answer("yes", unread=True)
    once = [replace(trials[0], answers=(unread, *trials[0].answers[1:]))]
    assert value(Contrast().findings(once, 0), "same answer", "another image") == 0.5
    never = [replace(trials[0], answers=(unread,) * 4, scores=(0.0,) * 4)]
    assert not any(row.name == "same answer" for row in Contrast().findings(never, 0).rows)


def test_groups_that_share_an_image_are_one_cluster() -> None:
    data = two_by_two(4)
    shared = [replace(one, image_id="0-i0") if one.id.endswith("i0") else one for one in data]
    found = Contrast().findings(answered(data.subset(shared), lambda example: "yes"), 0)
    assert next(row for row in found.rows if row.name == "group accuracy").clusters == 1
    assert next(row for row in Contrast().findings(answered(data, str), 0).rows).clusters == 4


def test_groups_with_one_right_answer_or_one_member_are_left_out() -> None:
    data = two_by_two(2)
    alike = [replace(one, target="yes") if one.contrast == "1" else one for one in data]
    assert len(list(Contrast().trials(data.subset(alike), 0))) == 1
    assert len(list(Contrast(missing=("0-q0i0", "0-q1i1")).trials(data, 0))) == 1


def test_a_group_that_a_limit_cuts_is_left_out_unless_all_are_cut() -> None:
    data = two_by_two(3)
    sizes = {
        limit: [len(trial.variants) for trial in Contrast().trials(data.subset(data.examples[:limit]), 0)]
        for limit in (2, 4, 6, 12)
    }
    assert sizes == {2: [2], 4: [4], 6: [4], 12: [4, 4, 4]}


def test_data_without_groups_is_refused_with_a_way_out() -> None:
    data = Dataset("plain", [Example("a", "What?", image_id="1", target="cat")])
    with pytest.raises(ProbeError, match="contrast:by=question"):
        Contrast().check_data(data)
    with pytest.raises(ProbeError, match="asks no question about two images"):
        Contrast(by="question").check_data(data)
    assert get_probe("contrast:by=question") == Contrast(by="question")


def test_the_same_question_on_two_images_is_paired_in_any_data() -> None:
    targets = ["yes"] * 5 + ["no"] * 3 + ["maybe"]
    examples = [
        Example(f"{i}", "Is it  RED?" if i % 2 else "is it red?", image_id=f"{i}", target=t)
        for i, t in enumerate(targets)
    ]
    examples.append(Example("z", "Is it blue?", image_id="z", target="yes"))
    pairs = list(same_question(Dataset("any", examples), 0))
    assert len(pairs) == 4
    used = [member.example.id for pair in pairs for member in pair]
    assert len(set(used)) == 8 and "z" not in used
    for first, second in pairs:
        assert first.example.target != second.example.target and (first.name, second.name) == ("q0i0", "q0i1")
    assert [[m.example.id for m in pair] for pair in same_question(Dataset("any", examples), 0)] == [
        [m.example.id for m in pair] for pair in pairs
    ]


@pytest.fixture(scope="module")
def world() -> Dataset:
    return embedded(scenes=12, rephrasings=1, width=48, height=36, cache=False)


class Engine:
    """Runs the program of a question on the scene it is shown."""

    name = fingerprint = "engine"
    reads_scenes = True

    def __init__(self, data: Dataset) -> None:
        self._programs = {example.question: example.program for example in data}

    def answer(self, queries: Sequence[Query]) -> list[Answer]:
        assert all(query.scene is not None for query in queries)
        return [Answer(answer_text(answer(self._programs[q.question] or (), q.scene or {}) or False)) for q in queries]


def test_the_contract_is_kept_and_a_broken_one_is_told(world: Dataset) -> None:
    assert check_probe(Contrast()) == []
    assert check_probe(Contrast(), two_by_two(3)) == []
    examples = {example.id: example for example in world}
    trial = next(trial for trial in Contrast().trials(world, 0) if len(trial.variants) == 3)
    wrong = replace(trial, variants=(trial.variants[0], replace(trial.variants[1], target=trial.variants[0].target)))
    told = " ".join(broken_contracts(wrong, examples))
    assert "shows a scene on which the program answers" in told and "is a contrast, but all its right answers" in told


def test_only_originals_of_the_world_are_changed(world: Dataset) -> None:
    ids = {trial.example_id for trial in Contrast().trials(world, 0)}
    assert ids and all("." not in one for one in ids)


def test_an_exam_judges_each_variant_by_its_own_answer(world: Dataset, tmp_path: Path) -> None:
    seen = pfungst.examine(Engine(world), world, ["contrast"], tmp_path / "seen")
    (found,) = seen.findings
    assert value(found, "group accuracy") == 1.0 and value(found, "same answer", "another image") == 0.0
    assert value(found, "same answer", "idle") == 1.0 and value(found, "sensitivity") == 1.0
    rows = seen.answers("contrast")
    assert all(row["answer"] == row["target"] for row in rows)
    assert {row["variant"] for row in rows} == {"q0i0", "q0i1", "idle"}


def test_a_constant_player_is_called_blind_on_the_card_of_every_other_probe(world: Dataset, tmp_path: Path) -> None:
    run = pfungst.examine(lambda image, question: "yes", world, ["control", "rephrase", "contrast"], tmp_path / "blind")
    card = {row[0]: row[-1] for row in card_rows([jsonable(found) for found in run.findings])}
    assert "Stable because it is blind" in card["rephrase"]
    assert "Stable because" not in card["control"] + card["contrast"]
    report = (tmp_path / "blind" / "report.html").read_text("utf-8")
    assert "Stable because it is blind" in report


def test_the_blind_probe_can_tell_too() -> None:
    gain: dict[str, Any] = {"name": "gain", "condition": "question only", "value": 0.0, "low": -0.02, "high": 0.02}
    blind = {"probe": "blind", "role": "removes", "rows": [gain]}
    assert "nothing shows that it looks: it does as well without the image (blind, question only)" in blindness([blind])
    other = {**gain, "condition": "other image"}
    assert "(blind, other image)" in blindness([{"probe": "blind", "role": "removes", "rows": [other]}])
    assert blindness([{**blind, "rows": [{**gain, "high": 0.3}]}]) == ""
    assert blindness([{**blind, "rows": [{**gain, "low": None, "high": None}]}]) == ""


def test_recorded_answers_can_be_contrasted(tmp_path: Path) -> None:
    data = two_by_two(3)
    questions = [
        {
            "id": one.id,
            "question": one.question,
            "image_id": one.image_id,
            "answer": one.target,
            "contrast_group": one.contrast,
        }
        for one in data
    ]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions))
    said = [{"question_id": one.id, "answer": "Yes, it is."} for one in data]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in said))
    spec = f"table:{tmp_path / 'questions.jsonl'}"
    run = pfungst.examine(
        f"recorded:{tmp_path / 'answers.jsonl'}", spec, ["contrast"], tmp_path / "run", matcher="lenient"
    )
    assert value(run.findings[0], "accuracy") == 0.5 and value(run.findings[0], "group accuracy") == 0.0
    assert not math.isnan(value(run.findings[0], "same answer", "another image"))


def test_an_imported_log_of_pairs_is_contrasted_without_a_data_set(tmp_path: Path) -> None:
    """VLMEvalKit's own rule for HallusionBench: a figure (or a question) of a set counts if all its rows are right."""
    rows = [
        (f"VD_illusion_1_{number}_{figure}_{question}", f"Is it {question}?", "Yes" if figure == question else "No",
         f"{number}_{figure}.png", "Yes, it is." if number or figure == question else "No.")
        for number in range(3) for figure in (0, 1) for question in (0, 1)
    ]  # fmt: skip
    lines = "".join("\t".join(row) + "\n" for row in rows)
    log = tmp_path / "GPT_HallusionBench.tsv"
    log.write_text("index\tquestion\tanswer\timage_path\tprediction\n" + lines)
    run = pfungst.import_logs(log, tmp_path / "run")
    found = next(one for one in run.findings if one.probe == "contrast")
    figures: dict[str, list[bool]] = {}
    for id_, _, target, _, said in rows:
        figures.setdefault(id_.rpartition("_")[0], []).append(said.startswith(target))
    assert value(found, "image accuracy") == pytest.approx(sum(map(all, figures.values())) / len(figures))
    assert value(found, "group accuracy") == pytest.approx(1 / 3)
    again = pfungst.rescore(tmp_path / "run")
    assert [one.probe for one in again.findings] == ["conditions", "contrast"] and not again.problems


@pytest.mark.parametrize(
    ("name", "ids", "expected"),
    [
        ("m_MMVP", ["1", "2", "3", "4"], ["0", "0", "1", "1"]),
        ("m_NaturalBenchDataset", ["0", "1", "2", "3", "4"], ["0", "0", "0", "0", "1"]),
        ("m_MME", ["1", "2", "3"], ["c/a.png", "c/a.png", "c/b.png"]),
        ("m_MMStar", ["1", "2"], []),
    ],
)
def test_logs_tell_their_pairs_by_the_name_of_the_data_set(
    tmp_path: Path, name: str, ids: list[str], expected: list[str]
) -> None:
    images = ["a.png", "a.png", "b.png", "b.png", "c.png"]
    lines = [f"{id_}\tIs it?\tYes\tc\t{image}\tYes\n" for id_, image in zip(ids, images, strict=False)]
    log = tmp_path / f"{name}.tsv"
    log.write_text("index\tquestion\tanswer\tcategory\timage_path\tprediction\n" + "".join(lines))
    assert list(contrasts(read_log(log)).values()) == expected
