"""The numbers and words of the published CLEVR world.

Colours, sizes and relations stand in the order of the published metadata; thresholds are the defaults of the published
generator. The numbers of the game are those of Measuring CLEVRness (appendix on image generation).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Vector = tuple[float, float, float]

COLORS = ("gray", "red", "blue", "green", "brown", "purple", "cyan", "yellow")
SHAPES = ("cube", "sphere", "cylinder")
SIZES = ("small", "large")
MATERIALS = ("rubber", "metal")
RELATIONS = ("left", "right", "behind", "front")

ATTRIBUTES: Mapping[str, tuple[str, ...]] = {"color": COLORS, "shape": SHAPES, "size": SIZES, "material": MATERIALS}
"""The four attributes of an object and the values each may take."""

COLOR_RGB: Mapping[str, tuple[int, int, int]] = {
    "gray": (87, 87, 87),
    "red": (173, 35, 35),
    "blue": (42, 75, 215),
    "green": (29, 105, 20),
    "brown": (129, 74, 25),
    "purple": (129, 38, 192),
    "cyan": (41, 208, 208),
    "yellow": (255, 238, 51),
}
"""0-255; the published renderer uses them, divided by 255, as linear values."""

RADIUS: Mapping[str, float] = {"large": 0.7, "small": 0.35}
"""Radius, and height of the centre above the ground, by size; for every shape."""

MIN_OBJECTS, MAX_OBJECTS = 3, 10
"""Objects in a sampled scene."""
MAX_ANSWERABLE = 64
"""Objects in the largest scene that programs are answered on: an object set is one 64-bit mask."""

RELATION_THRESHOLD = 0.2
"""j is `left` of i where dot(c_j - c_i, left) > 0.2; closer objects are on neither side."""
MIN_GAP = 0.25
"""Least distance between the surfaces of two objects, on the ground."""
MARGIN = 0.4
"""No two objects may be nearer than this along a direction, so that every relation is plain to see."""
BOUND = 3.0
"""x and y lie in [-3, 3]."""
MIN_VISIBLE_PIXELS = 200
"""Pixels every object must show at 320x240."""
GRID_BINS = 7
"""Cells per axis of the game's grid (N = 7, section 4 of the paper)."""

DEFAULT_WIDTH, DEFAULT_HEIGHT = 320, 240
"""What the published generator draws."""
RELEASED_SIZE = (480, 320)
"""Width and height of the released images; scenes made here say theirs."""
FOCAL = 35.0 / 32.0
"""Lens 35 mm on a 32 mm sensor: focal length in units of the picture's width."""

CAMERA: Vector = (7.481132, -6.50764, 5.343665)
"""Position of the camera before jitter; it looks at the origin, z is up."""
CAMERA_JITTER = 0.5
LAMP_JITTER = 1.0

DIRECTIONS: Mapping[str, Vector] = {
    "right": (0.6563112735748291, 0.7544902563095093, -0.0),
    "behind": (-0.754490315914154, 0.6563112735748291, 0.0),
    "above": (0.0, 0.0, 1.0),
    "below": (-0.0, -0.0, -1.0),
    "left": (-0.6563112735748291, -0.7544902563095093, 0.0),
    "front": (0.754490315914154, -0.6563112735748291, -0.0),
}
"""The directions every released scene carries: those of the camera before jitter, in single precision."""


@dataclass(frozen=True, slots=True)
class Lamp:
    """An area light of the base scene that faces the origin."""

    size: float
    """Edge of the square, in scene units."""
    watts: float
    position: Vector
    """Before jitter."""
    rgb: Vector
    """Linear colour."""


LAMPS: Mapping[str, Lamp] = {
    "key": Lamp(0.5, 100.0, (6.44671, -2.905175, 4.258398), (1.0, 0.932, 0.817)),
    "fill": Lamp(0.5, 30.0, (-4.671124, -4.013597, 3.011225), (0.762, 0.818, 1.0)),
    "back": Lamp(1.0, 50.0, (-1.168501, 2.646024, 5.815737), (1.0, 1.0, 1.0)),
}
