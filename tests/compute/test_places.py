"""Whole commands in other places than this process: the same bytes, large arrays carried once."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest

from pfungst.compute import Shard, make_shards, place_of_work, run_shards, working
from pfungst.compute.devices import check_device, environment, own_name, read_devices, visible_gpus
from pfungst.compute.processes import pack
from pfungst.core import Place, UsageError
from pfungst.data import load
from tests.compute import compute_jobs as jobs

POOL = [f"What {thing} is {place} the {other}?" for thing in ("cube", "dog", "plate")
        for place in ("near", "behind") for other in ("table", "car", "tree")]  # fmt: skip


@pytest.mark.parametrize("place", [Place("processes", 2), Place("processes", devices=("cpu", "cpu"))])
def test_a_ranking_in_processes_has_the_bytes_of_one_here(place, tmp_path, monkeypatch):
    from pfungst.probes.noise import bqd as module

    monkeypatch.setattr(module, "SHARD", 4)
    main = [module.MainQuestion(f"How many {one[5:-1]}s are there?", str(i)) for i, one in enumerate(POOL[:10])]
    settings = module.RankSettings("cosine", k=4)
    module.build(tmp_path / "here.parquet", main, POOL, settings)
    seen: list[tuple[str, int, int]] = []
    with working(place):
        module.build(tmp_path / "there.parquet", main, POOL, settings, lambda *told: seen.append(told))
    assert (tmp_path / "here.parquet").read_bytes() == (tmp_path / "there.parquet").read_bytes()
    assert seen[-1] == ("ranking", 3, 3)


def test_decoys_in_processes_have_the_bytes_of_those_made_here(tmp_path, monkeypatch):
    from pfungst.probes.decoys import building, write

    monkeypatch.setattr(building, "SHARD", 60)
    data = load("world", limit=150)
    write(building.build(data), tmp_path / "here.parquet")
    with working(Place("processes", 2)):
        write(building.build(data), tmp_path / "there.parquet")
    assert (tmp_path / "here.parquet").read_bytes() == (tmp_path / "there.parquet").read_bytes()


def test_decoys_are_made_from_arrays_that_cannot_be_written_as_a_cluster_hands_them_out(monkeypatch):
    from pfungst.probes.decoys import building

    made = []
    inner = building._run
    monkeypatch.setattr(building, "_run", lambda maker, *others: made.append(maker) or inner(maker, *others))
    building.build(load("world", limit=150))
    arrays: list[pickle.PickleBuffer] = []
    head = pickle.dumps(made[0], protocol=5, buffer_callback=arrays.append)
    again = pickle.loads(head, buffers=[array.raw().toreadonly() for array in arrays])  # noqa: S301 - our own bytes
    first, second = made[0].make(made[0].questions), again.make(again.questions)
    assert {name: array.tobytes() for name, array in first.items()} == {
        name: array.tobytes() for name, array in second.items()
    }


def total(shard: Shard, *, small: np.ndarray, tall: np.ndarray, wide: np.ndarray) -> bytes:
    shared = [isinstance(array.base, np.memmap) for array in (small, tall, wide)]
    tall[0, 0] += shard.index  # this worker's own page: nobody else sees it
    return f"{shared} {small.sum()} {tall[1:].sum()} {wide.flags.f_contiguous} {wide[:, 7].sum()}".encode()


def test_large_arrays_lie_in_one_file_that_workers_map(tmp_path):
    tall = np.arange(60_000, dtype=np.int64).reshape(300, 200)
    work = partial(total, small=np.ones(3), tall=tall, wide=np.asfortranarray(tall))
    assert len(pack(work, tmp_path / "arrays")) < 2_000
    assert (tmp_path / "arrays").stat().st_size >= 2 * tall.nbytes
    files = run_shards(work, make_shards(range(3)), tmp_path / "out", on="processes", workers=2)
    wanted = f"[False, True, True] 3.0 {tall[1:].sum()} True {tall[:, 7].sum()}".encode()
    assert {file.read_bytes() for file in files} == {wanted}
    assert tall[0, 0] == 0
    assert not list((tmp_path / "out" / ".tmp").iterdir())


def test_a_worker_whose_child_outlives_it_is_replaced_all_the_same(tmp_path):
    (tmp_path / "marks").mkdir()
    shards = make_shards([{"marks": str(tmp_path / "marks"), "deaths": 1}])
    files = run_shards(jobs.fork_and_die, shards, tmp_path / "out", on="processes", workers=1)
    assert files[0].read_bytes() == b"alive"


def test_a_place_holds_for_what_is_inside_it(tmp_path):
    assert place_of_work().on == "local"
    with working(Place("processes", 1)):
        assert place_of_work().workers == 1
        assert run_shards(jobs.thread_settings, make_shards([0]), tmp_path)[0].read_bytes() == b"1"
    assert place_of_work().on == "local"


def test_devices_are_read_and_each_process_sees_its_own(monkeypatch):
    assert read_devices("cuda:0, cuda:1") == ("cuda:0", "cuda:1")
    assert read_devices(None) == ()
    with pytest.raises(UsageError, match="names cpu and cuda"):
        read_devices("cpu,cuda:0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    assert visible_gpus() == ("3", "5")
    assert environment("cuda:1") == {"CUDA_VISIBLE_DEVICES": "5"}
    assert environment("cpu") == {}
    assert (own_name("cuda:1"), own_name("cpu")) == ("cuda", "cpu")
    with pytest.raises(UsageError, match="has 2 GPUs"):
        environment("cuda:2")


def test_several_devices_on_the_command_line_are_processes():
    from pfungst.cli.options import own_device, place

    shared = place("local", None, "cuda:0,cuda:1")
    assert (shared.on, shared.devices, own_device(shared, "cuda:0,cuda:1")) == (
        "processes", ("cuda:0", "cuda:1"), "cuda"
    )  # fmt: skip
    alone = place("local", None, "cuda:1")
    assert (alone.on, alone.devices, own_device(alone, "cuda:1")) == ("local", (), "cuda:1")
    with pytest.raises(UsageError, match="--on processes"):
        place("local", 4)


@pytest.mark.parametrize(
    ("device", "problem"),
    [
        ("gpu", "There is no device 'gpu'"),
        ("cuda", "The device cuda is not available here"),
        ("cuda:7", "The device cuda:7 is not available here"),
    ],
)
def test_a_device_that_is_not_there_is_told(device, problem, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(UsageError, match=problem):
        check_device(device)
    for fine in (None, "", "cpu"):
        check_device(fine)


def test_gpus_are_counted_without_starting_cuda(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setattr(torch.version, "cuda", "12.4")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: pytest.fail("CUDA was started"))
    check_device("cuda:1")
    with pytest.raises(UsageError, match="this machine has 2 GPUs"):
        check_device("cuda:2")
