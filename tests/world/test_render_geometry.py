"""The shapes and the backdrop, against their defining equations."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pfungst.world.constants import LAMPS
from pfungst.world.renderers import world
from pfungst.world.renderers.geometry import CUBE_CORE, CYLINDER_CORE, hit, id_buffer, pixel_box, see, shadowing
from pfungst.world.renderers.jit import _STAMP, dot
from pfungst.world.renderers.light import hit_backdrop, stopped
from pfungst.world.renderers.look import (
    BACKDROP,
    BACKDROP_HEIGHT,
    BACKDROP_RADIUS,
    BACKDROP_START,
    CUBE_ROUND,
    CYLINDER_BEVEL,
    GROUND_ALBEDO,
    SAMPLE_TURN,
    SPHERE_RADIUS,
    bounce_directions,
    lattice,
)
from pfungst.world.renderers.raycast import CUBE, CYLINDER, SPHERE, pack
from pfungst.world.renderers.world import backdrop_light, lay_out, lights, patches

number = st.floats(-2.0, 2.0, allow_nan=False)
vector = st.tuples(number, number, number)
kinds = pytest.mark.parametrize("kind", [SPHERE, CUBE, CYLINDER])


def level(kind, p):
    """Negative inside a unit shape, zero on it, positive outside; straight from the definition."""
    x, y, z = np.abs(np.moveaxis(np.asarray(p), -1, 0))
    if kind == SPHERE:
        return np.sqrt(x * x + y * y + z * z) - SPHERE_RADIUS
    if kind == CUBE:
        over = [np.maximum(one - CUBE_CORE, 0) for one in (x, y, z)]
        return sum(one**3 for one in over) - CUBE_ROUND**3
    over = [np.maximum(np.hypot(x, y) - CYLINDER_CORE, 0), np.maximum(z - CYLINDER_CORE, 0)]
    return sum(one**3 for one in over) - CYLINDER_BEVEL**3


def rays(start, end):
    o = np.array(start)
    norm = np.linalg.norm(o)
    assume(norm > 1e-3)
    o = 4.0 * o / norm
    d = np.array(end) - o
    return o, d / np.linalg.norm(d)


@kinds
@settings(max_examples=150, deadline=None)
@given(start=vector, end=vector)
def test_a_hit_lies_on_the_surface_and_nothing_lies_before_it(kind, start, end):
    o, d = rays(start, end)
    t = hit(kind, tuple(o), tuple(d))
    steps = np.linspace(0.0, 8.0, 4001)
    levels = level(kind, o + steps[:, None] * d)
    if t == math.inf:
        assert (levels > -1e-3).all()
    else:
        assert level(kind, o + t * d) == pytest.approx(0.0, abs=1e-6)
        assert (levels[steps < t] > -1e-9).all()


@kinds
@settings(max_examples=150, deadline=None)
@given(start=vector, end=vector, spread=st.floats(0.0, 0.3), turn=st.floats(0.0, 2 * math.pi))
def test_a_bundle_called_free_or_hidden_is_so_ray_for_ray(kind, start, end, spread, turn):
    o, d = rays(start, end)
    how = shadowing(kind, tuple(o), tuple(10.0 * d), spread)
    side = np.cross(d, [0.3, 0.5, 0.8])
    side /= np.linalg.norm(side)
    other = np.cross(d, side)
    # A ray of the bundle: it leaves the point and is at most `spread` off where the shape ends.
    off = 0.99 * spread * (math.cos(turn) * side + math.sin(turn) * other)
    away = float(-o @ d) + 1.7
    assume(away > 0)
    one = d + off / away
    hits = hit(kind, tuple(o), tuple(one)) < math.inf
    if how == 0:
        assert not hits
    elif how == 1:
        assert hits


def test_inner_shapes_lie_inside_the_rounded_ones():
    corners = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
    assert (level(CUBE, 0.92 * corners) < 0).all()
    assert level(CYLINDER, np.array([0.98, 0.0, 0.98])) < 0


@settings(max_examples=150, deadline=None)
@given(x=st.floats(-5, 5), y=st.floats(-5, 5), z=st.floats(0.1, 6), end=vector)
def test_a_ray_meets_the_backdrop_on_its_profile(x, y, z, end):
    p, d = np.array([x, y, z]), np.array(end)
    assume(np.linalg.norm(d) > 1e-2)
    t, place = hit_backdrop(tuple(p), tuple(d))
    if t == math.inf:
        return
    q = p + t * d
    ahead, up = float(q[:2] @ BACKDROP), float(q[2])
    if place <= BACKDROP_START:
        assert (ahead, up) == (pytest.approx(place, abs=1e-6), pytest.approx(0.0, abs=1e-6))
    elif place <= BACKDROP_START + BACKDROP_RADIUS * math.pi / 2:
        angle = (place - BACKDROP_START) / BACKDROP_RADIUS
        assert ahead == pytest.approx(BACKDROP_START + BACKDROP_RADIUS * math.sin(angle), abs=1e-6)
        assert up == pytest.approx(BACKDROP_RADIUS * (1 - math.cos(angle)), abs=1e-6)
    else:
        assert ahead == pytest.approx(BACKDROP_START + BACKDROP_RADIUS, abs=1e-6)
        assert up <= BACKDROP_HEIGHT + 1e-6


def test_light_of_the_backdrop_is_what_it_gets_times_its_albedo():
    base = np.array([lamp.position for lamp in LAMPS.values()])
    light = backdrop_light(base).reshape(-1, 6)
    points, normals, _ = patches()
    direct = np.zeros_like(points)
    for row in lights(base):
        away = row[:3] - points
        square = (away**2).sum(1)
        cos = np.maximum((away * normals).sum(1), 0) * np.maximum(-(away @ row[3:6]), 0) / square
        direct += (cos / square)[:, None] * row[6:9]
    assert np.allclose(np.pi * light[:, :3], GROUND_ALBEDO * (direct + light[:, 3:]), atol=1e-9)
    assert (light >= 0).all() and light[:, 3:].max() < direct.max()


def test_a_patch_sees_no_more_than_a_hemisphere():
    _, _, factors = patches()
    assert factors.min() > -1e-9 and factors.sum(1).max() < 1.02


def test_each_colour_of_a_backdrop_is_lit_by_itself():
    """Red of a reddish backdrop is that of a grey one as bright, and dark colours throw back less."""
    base = np.array([lamp.position for lamp in LAMPS.values()])
    mixed = backdrop_light(base, (0.8, 0.5, 0.3))
    for channel, albedo in enumerate((0.8, 0.5, 0.3)):
        grey = backdrop_light(base, (albedo,) * 3)
        assert np.allclose(mixed[..., channel], grey[..., channel], rtol=1e-12)
        assert np.allclose(mixed[..., 3 + channel], grey[..., 3 + channel], rtol=1e-9, atol=1e-12)
    assert (mixed[..., 5] < mixed[..., 4]).all() and (mixed[..., 4] < mixed[..., 3]).all()


def test_bounce_directions_add_up_to_the_ground_below():
    table = bounce_directions()
    below = table[table[:, 2] < 0]
    for turn in np.linspace(0, 2 * math.pi, 17):
        seen = np.maximum(below[:, :3] @ (math.cos(turn), math.sin(turn), 0.0), 0) @ below[:, 3]
        assert seen == pytest.approx(math.pi / 2, rel=0.03)
    assert -(below[:, 2] @ below[:, 3]) == pytest.approx(math.pi, rel=1e-9)


def test_shadow_rays_spread_over_all_rows_and_columns_of_a_lamp():
    points = lattice(16)
    assert len(np.unique(points[:, 0].round(9))) == len(np.unique(points[:, 1].round(9))) == 16
    assert np.abs(points).max() < 1 and np.abs(points.mean(0)).max() < 1e-12


@kinds
@given(
    o=vector,
    aim=vector,
    u=st.tuples(*[st.floats(-0.5, 0.5)] * 3),
    v=st.tuples(*[st.floats(-0.5, 0.5)] * 3),
    far=st.floats(1.0, 5.0),
)
@settings(max_examples=150, deadline=None)
def test_rays_to_a_lamp_are_stopped_as_often_together_as_one_by_one(kind, o, aim, u, v, far):
    o, d = tuple(2.0 * x for x in o), tuple(far * (0.6 * b - 2.0 * a) for a, b in zip(o, aim))
    assume(math.hypot(*d) > 0.1)
    alone = sum(hit(kind, o, tuple(d[i] + a * u[i] + b * v[i] for i in range(3))) < 1.0 for a, b in lattice(16))
    assert stopped(kind, o, d, u, v) == alone


@kinds
def test_a_lamp_half_behind_a_shape_loses_some_rays_and_keeps_some(kind):
    # From below, past the side at x = 1, to a lamp as wide as 1 above it.
    count = stopped(kind, (1.0, 0.0, -5.0), (0.0, 0.0, 10.0), (1.0, 0.0, 0.0), (0.0, 0.3, 0.0))
    assert 4 <= count <= 12


def test_one_sample_sees_what_the_id_buffer_holds():
    rng = np.random.default_rng(1)
    shapes = ["cube", "sphere", "cylinder"] * 3
    objects = [
        {
            "shape": shape,
            "size": ("large", "small")[i % 2],
            "material": "rubber",
            "color": "red",
            "3d_coords": [*rng.uniform(-3, 3, 2).tolist(), (0.7, 0.35)[i % 2]],
            "rotation": float(i),
        }
        for i, shape in enumerate(shapes)
    ]
    rows, columns = 90, 120
    w, _ = lay_out(pack({"objects": objects}), lit=False)
    ids, depth = np.full(rows * columns, -1, dtype=np.int16), np.empty(rows * columns)
    counts = np.empty(len(objects), dtype=np.int64)
    id_buffer(w, columns, rows, SAMPLE_TURN, ids, depth, counts)
    boxes = np.array([pixel_box(w, k, columns, rows) for k in range(len(objects))]).ravel()
    seen = [see(w, boxes, i // columns, i % columns, rows, columns, SAMPLE_TURN) for i in range(rows * columns)]
    assert seen == ids.tolist()
    assert counts.tolist() == [int((ids == k).sum()) for k in range(len(objects))]


def test_machine_code_kept_on_disk_is_dropped_when_any_file_of_the_kernels_changes():
    numba = pytest.importorskip("numba")
    assert isinstance(dot, numba.core.registry.CPUDispatcher)
    assert dot._cache._cache_file._source_stamp == _STAMP
    assert "look.py" in _STAMP and "constants.py" in _STAMP


def test_threads_that_start_together_solve_the_backdrop_once(monkeypatch):
    from concurrent.futures import ThreadPoolExecutor

    calls, invert = [], np.linalg.inv
    monkeypatch.setattr(np.linalg, "inv", lambda matrix: calls.append(1) or invert(matrix))
    world._solved.cache_clear()
    lamps = np.random.default_rng(0).uniform(1, 5, (6, 3, 3))
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(world.backdrop_light, lamps))
    assert len(calls) == 1
    assert np.array_equal(found[2], world.backdrop_light(lamps[2]))
