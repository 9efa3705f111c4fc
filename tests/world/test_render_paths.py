"""Every way to draw gives the same picture: numba, tensor operations, the translated kernels."""

import contextlib
import ctypes
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from pfungst.world import render, render_batch
from pfungst.world.renderers.pack import pack

torch = pytest.importorskip("torch")

from pfungst.world.renderers import cuda, torch_frame  # noqa: E402
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
    return render_batch(scenes, 72, 50, seeds=SEEDS).astype(int)


def test_tensor_operations_draw_what_numba_draws(scenes, expected):
    drawn = render_batch(scenes, 72, 50, seeds=SEEDS, device="cpu")
    assert np.abs(drawn - expected).max() <= 1
    assert (drawn != expected).mean() < 1e-3


def test_a_scene_draws_the_same_alone_and_among_others(scenes):
    packed = [pack(one) for one in scenes]
    together = torch_frame.draw_batch(packed[:2], 40, 30, torch.device("cpu"))
    alone = torch_frame.draw_batch(packed[:1], 40, 30, torch.device("cpu"))
    assert np.abs(together[0].astype(int) - alone[0]).max() <= 1


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


def test_translated_kernels_draw_what_numba_draws(scenes, expected, host, monkeypatch):
    monkeypatch.setattr(cuda, "_program", lambda device: host)
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    packed = [pack(one, None, seed) for one, seed in zip(scenes, SEEDS)]
    drawn = cuda.draw_on_device(packed, 72, 50, torch.device("cpu")).numpy()
    assert np.abs(drawn - expected).max() <= 1
    assert (drawn != expected).mean() < 1e-3


def test_a_real_gpu_draws_what_numba_draws(scenes, expected):
    if not torch.cuda.is_available():
        pytest.skip("no GPU here")
    assert np.abs(render_batch(scenes, 72, 50, seeds=SEEDS, device="cuda") - expected).max() <= 1


def test_the_program_needs_no_numba():
    code = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"numba", "scipy", "PIL", "pyarrow"}:
            raise ImportError(name)
sys.meta_path.insert(0, Block())
from pfungst.world.renderers import cuda
from pfungst.world.renderers.pack import pack
assert "draw_pixels" in cuda.source()
ball = {"shape": "sphere", "size": "large", "material": "rubber", "color": "red", "3d_coords": [0, 0, 0.7]}
from pfungst.world.renderers import torch_frame
import torch
assert torch_frame.draw_batch([pack({"objects": [ball]})], 16, 12, torch.device("cpu")).shape == (1, 12, 16, 3)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


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


def test_one_picture_is_drawn_without_torch_being_loaded():
    code = "import sys; from pfungst.world import render; import pfungst.world.renderers; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert callable(render)
