"""Whole commands on a cluster of three nodes, one of which is lost in the middle: the bytes are those of one process.

A cluster takes minutes on a busy machine, so these run where PFUNGST_CLUSTER is set: `make cluster`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pfungst import examine
from pfungst.compute import ComputeError, working
from pfungst.core import Place
from pfungst.data import load
from pfungst.players.replicate import ReplicaSettings, replicate
from tests.compute.test_compute_ray import free_port
from tests.conftest import squares

ray = pytest.importorskip("ray")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("PFUNGST_CLUSTER"), reason="a cluster takes minutes: set PFUNGST_CLUSTER"),
    pytest.mark.timeout(1200),
]
ROOT = Path(__file__).resolve().parents[2]
PLAYER, SLOW = "tests.players.replica_players:Batched", "tests.faults.players:Noting"


class Nodes:
    """A head and two more nodes, each with processes, an object store and resources of its own."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        self.others = [self.cluster.add_node(num_cpus=1) for _ in range(2)]
        self.cluster.wait_for_nodes()

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def lose_one(self) -> None:
        """As if somebody had pulled a plug; another node takes its place."""
        self.cluster.remove_node(self.others.pop(0), allow_graceful=False)
        self.others.append(self.cluster.add_node(num_cpus=1))


@pytest.fixture(scope="module")
def nodes():
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(ROOT)
    try:
        nodes = Nodes()
        yield nodes
        nodes.cluster.shutdown()
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


class Plug:
    """A progress callback that loses a node once so much is done."""

    def __init__(self, nodes: Nodes, after: int) -> None:
        self.nodes, self.after, self.pulled = nodes, after, False

    def __call__(self, what: str, done: int, total: int) -> None:
        if not self.pulled and self.after <= done < total:
            self.pulled = True
            self.nodes.lose_one()


def same_files(one: Path, other: Path, *names: str) -> None:
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def test_examine(nodes, tmp_path):
    data, probes = squares(60), ["control", "blind"]
    plug = Plug(nodes, 20)
    # Slow enough that a node can be lost while it answers.
    slow = {"log": str(tmp_path / "log"), "delay": 0.05}
    examine(SLOW, data, probes, tmp_path / "here", player_options=slow)
    examine(
        SLOW, data, probes, tmp_path / "there", player_options=slow, place=Place(nodes.address), replicas=3,
        progress=plug,
    )  # fmt: skip
    assert plug.pulled
    same_files(tmp_path / "here", tmp_path / "there", "findings.json", "exam.json", "trials/control.parquet")


def test_a_player_that_no_node_has_room_for_is_told_so(nodes):
    with pytest.raises(ComputeError, match=r"needs 0 GPUs and 1e\+06 GiB of memory, and no node"):
        replicate(PLAYER, None, {}, ReplicaSettings(2, memory=1e6), on=nodes.address)


def test_rank(nodes, tmp_path, monkeypatch):
    from pfungst.probes.noise import bqd as module

    monkeypatch.setattr(module, "SHARD", 3)
    pool = [f"What {thing} is {place} the {other}?" for thing in ("cube", "sphere", "dog", "cat", "plate", "man")
            for place in ("near", "behind", "above") for other in ("table", "car", "tree")]  # fmt: skip
    main = [module.MainQuestion(f"How many {one[5:-1]}s are there?", str(i)) for i, one in enumerate(pool[:24])]
    settings = module.RankSettings(k=5, tol=1e-2)
    module.build(tmp_path / "here.parquet", main, pool, settings)
    plug = Plug(nodes, 2)
    with working(Place(nodes.address)):
        module.build(tmp_path / "there.parquet", main, pool, settings, plug)
    assert plug.pulled
    assert (tmp_path / "here.parquet").read_bytes() == (tmp_path / "there.parquet").read_bytes()


def test_decoys(nodes, tmp_path, monkeypatch):
    from pfungst.probes.decoys import building, write

    monkeypatch.setattr(building, "SHARD", 40)
    data = load("world", limit=400)
    plug = Plug(nodes, 40)
    write(building.build(data, folder=tmp_path / "a"), tmp_path / "here.parquet")
    with working(Place(nodes.address)):
        write(building.build(data, folder=tmp_path / "b", progress=plug), tmp_path / "there.parquet")
    assert plug.pulled
    assert (tmp_path / "here.parquet").read_bytes() == (tmp_path / "there.parquet").read_bytes()


def test_play(nodes, tmp_path):
    from pfungst.players.resolving import Recipe
    from pfungst.probes.game.probe import Game

    game = Game("rsg", 2, 6, budget=8)
    recipe = Recipe.of("rn-state", "world", {}, {}, 200)
    plug = Plug(nodes, 1)
    examine("rn-state", "world", [game], tmp_path / "here", limit=200)
    place = Place(nodes.address, source=recipe)
    examine("rn-state", "world", [game], tmp_path / "there", limit=200, place=place, progress=plug)
    assert plug.pulled
    same_files(tmp_path / "here", tmp_path / "there", "findings.json", "game/moves.parquet")


DRIVER = """
import sys
from tests.compute.compute_jobs import slow_draw
from pfungst.compute import make_shards, run_shards
run_shards(slow_draw, make_shards(range(24), seed=5), sys.argv[1], on=sys.argv[2])
"""


def test_a_driver_that_loses_the_cluster_goes_on_when_it_is_back(tmp_path):
    from ray.cluster_utils import Cluster

    port = free_port()
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    head = {"num_cpus": 2, "include_dashboard": False, "ray_client_server_port": port}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        cluster = Cluster(initialize_head=True, head_node_args=head)
        command = [sys.executable, "-c", DRIVER, str(tmp_path / "out"), f"ray://127.0.0.1:{port}"]
        driver = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        try:
            while len(list((tmp_path / "out" / ".done").glob("*.json"))) < 3:
                assert driver.poll() is None, driver.stderr.read()
                time.sleep(0.1)
            cluster.shutdown()
            finished = len(list((tmp_path / "out" / ".done").glob("*.json")))
            assert finished < 24
            cluster = Cluster(initialize_head=True, head_node_args=head)
            _, said = driver.communicate(timeout=600)
            assert driver.returncode == 0, said
        finally:
            driver.kill()
            cluster.shutdown()
    from pfungst.compute import make_shards
    from tests.compute import compute_jobs as jobs

    for shard in make_shards(range(24), seed=5):
        assert (tmp_path / "out" / shard.name).read_bytes() == jobs.draw(shard)
