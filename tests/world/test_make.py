"""A data set on disk: published layout, checksums, the same bytes whoever makes it, however often it is killed."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import PIL.Image
import pytest

from pfungst.core import DataError
from pfungst.world import Scene, answer, answer_text, making, relationships, visible_pixels
from pfungst.world.making import draw_scene, make
from pfungst.world.questions import generating, report

SMALL = {"scenes": 11, "questions_per_scene": 3, "split": "val", "images": False, "seed": 7}


@pytest.fixture
def parts_of_four(monkeypatch):
    """Parts of 4 scenes, so that a small data set has several."""
    monkeypatch.setattr(making, "RESET_EVERY", 4)
    monkeypatch.setattr(generating, "RESET_EVERY", 4)


def content(folder):
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def questions_of(folder, split="val"):
    return json.loads((folder / f"questions/CLEVR_{split}_questions.json").read_text(encoding="utf-8"))


def scenes_of(folder, split="val"):
    return json.loads((folder / f"scenes/CLEVR_{split}_scenes.json").read_text(encoding="utf-8"))


def test_files_load_back_and_the_engine_reproduces_every_stored_answer(tmp_path, parts_of_four):
    make(tmp_path, **SMALL)
    scenes, questions = scenes_of(tmp_path), questions_of(tmp_path)
    assert scenes["info"]["split"] == questions["info"]["split"] == "val"
    by_index = {one["image_index"]: one for one in scenes["scenes"]}
    assert sorted(by_index) == list(range(11))
    assert len(questions["questions"]) == 11 * 3 * 4
    for number, one in enumerate(questions["questions"]):
        scene = by_index[one["image_index"]]
        assert one["question_index"] == number
        assert one["image_filename"] == scene["image_filename"] == f"CLEVR_val_{one['image_index']:06d}.png"
        assert answer_text(answer(one["program"], scene)) == one["answer"]
        assert questions["questions"][one["group"]]["program"] == one["program"]


def test_stored_scenes_round_trip_and_their_relationships_are_those_of_their_coordinates(tmp_path, parts_of_four):
    make(tmp_path, **SMALL)
    for record in scenes_of(tmp_path)["scenes"]:
        scene = Scene.from_json(record)
        assert scene.to_json() == record
        assert relationships(scene) == record["relationships"]


def test_the_published_loader_reads_it(tmp_path, parts_of_four):
    from pfungst.data import load

    make(tmp_path, **SMALL)
    data = load(f"clevr:{tmp_path}")
    assert len(data) == 11 * 3 * 4
    assert data[0].scene is not None
    assert data[0].program is not None


def test_the_manifest_tells_settings_checksums_and_statistics(tmp_path, parts_of_four):
    manifest = make(tmp_path, **SMALL)
    record = json.loads((tmp_path / "manifest_val.json").read_text(encoding="utf-8"))
    assert record == json.loads(json.dumps(manifest.to_json()))
    assert record["settings"]["seed"] == 7
    for name, one in record["files"].items():
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == one["sha256"]
        assert (tmp_path / name).stat().st_size == one["bytes"]
    assert record["statistics"]["questions"] == json.loads(
        json.dumps(report(questions_of(tmp_path)["questions"]).to_json())
    )
    assert sum(record["statistics"]["objects"].values()) == 11
    assert set(content(tmp_path)) == {"manifest_val.json", *record["files"]}


def test_the_same_settings_give_the_same_bytes_and_another_seed_others(tmp_path, parts_of_four):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        make(tmp_path / name, **{**SMALL, "seed": seed})
    assert content(tmp_path / "a") == content(tmp_path / "b")
    assert scenes_of(tmp_path / "a") != scenes_of(tmp_path / "c")


def test_splits_share_a_folder_and_no_scene(tmp_path, parts_of_four):
    make(tmp_path, **SMALL)
    make(tmp_path, **{**SMALL, "split": "train"})
    positions = [
        {json.dumps(thing["3d_coords"]) for scene in scenes_of(tmp_path, split)["scenes"] for thing in scene["objects"]}
        for split in ("val", "train")
    ]
    assert not positions[0] & positions[1]


def test_the_train_split_keeps_heldout_wordings_unseen(tmp_path, parts_of_four):
    make(tmp_path, **{**SMALL, "split": "train"})
    make(tmp_path, **SMALL)
    splits = [
        {one["phrasing_split"] for one in questions_of(tmp_path, split)["questions"]} for split in ("train", "val")
    ]
    assert splits == [{"train"}, {"train", "heldout"}]


def test_every_object_shows_two_hundred_pixels_at_the_published_size():
    for index in range(15):
        scene = draw_scene(index, split="val", seed=0, width=480, height=320)
        assert visible_pixels(scene, 320, 240).min() >= 200


def test_a_scene_does_not_depend_on_the_others():
    one = draw_scene(5, split="val", seed=3)
    [draw_scene(i, split="val", seed=3) for i in range(3)]
    assert draw_scene(5, split="val", seed=3) == one
    assert draw_scene(5, split="train", seed=3).objects != one.objects


def test_what_is_finished_is_not_made_again(tmp_path, parts_of_four, monkeypatch):
    first = make(tmp_path, **SMALL)
    monkeypatch.setattr(making, "run_shards", None)
    assert make(tmp_path, **SMALL) == first


def test_a_damaged_file_is_made_again(tmp_path, parts_of_four):
    make(tmp_path, **SMALL)
    before = content(tmp_path)
    path = tmp_path / "questions/CLEVR_val_questions.json"
    path.write_bytes(path.read_bytes()[:-100])
    make(tmp_path, **SMALL)
    assert content(tmp_path) == before


def test_a_folder_of_other_settings_is_refused(tmp_path, parts_of_four):
    make(tmp_path, **SMALL)
    with pytest.raises(DataError, match=r"manifest_val\.json: this folder was made with other settings \(seed was 7"):
        make(tmp_path, **{**SMALL, "seed": 8})


def test_a_damaged_manifest_is_named(tmp_path, parts_of_four):
    make(tmp_path, **SMALL)
    (tmp_path / "manifest_val.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=r"manifest_val\.json: the file is damaged"):
        make(tmp_path, **SMALL)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"scenes": 0}, {"questions_per_scene": 0}, {"split": "a/b"}, {"seed": -1}, {"width": 0}, {"rephrasings": -1}),
        {"width": 10**5, "height": 10**5, "images": True},
    ],
)
def test_settings_that_make_no_sense_are_refused(tmp_path, wrong):
    with pytest.raises(Exception, match=r"\.$"):
        make(tmp_path / "out", **{**SMALL, **wrong})
    assert not (tmp_path / "out").exists()


KILLED = """
import sys
from pfungst.world import making
from pfungst.world.questions import generating
making.RESET_EVERY = generating.RESET_EVERY = 4
making.make(sys.argv[1], scenes=48, questions_per_scene=6, split="val", images=False, seed=7)
"""


def test_killed_and_called_again_it_gives_the_bytes_of_an_undisturbed_run(tmp_path, parts_of_four):
    settings = {**SMALL, "scenes": 48, "questions_per_scene": 6}
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path / "killed")])
    records = tmp_path / "killed/.work_val/parts/.done"
    deadline = time.monotonic() + 60
    while len(list(records.glob("part-*.json"))) < 2:
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done = []
    make(tmp_path / "killed", **settings, progress=lambda *now: done.append(now))
    assert done[0][1] >= 2
    make(tmp_path / "whole", **settings)
    assert content(tmp_path / "killed") == content(tmp_path / "whole")


DRAWN = {"scenes": 3, "questions_per_scene": 1, "split": "val", "width": 64, "height": 48}


def test_pictures_are_those_of_the_renderer_and_listed_with_their_checksums(tmp_path):
    from pfungst.world import render

    manifest = make(tmp_path, **DRAWN)
    scenes = scenes_of(tmp_path)["scenes"]
    lines = (tmp_path / "images/CLEVR_val_images.sha256").read_text(encoding="utf-8").splitlines()
    assert "images/CLEVR_val_images.sha256" in manifest.files
    for scene, line in zip(scenes, lines, strict=True):
        path = tmp_path / "images/val" / scene["image_filename"]
        digest, name = line.split("  ")
        assert (tmp_path / "images" / name) == path
        assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
        with PIL.Image.open(path) as image:
            assert (np.asarray(image) == render(scene, 64, 48)).all()
    assert not [path for path in (tmp_path / "images/val").iterdir() if path.suffix != ".png"]


def test_only_a_missing_picture_is_drawn_again(tmp_path):
    make(tmp_path, **DRAWN)
    before = content(tmp_path)
    images = sorted((tmp_path / "images/val").iterdir())
    times = [path.stat().st_mtime_ns for path in images]
    images[1].unlink()
    make(tmp_path, **DRAWN)
    assert content(tmp_path) == before
    again = [path.stat().st_mtime_ns for path in images]
    assert again[1] != times[1]
    assert [again[0], again[2]] == [times[0], times[2]]


def test_progress_counts_parts_and_pictures(tmp_path):
    seen = []
    make(tmp_path, **DRAWN, progress=lambda *now: seen.append(now))
    assert {total for _, _, total in seen} == {4}
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)
    assert seen[-1][1] == 4


@pytest.mark.slow
@pytest.mark.parametrize("asked", [{"scenes": 253, "images": False}, {"scenes": 4}], ids=["parts", "pictures"])
def test_processes_give_the_bytes_of_one_process(tmp_path, asked):
    for name, how in (("one", {"on": "local"}), ("two", {"on": "processes", "workers": 2})):
        make(tmp_path / name, **{**DRAWN, "rephrasings": 1, **asked}, **how)
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_a_world_without_images_renders_them_when_it_is_loaded_so(tmp_path):
    from pfungst.data import load

    few = {"scenes": 2, "questions_per_scene": 1, "rephrasings": 0, "split": "val", "width": 64, "height": 48}
    make(tmp_path / "with", images=True, **few)
    make(tmp_path / "without", images=False, **few)
    read, rendered = load(tmp_path / "with"), load(f"{tmp_path / 'without'}?render=yes")
    for one, other in zip(read, rendered, strict=True):
        np.testing.assert_array_equal(np.asarray(one.image.pil()), np.asarray(other.image.pil()))
    (tmp_path / "without/scenes/CLEVR_val_scenes.json").unlink()
    with pytest.raises(DataError, match="no scenes in it to render"):
        load(f"{tmp_path / 'without'}?render=yes")
