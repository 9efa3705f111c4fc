"""Plans and strips."""

from xml.etree import ElementTree

import numpy as np
import pytest

from pfungst.core import DataError
from pfungst.world import before_after, plan_picture, plan_view, render
from pfungst.world.scene import Scene

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def scene():
    def thing(x, y, shape, color):
        return {
            "shape": shape,
            "size": "large",
            "material": "metal",
            "color": color,
            "3d_coords": [x, y, 0.7],
            "rotation": 0.5,
        }

    objects = [thing(0, 0, "cube", "red"), thing(2, 2, "sphere", "blue"), thing(-2, 0, "cylinder", "green")]
    return Scene.of({"objects": objects})


def test_a_plan_names_every_object(scene):
    root = ElementTree.fromstring(plan_view(scene, 200))
    assert root.get("width") == "200"
    titles = [one.text for one in root.iter(f"{SVG}title")]
    assert titles == ["0: large red metal cube", "1: large blue metal sphere", "2: large green metal cylinder"]
    assert not list(root.iter(f"{SVG}line"))


def test_only_moved_objects_get_an_arrow(scene):
    moved = scene.moved(scene.positions + np.array([[0, 0], [-1, 0], [0, 1e-6]]))
    root = ElementTree.fromstring(plan_view(moved, 200, moved_from=scene))
    (arrow,) = root.iter(f"{SVG}line")
    # From where the sphere stood, drawn faintly, towards where it stands.
    (ghost,) = (group for group in root.iter(f"{SVG}g") if group.get("opacity"))
    (disc,) = ghost.iter(f"{SVG}circle")
    assert (arrow.get("x1"), arrow.get("y1")) == (disc.get("cx"), disc.get("cy"))
    right = scene.directions["right"]
    assert (float(arrow.get("x2")) < float(arrow.get("x1"))) == (right[0] > 0)
    assert root.get("aria-label") == "plan of a scene with 3 objects, 1 moved"


def test_a_scene_that_reaches_far_is_drawn_whole(scene):
    far = scene.moved(np.array([[0.0, 0.0], [9.0, 9.0], [-9.0, 5.0]]))
    for root in (plan_view(far, 200), plan_view(scene, 200, moved_from=far)):
        for circle in ElementTree.fromstring(root).iter(f"{SVG}circle"):
            x, y, r = (float(circle.get(name)) for name in ("cx", "cy", "r"))
            assert x - r >= 0 and x + r <= 200 and y - r >= 0 and y + r <= 200


def test_right_is_right_and_behind_is_up(scene):
    right, behind = np.array(scene.directions["right"][:2]), np.array(scene.directions["behind"][:2])
    moved = scene.moved(np.stack([[0.0, 0.0], 2 * right, 2 * behind]))
    circles = list(ElementTree.fromstring(plan_view(moved, 200)).iter(f"{SVG}circle"))
    to_the_right, behind_it = (float(circles[0].get("cx")), float(circles[0].get("cy"))), circles[1]
    assert to_the_right[0] > 130 and to_the_right[1] == pytest.approx(100, abs=0.1)
    assert float(behind_it.get("cy")) < 70 and float(behind_it.get("cx")) == pytest.approx(100, abs=0.1)


def test_the_picture_of_a_plan_shows_colours_where_objects_stand(scene):
    plan = plan_picture(scene, 120)
    assert plan.shape == (120, 120, 3) and plan.dtype == np.uint8
    red, green, blue = plan[60, 54].tolist()  # the cube, beside its number
    assert red > 120 and green < 80 and blue < 80


def test_a_strip_holds_two_pictures_and_two_plans(scene):
    moved = scene.moved(scene.positions + 0.5)
    strip = before_after(scene, moved, 64, 48)
    assert strip.shape == (48, 2 * 64 + 2 * 48, 3)
    assert np.array_equal(strip[:, :64], render(scene, 64, 48))
    assert np.array_equal(strip[:, 112:176], render(moved, 64, 48))


def test_scenes_of_different_objects_make_no_strip(scene):
    other = Scene.of({"objects": [scene.objects[0].to_json()]})
    with pytest.raises(DataError, match="3 before and 1 after"):
        before_after(scene, other)


def test_a_plan_of_no_size_gets_a_sentence(scene):
    with pytest.raises(DataError, match="width"):
        plan_view(scene, 0)
