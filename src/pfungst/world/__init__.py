"""The CLEVR world: scenes, programs, questions and images.

Every name is loaded when it is first used, so that importing the package stays cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pfungst._lazy import declared, lazy

if TYPE_CHECKING:
    from pfungst.world.builtin import embedded as embedded
    from pfungst.world.legal import PRESETS as PRESETS
    from pfungst.world.legal import GridMasks as GridMasks
    from pfungst.world.legal import Rules as Rules
    from pfungst.world.legal import grid_places as grid_places
    from pfungst.world.legal import is_legal as is_legal
    from pfungst.world.legal import step_places as step_places
    from pfungst.world.legal import why_illegal as why_illegal
    from pfungst.world.making import Manifest as Manifest
    from pfungst.world.making import make as make
    from pfungst.world.programs import FUNCTIONS as FUNCTIONS
    from pfungst.world.programs import AnswerCodes as AnswerCodes
    from pfungst.world.programs import MovedProgram as MovedProgram
    from pfungst.world.programs import Node as Node
    from pfungst.world.programs import Program as Program
    from pfungst.world.programs import ProgramRun as ProgramRun
    from pfungst.world.programs import answer as answer
    from pfungst.world.programs import answer_codes as answer_codes
    from pfungst.world.programs import answer_moved as answer_moved
    from pfungst.world.programs import answer_text as answer_text
    from pfungst.world.programs import run as run
    from pfungst.world.renderers import before_after as before_after
    from pfungst.world.renderers import plan_picture as plan_picture
    from pfungst.world.renderers import plan_view as plan_view
    from pfungst.world.renderers import render as render
    from pfungst.world.renderers import render_batch as render_batch
    from pfungst.world.renderers import visible_pixels as visible_pixels
    from pfungst.world.renderers.raycast import RenderedImage as RenderedImage
    from pfungst.world.renderers.raycast import SceneImage as SceneImage
    from pfungst.world.sampling import sample_scene as sample_scene
    from pfungst.world.scene import Scene as Scene
    from pfungst.world.scene import SceneObject as SceneObject
    from pfungst.world.scene import camera_basis as camera_basis
    from pfungst.world.scene import camera_directions as camera_directions
    from pfungst.world.scene import estimate_camera as estimate_camera
    from pfungst.world.scene import pixel_coords as pixel_coords
    from pfungst.world.scene import relationships as relationships

_HOMES = declared(__name__)
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy(__name__, _HOMES)
