"""Visible pixels, against geometry and against each other."""

import math

import numpy as np
import pytest

from pfungst.world import visible_pixels
from pfungst.world.constants import CAMERA, FOCAL

SHAPES, SIZES = ("sphere", "cube", "cylinder"), ("large", "small")


def thing(x, y, shape="sphere", size="large", rotation=0.4):
    z = 0.7 if size == "large" else 0.35
    return {
        "shape": shape,
        "size": size,
        "material": "rubber",
        "color": "red",
        "3d_coords": [x, y, z],
        "rotation": rotation,
    }


def test_a_ball_covers_the_disc_that_geometry_says():
    """At the middle of the picture the outline is a circle, its radius the tangent of the angle the ball fills."""
    camera = (7.0, -6.0, 4.0)
    ball = thing(0.0, 0.0)
    ball["3d_coords"] = [0.0, 0.0, 0.0]  # where the camera looks
    distance = math.hypot(*camera)
    tangent = 0.7 * 0.999 / math.sqrt(distance**2 - 0.49)
    expected = math.pi * (FOCAL * 640 * tangent) ** 2
    (count,) = visible_pixels({"objects": [ball]}, 640, 480, camera=camera)
    assert count == pytest.approx(expected, rel=2e-3)


def test_a_large_ball_in_front_hides_a_small_one():
    towards = np.array(CAMERA[:2]) / np.linalg.norm(CAMERA[:2])
    x, y = (-1.6 * towards).tolist()
    alone = visible_pixels({"objects": [thing(x, y, size="small")]})
    both = visible_pixels({"objects": [thing(x, y, size="small"), thing(0.0, 0.0)]})
    assert alone[0] > 300 and both[0] < 0.2 * alone[0]
    assert both[1] == visible_pixels({"objects": [thing(0.0, 0.0)]})[0]


def test_counts_grow_with_the_area_of_the_picture():
    scene = {"objects": [thing(0, 0, shape) for shape in ("cube",)]}
    assert visible_pixels(scene, 640, 480)[0] == pytest.approx(4 * visible_pixels(scene)[0], rel=0.02)


def test_an_object_out_of_sight_has_no_pixels():
    scene = {"objects": [thing(0, 0), thing(40.0, 40.0), thing(12.0, -11.0)]}
    assert visible_pixels(scene).tolist()[1:] == [0, 0]


def test_turning_a_ball_changes_nothing_and_turning_a_cube_does():
    def count(shape, rotation):
        return visible_pixels({"objects": [thing(1.0, 0.5, shape, rotation=rotation)]})[0]

    assert count("sphere", 0.0) == count("sphere", 1.0)
    assert count("cylinder", 0.0) == pytest.approx(count("cylinder", 1.0), abs=2)
    assert count("cube", 0.0) != count("cube", 0.7)
