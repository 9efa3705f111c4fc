"""Light that arrives, with torch: the formulas of `_light` for many points of many scenes at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pfungst.world.renderers.backdrop import (
    AIM,
    ARC,
    CELLS_ACROSS,
    CELLS_ALONG,
    EDGE_U,
    EDGE_V,
    INTENSITY,
    LIGHT_COLUMNS,
    LIGHTS,
    POSITION,
    REACH,
    STEP_ACROSS,
    STEP_ALONG,
    lights,
    patches,
)
from pfungst.world.renderers.look import (
    BACKDROP,
    BACKDROP_FRONT,
    BACKDROP_HALF_WIDTH,
    BACKDROP_HEIGHT,
    BACKDROP_RADIUS,
    BACKDROP_START,
    GLOSS_RAYS,
    GROUND_ALBEDO,
    NEAR_CELLS,
    NEAR_HALF,
    OUTER,
    SHADOW_RAYS,
    bounce_directions,
    disc,
    lattice,
)
from pfungst.world.renderers.pack import CUBE, SPHERE, Packed
from pfungst.world.renderers.torch_math import (
    CUBE_CORE,
    CYLINDER_CORE,
    INF,
    V3,
    along,
    beyond,
    dark,
    dot,
    hit,
    pick,
    scaled,
    select,
    shadowing,
    sub,
    unit,
    wide,
)
from pfungst.world.renderers.world import COS, GLOW, KIND, SIN, STRIDE, R, X

BX, BY = BACKDROP
NEAR_STEP = 2 * NEAR_HALF / NEAR_CELLS


class Batch(NamedTuple):
    """Scenes of one drawing, padded to the same number of objects. Objects and lights are numbered across scenes."""

    things: Tensor
    """(columns, scenes * slots): the columns of `_world`, kept apart so that each can be gathered alone."""
    valid: Tensor
    """(scenes * slots,): which slots hold an object."""
    slots: int
    lamps: Tensor
    """(columns, scenes * lights)"""
    far: Tensor
    """(6, scenes * patches)"""
    near: Tensor
    """(3, scenes * cells)"""
    view: Tensor
    """(scenes, 4, 3)"""
    lattice: Tensor
    """(rays, 2): where on a lamp shadow rays end."""
    disc: Tensor
    """(rays, 2): directions of the rough lobe."""
    bounces: Tensor
    """(rays, 4): directions and solid angles of bounced light."""

    @property
    def scenes(self) -> int:
        return self.view.shape[0]


def thing(b: Batch, column: int, q: Tensor) -> Tensor:
    return b.things[column][q]


def thing3(b: Batch, column: int, q: Tensor) -> V3:
    return b.things[column][q], b.things[column + 1][q], b.things[column + 2][q]


def lamp3(b: Batch, column: int, lamp: Tensor) -> V3:
    return b.lamps[column][lamp], b.lamps[column + 1][lamp], b.lamps[column + 2][lamp]


def lay_out_batch(packed: Sequence[Packed], device: torch.device) -> Batch:
    slots = max(len(one.kinds) for one in packed)
    things = np.zeros((len(packed), slots, STRIDE))
    # An empty slot is a speck far below the ground, and masked out wherever it could matter.
    things[:, :, X + 2], things[:, :, R], things[:, :, COS] = -1e6, 1e-3, 1.0
    valid = np.zeros((len(packed), slots), dtype=bool)
    for i, one in enumerate(packed):
        count = len(one.kinds)
        things[i, :count, KIND], things[i, :count, X:GLOW] = one.kinds, one.objects
        valid[i, :count] = True
    lamps = torch.from_numpy(lights(np.stack([one.lamps for one in packed]))).to(device)

    return Batch(
        torch.from_numpy(things.reshape(-1, STRIDE).T.copy()).to(device),
        torch.from_numpy(valid.ravel()).to(device),
        slots,
        lamps.reshape(-1, LIGHT_COLUMNS).T.contiguous(),
        backdrop_lights(lamps),
        torch.zeros((3, len(packed) * NEAR_CELLS * NEAR_CELLS), dtype=torch.float64, device=device),
        torch.from_numpy(np.stack([one.view for one in packed])).to(device),
        *(torch.from_numpy(one).to(device) for one in (lattice(SHADOW_RAYS), disc(GLOSS_RAYS), bounce_directions())),
    )


def backdrop_lights(lamps: Tensor) -> Tensor:
    """`_backdrop.backdrop_light` for many scenes: (6, scenes * patches)."""
    points, normals, solve = (torch.from_numpy(one).to(lamps.device) for one in patches())
    direct = torch.zeros((len(lamps), *points.shape), dtype=lamps.dtype, device=lamps.device)
    for i in range(LIGHTS):
        row = lamps[:, i, None, :]
        away = row[..., POSITION : POSITION + 3] - points
        square = (away * away).sum(-1, keepdim=True)
        away = away / torch.sqrt(square)
        front = (away * normals).sum(-1, keepdim=True).clamp(min=0.0)
        back = -(away * row[..., AIM : AIM + 3]).sum(-1, keepdim=True)
        direct = direct + front * back.clamp(min=0.0) / square * row[..., INTENSITY : INTENSITY + 3]
    radiosity = torch.einsum("pq,sqc->spc", solve, GROUND_ALBEDO * direct)
    light = torch.cat([radiosity / math.pi, radiosity / GROUND_ALBEDO - direct], dim=2)
    return light.reshape(-1, 6).T.contiguous()


def reach(kind: Tensor, radius: Tensor) -> Tensor:
    """Radius of the ball around objects."""
    sphere, cube, cylinder = OUTER
    return torch.where(kind == SPHERE, sphere * radius, torch.where(kind == CUBE, cube * radius, cylinder * radius))


def into(b: Batch, q: Tensor, v: V3) -> V3:
    """Directions in the frames of objects q: turned back, in radii."""
    scale = 1.0 / thing(b, R, q)
    cos, sin = thing(b, COS, q) * scale, thing(b, SIN, q) * scale
    return cos * v[0] + sin * v[1], cos * v[1] - sin * v[0], v[2] * scale


def hit_objects(b: Batch, q: Tensor, p: V3, d: V3) -> Tensor:
    """First hits of the rays p + t d with one object each, infinity for none."""
    return hit(thing(b, KIND, q), into(b, q, sub(p, thing3(b, X, q))), into(b, q, d))


def normals(b: Batch, q: Tensor, p: V3) -> V3:
    """Outward unit normals of objects q at points on their surfaces."""
    away = sub(p, thing3(b, X, q))
    x, y, z = into(b, q, away)
    kind, cos, sin = thing(b, KIND, q), thing(b, COS, q), thing(b, SIN, q)
    cube = kind == CUBE
    rho = torch.sqrt(x * x + y * y)
    vr = beyond(rho, CYLINDER_CORE)
    side = vr * vr / rho.clamp(min=1e-9)
    vx, vy = beyond(x.abs(), CUBE_CORE), beyond(y.abs(), CUBE_CORE)
    vz = torch.where(cube, beyond(z.abs(), CUBE_CORE), beyond(z.abs(), CYLINDER_CORE))
    a = torch.where(cube, torch.copysign(vx * vx, x), side * x)
    c = torch.where(cube, torch.copysign(vy * vy, y), side * y)
    e = torch.copysign(vz * vz, z)
    return unit(select(kind == SPHERE, away, (cos * a - sin * c, sin * a + cos * c, e)))


def shaded_pairs(b: Batch, centre: V3, radius: Tensor, own: Tensor) -> Tensor:
    """Which objects may stand between which light and some point of balls (scenes, balls): (..., lights, slots).

    `own` (scenes, balls) is the slot of the object a ball belongs to, which throws no shadow on itself, or -1.
    """
    scenes = radius.shape[0]
    light = [b.lamps[POSITION + i].reshape(scenes, 1, LIGHTS, 1) for i in range(3)]
    place = [b.things[X + i].reshape(scenes, 1, 1, b.slots) for i in range(3)]
    start = wide(wide(centre))
    way, c = sub((light[0], light[1], light[2]), start), sub((place[0], place[1], place[2]), start)
    ahead = (dot(c, way) / dot(way, way)).clamp(0.0, 1.0)
    apart = along(c, -ahead, way)
    outer = reach(b.things[KIND], b.things[R]).reshape(scenes, 1, 1, b.slots)
    spread = outer + radius[:, :, None, None] + b.lamps[REACH].reshape(scenes, 1, LIGHTS, 1) * ahead
    slots = torch.arange(b.slots, device=radius.device)
    valid = b.valid.reshape(scenes, 1, 1, b.slots) & (slots != own[:, :, None, None])
    return valid & (dot(apart, apart) < spread * spread)


def judge_shadows(b: Batch, q: Tensor, lamp: Tensor, p: V3) -> tuple[Tensor, Tensor]:
    """For triples of object, light and point: 0 where all of the light is hidden, else 1, and which to sample."""
    way, c = sub(lamp3(b, POSITION, lamp), p), sub(thing3(b, X, q), p)
    square = dot(way, way)
    ahead = dot(c, way) / square
    kind, radius = thing(b, KIND, q), thing(b, R, q)
    outer = reach(kind, radius)
    far = ahead + outer / torch.sqrt(square)
    apart = along(c, -ahead, way)
    spread = b.lamps[REACH][lamp] * far
    between = (far > 0.0) & (ahead < 1.0) & (dot(apart, apart) < (outer + spread) * (outer + spread))
    free, hidden = shadowing(kind, into(b, q, scaled(-1.0, c)), into(b, q, way), spread / radius)
    return 1.0 - (between & hidden).to(square.dtype), between & ~free & ~hidden


def sample_shadows(b: Batch, q: Tensor, lamp: Tensor, p: V3) -> Tensor:
    """Part of a light that one object leaves visible, by rays to points of the light."""
    o = into(b, q, sub(p, thing3(b, X, q)))
    d = into(b, q, sub(lamp3(b, POSITION, lamp), p))
    u, v = into(b, q, lamp3(b, EDGE_U, lamp)), into(b, q, lamp3(b, EDGE_V, lamp))
    rays = along(along(wide(d), b.lattice[:, 0], wide(u)), b.lattice[:, 1], wide(v))
    t = hit(thing(b, KIND, q).unsqueeze(-1), wide(o), rays)
    return (t >= 1.0).sum(-1).to(t.dtype) / SHADOW_RAYS


def open_parts(b: Batch, q: Tensor, lamp: Tensor, p: V3) -> Tensor:
    """Part of a light that one object leaves visible, for flat triples of object, light and point."""
    part, partly = judge_shadows(b, q, lamp, p)
    left = partly.nonzero().squeeze(1)
    return part.index_put((left,), sample_shadows(b, q[left], lamp[left], pick(p, left)))


def falloff(b: Batch, lamp: Tensor, p: V3, n: V3) -> Tensor:
    """cos * cos / distance^2 of unhidden lights: times their intensity this is irradiance."""
    way = sub(lamp3(b, POSITION, lamp), p)
    front, back = dot(n, way), -dot(lamp3(b, AIM, lamp), way)
    square = dot(way, way)
    return torch.where((front > 0.0) & (back > 0.0), front * back / (square * square), 0.0)


def direct(b: Batch, scene: Tensor, p: V3, n: V3, openness: Tensor | None) -> V3:
    """Irradiance from the lights; `openness` (lights, ...) is the part of each that is seen, None for all."""
    light = dark(p[0])
    for i in range(LIGHTS):
        lamp = scene * LIGHTS + i
        amount = falloff(b, lamp, p, n)
        if openness is not None:
            amount = amount * openness[i]
        light = along(light, amount, lamp3(b, INTENSITY, lamp))
    return light


def hit_backdrop(p: V3, d: V3) -> tuple[Tensor, Tensor]:
    """Where rays meet the backdrop: ray parameters (infinity for the dark beyond it), places along the profile."""
    s, ds = p[0] * BX + p[1] * BY, d[0] * BX + d[1] * BY
    flat_t = -p[2] / d[2]
    flat_place = s + flat_t * ds
    on_plane = (d[2] < 0.0) & (flat_place <= BACKDROP_START)
    x, z = s - BACKDROP_START, p[2] - BACKDROP_RADIUS
    a, b, c = ds * ds + d[2] * d[2], x * ds + z * d[2], x * x + z * z - BACKDROP_RADIUS * BACKDROP_RADIUS
    root = b * b - a * c
    arc_t = (-b + torch.sqrt(root.clamp(min=0.0))) / a
    ahead, below = x + arc_t * ds, -(z + arc_t * d[2])
    on_arc = (root > 0.0) & (ahead >= 0.0) & (below >= 0.0)
    wall_t = (BACKDROP_RADIUS - x) / ds
    above = z + wall_t * d[2]
    on_wall = (above >= 0.0) & (above <= BACKDROP_HEIGHT - BACKDROP_RADIUS)
    t = torch.where(on_arc, arc_t, torch.where(on_wall, wall_t, INF))
    place = torch.where(on_arc, BACKDROP_START + BACKDROP_RADIUS * torch.atan2(ahead, below), 0.0)
    place = torch.where(~on_arc & on_wall, BACKDROP_START + ARC + above, place)
    rising = ds > 0.0
    t, place = torch.where(rising, t, INF), torch.where(rising, place, 0.0)
    t = torch.where(on_plane, torch.where(flat_place >= -BACKDROP_FRONT, flat_t, INF), t)
    return t, torch.where(on_plane, flat_place, place)


def bilinear(table: Tensor, first: int, start: Tensor, rows: int, columns: int, u: Tensor, v: Tensor) -> V3:
    """Three rows of a table (channels, cells), for a scene's part from `start` on, at places between its cells."""
    u, v = u.clamp(0.0, rows - 1.000001), v.clamp(0.0, columns - 1.000001)
    i, j = u.to(torch.int64), v.to(torch.int64)
    u, v = u - i, v - j
    at = start + i * columns + j
    a, b, c, d = (1.0 - u) * (1.0 - v), (1.0 - u) * v, u * (1.0 - v), u * v
    light = []
    for k in range(first, first + 3):
        channel = table[k]
        light.append(a * channel[at] + b * channel[at + 1] + c * channel[at + columns] + d * channel[at + columns + 1])
    return light[0], light[1], light[2]


def far_light(b: Batch, scene: Tensor, first: int, place: Tensor, across: Tensor) -> V3:
    """Light of the backdrop's patches: radiance for `first` 0, indirect irradiance for 3."""
    u = (place + BACKDROP_FRONT) / STEP_ALONG - 0.5
    v = (across + BACKDROP_HALF_WIDTH) / STEP_ACROSS - 0.5
    return bilinear(b.far, first, scene * (CELLS_ALONG * CELLS_ACROSS), CELLS_ALONG, CELLS_ACROSS, u, v)


def surroundings(b: Batch, scene: Tensor, p: V3, d: V3) -> V3:
    """Radiance of the backdrop along rays, without objects in between: near the objects with their shadows."""
    t, place = hit_backdrop(p, d)
    met = t < INF
    t = torch.where(met, t, 0.0)
    x, y = p[0] + t * d[0], p[1] + t * d[1]
    close = (place <= BACKDROP_START) & (x.abs() < NEAR_HALF) & (y.abs() < NEAR_HALF)
    across = BX * y - BY * x
    u, v = (x + NEAR_HALF) / NEAR_STEP - 0.5, (y + NEAR_HALF) / NEAR_STEP - 0.5
    here = bilinear(b.near, 0, scene * (NEAR_CELLS * NEAR_CELLS), NEAR_CELLS, NEAR_CELLS, u, v)
    lit = met & (close | (across.abs() <= BACKDROP_HALF_WIDTH))
    light = select(close, here, far_light(b, scene, 0, place, across))
    return select(lit, light, dark(x))
