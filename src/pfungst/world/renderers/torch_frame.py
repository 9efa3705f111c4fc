"""Pictures of a few scenes at once on whatever torch runs on, with tensor operations alone.

The way to draw where neither numba nor CUDA is at hand; the formulas are those of the kernels, a tensor at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pfungst.world.constants import FOCAL
from pfungst.world.renderers.look import BLUR, DIM, METAL_MIX, NEAR_CELLS, NEAR_HALF, SAMPLE_TURN
from pfungst.world.renderers.pack import Packed
from pfungst.world.renderers.torch_light import (
    Batch,
    hit_backdrop,
    hit_objects,
    lay_out_batch,
    normals,
    reach,
    shaded_pairs,
    thing3,
)
from pfungst.world.renderers.torch_math import INF, V3, along, dot, scaled, sub, times, unit
from pfungst.world.renderers.torch_shade import glows, ground, lit, metal_rough, metal_sharp, rubber
from pfungst.world.renderers.world import COS, GLOW, KIND, METAL, RED, SIN, R, X

TILE = 8


@torch.no_grad()
def draw_batch(packed: Sequence[Packed], width: int, height: int, device: torch.device) -> npt.NDArray[np.uint8]:
    """Pictures (scenes, height, width, 3) of the same size."""
    b = lay_out_batch(packed, device)
    b.things[GLOW : GLOW + 9] = glows(b)
    b.near.copy_(near_light(b))
    light = draw(b, id_buffer(b, width, height), width, height)
    return develop(light).cpu().numpy()


def near_light(b: Batch) -> Tensor:
    """Radiance (3, scenes * cells) of the ground around the objects, lit in blocks, as shadows are listed by these."""
    step, block = 2 * NEAR_HALF / NEAR_CELLS, 8
    blocks = NEAR_CELLS // block
    axis = (torch.arange(NEAR_CELLS, device=b.things.device, dtype=torch.float64) + 0.5) * step - NEAR_HALF
    x, y = torch.meshgrid(axis, axis, indexing="ij")
    x, y = (
        one.reshape(blocks, block, blocks, block).transpose(1, 2).reshape(1, -1, block * block).repeat(b.scenes, 1, 1)
        for one in (x, y)
    )
    zero = torch.zeros_like(x)
    _, place = hit_backdrop((x, y, zero + 1.0), (zero, zero, zero - 1.0))
    light = torch.stack(ground(b, (x, y, zero), place))
    return light.reshape(3, b.scenes, blocks, blocks, block, block).transpose(3, 4).reshape(3, -1)


def pixel_boxes(b: Batch, width: int, height: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Pixel rectangles of the boxes around all objects: first column and row, past the last of each."""
    q = torch.arange(b.things.shape[1], device=b.things.device)
    eye, right, up, forward = axes(b, q)
    corners = [(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)]
    box = torch.tensor(corners, dtype=torch.float64, device=q.device).T[:, :, None]
    cos, sin = b.things[COS], b.things[SIN]
    turned = (cos * box[0] - sin * box[1], sin * box[0] + cos * box[1], box[2])
    corner = along(sub(thing3(b, X, q), eye), b.things[R], turned)
    depth = dot(corner, forward)
    behind = (depth <= 1e-3).any(0)
    scale = FOCAL * width / depth.clamp(min=1e-3)
    x, y = dot(corner, right) * scale + 0.5 * width, 0.5 * height - dot(corner, up) * scale
    left, top = torch.floor(x.amin(0)).clamp(0, width), torch.floor(y.amin(0)).clamp(0, height)
    past, bottom = torch.ceil(x.amax(0)).clamp(0, width), torch.ceil(y.amax(0)).clamp(0, height)
    left, top = torch.where(behind, 0.0, left), torch.where(behind, 0.0, top)
    past, bottom = torch.where(behind, float(width), past), torch.where(behind, float(height), bottom)
    past, bottom = torch.where(b.valid, past, left), torch.where(b.valid, bottom, top)
    return left.long(), top.long(), past.long(), bottom.long()


def axes(b: Batch, q: Tensor) -> tuple[V3, V3, V3, V3]:
    """Position, right, up and forward of the cameras that look at objects q."""
    view = b.view[q // b.slots]
    eye, right, up, forward = ((view[..., i, 0], view[..., i, 1], view[..., i, 2]) for i in range(4))
    return eye, right, up, forward


def sample_rays(row: Tensor, column: Tensor, rows: int, columns: int) -> tuple[Tensor, Tensor]:
    """How far right and up of the middle samples lie, in samples, on their turned squares."""
    odd_row, odd_column = (row % 2).double(), (column % 2).double()
    u = column.double() + (0.5 - 0.5 * columns + SAMPLE_TURN) - 2.0 * SAMPLE_TURN * odd_row
    v = 0.5 * rows - (row.double() + (0.5 - SAMPLE_TURN) + 2.0 * SAMPLE_TURN * odd_column)
    return u, v


def sample_depth(b: Batch, q: Tensor, row: Tensor, column: Tensor, rows: int, columns: int) -> Tensor:
    """How far along the view axis samples see objects q, infinity where they do not."""
    u, v = sample_rays(row, column, rows, columns)
    step = 1.0 / (FOCAL * columns)
    eye, right, up, forward = axes(b, q)
    return hit_objects(b, q, eye, along(along(forward, u * step, right), v * step, up))


def id_buffer(b: Batch, width: int, height: int) -> Tensor:
    """Slots of the objects that samples see, (scenes, 2 height, 2 width); the number of slots where none is seen."""
    columns, rows = 2 * width, 2 * height
    left, top, past, bottom = pixel_boxes(b, columns, rows)
    wide, area = past - left, (past - left) * (bottom - top)
    q = torch.arange(len(area), device=area.device).repeat_interleave(area)
    inside = torch.arange(len(q), device=q.device) - (area.cumsum(0) - area)[q]
    row, column = top[q] + inside // wide[q], left[q] + inside % wide[q]
    t = sample_depth(b, q, row, column, rows, columns)
    place = (q // b.slots * rows + row) * columns + column
    samples = b.scenes * rows * columns
    depth = t.new_full((samples,), INF).scatter_reduce(0, place, t, "amin")
    # Of two at the same depth the first is seen.
    slot = torch.where((t < INF) & (t == depth[place]), q % b.slots, b.slots)
    ids = torch.full((samples,), b.slots, device=q.device).scatter_reduce(0, place, slot, "amin")
    return ids.reshape(b.scenes, rows, columns)


def group(quads: Tensor, row: Tensor, column: Tensor, rows: int, columns: int) -> tuple[Tensor, ...]:
    """The four samples of pixels (pixels, 4) by what they see.

    Where each sample lies, how many see the same, the middle of these, and whether it is the first of them.
    """
    corner = torch.arange(4, device=quads.device)
    u, v = sample_rays(2 * row[:, None] + corner // 2, 2 * column[:, None] + corner % 2, rows, columns)
    same = quads[:, :, None] == quads[:, None, :]
    count = same.sum(2).double()
    leads = ~(same & (corner[None, :] < corner[:, None])).any(2)
    middle_u = torch.where(same, u[:, None, :], 0.0).sum(2) / count
    middle_v = torch.where(same, v[:, None, :], 0.0).sum(2) / count
    return u, v, count, middle_u, middle_v, leads


def draw(b: Batch, ids: Tensor, width: int, height: int) -> Tensor:
    """Linear light (scenes, height, width, 3)."""
    step = 1.0 / (FOCAL * 2 * width)
    quads = ids.reshape(b.scenes, height, 2, width, 2).permute(0, 1, 3, 2, 4).reshape(-1, 4)
    pixel = torch.arange(len(quads), device=ids.device)
    row, column = pixel // width % height, pixel % width
    u, v, count, middle_u, middle_v, leads = group(quads, row, column, 2 * height, 2 * width)
    name = (pixel // (width * height) * b.slots)[:, None] + quads
    solid = quads < b.slots
    metal = solid & (b.things[METAL][torch.where(solid, name, 0)] > 0.0)

    # At most one group of a pixel sees the backdrop; the rays of the other pixels only keep the tiles together.
    bare = ~solid & leads
    has, which = bare.any(1), bare.to(torch.int64).argmax(1, keepdim=True)
    u0 = torch.where(has, middle_u.gather(1, which)[:, 0], u.mean(1)) * step
    v0 = torch.where(has, middle_v.gather(1, which)[:, 0], v.mean(1)) * step
    part = torch.where(has, count.gather(1, which)[:, 0] / 4.0, 0.0)
    light = torch.stack(draw_ground(b, u0, v0, width, height)) * part

    pairs = object_pairs(b)
    own = light.new_zeros((3, len(quads) * 4))
    for kind, mask, x, y, weight in (
        ("rubber", leads & solid & ~metal, middle_u, middle_v, count / 4.0),
        ("rough", leads & metal, middle_u, middle_v, count / 4.0),
        ("sharp", metal, u, v, torch.full_like(u, 0.25)),
    ):
        at = mask.reshape(-1).nonzero().squeeze(1)
        q, a, c, much = (one.reshape(-1)[at] for one in (name, x, y, weight))
        own[:, at] += torch.stack(draw_objects(b, pairs, q, a * step, c * step, step, kind)) * much
    light = light + own.reshape(3, -1, 4).sum(2)
    return light.reshape(3, b.scenes, height, width)


def object_pairs(b: Batch) -> Tensor:
    """Who may shadow whom: (objects, lights, slots)."""
    grid = [b.things[X + i].reshape(b.scenes, b.slots) for i in range(3)]
    radius = reach(b.things[KIND], b.things[R]).reshape(b.scenes, b.slots)
    own = torch.arange(b.slots, device=radius.device).repeat(b.scenes, 1)
    pairs = shaded_pairs(b, (grid[0], grid[1], grid[2]), radius, own)
    return pairs.reshape(b.scenes * b.slots, -1, b.slots)


def backdrop_points(b: Batch, u: Tensor, v: Tensor) -> tuple[V3, Tensor, Tensor]:
    """Where rays (scenes, tiles, points) meet the backdrop: points, places along its profile, and whether they do."""
    scene = torch.arange(u.shape[0], device=u.device)[:, None, None] * b.slots
    o, right, up, forward = axes(b, scene)
    d = unit(along(along(forward, u, right), v, up))
    t, place = hit_backdrop(o, d)
    met = t < INF
    return along(o, torch.where(met, t, 0.0), d), place, met


def draw_ground(b: Batch, u: Tensor, v: Tensor, width: int, height: int) -> V3:
    """Radiance of the backdrop along one ray a pixel, flat."""
    down, across = -(-height // TILE), -(-width // TILE)
    padding = (0, across * TILE - width, 0, down * TILE - height)
    tiled = []
    for one in (u, v):
        grid = torch.nn.functional.pad(one.reshape(b.scenes, 1, height, width), padding, mode="replicate")
        tiles = grid.reshape(b.scenes, down, TILE, across, TILE).transpose(2, 3)
        tiled.append(tiles.reshape(b.scenes, -1, TILE * TILE))
    p, place, met = backdrop_points(b, *tiled)
    flat = []
    for one in ground(b, p, place):
        tiles = torch.where(met, one, 0.0).reshape(b.scenes, down, across, TILE, TILE).transpose(2, 3)
        flat.append(tiles.reshape(b.scenes, down * TILE, across * TILE)[:, :height, :width].reshape(-1))
    return flat[0], flat[1], flat[2]


def object_points(b: Batch, q: Tensor, u: Tensor, v: Tensor) -> tuple[V3, V3, V3, Tensor, Tensor]:
    """Where rays meet objects q: points, normals, directions, distances, and whether they do."""
    o, right, up, forward = axes(b, q)
    d = unit(along(along(forward, u, right), v, up))
    t = hit_objects(b, q, o, d)
    met = t < INF
    t = torch.where(met, t, 1.0)
    p = along(o, t, d)
    return p, normals(b, q, p), d, t, met


def draw_objects(b: Batch, pairs: Tensor, q: Tensor, u: Tensor, v: Tensor, step: float, kind: str) -> V3:
    """Radiance of objects q along one ray each, black where it just misses; of metal one of its lobes."""
    p, n, d, t, met = object_points(b, q, u, v)
    if kind == "rubber":
        light = rubber(b, pairs, q, p, n, d)
    else:
        lobe, size, share = (metal_sharp, 1.0, METAL_MIX) if kind == "sharp" else (metal_rough, 2.0, 1.0 - METAL_MIX)
        light, amounts = lobe(b, q, p, n, d, size * step * t)
        light = along(light, 1.0, lit(b, pairs, q, p, amounts, DIM))
        light = scaled(share, times(thing3(b, RED, q), light))
    return scaled(met.double(), light)


def develop(light: Tensor) -> Tensor:
    """uint8 pictures from linear light (3, scenes, height, width): a slight blur, as a camera's filter, then sRGB."""
    for axis in (2, 3):
        size = light.shape[axis]
        place = torch.arange(size, device=light.device)
        before, after = light.index_select(axis, (place - 1).clamp(min=0)), light.index_select(axis, (place + 1) % size)
        last = (place == size - 1).reshape(-1, 1) if axis == 2 else place == size - 1
        after = torch.where(last, light, after)
        light = BLUR * (before + after) + (1.0 - 2.0 * BLUR) * light
    light = light.clamp(0.0, 1.0)
    curve = torch.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return (255.0 * curve + 0.5).to(torch.uint8).permute(1, 2, 3, 0).contiguous()
