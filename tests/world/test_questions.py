"""Generated questions: answerable, answered right, balanced, not degenerate."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pfungst.core import DataError, PfungstError
from pfungst.world import Scene, answer, answer_text, run, sample_scene
from pfungst.world.questions import Question, generate, load_templates, report
from pfungst.world.questions.generating import AnswerCounts, choices_for, possible_answers
from tests.world.engine_cases import scene_of, thing

KINDS_OF_ANSWER = {"size", "color", "material", "shape"}


def scenes_of(count, seed=0, **options):
    return [
        sample_scene(np.random.default_rng([seed, i]), index=i, split="val", **options).to_json() for i in range(count)
    ]


@pytest.fixture(scope="module")
def scenes():
    return scenes_of(60)


@pytest.fixture(scope="module")
def questions(scenes):
    return list(generate(scenes, 20, seed=1))


def upstream(program, node):
    """The nodes a set or object is made by, up to the relate, same, union, intersect or scene it starts from."""
    while program[node]["function"].startswith(("filter_", "unique")):
        yield program[node]
        (node,) = program[node]["inputs"]


def test_every_answer_is_that_of_the_engine(scenes, questions):
    assert len(questions) == 20 * len(scenes)
    for one in questions:
        assert answer_text(answer(one.program, scenes[one.image_index])) == one.answer


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32), objects=st.integers(1, 10))
def test_any_scene_gets_questions_that_the_engine_answers(seed, objects):
    scene = sample_scene(np.random.default_rng(seed), objects)
    for one in generate([scene], 90, rephrasings=1, seed=seed):
        assert answer_text(answer(one.program, scene)) == one.answer
        assert one.answer in one.choices


def test_all_kinds_and_families_occur(questions):
    assert len({(one.kind, one.family) for one in questions}) == 90


def test_families_take_turns(questions):
    counts = Counter((one.kind, one.family) for one in questions)
    assert max(counts.values()) - min(counts.values()) <= 3


def test_yes_and_no_are_balanced_in_every_family(questions):
    by_family = {}
    for one in questions:
        if one.answer_kind == "bool":
            by_family.setdefault((one.kind, one.family), Counter())[one.answer] += 1
    assert len(by_family) == 37
    for counts in by_family.values():
        assert abs(counts["yes"] - counts["no"]) <= 2


def test_equal_numbers_can_be_equal(questions):
    answers = {one.answer for one in questions if (one.kind, one.family) == ("compare_integer", 0)}
    assert answers == {"yes", "no"}


def test_a_relation_always_narrows_its_description(scenes, questions):
    """Where every red cube is left of the ball anyway, "left" could be ignored."""
    seen = 0
    for one in questions:
        program = list(one.program)
        outputs = run(program, scenes[one.image_index]).outputs
        for i, node in enumerate(program):
            if node["function"] != "relate" or one.kind == "single_and":
                continue
            loose = [*program]
            loose[i] = {"function": "scene", "inputs": [], "value_inputs": []}
            end = i
            while end + 1 < len(program) and program[end + 1]["function"].startswith("filter_"):
                end += 1
            assert program[end]["function"] == "relate" or program[end]["function"].startswith("filter_")
            assert run(loose[: end + 1], scenes[one.image_index]).outputs[end] != outputs[end]
            seen += 1
    assert seen > 300


def test_in_a_conjunction_neither_relation_can_be_ignored(scenes, questions):
    seen = 0
    for one in questions:
        if one.kind != "single_and":
            continue
        for i, node in enumerate(one.program):
            if node["function"] == "relate":
                loose = [*one.program]
                loose[i] = {"function": "scene", "inputs": [], "value_inputs": []}
                other = answer(loose, scenes[one.image_index])
                assert other is None or answer_text(other) != one.answer
                seen += 1
    assert seen > 50


def test_a_question_never_says_what_it_asks_for(questions):
    for one in questions:
        for node in one.program:
            if node["function"].startswith("query_"):
                asked = node["function"].removeprefix("query_")
                said = {step["function"] for step in upstream(one.program, node["inputs"][0])}
                assert f"filter_{asked}" not in said


def test_a_comparison_is_between_two_objects(scenes, questions):
    for one in questions:
        if one.kind == "comparison":
            left, right = one.program[-1]["inputs"]
            outputs = run(one.program, scenes[one.image_index]).outputs
            assert outputs[one.program[left]["inputs"][0]] != outputs[one.program[right]["inputs"][0]]


def test_counts_are_compared_of_descriptions_neither_of_which_contains_the_other(questions):
    """ "More cubes than red cubes?" needs no picture."""
    seen = 0
    for one in questions:
        if one.kind == "compare_integer" and one.family < 6:
            left, right = (
                {
                    (step["function"], *step["value_inputs"])
                    for step in upstream(one.program, one.program[i]["inputs"][0])
                }
                for i in one.program[-1]["inputs"]
            )
            assert not left <= right
            assert not right <= left
            seen += 1
    assert seen > 30


def test_a_chain_of_relations_never_comes_back_to_where_it_was(scenes, questions):
    for one in questions:
        if one.kind in ("two_hop", "three_hop"):
            outputs = run(one.program, scenes[one.image_index]).outputs
            met = [outputs[i] for i, node in enumerate(one.program) if node["function"] == "unique"]
            assert len(set(met)) == len(met)


def test_no_program_is_asked_twice_of_a_scene(scenes):
    programs = [json.dumps(one.program) for one in generate(scenes[:1], 250)]
    assert len(programs) > 150
    assert len(set(programs)) == len(programs)


def test_the_same_seed_gives_the_same_questions_and_another_seed_others(scenes):
    first, again, other = (list(generate(scenes[:5], 8, rephrasings=2, seed=seed)) for seed in (3, 3, 4))
    assert first == again
    assert first != other


def test_parts_cut_at_a_reset_have_the_questions_of_the_whole(scenes, monkeypatch):
    monkeypatch.setattr("pfungst.world.questions.generating.RESET_EVERY", 4)
    whole = [one.to_json() for one in generate(scenes[:8], 5)]
    parts = [list(generate(scenes[i : i + 4], 5, start=i)) for i in (0, 4)]
    joined = [one.to_json() for part in parts for one in part]
    for one in (*whole, *joined):
        one.pop("question_index"), one.pop("group")
    assert joined == whole


def test_a_scene_may_have_its_own_number_of_questions(scenes):
    made = Counter(one.image_index for one in generate(scenes[:3], [3, 0, 2]))
    assert made == {0: 3, 2: 2}


def test_a_group_has_one_program_one_answer_and_distinct_texts(scenes):
    made = list(generate(scenes, 5, rephrasings=3))
    groups = {}
    for one in made:
        groups.setdefault(one.group, []).append(one)
    for index, group in groups.items():
        assert [one.index for one in group] == list(range(index, index + 4))
        assert len({json.dumps(one.program) for one in group}) == 1
        assert len({one.answer for one in group}) == 1
        assert len({one.choices for one in group}) == 1
        assert len({one.question for one in group}) == 4
        assert len({one.phrasing for one in group}) == 4


@pytest.mark.parametrize(
    ("source", "rest"), [("train", {"train"}), ("heldout", {"heldout"}), ("mixed", {"train", "heldout"})]
)
def test_rephrasings_come_from_the_split_asked_for_and_originals_from_train(scenes, source, rest):
    made = list(generate(scenes[:20], 5, rephrasings=3, phrasings=source))
    assert {one.phrasing_split for one in made if one.index == one.group} == {"train"}
    assert {one.phrasing_split for one in made if one.index != one.group} == rest
    assert report(made).group_sizes == {"4": 100}


def test_heldout_words_never_occur_in_train_wordings(scenes):
    new = {"orb", "orbs", "box", "boxes", "huge", "little", "item", "items", "rear", "forward", "further", "left-hand"}
    train = {word for one in generate(scenes, 10, rephrasings=1, phrasings="train") for word in one.question.split()}
    heldout = {
        word for one in generate(scenes, 10, rephrasings=2, phrasings="heldout") for word in one.question.split()
    }
    assert not train & new
    assert new <= heldout


def test_templates_without_heldout_phrasings_refuse_to_give_some(tmp_path, scenes):
    template = {
        "text": ["How many <D>s are there?"],
        "nodes": [
            {"type": "scene", "inputs": []},
            {"type": "filter_count", "inputs": [0], "side_inputs": ["<D>"]},
        ],
    }
    (tmp_path / "mine.json").write_text(json.dumps([template]), encoding="utf-8")
    with pytest.raises(DataError, match=r"mine\.json, template 0: it has no heldout phrasings"):
        next(generate(scenes, 1, rephrasings=1, phrasings="heldout", templates=tmp_path))
    made = list(generate(scenes[:4], 1, rephrasings=1, templates=tmp_path))
    assert {one.kind for one in made} == {"mine"}


@pytest.mark.parametrize("wrong", [{"phrasings": "exam"}, {"rephrasings": -1}])
def test_settings_that_make_no_sense_are_refused(scenes, wrong):
    with pytest.raises(PfungstError):
        next(generate(scenes, 1, **wrong))


def test_neq_keeps_two_parameters_apart(tmp_path, scenes):
    template = {
        "text": ["Are there more <D>s than <D2>s?"],
        "nodes": [
            {"type": "scene", "inputs": []},
            {"type": "filter_count", "inputs": [0], "side_inputs": ["<D>"]},
            {"type": "filter_count", "inputs": [0], "side_inputs": ["<D2>"]},
            {"type": "greater_than", "inputs": [1, 2]},
        ],
        "constraints": [{"type": "NEQ", "params": ["<C>", "<C2>"]}],
    }
    (tmp_path / "mine.json").write_text(json.dumps([template]), encoding="utf-8")
    made = list(generate(scenes, 5, templates=tmp_path))
    assert len(made) > 100
    for one in made:
        left, right = one.program[-1]["inputs"]
        colors = [
            [
                step["value_inputs"]
                for step in upstream(one.program, one.program[i]["inputs"][0])
                if "color" in step["function"]
            ]
            for i in (left, right)
        ]
        assert colors[0] != colors[1]


def test_a_template_of_plain_functions_works_and_its_relation_matters(tmp_path, scenes):
    template = {
        "text": ["What shape is the <C2> thing <R> the <D>?"],
        "nodes": [
            {"type": "scene", "inputs": []},
            {"type": "filter_unique", "inputs": [0], "side_inputs": ["<D>"]},
            {"type": "relate", "inputs": [1], "side_inputs": ["<R>"]},
            {"type": "filter_color", "inputs": [2], "side_inputs": ["<C2>"]},
            {"type": "unique", "inputs": [3]},
            {"type": "query_shape", "inputs": [4]},
        ],
    }
    (tmp_path / "mine.json").write_text(json.dumps([template]), encoding="utf-8")
    made = list(generate(scenes, 2, templates=tmp_path))
    assert len(made) > 30
    for one in made:
        relate = next(i for i, node in enumerate(one.program) if node["function"] == "relate")
        loose = [*one.program]
        loose[relate] = {"function": "scene", "inputs": [], "value_inputs": []}
        other = answer(loose, scenes[one.image_index])
        assert other is None or answer_text(other) != one.answer


@pytest.mark.parametrize("last", ["relate_filter_exist", "relate_filter"])
def test_a_relation_before_another_is_checked_through_it(tmp_path, scenes, last):
    nodes = [
        {"type": "scene", "inputs": []},
        {"type": "filter_unique", "inputs": [0], "side_inputs": ["<D>"]},
        {"type": "relate", "inputs": [1], "side_inputs": ["<R>"]},
        {"type": "filter_unique", "inputs": [2], "side_inputs": ["<D2>"]},
        {"type": last, "inputs": [3], "side_inputs": ["<R2>", "<D3>"]},
    ]
    if last == "relate_filter":
        nodes.append({"type": "count", "inputs": [4]})
    template = {"text": ["Tell me of <D3>s <R2> the <D2> <R> the <D>."], "nodes": nodes}
    (tmp_path / "mine.json").write_text(json.dumps([template]), encoding="utf-8")
    made = list(generate(scenes, 2, templates=tmp_path))
    assert len(made) > 30
    for one in made:
        relate = next(i for i, node in enumerate(one.program) if node["function"] == "relate")
        loose = [*one.program]
        loose[relate] = {"function": "scene", "inputs": [], "value_inputs": []}
        other = answer(loose, scenes[one.image_index])
        assert other is None or answer_text(other) != one.answer


def test_questions_round_trip_through_the_published_json(questions):
    for one in questions[:50]:
        record = json.loads(json.dumps(one.to_json()))
        assert Question.from_json(record) == one
        assert record["image"] == record["image_filename"].removesuffix(".png")
        assert set(record["program"][0]) == {"function", "inputs", "value_inputs"}
    with pytest.raises(DataError, match="answer"):
        Question.from_json({"question_index": 0, "question": "?"})


def test_counts_refuse_an_answer_that_leads_the_second_by_more_than_a_tenth():
    counts = AnswerCounts.of(("yes", "no"))
    assert counts.allows("yes")
    counts.add("yes")
    assert not counts.allows("yes")  # 1 > 1.1 * 0
    assert counts.allows("no")
    counts.add("no")
    assert counts.allows("yes")  # 1 <= 1.1 * 1
    tall = AnswerCounts({"yes": 11, "no": 10})
    assert tall.allows("yes")  # 11 <= 11.0
    assert not AnswerCounts({"yes": 12, "no": 10}).allows("yes")


def test_counts_refuse_an_answer_that_is_five_times_the_median():
    counts = AnswerCounts(dict.fromkeys(possible_answers("integer"), 0) | {"0": 26, "1": 26})
    assert not counts.allows("0")  # the median, 0, counts as 5
    assert AnswerCounts(counts.counts | {"0": 25, "1": 25}).allows("0")


def test_choices_fit_the_kind_of_answer():
    scene = Scene.of(scene_of(*[thing(i, 0.0, color) for i, color in enumerate(("red", "blue", "green", "red"))]))
    assert set(choices_for("yes", "bool", scene, "a")) == {"yes", "no"}
    assert set(choices_for("large", "size", scene, "a")) == {"small", "large"}
    assert set(choices_for("cube", "shape", scene, "a")) == {"cube", "sphere", "cylinder"}
    colors = choices_for("red", "color", scene, "a")
    assert len(colors) == 4
    assert {"red", "blue", "green"} <= set(colors)


@given(target=st.integers(0, 12), seed=st.text(max_size=5))
def test_choices_of_a_count_are_four_counts_in_a_row_with_the_target(target, seed):
    scene = Scene.of(scene_of(thing(0.0, 0.0)))
    choices = choices_for(str(target), "integer", scene, seed)
    numbers = sorted(int(one) for one in choices)
    assert numbers == list(range(numbers[0], numbers[0] + 4))
    assert target in numbers
    assert numbers[0] >= 0
    assert choices == choices_for(str(target), "integer", scene, seed)


def test_the_target_stands_at_every_place_among_the_choices(questions):
    places = Counter(one.choices.index(one.answer) for one in questions if len(one.choices) == 4)
    assert min(places[i] for i in range(4)) > 0.18 * sum(places.values())


def made_up(index, group, answer, kind="zero_hop", family=0, answer_kind="bool", split="train"):
    return Question(
        index, "Is it so?", answer, (), 0, "a.png", "val", kind, family, answer_kind, f"p{index}", split, group, ()
    )


def test_the_report_counts_originals_and_blind_baselines():
    found = report(
        [
            made_up(0, 0, "yes"),
            made_up(1, 0, "yes", split="heldout"),
            made_up(2, 2, "yes"),
            made_up(3, 3, "no", family=1),
            made_up(4, 4, "2", "one_hop", 0, "integer"),
        ]
    )
    assert (found.questions, found.originals, found.images) == (5, 4, 1)
    assert found.kinds == {"one_hop": 1, "zero_hop": 3}
    assert found.families == {"one_hop/0": 1, "zero_hop/0": 2, "zero_hop/1": 1}
    assert found.answers["bool"] == {"yes": 2, "no": 1}
    assert found.answers["integer"]["2"] == 1
    assert found.answers["integer"]["7"] == 0
    assert found.blind == 3 / 4  # yes, yes, 2
    assert found.blind_by_family == 1.0
    assert found.group_sizes == {"1": 3, "2": 1}
    assert found.phrasing_splits == {"heldout": 1, "train": 4}
    assert found.family_balance == pytest.approx(1.0397207708399179 / np.log(3))  # entropy of (1/4, 1/2, 1/4)
    assert "4 originals" in str(found)
    json.dumps(found.to_json())


def test_the_report_of_nothing_is_empty():
    assert report([]).questions == 0


def test_own_templates_are_read_once():
    assert load_templates() is load_templates()
