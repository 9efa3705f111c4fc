"""Light that leaves, with torch: the formulas of `_shade` for many points of many scenes at once.

Objects and lights are numbered across the scenes of a batch; q names the object a point lies on.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pfungst.world.renderers.backdrop import AIM, EDGE_U, EDGE_V, INTENSITY, LIGHTS, PER_AREA, POSITION
from pfungst.world.renderers.look import (
    BACKDROP,
    BACKDROP_RADIUS,
    BACKDROP_START,
    DIM,
    FAINT,
    FOOTPRINT,
    GLOSS_RAYS,
    GROUND_ALBEDO,
    METAL_ANISOTROPY,
    METAL_ROUGH,
    METAL_SHARP,
    NEIGHBOUR,
    RIM_IOR,
    RIM_ROUGH,
    RUBBER_BODY,
    SELF_SHADE,
)
from pfungst.world.renderers.pack import CUBE, SPHERE
from pfungst.world.renderers.torch_light import (
    Batch,
    direct,
    far_light,
    hit_objects,
    into,
    lamp3,
    normals,
    open_parts,
    reach,
    shaded_pairs,
    surroundings,
    thing,
    thing3,
)
from pfungst.world.renderers.torch_math import (
    CUBE_CORE,
    CYLINDER_CORE,
    INF,
    V3,
    along,
    band,
    beyond,
    cross,
    dark,
    dot,
    fresnel,
    glint,
    pick,
    scaled,
    select,
    sub,
    tangents,
    times,
    total,
    unit,
    wide,
    widened,
)
from pfungst.world.renderers.world import COS, GLOW, KIND, METAL, RED, SIN, R, X, Y

BX, BY = BACKDROP
ROUGH_AROUND, ROUGH_ALONG = METAL_ROUGH * (1 - METAL_ANISOTROPY), METAL_ROUGH / (1 - METAL_ANISOTROPY)
SIDES = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))


def glows(b: Batch) -> Tensor:
    """Radiosity of every object's sides (9, objects): the mean, and its lean towards x and towards y."""
    q = torch.arange(b.things.shape[1], device=b.things.device)
    scene, c = q // b.slots, thing3(b, X, q)
    light = far_light(b, scene, 0, c[0] * BX + c[1] * BY, BX * c[1] - BY * c[0])
    mean, lean_x, lean_y = scaled(SELF_SHADE * 0.5 * math.pi, light), dark(c[0]), dark(c[0])
    for nx, ny in SIDES:
        n = (torch.full_like(c[0], nx), torch.full_like(c[0], ny), torch.zeros_like(c[0]))
        light = direct(b, scene, along(c, thing(b, R, q), n), n, None)
        mean = along(mean, 0.25, light)
        lean_x, lean_y = along(lean_x, 0.5 * nx, light), along(lean_y, 0.5 * ny, light)
    color = thing3(b, RED, q)
    return torch.stack([*times(color, mean), *times(color, lean_x), *times(color, lean_y)])


def side_glow(b: Batch, q: Tensor, x: Tensor, y: Tensor) -> V3:
    """Radiosity of the sides of objects q that face level directions (x, y), of any length."""
    level = 1.0 / torch.sqrt(x * x + y * y + 1e-12)
    lean = along(along(thing3(b, GLOW, q), x * level, thing3(b, GLOW + 3, q)), y * level, thing3(b, GLOW + 6, q))
    return lean[0].clamp(min=0.0), lean[1].clamp(min=0.0), lean[2].clamp(min=0.0)


def ground_light(b: Batch, p: V3, place: Tensor, openness: Tensor) -> V3:
    """Radiance of the backdrop at points (scenes, tiles, points of a tile); `openness` (lights, ...) of the lights."""
    scene = torch.arange(place.shape[0], device=place.device)[:, None, None]
    curved = place > BACKDROP_START
    lean = torch.where(curved, (BACKDROP_START - p[0] * BX - p[1] * BY) / BACKDROP_RADIUS, 0.0)
    rise = torch.where(curved, (1.0 - p[2] / BACKDROP_RADIUS).clamp(min=0.0), 1.0)
    light = direct(b, scene, p, (lean * BX, lean * BY, rise), openness)
    light = along(light, 1.0, far_light(b, scene, 3, place, BX * p[1] - BY * p[0]))
    q = scene.unsqueeze(-1) * b.slots + torch.arange(b.slots, device=place.device)
    c = sub(thing3(b, X, q), wide(p))
    square = dot(c, c)
    factor = thing(b, R, q) * thing(b, R, q) * c[2]
    near = (factor > 0.0) & (factor * factor > FAINT * FAINT * square * square * square)
    near = near & b.valid[q] & (place <= BACKDROP_START).unsqueeze(-1)
    level = torch.sqrt(c[0] * c[0] + c[1] * c[1])
    factor = torch.where(near, factor * level / (square * square), 0.0)
    tint = total(scaled(factor, side_glow(b, q, -c[0], -c[1])))
    return scaled(GROUND_ALBEDO / math.pi, along(light, 1.0, tint))


def ground(b: Batch, p: V3, place: Tensor) -> V3:
    """Radiance of the backdrop at points on it, all (scenes, tiles, points of a tile)."""
    scenes, tiles, size = place.shape
    centre = (p[0].mean(2), p[1].mean(2), p[2].mean(2))
    away = sub(p, wide(centre))
    radius = torch.sqrt(dot(away, away).amax(2))
    pairs = shaded_pairs(b, centre, radius, torch.full_like(radius, -1, dtype=torch.int64))
    scene, tile, light, slot = (one[:, None] for one in pairs.nonzero(as_tuple=True))
    point = (scene * tiles + tile) * size + torch.arange(size, device=place.device)
    index, shape = point.reshape(-1), point.shape
    q, lamp = ((scene * many + one).expand(shape).reshape(-1) for many, one in ((b.slots, slot), (LIGHTS, light)))
    parts = open_parts(b, q, lamp, pick((p[0].reshape(-1), p[1].reshape(-1), p[2].reshape(-1)), index))
    openness = place.new_ones(LIGHTS * scenes * tiles * size)
    # Sixteenths multiply exactly, in whatever order.
    openness = openness.scatter_reduce(0, (light * (scenes * tiles * size) + point).reshape(-1), parts, "prod")
    return ground_light(b, p, place, openness.reshape(LIGHTS, scenes, tiles, size))


def object_openness(b: Batch, pairs: Tensor, q: Tensor, p: V3, wanted: Tensor) -> Tensor:
    """Part of every light that is seen from points on objects: (lights, points), looked up only where `wanted`.

    `pairs` (objects, lights, slots) says who may shadow whom.
    """
    point, light, slot = (pairs[q] & wanted.T[:, :, None]).nonzero(as_tuple=True)
    scene = q[point] // b.slots
    parts = open_parts(b, scene * b.slots + slot, scene * LIGHTS + light, pick(p, point))
    openness = parts.new_ones(LIGHTS * len(q)).scatter_reduce(0, light * len(q) + point, parts, "prod")
    return openness.reshape(LIGHTS, len(q))


def trace(b: Batch, skip: Tensor, p: V3, d: V3) -> tuple[Tensor, Tensor]:
    """Nearest objects along rays of unit direction, -1 for none, and how far; `skip` is the object left."""
    q = (skip // b.slots * b.slots).unsqueeze(-1) + torch.arange(b.slots, device=skip.device)
    start, ray = wide(p), wide(d)
    c = sub(thing3(b, X, q), start)
    outer = reach(thing(b, KIND, q), thing(b, R, q))
    ahead = dot(c, ray)
    may = (q != skip.unsqueeze(-1)) & b.valid[q] & (ahead >= -outer) & (dot(c, c) - ahead * ahead <= outer * outer)
    t, found = torch.where(may, hit_objects(b, q, start, ray), INF).min(-1)
    return t, torch.where(t < INF, skip // b.slots * b.slots + found, -1)


def seen(b: Batch, skip: Tensor, p: V3, d: V3) -> V3:
    """Radiance along rays that leave objects: the backdrop, or a neighbour in simplified light."""
    t, found = trace(b, skip, p, d)
    scene, q, met = skip // b.slots, found.clamp(min=0), found >= 0
    p = along(p, torch.where(met, t, 0.0), d)
    n = normals(b, q, p)
    metal = thing(b, METAL, q) > 0.0
    turned_ray = select(metal, along(d, -2.0 * dot(d, n), n), (n[0], n[1], n[2] - 1.0))
    light = surroundings(b, scene, p, select(met, turned_ray, d))
    own = scaled(1.0 / math.pi, direct(b, scene, p, n, None))
    own = along(own, 0.5 * (1.0 - n[2]), light)
    return select(met, times(thing3(b, RED, q), select(metal, light, own)), light)


def bounced(b: Batch, q: Tensor, p: V3, n: V3) -> V3:
    """Irradiance from the backdrop and from close neighbours, taken as balls, at flat points of objects q."""
    d: V3 = (b.bounces[:, 0], b.bounces[:, 1], b.bounces[:, 2])
    first = q // b.slots * b.slots
    other = first[:, None] + torch.arange(b.slots, device=q.device)
    x, y = thing(b, X, other) - thing(b, X, q)[:, None], thing(b, Y, other) - thing(b, Y, q)[:, None]
    square = thing(b, R, other) * thing(b, R, other)
    close = (other != q[:, None]) & b.valid[other] & (x * x + y * y <= NEIGHBOUR * NEIGHBOUR * square)
    centre = thing3(b, X, other)
    c = (
        (centre[0] - p[0][:, None])[:, None, :],
        (centre[1] - p[1][:, None])[:, None, :],
        (centre[2] - p[2][:, None])[:, None, :],
    )
    ahead = dot(c, wide(d))
    meets = close[:, None, :] & (ahead > 0.0) & (dot(c, c) - ahead * ahead < square[:, None, :])
    best, found = torch.where(meets, ahead, INF).min(-1)
    weight = (dot(d, wide(n)) * b.bounces[:, 3]).clamp(min=0.0)
    shape = weight.shape
    ray = (d[0].expand(shape), d[1].expand(shape), d[2].expand(shape))
    glow = scaled(1.0 / math.pi, side_glow(b, first[:, None] + found, -ray[0], -ray[1]))
    light = select(best < INF, glow, surroundings(b, (q // b.slots)[:, None], wide(p), ray))
    return total(scaled(weight, light))


def lit(b: Batch, pairs: Tensor, q: Tensor, p: V3, amounts: Tensor, least: Tensor | float) -> V3:
    """Sum of lamps by amounts (lights, points), of each the part that is seen; those below `least` are left out."""
    lamp = q // b.slots * LIGHTS + torch.arange(LIGHTS, device=q.device)[:, None]
    bright = amounts * b.lamps[INTENSITY][lamp] > least
    amounts = torch.where(bright, amounts, 0.0) * object_openness(b, pairs, q, p, bright)
    color = lamp3(b, INTENSITY, lamp)
    return (amounts * color[0]).sum(0), (amounts * color[1]).sum(0), (amounts * color[2]).sum(0)


def rubber_body(b: Batch, q: Tensor, p: V3, n: V3, d: V3, openness: Tensor) -> tuple[V3, Tensor, Tensor]:
    """Radiance of rubber but for the glints of lamps in its coat; how much the coat reflects; those glints."""
    scene = q // b.slots
    cos = (-dot(d, n)).clamp(min=0.0)
    rim = fresnel(cos, RIM_IOR)
    light = along(direct(b, scene, p, n, openness), 1.0, bounced(b, q, p, n))
    body = scaled(RUBBER_BODY * (1.0 - rim) / math.pi, times(thing3(b, RED, q), light))
    coat = surroundings(b, scene, p, along(d, 2.0 * cos, n))
    t, s = tangents(n)
    amounts = []
    for i in range(LIGHTS):
        lamp = scene * LIGHTS + i
        amounts.append(glint(lamp3(b, POSITION, lamp), lamp3(b, AIM, lamp), p, n, d, t, s, RIM_ROUGH, RIM_ROUGH))
    return along(body, rim, coat), rim, torch.stack(amounts)


def rubber(b: Batch, pairs: Tensor, q: Tensor, p: V3, n: V3, d: V3) -> V3:
    """Radiance of rubber: a diffuse body under a coat that reflects more the flatter one looks at it."""
    everything = torch.ones((LIGHTS, len(q)), dtype=torch.bool, device=q.device)
    openness = object_openness(b, pairs, q, p, everything)
    light, rim, amounts = rubber_body(b, q, p, n, d, openness)
    scene = q // b.slots * LIGHTS
    lamp = scene + torch.arange(LIGHTS, device=q.device)[:, None]
    amounts = torch.where(amounts * b.lamps[INTENSITY][lamp] > DIM, amounts, 0.0) * openness * rim
    color = lamp3(b, INTENSITY, lamp)
    return along(light, 1.0, ((amounts * color[0]).sum(0), (amounts * color[1]).sum(0), (amounts * color[2]).sum(0)))


def bending(b: Batch, q: Tensor, p: V3, n: V3) -> tuple[V3, V3, Tensor, Tensor]:
    """Two unit vectors across normals of objects q, and how fast the normal turns along each, per length."""
    kind, scale = thing(b, KIND, q), 1.0 / thing(b, R, q)
    away = sub(p, thing3(b, X, q))
    x, y, z = into(b, q, away)
    cos, sin, zero = thing(b, COS, q), thing(b, SIN, q), torch.zeros_like(x)
    cube, ball = kind == CUBE, kind == SPHERE
    rho = torch.sqrt(x * x + y * y)
    a = torch.where(cube, beyond(x.abs(), CUBE_CORE), beyond(rho, CYLINDER_CORE))
    c = torch.where(cube, beyond(y.abs(), CUBE_CORE), beyond(z.abs(), CYLINDER_CORE))
    e = torch.where(cube, beyond(z.abs(), CUBE_CORE), 0.0)
    around = torch.where(cube, 0.0, scale * torch.sqrt((1.0 - n[2] * n[2]).clamp(min=0.0)) / rho.clamp(min=1e-9))
    axis = select(c <= e, (-sin, cos, zero), (zero, zero, zero + 1.0))
    axis = select((a <= c) & (a <= e), (cos, sin, zero), axis)
    axis = select(cube, axis, (-away[1], away[0], zero))
    fourth = a * a * a * a + c * c * c * c + e * e * e * e
    edge = 2.0 * (a * c + c * e + e * a) * (a * a * a + c * c * c + e * e * e) / (fourth * torch.sqrt(fourth))
    over = cross(n, axis)
    square = dot(over, over)
    level = ball | (square < 1e-9)
    over = scaled(1.0 / torch.sqrt(torch.where(level, 1.0, square)), over)
    t, s = tangents(n)
    first, second = select(level, t, over), select(level, s, cross(n, over))
    return first, second, torch.where(ball, scale, scale * edge), torch.where(ball, scale, around)


def turned(b: Batch, q: Tensor, p: V3, n: V3, size: Tensor) -> tuple[V3, V3, Tensor, Tensor]:
    """Two directions across normals, and by how much these turn along each over a sample of this size."""
    first, second, turn_1, turn_2 = bending(b, q, p, n)
    return first, second, (size * turn_1).clamp(max=0.3), (size * turn_2).clamp(max=0.3)


def brushed(b: Batch, q: Tensor, p: V3, n: V3) -> tuple[V3, V3]:
    """Two unit vectors across normals: around the upright axes of objects q, and away from them."""
    s = cross(n, (thing(b, Y, q) - p[1], p[0] - thing(b, X, q), torch.zeros_like(p[0])))
    length = torch.sqrt(dot(s, s))
    short = length < 1e-6
    s = scaled(1.0 / torch.where(short, 1.0, length), s)
    level, other = tangents(n)
    return select(short, level, cross(s, n)), select(short, other, s)


def rough_rays(eye: V3, u: Tensor, v: Tensor) -> tuple[V3, Tensor]:
    """Directions (points, rays) off visible GGX normals, in the frame of the surface, and their weights."""
    s = unit((ROUGH_AROUND * eye[0], ROUGH_ALONG * eye[1], eye[2]))
    level = torch.sqrt(s[0] * s[0] + s[1] * s[1])
    steep = level > 1e-6
    safe = torch.where(steep, level, 1.0)
    a = (torch.where(steep, -s[1] / safe, 1.0), torch.where(steep, s[0] / safe, 0.0), torch.zeros_like(level))
    c, s, a, eye = wide(cross(s, a)), wide(s), wide(a), wide(eye)
    bend = 0.5 * (1.0 + s[2])
    y = (1.0 - bend) * torch.sqrt(1.0 - u * u) + bend * v
    z = torch.sqrt((1.0 - u * u - y * y).clamp(min=0.0))
    h = along(along(scaled(u, a), y, c), z, s)
    h = unit((ROUGH_AROUND * h[0], ROUGH_ALONG * h[1], h[2].clamp(min=1e-9)))
    out = sub(scaled(2.0 * dot(h, eye), h), eye)
    up = out[2] > 0.0
    rise = torch.where(up, out[2], 1.0)
    slope_t, slope_b = ROUGH_AROUND * out[0] / rise, ROUGH_ALONG * out[1] / rise
    weight = 2.0 / (1.0 + torch.sqrt(1.0 + slope_t * slope_t + slope_b * slope_b)) / GLOSS_RAYS
    return out, torch.where(up, weight, 0.0)


def metal_rough(b: Batch, q: Tensor, p: V3, n: V3, d: V3, size: Tensor) -> tuple[V3, Tensor]:
    """Radiance of the rough lobe of metal before its colour and without lamps; amounts (lights, points) of these."""
    t, s = brushed(b, q, p, n)
    eye = (-dot(d, t), -dot(d, s), (-dot(d, n)).clamp(min=1e-3))
    out, weight = rough_rays(eye, b.disc[:, 0], b.disc[:, 1])
    ray = along(along(scaled(out[0], wide(t)), out[1], wide(s)), out[2], wide(n))
    shape = weight.shape
    start = wide(p)
    light = seen(
        b,
        q.unsqueeze(-1).expand(shape),
        (start[0].expand(shape), start[1].expand(shape), start[2].expand(shape)),
        ray,
    )
    light = total(select(weight > 0.0, scaled(weight, light), dark(weight)))
    first, second, turn_1, turn_2 = turned(b, q, p, n, FOOTPRINT * size / eye[2].clamp(min=0.3))
    wide_t = widened(ROUGH_AROUND, turn_1 * dot(first, t), turn_2 * dot(second, t))
    wide_b = widened(ROUGH_ALONG, turn_1 * dot(first, s), turn_2 * dot(second, s))
    amounts = []
    for i in range(LIGHTS):
        lamp = q // b.slots * LIGHTS + i
        amounts.append(glint(lamp3(b, POSITION, lamp), lamp3(b, AIM, lamp), p, n, d, t, s, wide_t, wide_b))
    return light, torch.stack(amounts)


def metal_sharp(b: Batch, q: Tensor, p: V3, n: V3, d: V3, size: Tensor) -> tuple[V3, Tensor]:
    """The same of the sharp lobe: a mirror with slightly blurred lamps."""
    cos = -dot(d, n)
    t, s, turn_t, turn_b = turned(b, q, p, n, FOOTPRINT * size / cos.clamp(min=0.3))
    wide_t, wide_b = widened(METAL_SHARP, turn_t, 0.0), widened(METAL_SHARP, turn_b, 0.0)
    part = METAL_SHARP * METAL_SHARP / (wide_t * wide_b)
    out = along(d, 2.0 * cos, n)
    swing_t = scaled(2.0 * turn_t, along(scaled(cos, t), -dot(d, t), n))
    swing_b = scaled(2.0 * turn_b, along(scaled(cos, s), -dot(d, s), n))
    amounts = []
    for i in range(LIGHTS):
        lamp = q // b.slots * LIGHTS + i
        position, aim, most = lamp3(b, POSITION, lamp), lamp3(b, AIM, lamp), b.lamps[PER_AREA][lamp]
        cover = mirrored(position, aim, lamp3(b, EDGE_U, lamp), lamp3(b, EDGE_V, lamp), p, out, swing_t, swing_b)
        tail = torch.minimum(part * glint(position, aim, p, n, d, t, s, wide_t, wide_b), most)
        amounts.append(cover * most + (1.0 - cover) * tail)
    return seen(b, q, p, out), torch.stack(amounts)


def mirrored(position: V3, aim: V3, u: V3, v: V3, p: V3, out: V3, swing_t: V3, swing_b: V3) -> Tensor:
    """How much of mirrors' rays ends on lamps, blurred by the lobe and by the rays' swings."""
    towards = dot(aim, out)
    way = sub(position, p)
    t = dot(aim, way) / towards
    meets = (towards <= -1e-3) & (t > 0.0)
    t = torch.where(meets, t, 1.0)
    q = sub(scaled(t, out), way)
    half = torch.sqrt(dot(u, u))
    u, v = scaled(1.0 / half, u), scaled(1.0 / half, v)
    soft_u = 1.0 / (t * widened(2.0 * METAL_SHARP, dot(swing_t, u), dot(swing_b, u)))
    soft_v = 1.0 / (t * widened(2.0 * METAL_SHARP, dot(swing_t, v), dot(swing_b, v)))
    cover = band(dot(q, u), half, soft_u) * band(dot(q, v), half, soft_v)
    return torch.where(meets, cover, 0.0)
