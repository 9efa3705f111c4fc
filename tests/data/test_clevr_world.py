"""What `pfungst world make` writes comes back as examples."""

import json

import PIL.Image
import pytest

from pfungst.core import DataError
from pfungst.data import load
from pfungst.world import make


def test_groups_choices_and_kinds_come_back(tmp_path):
    make(tmp_path, scenes=3, questions_per_scene=3, rephrasings=2, images=False, split="val")
    data = load(tmp_path)
    groups = {}
    for example in data:
        groups.setdefault(example.group, []).append(example)
    assert [len(members) for members in groups.values()] == [3] * 9
    for name, members in groups.items():
        assert members[0].id == name
        assert len({member.target for member in members}) == 1 and len({member.question for member in members}) == 3
        assert all(member.target in member.choices for member in members)
    assert {example.question_type for example in data} <= {
        "zero_hop", "one_hop", "two_hop", "three_hop", "same_relate", "single_and", "single_or", "compare_integer",
        "comparison",
    }  # fmt: skip


def test_images_of_another_renderer_are_read_in_place_of_ours(tmp_path):
    make(tmp_path, scenes=2, questions_per_scene=2, rephrasings=0, images=False, split="new")
    (tmp_path / "images" / "new").mkdir(parents=True)
    for number, color in enumerate(("red", "blue")):
        PIL.Image.new("RGB", (40, 30), color).save(tmp_path / "images" / "new" / f"CLEVR_new_{number:06d}.png")
    colors = {example.image_id: example.image.pil().getpixel((0, 0)) for example in load(tmp_path)}
    assert colors == {"CLEVR_new_000000.png": (255, 0, 0), "CLEVR_new_000001.png": (0, 0, 255)}


@pytest.mark.parametrize("choices", ["yes", [], ["no", "maybe"], [["yes"]]])
def test_bad_choices_are_named(tmp_path, choices):
    question = {"image_index": 0, "question": "Is it?", "answer": "yes", "choices": choices}
    (tmp_path / "CLEVR_val_questions.json").write_text(json.dumps({"questions": [question]}))
    with pytest.raises(DataError, match="choices"):
        load(tmp_path)
