"""The same work on a real Ray cluster of several nodes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pfungst.compute import ComputeError, ShardsFailed, make_shards, run_shards
from pfungst.compute.pool import Death, Pool
from pfungst.compute.ray import RayWorkers, _connect
from pfungst.core import Asker, Needs, Query
from pfungst.players import resolve
from pfungst.players.replicate import ReplicaSettings, replicate
from tests.compute import compute_jobs as jobs
from tests.compute.clusters import ray_cluster
from tests.conftest import png

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def cluster():
    """A head and one more node."""
    client_port = free_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        with ray_cluster({"num_cpus": 1, "ray_client_server_port": client_port}, {"num_cpus": 1}) as cluster:
            cluster.client_address = f"ray://127.0.0.1:{client_port}"
            yield cluster


def test_a_cluster_of_two_nodes_gives_the_same_bytes(cluster, tmp_path):
    shards = make_shards(range(9), seed=5)
    bytes_by_cluster = run_shards(jobs.draw_to_file, shards, tmp_path / "ray", on=cluster.address)
    assert [file.read_bytes() for file in bytes_by_cluster] == [jobs.draw(shard) for shard in shards]
    assert not ray.is_initialized()


def test_the_work_is_spread_over_the_nodes(cluster, tmp_path):
    (tmp_path / "seen").mkdir()
    shards = make_shards([str(tmp_path / "seen")] * 2)
    files = run_shards(jobs.where, shards, tmp_path / "out", on=f"ray:{cluster.address}")
    assert len({file.read_bytes() for file in files}) == 2


def test_a_failing_shard_and_one_that_kills_its_worker_are_named_and_the_rest_is_kept(cluster, tmp_path):
    with pytest.raises(ShardsFailed, match=r"part-00003\.bin: ValueError: three is a bad number"):
        run_shards(jobs.fail_on_three, make_shards(range(5)), tmp_path / "a", on=cluster.address)
    assert len(list((tmp_path / "a" / ".done").glob("*.json"))) == 4
    (tmp_path / "marks").mkdir()
    deaths = [0, 99, 1]
    shards = make_shards([{"marks": str(tmp_path / "marks"), "deaths": one} for one in deaths])
    with pytest.raises(ShardsFailed, match=r"part-00001\.bin: its worker died \(.*\(tried 2 times\)") as caught:
        run_shards(jobs.die_some_times, shards, tmp_path / "b", on=cluster.address, retries=1)
    assert [one.name for one in caught.value.failures] == ["part-00001.bin"]


def test_a_run_on_ray_goes_on_where_a_local_one_stopped(cluster, tmp_path):
    log = tmp_path / "log"
    shards = make_shards([{"log": str(log)}] * 6)
    run_shards(jobs.log_and_draw, shards[:4], tmp_path / "out")
    files = run_shards(jobs.log_and_draw, shards, tmp_path / "out", on=cluster.address)
    assert [file.read_bytes() for file in files] == [jobs.draw(shard) for shard in shards]
    assert sorted(log.read_text().split()) == [shard.name for shard in shards]


def test_the_cluster_is_reached_through_ray_client_too(cluster, tmp_path):
    pytest.importorskip("grpc")
    shards = make_shards(range(4), seed=5)
    files = run_shards(jobs.draw, shards, tmp_path, on=cluster.client_address)
    assert [file.read_bytes() for file in files] == [jobs.draw(shard) for shard in shards]


def test_copies_of_a_player_answer_on_the_cluster_and_one_that_dies_is_replaced(cluster, tmp_path):
    spec = "tests.players.replica_players:Batched"
    queries = [Query(f"Is this number {number}?", png(number)) for number in range(9)] + [Query("die once")]
    player = replicate(spec, None, {"folder": str(tmp_path)}, ReplicaSettings(2, memory=0.5), on=cluster.address)
    answers = Asker(player).answers(queries)
    assert answers == list(resolve(spec).answer([*queries[:-1], Query("live now")]))
    assert player.notes == ("1 copies of the player died and were replaced.",)
    player.close()
    assert not ray.is_initialized()


def test_a_death_is_charged_to_the_task_that_caused_it_and_to_no_other(cluster):
    """A task is done and the next kills the worker: the answer to the first can be lost with it."""
    pool = Pool(RayWorkers(jobs.Deadly, cluster.address, 2, Needs()), 2, ahead=2)
    try:
        outcomes = {task: outcome for _, task, outcome in pool.run(range(8), lambda number: (number,))}
    finally:
        pool.close()
    assert {task for task, outcome in outcomes.items() if isinstance(outcome, Death)} == {3, 7}
    assert all(outcome == task for task, outcome in outcomes.items() if task % 4 != 3)


class BusyRay:
    """Stands in for a Ray that starts too late `slow` times."""

    def __init__(self, slow: int, error: Exception) -> None:
        self.slow, self.error, self.tries, self.ended = slow, error, 0, 0

    def init(self, **settings: object) -> None:
        self.tries += 1
        if self.tries <= self.slow:
            raise self.error

    def shutdown(self) -> None:
        self.ended += 1


@pytest.mark.parametrize(
    ("on", "error"),
    [
        ("ray://127.0.0.1:{port}", ConnectionAbortedError("Starting Ray client server failed.")),
        ("ray", Exception("The current node timed out during startup.")),  # as Ray 2.60 says it
    ],
)
def test_a_ray_that_starts_too_late_is_asked_once_more(on, error):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = on.format(port=listening.getsockname()[1])
        late = BusyRay(1, error)
        _connect(late, address, None)
        assert (late.tries, late.ended) == (2, 1)
        dead = BusyRay(9, error)
        with pytest.raises(ComputeError, match=str(error)):
            _connect(dead, address, None)
        assert dead.tries == 2
        broken = BusyRay(9, Exception("no such setting"))
        with pytest.raises(ComputeError, match="no such setting"):
            _connect(broken, address, None)
        assert broken.tries == 1


class RpcError(Exception):
    """As Ray Client lets it through when the cluster goes while it is asked."""


RpcError.__module__ = "grpc._channel"


@pytest.mark.parametrize("error", [RpcError("Failed to serialize response!"), ConnectionError("gone")])
def test_a_cluster_that_is_lost_again_and_again_before_it_does_anything_is_given_up(error, tmp_path, monkeypatch):
    from contextlib import nullcontext

    from pfungst.compute import ray as module

    tries = []

    class Gone:
        """A cluster that takes the work and is gone when a worker is started."""

        exceptions = ray.exceptions

        def is_initialized(self):
            return True

        def put(self, work):
            tries.append(1)

        def remote(self, *others, **wanted):
            if others:
                raise error
            return lambda actor: self

    monkeypatch.setattr(module, "connected", lambda *others, **more: nullcontext(Gone()))
    with pytest.raises(ComputeError, match="lost 4 times in a row"):
        run_shards(jobs.draw, make_shards([1]), tmp_path, on="ray://127.0.0.1:1", workers=1)
    assert len(tries) == 4


def test_ray_started_for_the_call_gives_the_same_bytes_with_the_priority_of_the_command(tmp_path):
    code = (
        "import os, sys; from tests.compute.compute_jobs import draw_unhindered as draw\n"
        "from pfungst.compute import make_shards, run_shards\n"
        "run_shards(draw, make_shards([os.nice(0)] * 4, seed=5), sys.argv[1], on='ray', workers=2)"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=environment, check=True)
    for shard in make_shards([os.nice(0)] * 4, seed=5):
        assert (tmp_path / shard.name).read_bytes() == jobs.draw(shard)


@pytest.mark.parametrize("address", ["127.0.0.1:{port}", "ray://127.0.0.1:{port}", "ray:no-such-host.invalid:1"])
def test_a_cluster_that_is_not_there_is_an_error_with_a_sentence(address, tmp_path):
    with pytest.raises(ComputeError, match="No Ray cluster could be reached"):
        run_shards(jobs.draw, make_shards([1]), tmp_path, on=address.format(port=free_port()))


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
