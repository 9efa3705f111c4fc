"""What a user of `render` relies on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pfungst.core import DataError, PfungstError
from pfungst.world import pixel_coords, render, render_batch, visible_pixels
from pfungst.world.constants import CAMERA, LAMPS
from pfungst.world.scene import Scene


def thing(x=0.0, y=0.0, shape="sphere", color="red", size="large", material="rubber", rotation=0.3):
    z = 0.7 if size == "large" else 0.35
    return {
        "shape": shape,
        "size": size,
        "material": material,
        "color": color,
        "3d_coords": [x, y, z],
        "rotation": rotation,
    }


@pytest.fixture
def scene():
    return {
        "objects": [
            thing(0, 0),
            thing(2, 1, "cube", "cyan", "small", "metal"),
            thing(-2, 1, "cylinder", "green", "small", "metal"),
            thing(-1, -2, "cylinder", "blue", "large"),
        ]
    }


def test_a_picture_is_bytes_of_the_asked_size(scene):
    image = render(scene, 61, 35)
    assert image.dtype == np.uint8 and image.shape == (35, 61, 3)


def test_the_same_arguments_give_the_same_bytes(scene):
    assert np.array_equal(render(scene, 64, 48, seed=3), render(scene, 64, 48, seed=3))


def test_a_scene_and_its_dictionary_give_the_same_picture(scene):
    assert np.array_equal(render(scene, 64, 48), render(Scene.of(scene), 64, 48))


def test_the_camera_of_the_scene_is_used_and_the_given_one_comes_first(scene):
    place = (7.0, -6.0, 5.0)
    own = scene | {"camera": list(place)}
    assert np.array_equal(render(own, 64, 48), render(scene, 64, 48, camera=place))
    assert np.array_equal(render(own, 64, 48, camera=CAMERA), render(scene, 64, 48))
    assert not np.array_equal(render(own, 64, 48), render(scene, 64, 48))


def test_a_seed_shakes_camera_and_lamps_but_leaves_a_given_camera_alone(scene):
    still, shaken = render(scene, 64, 48, camera=CAMERA), render(scene, 64, 48, camera=CAMERA, seed=5)
    assert not np.array_equal(still, shaken)
    ids = still.astype(int) - shaken
    assert np.abs(ids).mean() < 12  # lamps moved: other light, the same objects in the same places
    assert not np.array_equal(render(scene, 64, 48, seed=5), shaken)


def test_backdrop_and_roughness_of_the_scene_are_used(scene):
    clean = render(scene, 64, 48)
    assert np.array_equal(render(scene | {"backdrop": [0.8, 0.8, 0.8], "roughness": 1}, 64, 48), clean)
    red = render(scene | {"backdrop": [0.8, 0.3, 0.3]}, 64, 48).astype(int) - clean
    assert red[..., 1:].mean() < -10 and abs(red[..., 0].mean()) < 2, "less green and blue, as much red"
    assert not np.array_equal(render(scene | {"roughness": 2.0}, 64, 48), clean)


@pytest.mark.parametrize(
    "look",
    [{"backdrop": [0.5, 0.5]}, {"backdrop": [1.0] * 3}, {"backdrop": "red"}, {"roughness": 0}, {"roughness": "NaN"}],
)
def test_looks_that_are_none_get_a_sentence(look):
    with pytest.raises(DataError, match="backdrop"):
        render({"objects": [thing()], **look}, 32, 24)


def test_lamps_of_the_scene_are_used(scene):
    base = {name: list(lamp.position) for name, lamp in LAMPS.items()}
    moved = base | {"key": [6.0, -4.0, 5.0]}
    assert np.array_equal(render(scene | {"lamps": base}, 64, 48), render(scene, 64, 48))
    assert not np.array_equal(render(scene | {"lamps": moved}, 64, 48), render(scene, 64, 48))


@pytest.mark.parametrize("material", ["rubber", "metal"])
@pytest.mark.parametrize("shape", ["sphere", "cube", "cylinder"])
def test_every_shape_shows_its_colour_where_it_stands(shape, material):
    image = render({"objects": [thing(shape=shape, material=material, color="red")]}, 96, 72)
    red, green, blue = image[26:34, 44:52].reshape(-1, 3).mean(0)
    assert red > 1.6 * green and red > 1.6 * blue


def test_the_order_of_objects_does_not_matter(scene):
    turned = {"objects": scene["objects"][::-1]}
    assert np.abs(render(scene, 96, 72).astype(int) - render(turned, 96, 72)).max() <= 1


@pytest.mark.parametrize("name", list(LAMPS))
def test_an_object_throws_a_shadow_away_from_every_lamp(name):
    far = thing(-2.9, 2.9, size="small")
    without = render({"objects": [far]}, 160, 120).astype(int)
    darker = without - render({"objects": [far, thing(0.0, 0.0)]}, 160, 120)
    # Where the line from the lamp over the middle of the ball meets the ground. The fill lamp is weak there.
    x, y, z = LAMPS[name].position
    spot = [(-x * 0.8 / (z - 0.7), -y * 0.8 / (z - 0.7), 0.0)]
    ((column, row, _),) = pixel_coords(spot, CAMERA, 160, 120)
    assert darker[row, column].min() >= 1
    assert abs(darker[100:118, 130:155].mean()) < 2


def test_metal_mirrors_its_neighbour_and_rubber_does_not():
    def middle(material, color):
        pair = [thing(-0.2, 0.2, "cube", "gray", material=material, rotation=0.72), thing(1.0, -1.0, color=color)]
        return render({"objects": pair}, 160, 120, camera=(5.5, 0.5, 9.0))[:, :, :].astype(int)

    mirrored = np.abs(middle("metal", "yellow") - middle("metal", "blue"))
    dull = np.abs(middle("rubber", "yellow") - middle("rubber", "blue"))
    assert mirrored.sum() > dull.sum()


def test_an_object_behind_the_camera_does_no_harm():
    image = render({"objects": [thing(0, 0), thing(20.0, -18.0)]}, 64, 48)
    assert np.abs(image.astype(int) - render({"objects": [thing(0, 0)]}, 64, 48)).max() <= 1


place = st.floats(-60.0, 60.0, allow_nan=False)


@settings(max_examples=60, deadline=None)
@given(camera=st.tuples(place, place, st.floats(1e-3, 60.0)), size=st.tuples(st.integers(1, 20), st.integers(1, 20)))
def test_a_camera_anywhere_above_the_ground_draws_something_or_says_why_not(camera, size):
    scene = {"objects": [thing(0, 0, "cube"), thing(1.5, 1, "sphere", material="metal"), thing(-2, 1, "cylinder")]}
    try:
        image = render(scene, *size, camera=camera)
    except DataError as error:
        assert "camera" in str(error)
    else:
        assert image.shape == (size[1], size[0], 3)


def test_as_many_objects_as_a_scene_may_have_are_drawn():
    objects = [thing(x, y, size="small") for x in range(-4, 4) for y in range(-4, 4)]
    image, counts = render({"objects": objects}, 64, 48), visible_pixels({"objects": objects})
    assert image.shape == (48, 64, 3) and (counts > 100).sum() > 40


def test_a_batch_holds_what_render_draws(scene):
    other = {"objects": [thing(1, 1, "cube")]}
    batch = render_batch([scene, other], 48, 36, cameras=[None, (7.0, -6.0, 5.0)], seeds=[4, None])
    assert np.array_equal(batch[0], render(scene, 48, 36, seed=4))
    assert np.array_equal(batch[1], render(other, 48, 36, camera=(7.0, -6.0, 5.0)))
    assert render_batch([], 48, 36).shape == (0, 36, 48, 3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"color": "ultraviolet"}, "ultraviolet"),
        ({"shape": "torus"}, "torus"),
        ({"material": "wood"}, "wood"),
        ({"3d_coords": [float("nan"), 0.0, 0.7]}, "finite"),
        ({"3d_coords": [0.0, 0.7]}, "three numbers"),
    ],
)
def test_a_scene_that_is_none_gets_a_sentence(change, words):
    with pytest.raises(DataError, match=words):
        render({"objects": [thing() | change]}, 32, 24)


@pytest.mark.parametrize(
    ("camera", "words"),
    [
        ((0.0, 0.0, 0.7), "straight above"),
        ((0.0, 0.0, 0.0), "straight above"),
        ((0.1, 0.1, 0.7), "inside object 0"),
        ((5.0, 5.0, -1.0), "below the ground"),
        ((5.0, float("inf"), 1.0), "finite"),
        ((5.0, 5.0), "three numbers"),
    ],
)
def test_a_camera_that_sees_nothing_gets_a_sentence(camera, words):
    with pytest.raises(DataError, match=words):
        render({"objects": [thing()]}, 32, 24, camera=camera)


@pytest.mark.parametrize(("width", "height"), [(0, 24), (32, -1), (1.5, 24), (1 << 20, 1 << 20)])
def test_an_image_that_cannot_be_gets_a_sentence(width, height):
    with pytest.raises(DataError, match=r"image"):
        render({"objects": [thing()]}, width, height)


@pytest.mark.parametrize("lamps", [{"key": [1, 2, 3]}, [1, 2], {name: [0, 0, -1] for name in LAMPS}])
def test_lamps_that_are_none_get_a_sentence(lamps):
    with pytest.raises(DataError, match="lamps"):
        render({"objects": [thing()], "lamps": lamps}, 32, 24)


def test_cameras_and_scenes_that_do_not_match_get_a_sentence(scene):
    with pytest.raises(DataError, match="2 cameras for 1 scenes"):
        render_batch([scene], cameras=[None, None])


def test_a_device_torch_does_not_have_gets_a_sentence(scene):
    pytest.importorskip("torch")
    with pytest.raises(PfungstError, match="nonsense"):
        render_batch([scene], 32, 24, device="nonsense")
