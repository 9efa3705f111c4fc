"""CPU and GPU render the same image: what numba compiles, and the same kernels translated to CUDA C++."""

import contextlib
import ctypes
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from pfungst.core import PfungstError
from pfungst.world import render, render_batch
from pfungst.world.renderers import raycast
from pfungst.world.renderers.raycast import pack

torch = pytest.importorskip("torch")

from pfungst.world.renderers import cuda  # noqa: E402
from pfungst.world.renderers.cuda_source import Untranslatable, translate  # noqa: E402

COLORS = ("gray", "red", "blue", "green", "brown", "purple", "cyan", "yellow")


def make_scene(seed, count):
    rng = np.random.default_rng(seed)
    objects = []
    for i in range(count):
        large = bool(rng.integers(2))
        objects.append(
            {
                "shape": ("cube", "sphere", "cylinder")[i % 3],
                "size": "large" if large else "small",
                "material": ("metal", "rubber")[int(rng.integers(2))],
                "color": COLORS[int(rng.integers(8))],
                "3d_coords": [*rng.uniform(-3, 3, 2).tolist(), 0.7 if large else 0.35],
                "rotation": float(rng.uniform(0, 360)),
            }
        )
    return {"objects": objects}


@pytest.fixture(scope="module")
def scenes():
    return [make_scene(0, 7), make_scene(1, 3), make_scene(2, 10)]


SEEDS = [None, 1, 2]


@pytest.fixture(scope="module")
def expected(scenes):
    return render_batch(scenes, 72, 50, seeds=SEEDS)


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """The translated program, compiled by an ordinary compiler: its kernels as loops."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler here to run the translated kernels with")
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "kernels.cpp").write_text(cuda.source())
    command = [compiler, "-std=c++17", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-o"]
    subprocess.run([*command, folder / "kernels.so", folder / "kernels.cpp"], check=True, capture_output=True)
    library = ctypes.CDLL(str(folder / "kernels.so"))

    def run(name, threads, *arguments):
        values = (one if isinstance(one, cuda.Sizes) else ctypes.c_void_p(one.data_ptr()) for one in arguments)
        getattr(library, name)(*values)

    return SimpleNamespace(run=run)


def on_host(monkeypatch, host):
    monkeypatch.setattr(cuda, "_program", lambda device: host)
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)


def test_translated_kernels_render_every_byte_as_numba_does(scenes, expected, host, monkeypatch):
    on_host(monkeypatch, host)
    packed = [pack(scene, None, seed) for scene, seed in zip(scenes, SEEDS)]
    together = cuda.draw_on_device(packed, 72, 50, torch.device("cpu")).numpy()
    np.testing.assert_array_equal(together, expected)
    # Scenes of fewer objects leave room in a batch; alone they do not.
    alone = cuda.draw_on_device(packed[1:2], 72, 50, torch.device("cpu")).numpy()
    np.testing.assert_array_equal(alone[0], expected[1])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_a_real_gpu_renders_every_byte_as_numba_does(scenes, expected):
    np.testing.assert_array_equal(render_batch(scenes, 72, 50, seeds=SEEDS, device="cuda"), expected)


@pytest.mark.parametrize("device", ["meta", "cuda:99", "quantum"])
def test_a_device_that_cannot_render_is_told_in_a_sentence(device):
    with pytest.raises(PfungstError, match=device):
        raycast.on_gpu(device)


def test_a_gpu_that_fails_is_told_and_not_worked_around(scenes, monkeypatch):
    def fail(*_):
        raise PfungstError(
            "The GPU driver failed at starting the kernel (CUDA error 700). Render on the CPU: device=cpu."
        )

    monkeypatch.setattr(raycast, "on_gpu", lambda device: True)
    monkeypatch.setattr(cuda, "draw_on_device", fail)
    with pytest.raises(PfungstError, match="Render on the CPU"):
        render_batch(scenes, 72, 50, device="cuda")


def swap(a: float, b: int) -> tuple[float, int]:
    a, count = b / 2, 0
    for i in range(1, b):
        if i % 2 == 0 and 0 < i < 9:
            count += i
    return max(a, 1), count


def with_a_dictionary(a: float) -> float:
    return {0: a}[0]


def test_a_small_function_translates_to_what_it_says():
    text = translate([swap])
    assert "struct S_double_i64_ { double f0; i64 f1; };" in text
    assert "for (v_i = 1LL; v_i < v_b; v_i += 1)" in text
    assert "most(v_a, (double)(1LL))" in text


def test_what_has_no_meaning_in_c_is_refused():
    with pytest.raises(Untranslatable):
        translate([with_a_dictionary])


def test_one_image_is_drawn_without_torch_being_loaded():
    code = "import sys; from pfungst.world import render; import pfungst.world.renderers; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert callable(render)
