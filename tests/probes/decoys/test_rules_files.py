"""The rules as numbers, Eq. 2, and decoys on disk."""

import json
from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

from pfungst.cli import data as command
from pfungst.core import Example, PfungstError
from pfungst.data import load
from pfungst.probes.decoys import AnswerRule, build, rules, write
from pfungst.probes.decoys.sets import read_about, read_sets
from tests.probes.decoys.conftest import made_up, triplet


def chosen(target, *decoys):
    return Example(f"{target} {decoys}", "what", target=target, answers=(target,), choices=(target, *decoys))


def test_equation_2_by_hand():
    train = [chosen("dog", "cat", "pig"), chosen("dog", "cat", "cow"), chosen("cat", "dog", "pig")]
    rule = AnswerRule.fit(train)
    assert rule.probability("Dog.") == 2 / (2 + 1 / 2)
    assert rule.probability("cat") == 1 / (1 + 2 / 2)
    assert rule.probability("pig") == 0 and rule.probability("never seen") == 0.5


def test_the_rule_shares_first_places_it_cannot_tell_apart():
    rule = AnswerRule.fit([chosen("dog", "cat"), chosen("cat", "dog")])
    assert rule.right([chosen("dog", "cat"), chosen("cat", "dog", "new")]) == [0.5, pytest.approx(1 / 3)]


def test_the_rule_finds_decoys_that_are_never_right():
    data = [chosen(f"answer {n}", "always wrong", "wrong too") for n in range(20)]
    assert AnswerRule.fit(data).right(data) == [1.0] * 20


def test_decoys_made_from_targets_are_neutral_and_original_ones_are_not(encoder):
    data = [
        triplet(n, one.question, one.target, one.image_id, choices=(one.target, "never right", "nor this"))
        for n, one in enumerate(made_up(300))
    ]
    made = build(data, ("qou", "iou", "random"), encoder=encoder)
    original, ours, naive = (rules(made, name) for name in ("Orig", "QoU+IoU", "Random"))
    assert original.neutrality == 0 and original.decoys_a_target == 0
    assert ours.neutrality > 0.6 and naive.neutrality > 0.8
    assert ours.decoys_a_target == pytest.approx(ours.decoys_by_chance, rel=0.05)
    assert original.options == 3 and original.chance == pytest.approx(1 / 3)


def test_question_fit_and_image_fit_tell_the_kinds_apart(encoder):
    made = build(made_up(300, images=20), encoder=encoder)
    question, image = rules(made, "QoU"), rules(made, "IoU")
    assert question.question_fit.value > image.question_fit.value + 0.05
    assert question.question_resolves.value < 0.35 < image.question_resolves.value
    assert image.image_fit.value > 0.95 > question.image_fit.value


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_written_set_is_read_back_as_multiple_choice(encoder, tmp_path, ending):
    data = made_up(60)
    data = replace(data, examples=[replace(data[0], contrast="pair"), *data.examples[1:]])
    made = build(data, ("qou", "iou", "qou@10"), encoder=encoder)
    path = tmp_path / f"set.{ending}"
    assert write(made, path) == 0
    back = load(path)
    assert back.metric == "choice" and [e.choices for e in back] == list(made.all_choices("QoU+IoU"))
    assert [(e.id, e.question, e.target, e.image_id, e.contrast) for e in back] == [
        (e.id, e.question, e.target, e.image_id, e.contrast) for e in made.examples
    ]
    weaker = load(f"{path}?choices=choices_qou_10")
    assert [e.choices for e in weaker] == list(made.all_choices("QoU@10"))


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_written_set_says_how_many_decoys_of_a_question_come_from_the_fallback(encoder, tmp_path, ending):
    made = build(made_up(60, images=50), ("qou", "iou", "qou@10"), encoder=encoder)
    path = tmp_path / f"set.{ending}"
    write(made, path)
    stored = read_sets(path)
    for number, example in enumerate(made.examples):
        target, choices, sources = stored[example.id]
        assert target == example.target and choices["IoU"] == made.choices("IoU", number)
        assert sources == {kind: (3, int(one.fallbacks[number])) for kind, one in made.kinds.items()}
    assert sum(sources["iou"][1] for _, _, sources in stored.values()) > 60


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_set_that_the_first_question_lacks_is_read_for_the_others(encoder, tmp_path, ending):
    made = build(made_up(60), ("both", "qou"), encoder=encoder)
    made.kinds["both"].answers[0] = -1
    write(made, tmp_path / f"set.{ending}")
    stored = read_sets(tmp_path / f"set.{ending}")
    having = [made.examples[n].id for n, row in enumerate(made.kinds["both"].answers) if (row >= 0).any()]
    assert having and having == [key for key, (_, choices, _) in stored.items() if "Both" in choices]


def test_a_parquet_file_says_how_it_was_made(encoder, tmp_path):
    made = build(made_up(60, images=55), encoder=encoder, seed=4)
    write(made, tmp_path / "set.parquet")
    about = read_about(tmp_path / "set.parquet")
    assert about["seed"] == 4 and about["version"] == made.about["version"]
    assert about["counts"]["iou"] == made.counts("iou") and about["mostly fallback"] == made.fallen


def test_an_unwritable_ending_and_an_empty_set_are_refused(encoder, tmp_path):
    made = build([triplet(n, f"w{n}", "yes") for n in range(3)], encoder=encoder)
    with pytest.raises(PfungstError, match="two different answers"):
        write(made, tmp_path / "a.jsonl")
    with pytest.raises(PfungstError, match="ends in"):
        write(made, tmp_path / "a.csv")
    assert not list(tmp_path.iterdir())


def test_the_command_writes_a_file_and_reports_the_rules(tmp_path):
    source = tmp_path / "test.jsonl"
    rows = [{"id": e.id, "question": e.question, "target": e.target, "image_id": e.image_id} for e in made_up(80)]
    source.write_text("\n".join(json.dumps(row) for row in rows))
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("\n".join(f"w{n} {n % 7} {n % 5} {n % 11} 1" for n in range(200)))
    app = typer.Typer()
    app.command()(command.decoys)
    out = tmp_path / "out.parquet"
    arguments = [str(source), "--vectors", str(vectors), "--k", "2", "--json", "--out", str(out)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout[result.stdout.index("{") :])
    assert report["examples"] == 80 and set(report["rules"]) == {"QoU", "IoU", "QoU+IoU"}
    assert all(len(e.choices) in (3, 4, 5) for e in load(out))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.parquet", "test.jsonl", "vectors.txt"]
    with pytest.raises(PfungstError, match="one split"):
        CliRunner().invoke(app, [f"{source}#all", "--out", str(out)], catch_exceptions=False)
