"""The world inside the package: a data set from a seed."""

import json
import pickle

import numpy as np
import pytest

from pfungst import compare, examine
from pfungst.core import DataError
from pfungst.core.files import cache_root
from pfungst.data import load
from pfungst.world import answer, answer_text
from pfungst.world import builtin as embedding
from pfungst.world.builtin import embedded
from pfungst.world.renderers.raycast import SceneImage


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def cache(monkeypatch, folder):
    monkeypatch.setenv("PFUNGST_CACHE", str(folder))
    return folder


@pytest.fixture(scope="module")
def whole(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PFUNGST_CACHE", str(folder))
        return embedded()


def test_it_has_200_scenes_and_2000_questions_in_groups_of_four(whole):
    data = whole
    assert data.name == "world"
    assert data.metric == "exact"
    assert len(data) == 2000
    assert len({one.image_id for one in data}) == 200
    assert len({one.id for one in data}) == 2000
    groups = {}
    for one in data:
        groups.setdefault(one.group, []).append(one)
    assert len(groups) == 500
    for name, group in groups.items():
        assert group[0].id == name
        assert len(group) == 4
        assert len({one.question for one in group}) == 4
        assert len({(one.target, one.image_id, one.choices) for one in group}) == 1


def test_every_example_is_complete_and_its_answer_is_true(whole):
    for one in whole:
        assert one.answers == (one.target,)
        assert one.target in one.choices
        assert answer_text(answer(one.program, one.scene)) == one.target
        assert one.answer_type == (
            "yes/no" if one.target in ("yes", "no") else "number" if one.target.isdigit() else "other"
        )
        assert one.question_type
        assert one.scene["image_filename"] == one.image_id


def test_all_nine_kinds_and_both_phrasing_splits_occur(whole):
    data = whole
    assert len({one.question_type for one in data}) == 9
    heldout = sum(one.id.endswith("h") for one in data)
    assert 0.3 < heldout / len(data) < 0.5


def test_it_is_the_same_with_and_without_the_cache_and_for_every_call(cache):
    def texts(data):
        return [(one.id, one.question, one.target, one.choices, one.image.digest) for one in data]

    cached, again, fresh = embedded(8), embedded(8), embedded(8, cache=False)
    assert texts(cached) == texts(again) == texts(fresh)
    assert cached.fingerprint == fresh.fingerprint
    assert texts(embedded(8, seed=1)) != texts(cached)
    assert embedded(8, seed=1).fingerprint != cached.fingerprint


def test_it_is_the_same_world_on_every_machine():
    # Found with OpenBLAS's kernels for four kinds of processors: another machine's run can be compared with ours.
    wanted = "659c4294ef6db2ad67fb4e5fcd1e802e6dd62f76d310cd22b5679d77a41eca26"
    assert embedded(8, cache=False).fingerprint == wanted


def test_made_or_loaded_it_is_the_same_data_set_and_runs_can_be_compared(cache, tmp_path):
    made, loaded = embedded(3), load("world?scenes=3")
    assert made.fingerprint == loaded.fingerprint
    runs = [examine("oracle", data, ["control"], tmp_path / name) for name, data in (("a", made), ("b", loaded))]
    assert compare(*(run.path for run in runs))


def test_the_second_call_reads_the_cache(cache, monkeypatch):
    first = embedded(9)
    monkeypatch.setattr(embedding, "draw_scene", None)
    assert [one.question for one in embedded(9)] == [one.question for one in first]


def test_a_damaged_cache_is_made_anew(cache):
    first = [one.question for one in embedded(10)]
    newest = max((cache / "world").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    newest.write_bytes(newest.read_bytes().replace(b'"yes"', b'"no"', 1))
    assert [one.question for one in embedded(10)] == first
    newest.write_bytes(b"\xff")
    assert [one.question for one in embedded(10)] == first


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("PFUNGST_CACHE", str(tmp_path / "file"))
    assert len(embedded(2)) == 5 * 4


def test_the_cache_lies_where_the_user_keeps_caches(tmp_path, monkeypatch):
    monkeypatch.delenv("PFUNGST_CACHE", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_root() == tmp_path / "pfungst"


def test_splits_have_other_scenes_and_train_only_train_wordings(cache):
    train, val = embedded(6, split="train"), embedded(6)
    assert not any(one.id.endswith("h") for one in train)
    assert {one.image_id for one in train}.isdisjoint({one.image_id for one in val})


def test_a_digest_names_scene_and_size_without_drawing(cache, monkeypatch):
    data = embedded(4)
    scene = data[0].scene
    digests = {
        SceneImage(scene).digest,
        SceneImage(scene, 64, 48).digest,
        SceneImage(data[-1].scene).digest,
        SceneImage({**scene, "camera": [7.0, -6.0, 5.0]}).digest,
    }
    assert len(digests) == 4
    assert SceneImage(json.loads(json.dumps(scene))).digest == data[0].image.digest
    monkeypatch.setattr("pfungst.world.renderers.raycast.renderer_version", lambda: "another")
    assert SceneImage(scene).digest not in digests


def test_images_are_rendered_on_demand(cache):
    from pfungst.world import render

    one = embedded(2, width=64, height=48)[0]
    assert one.image.pil().size == (64, 48)
    assert (np.asarray(one.image.pil()) == render(one.scene, 64, 48)).all()


def test_examples_can_be_sent_to_another_process(cache):
    one = embedded(2)[0]
    assert pickle.loads(pickle.dumps(one)).image.digest == one.image.digest  # noqa: S301


@pytest.mark.parametrize("wrong", [{"scenes": 0}, {"seed": -1}, {"width": 0}, {"scenes": "many"}, {"rephrasings": -1}])
def test_settings_that_make_no_sense_are_refused(cache, wrong):
    with pytest.raises(Exception, match=r"\.$") as caught:
        embedded(**wrong)
    assert isinstance(caught.value, DataError) or "negative" in str(caught.value)
