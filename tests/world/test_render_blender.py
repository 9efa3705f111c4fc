"""The driver of Blender: with a stand-in program for its failures, with Blender where there is one."""

import os
import stat
import sys

import numpy as np
import pytest

from pfungst.core import PfungstError
from pfungst.world import Blender, check_renderer, render, visible_pixels
from pfungst.world.renderers import find_blender
from pfungst.world.renderers.blender import ENVIRONMENT

SCENE = {
    "objects": [
        {
            "shape": shape,
            "size": "large",
            "material": material,
            "color": color,
            "3d_coords": [x, y, 0.7],
            "rotation": 0.4,
        }
        for shape, material, color, x, y in [
            ("cube", "metal", "cyan", 0.0, 0.0),
            ("sphere", "rubber", "red", 2.0, -1.0),
            ("cylinder", "rubber", "green", -1.0, -2.0),
        ]
    ]
}

STAND_IN = """#!{python}
import json, sys, pathlib
import numpy as np, PIL.Image
counter = pathlib.Path({counter!r})
starts = int(counter.read_text() or 0) + 1 if counter.exists() else 1
counter.write_text(str(starts))
print("noise before")
print("@pfungst " + json.dumps({{"ready": True, "version": "9.9.9"}}), flush=True)
for line in sys.stdin:
    job = json.loads(line)
    {trouble}
    PIL.Image.fromarray(np.full((job["height"], job["width"], 3), starts, np.uint8)).save(job["file"])
    print("@pfungst " + json.dumps({{"id": job["id"], "ok": True}}), flush=True)
"""


@pytest.fixture
def stand_in(tmp_path):
    if os.name == "nt":
        pytest.skip("the stand-in program is a script")

    def make(trouble="pass"):
        program = tmp_path / "blender"
        text = STAND_IN.format(python=sys.executable, counter=str(tmp_path / "starts"), trouble=trouble)
        program.write_text(text)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return str(program)

    return make


def test_without_blender_the_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    if find_blender() is not None:
        pytest.skip("bpy is installed here")
    with pytest.raises(PfungstError, match=r"apt install blender.*raycast"):
        Blender()


def test_a_program_that_is_not_there_is_named():
    with pytest.raises(PfungstError, match="no program '/nowhere/blender'"):
        Blender(program="/nowhere/blender")


def test_one_process_draws_many_scenes(stand_in):
    with Blender(program=stand_in(), timeout=20) as blender:
        images = blender.render_many([SCENE, SCENE, SCENE], 8, 6)
        assert images.shape == (3, 6, 8, 3) and (images == 1).all()
        assert blender.fingerprint == "blender-9.9.9-samples512-noise0"


def test_a_process_that_dies_is_replaced(stand_in):
    dies_first = "if starts == 1: sys.exit(11)"
    with Blender(program=stand_in(dies_first), timeout=20) as blender:
        assert (blender.render(SCENE, 8, 6) == 2).all()


def test_a_process_that_always_dies_is_given_up_with_its_last_words(stand_in):
    dies = "print('out of memory', flush=True); sys.exit(11)"
    with (
        Blender(program=stand_in(dies), timeout=20, restarts=1) as blender,
        pytest.raises(PfungstError, match=r"died .* 2 times.*out of memory"),
    ):
        blender.render(SCENE, 8, 6)


def test_a_process_that_hangs_is_given_up(stand_in):
    hangs = "import time; time.sleep(60)"
    with (
        Blender(program=stand_in(hangs), timeout=1.5, restarts=0) as blender,
        pytest.raises(PfungstError, match=r"no sign for 1.5 s"),
    ):
        blender.render(SCENE, 8, 6)


def test_an_error_inside_blender_is_passed_on(stand_in):
    reply = """dict(id=job["id"], ok=False, error="no such node")"""
    fails = f'print("@pfungst " + json.dumps({reply}), flush=True); continue'
    with (
        Blender(program=stand_in(fails), timeout=20) as blender,
        pytest.raises(PfungstError, match="no such node"),
    ):
        blender.render(SCENE, 8, 6)


def test_fewer_than_one_sample_gets_a_sentence(stand_in):
    with pytest.raises(PfungstError, match="0 samples"):
        Blender(samples=0, program=stand_in())


@pytest.fixture(scope="module")
def blender():
    if find_blender() is None:
        pytest.skip("Blender is not installed here")
    with Blender(samples=16, threads=1) as one:
        yield one


@pytest.mark.slow
def test_blender_draws_the_picture_the_built_in_renderer_draws(blender):
    reference, ours = blender.render(SCENE, 96, 72).astype(float), render(SCENE, 96, 72).astype(float)
    # Averages over 4x4 pixels, to see past the grain of 16 samples.
    blocks = (reference - ours).reshape(18, 4, 24, 4, 3).mean((1, 3))
    assert np.abs(blocks).mean() < 2.5


@pytest.mark.slow
def test_blender_sees_as_many_pixels_as_we_do(blender):
    assert np.abs(blender.visible_pixels(SCENE) - visible_pixels(SCENE)).max() <= 8


@pytest.mark.slow
def test_the_reference_renderer_passes_the_check(blender):
    assert check_renderer(blender) == []
