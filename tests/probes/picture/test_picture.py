"""The picture probe: contracts by words and by proof, and findings worked by hand."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import PIL.Image
import pytest

from pfungst.core import Answer, AnsweredTrial, BytesImage, Dataset, Example, Findings, PfungstError, ProbeError
from pfungst.core.images import as_rgb
from pfungst.probes import get_probe
from pfungst.probes.picture import Picture, topics
from pfungst.probes.picture.operations import CLOCK, COLOR, COUNT, DIRECTION, TEXT, TOPICS
from pfungst.probes.picture.probe import half_at
from pfungst.probes.picture.redrawn import Stage
from pfungst.world import SceneImage, answer, answer_text, embedded, visible_pixels
from pfungst.world.constants import COLOR_RGB


def image(shade: int = 90) -> BytesImage:
    buffer = io.BytesIO()
    PIL.Image.new("RGB", (32, 24), (shade, 100, 30)).save(buffer, "PNG")
    return BytesImage(buffer.getvalue())


def asked(question: str, target: str = "yes", **more: object) -> Example:
    return Example("q", question, image(), "i", (target,), target, **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def world() -> Dataset:
    return embedded(scenes=6, rephrasings=0, width=96, height=72, cache=False)


def done(example: Example, *operations: str) -> set[str]:
    """The operations that the probe does to an example."""
    probe = Picture(operations or Picture().operations, (2,))
    (trial,) = probe.trials(Dataset("one", [example]), 0)
    return {variant.name.rpartition(" ")[0] for variant in trial.variants[1:]}


@pytest.mark.parametrize(
    ("question", "target", "topic"),
    [
        ("Is the dog to the left of the cat?", "yes", DIRECTION),
        ("What animal is this?", "upside down bat", DIRECTION),
        ("What does the sign say?", "stop", TEXT),
        ("What time is it?", "noon", CLOCK),
        ("What COLOUR is the car?", "unknown", COLOR),
        ("What car is this?", "the red one", COLOR),
        ("How many dogs are there?", "few", COUNT),
        ("Dogs?", "3", COUNT),
        ("Are there 3 dogs?", "yes", COUNT),
    ],
)
def test_what_a_question_is_about_is_read_from_it_and_its_answer(question: str, target: str, topic: str) -> None:
    assert topic in topics(asked(question, target))


def test_a_wrong_choice_that_a_disturbance_could_make_right_counts() -> None:
    example = asked("What is true?", "a dog sits", choices=("a dog sits", "the dog is on the left"))
    assert DIRECTION in topics(example) and "mirror" not in done(example, "pad", "mirror")


def test_a_plain_question_is_about_nothing_and_a_foreign_one_about_everything() -> None:
    assert topics(asked("Is this a dog?")) == frozenset()
    assert topics(asked("Est-ce une fenêtre?")) == frozenset()
    assert topics(asked("これは犬ですか")) == TOPICS
    assert COUNT in topics(asked("Dogs?", "some", answer_type="number"))


def test_operations_that_could_change_the_answer_are_refused() -> None:
    plain = done(asked("Is this a dog?"))
    assert {"rotate", "grey", "crop", "shift", "jpeg", "blur", "fog", "gamma"} <= plain
    assert not {"camera", "light", "occlusion"} & plain, "there is no scene to draw"
    assert "rotate" not in done(asked("Is the dog left of the cat?"))
    assert "grey" not in done(asked("Is the car red?")) and "jpeg" in done(asked("Is the car red?"))
    assert not {"crop", "shift", "rotate"} & done(asked("How many dogs?", "2"))
    assert not {"rotate", "blur"} & done(asked("What is written on the bus?", "school"))
    assert "brightness" not in done(asked("Is it night?"))


def test_refusals_are_counted_and_told() -> None:
    data = Dataset("two", [asked("Is the car red?"), asked("Is this a dog?")])
    data = data.subset([Example(**{**{s: getattr(e, s) for s in Example.__slots__}, "id": str(n)})
                        for n, e in enumerate(data)])  # fmt: skip
    trials = answer_all(data, Picture(("grey", "blur"), (1, 5)), lambda example, name: "yes")
    (table,) = [one for one in Picture(("grey", "blur"), (1, 5)).findings(trials, 0).tables if one.title == "Refused"]
    assert table.rows == (("grey", "speaks of colour", 1),)
    only = Picture(("grey",), (1, 5))
    found = only.findings(answer_all(data, only, lambda example, name: "yes"), 0)
    assert (
        "1 more questions are left out of all numbers"
        in next(one for one in found.tables if one.title == "Refused").note
    )
    with pytest.raises(ProbeError, match="cannot apply any of grey"):
        list(only.trials(data.subset(data[:1]), 0))


def answer_all(data: Dataset, probe: Picture, say: Callable[[Example, str], str]) -> list[AnsweredTrial]:
    examples = {example.id: example for example in data}
    rows = []
    for trial in probe.trials(data, 0):
        example = examples[trial.example_id]
        said = [say(example, variant.name) for variant in trial.variants]
        scores = tuple(float(text == example.target) for text in said)
        rows.append(AnsweredTrial(trial, example, tuple(map(Answer, said)), scores))
    return rows


def plain_questions(count: int) -> Dataset:
    return Dataset("dogs", [Example(str(n), f"Is this a dog, {chr(97 + n % 26)}?", image(n), f"i{n}", ("yes",), "yes")
                            for n in range(count)], metric="exact")  # fmt: skip


def value(found: Findings, name: str, condition: str = "") -> float:
    return next(row.value for row in found.rows if (row.name, row.condition) == (name, condition))


def test_findings_worked_by_hand() -> None:
    """Blur: right at 1 and 2, a quarter right at 3, wrong from 4 on. Noise does nothing."""
    probe = Picture(("blur", "noise"))

    def say(example: Example, name: str) -> str:
        operation, _, severity = name.rpartition(" ")
        if operation == "blur" and (int(severity) > 3 or (severity == "3" and int(example.id) % 4)):
            return "no"
        return "yes"

    found = probe.findings(answer_all(plain_questions(20), probe, say), 0)
    assert value(found, "accuracy", "blur 3") == pytest.approx(0.25)
    assert value(found, "drop", "blur") == pytest.approx((0 + 0 + 0.75 + 1 + 1) / 5)
    assert value(found, "drop", "noise") == 0
    assert value(found, "mean corruption drop") == pytest.approx(0.275)
    assert found.drop is not None and found.drop.value == pytest.approx(0.275)
    assert value(found, "worst of n") == 0
    assert value(found, "answers changed", "blur") == pytest.approx(0.55)
    # from 100% at severity 2 to 25% at severity 3: half after two thirds of the way
    assert value(found, "half at", "blur") == pytest.approx(2 + 2 / 3)
    assert not any(row.name == "half at" and row.condition == "noise" for row in found.rows)
    assert "under blur" in found.verdict and "half under blur (severity 2.7)" in found.verdict
    drops = [row for row in found.rows if row.name == "drop" and row.condition == "blur"]
    assert drops[0].p is not None and drops[0].p_holm is not None and drops[0].p <= drops[0].p_holm < 0.05


def test_half_at_needs_a_fall_to_half() -> None:
    assert math.isnan(half_at({}, "blur", (1, 2, 3)))


def test_the_world_proves_its_contract(world: Dataset) -> None:
    probe = Picture(("camera", "light", "backdrop", "gloss", "mirror", "occlusion", "crop", "shift"), (1, 5))
    examples = {example.id: example for example in world}
    seen = set()
    for trial in probe.trials(world, 0):
        example = examples[trial.example_id]
        stage = Stage.of(example)
        assert stage is not None and example.program is not None and example.scene is not None
        clean = np.array(as_rgb(stage.image))
        for variant in trial.variants[1:]:
            name = variant.name.rpartition(" ")[0]
            seen.add(name)
            assert variant.query.scene is not None and variant.query.image is not None
            told = answer(example.program, variant.query.scene)
            assert told is not None and answer_text(told) == example.target
            made = np.array(as_rgb(variant.query.image))
            assert made.shape == clean.shape or name == "crop"
            if name in ("camera", "light", "backdrop", "gloss"):
                assert (made != clean).any()
                before, after = visible_pixels(example.scene), visible_pixels(variant.query.scene)
                assert after.min() >= min(200, before.min())
                assert name == "camera" or (before == after).all()
            if name == "backdrop":
                off = np.abs(made.astype(int) - clean).mean(2)
                assert off[~stage.objects].mean() > off[stage.objects].mean(), "the ground changes most"
            if name == "gloss":
                assert (made[~stage.objects] == clean[~stage.objects]).mean() > 0.5, "the ground is as it was"
            if name == "mirror":
                assert (made == clean[:, ::-1]).all() and variant.name == "mirror 1", "once: there is no more and less"
                assert relations(variant.query.scene, "left") == relations(example.scene, "right")
                assert relations(variant.query.scene, "behind") == relations(example.scene, "behind")
                shown = SceneImage(variant.query.scene, *stage.image.size)
                ids = Stage(example, shown, variant.query.scene, example.program).objects
                assert (ids != stage.objects[:, ::-1]).mean() < 0.02, "the scene is what the mirror shows"
            if name == "occlusion":
                assert (made[stage.objects] == clean[stage.objects]).all(), "no object is covered"
                assert (made != clean).any()
            if name == "crop":
                rows, columns = ((a - b) // 2 for a, b in zip(clean.shape[:2], made.shape[:2], strict=True))
                assert stage.objects[rows : rows + made.shape[0], columns : columns + made.shape[1]].sum() == (
                    stage.objects.sum()
                )
    assert {"camera", "light", "backdrop", "gloss", "mirror", "occlusion"} <= seen


def relations(scene: Mapping[str, Any], name: str) -> list[list[int]]:
    return [sorted(row) for row in scene["relationships"][name]]


def test_a_mirror_is_refused_where_the_program_or_the_words_speak_of_sides(world: Dataset) -> None:
    assert "mirror" in done(asked("Is this a dog?"))
    for question in ("Is the dog left of the cat?", "What does the sign say?", "What time does the clock show?"):
        assert "mirror" not in done(asked(question))
    refused = [
        trial.notes.get("refused", {}).get("mirror 1") for trial in Picture(("mirror", "pad"), (1,)).trials(world, 0)
    ]
    assert "the program gives another answer in the mirror" in refused and None in refused


def test_no_object_is_of_the_colour_of_the_backdrop(world: Dataset) -> None:
    for trial in Picture(("backdrop",), (5,)).trials(world, 3):
        scene = trial.variants[1].query.scene
        assert scene is not None
        colors = np.array([COLOR_RGB[one["color"]] for one in scene["objects"]]) / 255
        assert np.abs(colors - scene["backdrop"]).max(1).min() >= 0.15
        assert 0.3 < min(scene["backdrop"]) < 0.7 and max(scene["backdrop"]) <= 0.8


def test_the_same_seed_shows_the_same_images_and_another_seed_others(world: Dataset) -> None:
    def digests(seed: int) -> list[str]:
        trials = Picture(("noise", "camera"), (3,)).trials(world, seed)
        return [one.query.image.digest for trial in trials for one in trial.variants[1:] if one.query.image]

    assert digests(1) == digests(1)
    assert not set(digests(1)) & set(digests(2))


def test_settings_are_checked() -> None:
    assert get_probe("picture:operations=blur+jpeg,severities=1+3").operations == ("blur", "jpeg")  # type: ignore[attr-defined]
    for spec, told in (
        ("picture:severities=6", "1 to 5"),
        ("picture:operations=blurr", "Did you mean blur"),
        ("picture:operations=blur+blur", "different names"),
    ):
        with pytest.raises(PfungstError, match=told):
            get_probe(spec)


def test_data_that_cannot_be_disturbed_is_turned_down(world: Dataset) -> None:
    unseen = Dataset("unseen", [Example("1", "Is this a dog?", image_id="i", target="yes")])
    with pytest.raises(ProbeError, match="none of the 1 examples"):
        Picture().check_data(unseen)
    with pytest.raises(ProbeError, match="redraw scenes"):
        Picture(("camera",)).check_data(plain_questions(2))
    Picture(("camera",)).check_data(world)


def test_trials_are_made_as_they_are_asked_for() -> None:
    class Counting(Sequence[Example]):
        read = 0

        def __len__(self) -> int:
            return 1000

        def __getitem__(self, index: int) -> Example:  # type: ignore[override]
            if index >= 1000:
                raise IndexError
            self.read = max(self.read, index)
            return Example(str(index), "Is this a dog?", image(index % 200), target="yes")

    examples = Counting()
    next(Picture(("blur",), (1,)).trials(Dataset("many", examples), 0))
    assert examples.read < 5
