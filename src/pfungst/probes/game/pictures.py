"""The images of a game: a fooled scene before and after, and what the player looked at (Measuring CLEVRness, B.4).

Looking inside, Figures 22-26:

    san    the attention maps of its layers (Figure 22)
    film   gradient-weighted activations of its last two blocks (Figure 23)
    mdetr  the objects it detects, where it detects them (Figures 24 and 25)
    tbd    the program it writes, with the mask of every step (Figure 26)

and for every other model of the zoo the maps it offers over the image. A player of the zoo (`zoo:NAME`) can be looked
into; a black box cannot.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pfungst.core.files import write_atomic
from pfungst.probes.game.rows import image_of, scenes_of

Pixels = npt.NDArray[np.uint8]

if TYPE_CHECKING:
    from torch import Tensor

    from pfungst.models import Batch, Output, Trained

MOST_STEPS = 8
"""Masks of a program that are drawn: its last steps."""
PANEL = (240, 180)
"""Width and height of one panel."""
CAPTION = 18
MOST_SIGNS = 110
"""Of a line of text; longer ones are cut."""


# --- before and after -----------------------------------------------------------------------------------------------


def strip(row: Mapping[str, Any]) -> Pixels:
    """One row of moves.parquet as an image: before, its plan, after, its plan, and the question with the answers."""
    import PIL.Image
    import PIL.ImageDraw

    from pfungst.world import before_after

    images = before_after(*scenes_of(row))
    sheet = PIL.Image.new("RGB", (images.shape[1], 240 + 52), (255, 255, 255))
    sheet.paste(PIL.Image.fromarray(images), (0, 0))
    pen = PIL.ImageDraw.Draw(sheet)
    write_line(pen, 6, 244, row["question"], 170)
    write_line(pen, 6, 259, f"right: {row['truth']}    before: {row['old_answer']}    after: {row['new_answer']}")
    fair = "yes" if row["verified"] else "no " + row["problems"]
    write_line(pen, 6, 274, f"{row['example_id']}    fair by a second opinion: {fair}")
    return np.asarray(sheet)


def write_line(pen: Any, x: float, y: float, text: str, most: int | None = None) -> None:
    """Write a text, cut where it has `most` signs or more."""
    if most is not None and len(text) >= most:
        text = text[: most - 3] + "..."
    # The built-in font knows Latin-1 only; other signs must not stop the drawing.
    pen.text((x, y), text.encode("latin-1", "replace").decode("latin-1"), fill=(0, 0, 0))


def write_strips(folder: Path, rows: Sequence[Mapping[str, Any]], count: int) -> list[Path]:
    """Draw the first `count` rows of moves.parquet into `folder`/strips."""
    return write_pictures(folder / "strips", map(strip, rows[:count]))


def write_pictures(folder: Path, pictures: Iterable[Pixels]) -> list[Path]:
    """Number the images through as PNG files of a folder."""
    import PIL.Image

    written = []
    for number, picture in enumerate(pictures):
        buffer = io.BytesIO()
        PIL.Image.fromarray(picture).save(buffer, format="PNG")
        written.append(folder / f"{number:03d}.png")
        write_atomic(written[-1], buffer.getvalue())
    return written


# --- the player from inside -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Panel:
    """One image of what is inside: a map over the image, or marks on it."""

    name: str
    heat: npt.NDArray[np.float32] | None = None
    """(rows, columns), any scale."""
    marks: tuple[tuple[float, float, str], ...] = ()
    """Column and row as shares of the image, and a word beside it."""


@dataclass(frozen=True)
class Inside:
    """A question before and after, seen from inside."""

    question: str
    answers: tuple[str, str]
    truth: str
    before: tuple[Panel, ...]
    after: tuple[Panel, ...]
    pictures: tuple[Pixels, Pixels]

    def sheet(self) -> Pixels:
        """Two rows of panels, before above after, with the question: uint8 (height, width, 3)."""
        import PIL.Image
        import PIL.ImageDraw

        wide, high = PANEL
        columns = 1 + max(len(self.before), len(self.after))
        sheet = PIL.Image.new("RGB", (max(3, columns) * wide, 2 * (high + CAPTION) + 2 * CAPTION), (255, 255, 255))
        pen = PIL.ImageDraw.Draw(sheet)
        write_line(pen, 4, 2, self.question, MOST_SIGNS)
        said = f"right: {self.truth}    before: {self.answers[0]}    after: {self.answers[1]}"
        write_line(pen, 4, 2 + CAPTION, said, MOST_SIGNS)
        for row, (panels, picture) in enumerate(zip((self.before, self.after), self.pictures, strict=True)):
            top = 2 * CAPTION + row * (high + CAPTION)
            plain = Panel("before" if row == 0 else "after")
            for column, panel in enumerate((plain, *panels)):
                sheet.paste(PIL.Image.fromarray(draw_panel(panel, picture)), (column * wide, top))
                write_line(pen, column * wide + 4, top + high + 2, panel.name, MOST_SIGNS)
        return np.asarray(sheet)


def look_inside(trained: Trained, row: Mapping[str, Any]) -> Inside:
    """What the model of a player saw in the two scenes of a row of moves.parquet."""
    scenes = scenes_of(row)
    before, after = (panels_of(trained, row["question"], scene) for scene in scenes)
    pictures = (image_of(scenes[0]).pixels(), image_of(scenes[1]).pixels())
    return Inside(row["question"], (row["old_answer"], row["new_answer"]), row["truth"], before, after, pictures)


def panels_of(trained: Trained, question: str, scene: Mapping[str, Any]) -> tuple[Panel, ...]:
    """The panels of one question about one scene."""
    import torch

    from pfungst.models.encode import Encoder

    model = trained.model.eval()
    batch = Encoder(trained).batch([question], [image_of(scene)], [scene], [trained.vocabulary.answers])
    if trained.name == "film":
        return tuple(_gradient_weighted(model, batch, number) for number in (-2, -1))
    with torch.inference_mode():
        output: Output = model(batch)
        drawn = {name: values.detach().float().cpu() for name, values in model.drawings(batch, output).items()}
    if trained.name == "mdetr":
        return (*_heat("attention", drawn["picture"][0]), _detections(drawn["objects"][0], drawn["places"][0]))
    if "masks" in drawn and "program" in drawn:
        return _steps(drawn["program"][0], drawn["masks"][0])
    if "pairs" in drawn:
        return (_pairs(drawn["pairs"][0], scene),)
    return _heat("attention", drawn["picture"][0]) if "picture" in drawn else ()


def _heat(name: str, maps: Tensor) -> tuple[Panel, ...]:
    """(rows, columns), or (layers, ..., rows, columns): one panel a layer."""
    if maps.ndim == 2:
        return (Panel(name, maps.numpy()),)
    layers = maps.flatten(0, -3)
    return tuple(Panel(f"{name} {i + 1}", one.numpy()) for i, one in enumerate(layers))


def _gradient_weighted(model: Any, batch: Batch, number: int) -> Panel:
    """Activations of a FiLM block, weighted by the mean gradient of the chosen answer, positive part (Grad-CAM)."""
    import torch

    kept: list[Tensor] = []
    block = model.blocks[number]
    handle = block.register_forward_hook(lambda module, inputs, output: kept.append(output))
    try:
        with torch.enable_grad():
            logits = model(batch).logits
            activity = kept[0]
            (gradient,) = torch.autograd.grad(logits.max(-1).values.sum(), activity)
    finally:
        handle.remove()
    weights = gradient.mean((2, 3), keepdim=True)
    heat = torch.relu((weights * activity).sum(1))[0]
    return Panel(f"block {len(model.blocks) + 1 + number}", heat.detach().float().cpu().numpy())


def _detections(objects: Tensor, places: Tensor) -> Panel:
    """objects (slots, 19) attribute logits, places (slots, 2) as shares of the image."""
    import torch

    from pfungst.models.objects import CLASSES
    from pfungst.models.scene import ORDER
    from pfungst.world.constants import ATTRIBUTES

    chosen = torch.stack([part.argmax(-1) for part in torch.split(objects, list(CLASSES), -1)], -1).tolist()
    marks = []
    for numbers, (x, y) in zip(chosen, places.tolist(), strict=True):
        if all(numbers):
            words = {name: ATTRIBUTES[name][n - 1] for name, n in zip(ORDER, numbers, strict=True)}
            marks.append((x, y, f"{words['size'][0]} {words['color']} {words['material'][0]} {words['shape']}"))
    return Panel("detections", None, tuple(marks))


def _steps(program: Tensor, masks: Tensor) -> tuple[Panel, ...]:
    """The masks of a program in the order in which its steps are run."""
    from pfungst.models.programs import tokens

    names = tokens()
    panels = []
    for number, mask in zip(program.int().tolist(), masks, strict=True):
        token = names[number] if number < len(names) else None
        if token is not None and not bool(mask.isnan().any()) and token.function not in ("scene", "unique"):
            panels.append(Panel(token.name, mask.numpy()))
    # Prefix order names the last step first.
    return tuple(panels[::-1][-MOST_STEPS:])


def _pairs(pairs: Tensor, scene: Mapping[str, Any]) -> Panel:
    """How much every object's pairs say, at the object's place in the image."""
    width, height = scene.get("image_size") or (320, 240)
    weight = (pairs.sum(0) + pairs.sum(1)).numpy()
    most = max(float(weight.max()), 1e-9)
    marks = [
        (one["pixel_coords"][0] / width, one["pixel_coords"][1] / height, f"{float(weight[i]) / most:.2f}")
        for i, one in enumerate(scene["objects"])
        if one.get("pixel_coords")
    ]
    return Panel("share in relations", None, tuple(marks))


def draw_panel(panel: Panel, picture: Pixels) -> Pixels:
    """The panel over the image: uint8 (180, 240, 3). Warm colours mark what is looked at."""
    import PIL.Image
    import PIL.ImageDraw

    base = PIL.Image.fromarray(picture).convert("RGB").resize(PANEL)
    if panel.heat is not None:
        heat = np.nan_to_num(panel.heat.astype(np.float32))
        low, high = float(heat.min()), float(heat.max())
        scaled = (heat - low) / (high - low) if high > low else np.zeros_like(heat)
        shade = PIL.Image.fromarray((255 * scaled).astype(np.uint8)).resize(PANEL, PIL.Image.Resampling.BILINEAR)
        strength = np.asarray(shade, dtype=np.float32)[..., None] / 255
        grey = np.asarray(base.convert("L").convert("RGB"), dtype=np.float32)
        warm = np.stack([np.full(PANEL[::-1], value) for value in (255.0, 90.0, 20.0)], -1)
        base = PIL.Image.fromarray((grey * (1 - 0.7 * strength) + warm * 0.7 * strength).astype(np.uint8))
    pen = PIL.ImageDraw.Draw(base)
    for x, y, word in panel.marks:
        at = (x * PANEL[0], y * PANEL[1])
        pen.ellipse((at[0] - 3, at[1] - 3, at[0] + 3, at[1] + 3), outline=(255, 60, 0), width=2)
        pen.text(
            (min(max(at[0] + 5, 0), PANEL[0] - 90), min(max(at[1] - 5, 0), PANEL[1] - 12)), word, fill=(255, 60, 0)
        )
    return np.asarray(base)


def write_insides(folder: Path, rows: Sequence[Mapping[str, Any]], player: Any, count: int) -> list[Path]:
    """Draw the first `count` rows from inside into `folder`/inside; none where the player is no model of the zoo."""
    trained = getattr(player, "trained", None)
    if trained is None or not hasattr(trained, "vocabulary"):
        return []
    insides = takewhile(lambda inside: inside.before, (look_inside(trained, row) for row in rows[:count]))
    return write_pictures(folder / "inside", (inside.sheet() for inside in insides))
