"""The first probes, on players whose behaviour is known."""

from dataclasses import dataclass, replace

import pytest

from pfungst.core import Answer, AnsweredTrial, ProbeError, UsageError
from pfungst.core.images import image_size
from pfungst.probes import check_probe, get_probe
from pfungst.probes.blind import Blind
from pfungst.probes.control import Control
from tests.conftest import squares


def answered(probe, data, say, seed=0):
    """The probe's trials answered by say(query, example), scored by exact match."""
    examples = {example.id: example for example in data}
    trials = []
    for trial in probe.trials(data, seed):
        example = examples[trial.example_id]
        answers = tuple(Answer(say(variant.query, example)) for variant in trial.variants)
        scores = tuple(float(answer.text == example.target) for answer in answers)
        trials.append(AnsweredTrial(trial, example, answers, scores))
    return trials


def by_name(findings, name, condition=""):
    return next(one for one in findings.rows if one.name == name and one.condition == condition)


def test_control_of_a_steady_player_finds_no_noise(data):
    found = Control().findings(answered(Control(), data, lambda q, e: e.target), 0)
    assert found.drop.value == 0 and by_name(found, "answers changed", "again").value == 0
    most = 1 - 0.05 ** (1 / 40)
    assert f"no sampling noise (0 of 80 answers changed, at most {100 * most:.1f}%; 95%, 40 images)" in found.verdict


def test_control_of_replies_nobody_can_read_says_so(data):
    trials = [
        replace(one, answers=tuple(replace(answer, unread=True) for answer in one.answers), scores=(0.0, 0.0))
        for one in answered(Control(), data, lambda q, e: "hm")
    ]
    verdict = Control().findings(trials, 0).verdict
    assert "no pair of replies that could be read" in verdict and "sampling noise" not in verdict


def test_control_counts_every_change_of_mind(data):
    numbers = {example.id: index for index, example in enumerate(data)}

    def moody(query, example):
        return "perhaps" if query.take and numbers[example.id] % 4 == 0 else example.target

    found = Control().findings(answered(Control(), data, moody), 0)
    assert by_name(found, "answers changed", "again").value == 0.25
    assert found.drop.value == 0.25
    assert found.tables[0].rows[0] == (20, 0, 0, 60, 80)
    assert len(found.failures) == 12 and {one.loss for one in found.failures} == {1.0}


def test_a_player_that_looks_has_gain_and_no_leakage(data):
    clean = {example.image.digest for example in data}

    def looks(query, example):
        return example.target if query.image is not None and query.image.digest == example.image.digest else "?"

    assert len(clean) == 40
    found = Blind().findings(answered(Blind(), data, looks), 0)
    assert by_name(found, "gain", "other image").value == 1.0 and found.disturbed.condition == "other image"
    assert by_name(found, "accuracy", "other image").value == 0.0
    assert found.verdict.startswith("With the image of another question the player still scores 0.0%")
    assert "nothing beyond guessing" in found.verdict


def test_a_blind_player_has_no_gain(data):
    found = Blind().findings(answered(Blind(), data, lambda q, e: "yes"), 0)
    assert by_name(found, "gain", "other image").value == 0
    assert "no proof that the player looks" in found.verdict and "collapses" not in found.verdict
    assert {one.variant for one in found.failures} == {"other image"}


def test_a_player_that_knows_the_questions_by_heart_leaks(data):
    def remembers(query, example):
        return example.target if query.image is None or query.image.digest == example.image.digest else "?"

    found = Blind().findings(answered(Blind(), data, remembers), 0)
    assert by_name(found, "leakage", "question only").value > 0.4
    assert by_name(found, "gain", "other image").value == 1.0
    assert "beyond guessing are left without it (question only)" in found.verdict


COLOURS = ("red", "green", "blue", "pink", "grey", "black")


def coloured(pictures=60):
    """Questions of which a sixth can be guessed."""
    data = squares(pictures, 1)
    return data.subset([replace(one, target=COLOURS[at % 6]) for at, one in enumerate(data)])


def test_a_player_that_collapses_without_an_image_is_measured_with_that_of_another_question():
    """MLB on photographs: 43% clean, 41% with a blank image, 39% with another, 0% on the question alone, where it says
    one word whatever is asked. The image is not worth 43 points."""
    data = coloured()
    numbers = {example.id: index for index, example in enumerate(data)}

    def guesses(query, example):
        if query.image is None:
            return "cake"
        own = query.image.digest == example.image.digest
        return example.target if own or numbers[example.id] % 6 else COLOURS[1]

    found = Blind().findings(answered(Blind(), data, guesses), 0)
    assert found.drop.value == pytest.approx(1 / 6) and found.drop.condition == "other image"
    assert "The image is worth 16.7 points" in found.verdict
    note = (
        "With no image at all it collapses to a few answers (1 different ones, 6 with its own; most often cake, 100.0%)"
    )
    assert f"{note}: its 0.0% there is no measure of what the image is worth." in found.verdict
    assert found.verdict.count("collapses") == 1
    assert by_name(found, "drop", "question only").note == by_name(found, "accuracy", "question only").note != ""
    assert found.drop.note == "" and ("question only", 1, "cake, 100.0%") in [
        (row[0], row[5], row[6]) for row in found.tables[0].rows
    ]


def test_a_yes_no_player_collapses_if_it_nearly_always_says_the_same(data):
    numbers = {example.id: index for index, example in enumerate(data)}

    def no_without(share):
        return lambda q, e: e.target if q.image is not None else ("yes", "no")[numbers[e.id] % 80 < 80 * share]

    for share, collapses in ((0.7, False), (0.8, True)):
        found = Blind().findings(answered(Blind(), data, no_without(share)), 0)
        assert ("most often no, 80.0%" in by_name(found, "accuracy", "question only").note) == collapses


def test_replies_that_cannot_be_read_are_few_answers(data):
    trials = [
        replace(
            one,
            answers=tuple(
                replace(a, unread=v.name == "question only") for a, v in zip(one.answers, one.trial.variants)
            ),
        )
        for one in answered(Blind(), data, lambda q, e: e.target if q.image else e.id)
    ]
    assert "most often no answer that could be read, 100.0%" in Blind().findings(trials, 0).verdict


def test_guessing_is_the_most_frequent_answer_of_the_other_examples():
    data = squares(4, 1)  # targets yes, no, yes, no of one type
    odd = data.subset([replace(data[0], target="yes"), *(replace(e, target="no") for e in data[1:])])
    found = Blind().findings(answered(Blind(), odd, lambda q, e: "?"), 0)
    # "no" is the most frequent among the others for all four, and right for three.
    assert by_name(found, "guessing").value == 0.75


def test_guessing_is_half_right_among_as_many_yes_as_no():
    data = squares(10, 1)
    assert sorted(e.target for e in data) == ["no"] * 5 + ["yes"] * 5
    found = Blind().findings(answered(Blind(), data, lambda q, e: "yes"), 0)
    assert by_name(found, "guessing").value == 0.5
    assert by_name(found, "leakage", "question only").value == 0.0


def test_an_answer_that_no_other_example_has_is_no_guess():
    data = squares(4, 1)
    own = data.subset([replace(e, target=f"answer {i}") for i, e in enumerate(data)])
    found = Blind().findings(answered(Blind(), own, lambda q, e: "?"), 0)
    assert by_name(found, "guessing").value == 0.0


def test_guessing_does_not_depend_on_whether_options_are_written_down():
    plain = squares(20, 1)
    mostly = [replace(e, target="no" if i % 5 == 0 else "yes") for i, e in enumerate(plain)]
    for choices in (), ("yes", "no"):
        data = plain.subset([replace(e, choices=choices, answers=(e.target,)) for e in mostly])
        found = Blind().findings(answered(Blind(), data, lambda q, e: "yes"), 0)
        assert by_name(found, "guessing").value == 0.8
        assert by_name(found, "leakage", "question only").value == 0.0
        assert [one.value for one in found.rows if one.name == "blind pick"] == ([0.5] if choices else [])


def test_guessing_has_no_interval():
    found = Blind().findings(answered(Blind(), squares(10, 1), lambda q, e: "yes"), 0)
    guessing = by_name(found, "guessing")
    assert guessing.n == 10
    assert guessing.low != guessing.low and guessing.high != guessing.high


def test_guessing_among_options_that_are_never_answers_elsewhere_is_one_in_k():
    data = squares(10, 1)
    own = data.subset(
        [replace(e, target=f"a{i}", choices=tuple(f"{kind}{i}" for kind in "abcd")) for i, e in enumerate(data)]
    )
    found = Blind().findings(answered(Blind(), own, lambda q, e: "?"), 0)
    assert by_name(found, "guessing").value == 0.25 == by_name(found, "blind pick").value
    assert by_name(found, "accuracy", "options only").n == 10


def test_the_other_image_is_never_ones_own():
    data = squares(7, 5)
    own = {example.id: example.image.digest for example in data}
    for seed in range(5):
        for trial in Blind().trials(data, seed):
            other = next(v.query.image for v in trial.variants if v.name == "other image")
            assert other.digest != own[trial.example_id]


def test_the_blank_image_has_the_size_of_the_original_and_no_content(data):
    trial = next(Blind().trials(data, 0))
    blank = trial.variants[1].query.image
    assert image_size(blank) == (8, 6)
    assert blank.pil().getextrema() == ((127, 127),) * 3


def test_one_picture_for_all_questions_has_no_other_image():
    data = squares(1, 6)
    assert all("other image" not in [v.name for v in t.variants] for t in Blind().trials(data, 0))
    found = Blind().findings(answered(Blind(), data, lambda q, e: "yes"), 0)
    assert found.verdict.startswith("All questions are about one image: none can be asked about the image of another. ")
    assert "With a blank image the player still scores" in found.verdict and found.drop.condition == "blank image"


def test_where_the_fallback_collapses_the_difference_is_not_called_the_images_worth():
    data = squares(1, 12)
    data = data.subset([replace(one, target=COLOURS[at % 6]) for at, one in enumerate(data)])
    own = data[0].image.digest
    found = Blind().findings(
        answered(Blind(), data, lambda q, e: e.target if q.image and q.image.digest == own else "cake"), 0
    )
    assert "The difference is 100.0 points" in found.verdict and "The image is worth" not in found.verdict


def test_blind_needs_images(data):
    without = data.subset([replace(example, image=None) for example in data])
    with pytest.raises(ProbeError, match="none of the 80 examples of squares has one"):
        list(Blind().trials(without, 0))


def test_examples_without_truth_give_unknown_numbers_not_zero(data):
    unknown = [
        replace(one, scores=(float("nan"),) * len(one.scores)) for one in answered(Control(), data, lambda q, e: "x")
    ]
    found = Control().findings(unknown, 0)
    assert found.clean.n == 0 and found.clean.value != found.clean.value


@dataclass(frozen=True)
class Careless:
    """Breaks every rule that the check knows."""

    name: str = ""
    calls: list = None

    def trials(self, data, seed):
        self.calls.append(1)
        for trial in Control().trials(data, seed):
            clean = trial.variants[0]
            query = replace(clean.query, question=f"{len(self.calls)}")
            yield replace(trial, keeps=" ", example_id="nobody", variants=(replace(clean, query=query),) * 2)

    def findings(self, trials, seed):
        raise AssertionError


def test_a_careless_probe_is_told_what_is_wrong():
    told = "\n".join(check_probe(Careless(calls=[])))
    for sentence in (
        "no name",
        "different trials for the same",
        "not in the data",
        "what it keeps",
        "the same name",
        "same query",
    ):
        assert sentence in told


def test_a_probe_with_bad_settings_is_refused():
    with pytest.raises(UsageError, match="The probe control has no setting 'k'"):
        get_probe("control:k=3")
