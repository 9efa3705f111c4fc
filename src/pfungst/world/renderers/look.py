"""Shapes, lamps, materials and sampling of the image, as few numbers with physical names.

The positions, powers and colours of the lamps are published facts and stand in `pfungst.world.constants`; what is here
was found by comparing images with Blender's, a number at a time.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

# --- shapes, in units of an object's radius: least squares on pixel counts of Blender's id pass ---
SPHERE_RADIUS = 0.999
"""The published sphere is a fine mesh inside the unit ball; this ball covers as many pixels."""
CUBE_ROUND = 0.25
"""Where the cube's faces begin to curve, measured inwards; its edges follow v^3 + w^3 = 0.25^3."""
CYLINDER_BEVEL = 0.073
"""Likewise for the rim of the cylinder."""
NEWTON_STEPS = 8
TOLERANCE = 1e-7
"""A ray within this distance of the surface has hit it."""
OUTER = (1.0, 1.62, 1.40)
"""Radius of the ball around a sphere, a cube and a cylinder."""
CUBE_INNER = 0.92
CYLINDER_INNER = 0.98
"""A box of this half edge fits into the rounded cube, a sharp cylinder of this radius and half height into ours."""

# --- the sun ---
SUN_STRENGTH = 0.466
"""Irradiance on a surface that faces it."""
SUN_DIRECTION = (0.409, -0.196, 0.891)
"""Towards the sun; its glints in metal spheres and the brightness of the ground agree on it."""
SUN_ANGLE = 0.2
"""Angular diameter, in radians."""

# --- the backdrop: a plane that curves up behind the objects ---
GROUND_ALBEDO = 0.8
BACKDROP_ANGLE = 2.706
"""Direction in which it rises, in radians from the x axis."""
BACKDROP_START = 7.8
"""Distance from the origin at which the curve begins."""
BACKDROP_RADIUS = 10.4
BACKDROP_HEIGHT = 14.0
BACKDROP_HALF_WIDTH = 24.0
BACKDROP_FRONT = 24.0
"""How far the plane reaches to the sides and to the front."""
BACKDROP = (math.cos(BACKDROP_ANGLE), math.sin(BACKDROP_ANGLE))

# --- metal: half a rough lobe, brushed around the object's axis, half a sharp one ---
METAL_MIX = 0.5
METAL_ROUGH = 0.2
METAL_SHARP = 0.01
"""GGX widths: squares of Blender's roughness .447 and .1."""
METAL_ANISOTROPY = 0.2

# --- rubber: a diffuse body under a thin coat that shows at grazing angles ---
RUBBER_BODY = 0.965
"""Part of its colour that the body sends back."""
RIM_IOR = 1.1
RIM_ROUGH = 0.2

# --- how finely light is sampled ---
SAMPLE_TURN = 0.25
"""The four samples of a pixel stand on a turned square: this much of a sample off the axes, so that no two share a
row or a column."""
BLUR = 0.038
"""Light a pixel gives to each of its neighbours along an axis: as wide as Blender's Blackman-Harris filter."""
SHADOW_RAYS = 16
"""Rays to a lamp from where something hides a part of it."""
GLOSS_RAYS = 8
"""Directions in the rough lobe of metal."""
FOOTPRINT = 0.7
"""Width of the blur that keeps highlights finer than a sample from flickering, in samples."""
NEAR_HALF = 6.0
NEAR_CELLS = 64
"""Half edge and cells of the map of the ground around the objects that reflections and bounces read."""
NEIGHBOUR = 4.5
"""An object bounces light to others up to this many of its radii away."""
SELF_SHADE = 0.8
"""How bright the ground at an object's foot is, on the average, beside ground without it."""
FAINT = 0.01
"""Smallest part of the sky above the ground that an object must fill to tint it."""
DIM = 1e-4
"""Radiance below which a highlight is left out."""


def lattice(count: int) -> npt.NDArray[np.float64]:
    """Points (count, 2) in the square from -1 to 1, evenly spread in every direction: a rank-1 lattice."""
    index = np.arange(count)
    return np.stack([(2 * index + 1) / count - 1, (2 * (index * 7 % count) + 1) / count - 1], axis=1)


def disc(count: int) -> npt.NDArray[np.float64]:
    """Points (count, 2) evenly spread over the unit disc: a sunflower."""
    index = np.arange(count)
    radius, turn = np.sqrt((index + 0.5) / count), index * np.pi * (3 - np.sqrt(5))
    return np.stack([radius * np.cos(turn), radius * np.sin(turn)], axis=1)


def bounce_directions() -> npt.NDArray[np.float64]:
    """Directions and solid angles (count, 4) from which bounced light comes: all of below, and above that the backdrop.

    They stand still in the world, whichever way a surface faces, so that the light on it changes smoothly.
    """
    # Bands: lowest and highest z, directions around. More near the horizon, where upright sides look; odd numbers, so
    # that no two directions are opposite and every side sees as many.
    bands = ((-1.0, -0.7, 5), (-0.7, -0.35, 9), (-0.35, 0.0, 15), (0.0, 0.3, 11), (0.3, 0.6, 7), (0.6, 0.9, 5))
    rows = []
    for number, (low, high, count) in enumerate(bands):
        z = (low + high) / 2
        for i in range(count):
            turn = BACKDROP_ANGLE + 2 * math.pi * (i + 0.5 * (number % 2)) / count
            flat = math.sqrt(1 - z * z)
            if z < 0 or math.cos(turn - BACKDROP_ANGLE) > 0.1:
                solid_angle = 2 * math.pi * (high - low) / count
                rows.append((flat * math.cos(turn), flat * math.sin(turn), z, solid_angle))
    return np.array(rows)
