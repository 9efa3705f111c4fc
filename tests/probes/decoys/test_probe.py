"""The decoys probe on players whose behaviour is known."""

from dataclasses import replace
from zlib import crc32

import numpy as np
import pytest

from pfungst.core import Answer, AnsweredTrial, Dataset, ProbeError, Query, UsageError
from pfungst.probes.check import check_probe
from pfungst.probes.decoys import Decoys, build, write
from pfungst.probes.decoys.probe import pick, refers
from pfungst.scores import get_metric
from tests.conftest import squares
from tests.probes.decoys.conftest import made_up, triplet


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    path = tmp_path_factory.mktemp("vectors") / "words.npz"
    words = [f"w{n}" for n in range(200)]
    np.savez(path, words=np.array(words), vectors=np.random.default_rng(0).normal(size=(200, 16)).astype(np.float32))
    return f"words:{path}"


def answered(probe, data, say, seed=0):
    examples, metric = {e.id: e for e in data}, get_metric("choice")
    trials = []
    for trial in probe.trials(data, seed):
        example = examples[trial.example_id]
        said = tuple(say(variant.query, example) for variant in trial.variants)
        said = tuple(one if isinstance(one, Answer) else Answer(one) for one in said)
        scores = tuple(
            metric(replace(example, choices=v.query.choices), a) for v, a in zip(trial.variants, said, strict=True)
        )
        trials.append(AnsweredTrial(trial, example, said, scores))
    return trials


def found(findings, name, condition):
    return next(one for one in findings.rows if one.name == name and one.condition == condition)


def test_the_probe_keeps_the_rules(vectors):
    assert check_probe(Decoys(encoder=vectors, circular="all", strength=True)) == []


def test_a_player_that_knows_is_right_everywhere_and_in_every_order(vectors):
    probe = Decoys(encoder=vectors)
    findings = probe.findings(answered(probe, made_up(60), lambda q, e: e.target), 0)
    assert findings.drop.value == 0 and found(findings, "accuracy in every order", "QoU+IoU").value == 1
    assert found(findings, "choice changes with the order", "QoU+IoU").value == 0


def test_a_player_that_eliminates_by_the_image_falls_on_image_decoys(vectors):
    """It knows which answers belong to the image, not which question asks for which."""
    data = made_up(200, images=25)
    in_image = {}
    for example in data:
        in_image.setdefault(example.image_id, set()).add(example.target)

    def eliminate(query, example):
        scores = tuple(float(choice in in_image[example.image_id]) for choice in query.choices)
        return Answer("", scores=scores or None)

    probe = Decoys(encoder=vectors, circular="none")
    findings = probe.findings(answered(probe, data, eliminate), 0)
    # A blind pick has one in seven among the random decoys and one in four among those of the image.
    assert found(findings, "accuracy", "Random").value > 0.35
    assert found(findings, "accuracy", "IoU").value < 0.35
    assert findings.drop.low > 0.1 and "elimination is worth" in findings.verdict


def test_a_player_that_always_points_at_the_first_option_is_found_out(vectors):
    probe = Decoys(encoder=vectors)
    findings = probe.findings(answered(probe, made_up(80), lambda q, e: q.choices[0] if q.choices else "?"), 0)
    assert found(findings, "choice changes with the order", "QoU+IoU").value == 1
    assert found(findings, "accuracy in every order", "QoU+IoU").value == 0
    assert findings.tables[1].rows[0][1] == "100.0%"


def test_answers_that_are_no_choice_are_counted_and_wrong(vectors):
    data = made_up(60)

    def rambles(query, example):
        return "I would say " + example.target if int(example.id) % 3 == 0 else example.target

    probe = Decoys(encoder=vectors, circular="none")
    findings = probe.findings(answered(probe, data, rambles), 0)
    assert found(findings, "answers not read", "QoU").value == pytest.approx(1 / 3)
    assert found(findings, "accuracy", "QoU").value == pytest.approx(2 / 3)
    assert "20 of 60 answers are none of the choices" in findings.verdict


def test_scores_decide_before_words():
    query = Query("what", choices=("a", "b", "c"))
    assert pick(query, Answer("nonsense", scores=(0.1, 0.7, 0.2)), 0.0, "b") == pick(query, Answer("b"), 1.0, "b")
    assert pick(query, Answer("a", scores=(0.5, 0.5, 0.0)), 1.0, "a").score == 0.5
    assert pick(query, Answer("a", scores=(0.0, 1.0, 0.0)), 1.0, "a").score == 0.0
    assert pick(query, Answer("d"), 1.0, "d").choice is None and pick(query, Answer("d"), 1.0, "d").score == 0.0


def test_a_multiple_choice_keeps_its_own_set_and_gets_an_open_ended_twin(vectors):
    data = [replace(e, choices=(e.target, "own decoy", "another own")) for e in made_up(50)]
    probe = Decoys(encoder=vectors, circular="none")
    trials = list(probe.trials(Dataset("mc", data, fingerprint="mc"), 0))
    names = [variant.name for variant in trials[0].variants]
    assert names == ["clean", "open-ended", "QoU", "IoU", "Random", "QoU+IoU", "All"]
    by_name = {variant.name: variant.query for variant in trials[0].variants}
    assert by_name["clean"].choices == data[0].choices and by_name["open-ended"].choices == ()
    assert set(by_name["All"].choices) == {*by_name["QoU+IoU"].choices, *data[0].choices}


GUESSERS = {
    "by the query": lambda q, e: max(q.choices, key=lambda one: crc32(f"{q.question}{one}".encode()), default="?"),
    "the first": lambda q, e: q.choices[0] if q.choices else "?",
    "by the id": lambda q, e: (
        q.choices[crc32(f"{e.id} {len(q.choices)}".encode()) % len(q.choices)] if q.choices else "?"
    ),
}


@pytest.mark.parametrize("guess", GUESSERS.values(), ids=GUESSERS)
@pytest.mark.parametrize("own", [2, 4])
def test_a_guesser_loses_nothing_where_the_own_choices_are_fewer(vectors, tmp_path, guess, own):
    """A file of `pfungst decoys --kinds qou,iou` has no Random set, so Orig is what QoU+IoU is compared with."""
    targets = sorted({e.target for e in made_up(400)})
    rng = np.random.default_rng(own)
    examples = []
    for e in made_up(400, images=100):
        others = rng.permutation([one for one in targets if one != e.target])[: own - 1]
        examples.append(replace(e, choices=tuple(rng.permutation([e.target, *others]).tolist())))
    data = Dataset("mc", examples, fingerprint=f"mc {own}")
    write(build(data, ("qou", "iou"), encoder=vectors), tmp_path / "set.parquet")
    probe = Decoys(made=str(tmp_path / "set.parquet"), circular="none", encoder=vectors)
    findings = probe.findings(answered(probe, data, guess), 0)
    assert findings.drop.condition == "Orig to QoU+IoU" and findings.drop.low <= 0 <= findings.drop.high
    assert findings.clean.value - findings.disturbed.value > 0.05  # what was called elimination
    assert "among the own ones of the question (Orig)" in findings.verdict and "random" not in findings.verdict
    knowing = probe.findings(answered(probe, data, lambda q, e: e.target), 0)
    assert knowing.drop.value == 0


def test_decoys_from_a_file_are_those_of_the_whole_split(vectors, tmp_path):
    data = made_up(120)
    made = build(data, ("qou", "iou", "random"), encoder=vectors)
    write(made, tmp_path / "set.parquet")
    probe = Decoys(made=str(tmp_path / "set.parquet"), circular="none")
    part = data.subset(data.examples[40:50])
    for trial, number in zip(probe.trials(part, 0), range(40, 50), strict=True):
        by_name = {variant.name: variant.query.choices for variant in trial.variants}
        assert by_name["QoU+IoU"] == made.choices("QoU+IoU", number) and "Random" in by_name
    strangers = [replace(e, target="else") for e in part]
    with pytest.raises(ProbeError, match="another data set"):
        list(probe.trials(part.subset(strangers), 0))


@pytest.mark.parametrize("from_file", [False, True])
def test_a_set_in_which_most_image_decoys_are_fallbacks_is_not_called_one(vectors, tmp_path, from_file):
    data = made_up(60, images=55)
    if from_file:
        write(build(data, encoder=vectors), tmp_path / "set.parquet")
    probe = Decoys(encoder=vectors, circular="none", made=str(tmp_path / "set.parquet") if from_file else "")
    findings = probe.findings(answered(probe, data, lambda q, e: e.target), 0)
    assert found(findings, "decoys from the fallback", "IoU").value > 0.5
    assert found(findings, "decoys from the fallback", "QoU").value == 0
    assert "not IoU sets" in findings.verdict and "not IoU sets" in findings.tables[0].note
    assert "fit the question and the image" not in findings.verdict
    rich = made_up(60, images=5)
    probe = Decoys(encoder=vectors, circular="none")
    assert "not IoU sets" not in probe.findings(answered(probe, rich, lambda q, e: e.target), 0).verdict


def test_data_without_another_answer_are_refused_before_anything_is_made(vectors):
    data = Dataset("one", [triplet(n, f"w{n}", answer) for n, answer in enumerate(("yes", "Yes."))], fingerprint="one")
    with pytest.raises(ProbeError, match="all have the answer 'yes'"):
        Decoys(encoder=vectors).check_data(data)
    with pytest.raises(ProbeError, match="none has a right answer"):
        Decoys(encoder=vectors).check_data(Dataset("none", [replace(one, target=None) for one in data]))
    with pytest.raises(UsageError, match="pool_limit is -1"):
        Decoys(pool_limit=-1).check_data(made_up(10))
    with pytest.raises(ProbeError, match="not 'some'"):
        Decoys(circular="some").check_data(made_up(10))


@pytest.mark.parametrize(
    "target", ["All of the above.", "none of these", "A and C", "Both A and B", "Option B", "(b)", "D"]
)
def test_a_right_choice_that_refers_to_its_options_is_not_put_among_others(vectors, target):
    data = [replace(e, choices=(e.target, "own decoy")) for e in made_up(40)]
    data[:10] = [replace(e, target=target, choices=("one thing", "another", target)) for e in data[:10]]
    probe = Decoys(encoder=vectors, circular="none")
    trials = list(probe.trials(Dataset("mc", data, fingerprint=f"mc {target}"), 0))
    assert [trial.example_id for trial in trials] == [example.id for example in data[10:]]
    assert not any(target in variant.query.choices for trial in trials for variant in trial.variants)
    with pytest.raises(ProbeError, match="refer to the options they stand among"):
        probe.check_data(Dataset("mc", data[:10]))


@pytest.mark.parametrize("target", ["above the door", "both", "a and", "neither of the dogs", "X", "vitamin", "2"])
def test_an_answer_that_means_something_by_itself_is_put_among_others(target):
    example = triplet(0, "w0", target, choices=(target, "own decoy"))
    assert not refers(example) and not refers(replace(example, target="A and B", choices=()))


def test_a_limit_limits_what_is_asked_and_not_where_decoys_come_from(vectors):
    data = made_up(120)
    probe = Decoys(encoder=vectors, circular="none")
    whole = {trial.example_id: trial for trial in probe.trials(data, 0)}
    told = []
    probe.prepare(data.subset(data.examples[40:45]), 0, lambda *state: told.append(state))
    part = list(probe.trials(data.subset(data.examples[40:45]), 0))
    assert [trial.example_id for trial in part] == [one.id for one in data.examples[40:45]]
    assert [trial.variants for trial in part] == [whole[trial.example_id].variants for trial in part]
    assert ("making decoys", 5, 5) in told
    few = Decoys(encoder=vectors, circular="none", pool_limit=30)
    known = {one.target for one in (*data.examples[:30], *data.examples[40:45])}
    for trial in few.trials(data.subset(data.examples[40:45]), 0):
        assert {choice for variant in trial.variants for choice in variant.query.choices} <= known


def test_a_whole_exam_runs_and_resumes(vectors, tmp_path):
    from pfungst.api import examine

    data = squares(12)
    first = examine("random", data, [Decoys(encoder=vectors)], tmp_path / "run")
    again = examine("random", data, [Decoys(encoder=vectors)], tmp_path / "run")
    assert first.findings[0].rows == again.findings[0].rows
    assert 0.2 < first.findings[0].disturbed.value < 0.8
