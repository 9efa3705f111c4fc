"""Where a player looks, drawn.

`draw_attention` is Figure 4 of Cycle-Consistency for Robust VQA: one row per model, one column per wording of a
question.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from pfungst.core import Asker, Example, PfungstError, Query
from pfungst.core.files import write_atomic
from pfungst.core.images import as_rgb
from pfungst.report.page import data_url

if TYPE_CHECKING:
    from pfungst.players.zoo import ZooPlayer


_WIDTH = 240
"""Of an image, in pixels."""


@dataclass(frozen=True)
class Look:
    """What one model does with one wording."""

    question: str
    answer: str
    right: bool
    words: tuple[tuple[str, float], ...]
    """Every word and the weight it gets, 1 for the heaviest; all 0 for a model that weighs no words."""
    picture: NDArray[np.float64] | None
    """(H, W) attention over the image, in [0, 1]; None for a model without."""

    def to_json(self) -> dict[str, Any]:
        """As plain values; the attention as rows of numbers with three places."""
        picture = None if self.picture is None else np.round(self.picture, 3).tolist()
        words = [[word, round(weight, 3)] for word, weight in self.words]
        return {
            "question": self.question, "answer": self.answer, "right": self.right, "words": words, "picture": picture,
        }  # fmt: skip


def looks(player: ZooPlayer, examples: Sequence[Example]) -> list[Look]:
    """Ask a zoo player every wording, and note where it looks."""
    from pfungst.models.trained import plain_answer, split_words

    queries = [Query(one.question, one.image, (), one.scene) for one in examples]
    answers, maps = Asker(player).answers(queries), player.look(queries)
    found = []
    for i, (one, answer) in enumerate(zip(examples, answers, strict=True)):
        words = split_words(one.question)
        weights = _word_weights(maps, i, len(words))
        right = one.target is not None and plain_answer(answer.text) == plain_answer(one.target)
        pairs = tuple(zip(words, weights, strict=True))
        found.append(Look(one.question, answer.text, right, pairs, picture_weights(maps, i)))
    return found


def picture_weights(maps: Mapping[str, Any], i: int) -> NDArray[np.float64] | None:
    """Where in the image query `i` looks, (H, W) in [0, 1], from the maps of a player; None where they do not say."""
    drawn = [v[i].double().numpy() for k, v in maps.items() if k.endswith(("picture", "pairs")) and v.ndim >= 3]
    drawn = [one.reshape(-1, *one.shape[-2:]).mean(0) for one in drawn if one.ndim >= 2]
    if not drawn:
        return None
    # Levels of one model may differ in size; those of the first are shown.
    total = np.mean([one for one in drawn if one.shape == drawn[0].shape], axis=0)
    low, high = total.min(), total.max()
    return np.asarray((total - low) / (high - low) if high > low else np.zeros_like(total), np.float64)


def _word_weights(maps: Mapping[str, Any], i: int, count: int) -> list[float]:
    total = np.zeros(count)
    for name, values in maps.items():
        one = values[i].double().numpy()
        if name.endswith("words") and one.ndim >= 1:
            one = one.reshape(-1, one.shape[-1]).mean(0)
        elif name == "pairs" and one.ndim >= 3:
            one = one.reshape(*one.shape[:2], -1).sum(-1).mean(0)
        else:
            continue
        size = min(count, len(one))
        total[:size] += one[:size]
    return (total / total.max() if total.max() > 0 else total).tolist()


def draw_attention(
    players: Mapping[str, ZooPlayer], examples: Sequence[Example], out: str | Path
) -> dict[str, list[Look]]:
    """Write the figure to `out`, an HTML file: one row per player, in the order given, one column per wording.

    examples : the wordings of one question about one image, the original first
    """
    if not examples or examples[0].image is None:
        raise PfungstError("There is no image to draw attention on.")
    shown = {name: looks(player, examples) for name, player in players.items()}
    image = as_rgb(examples[0].image)
    height = max(1, round(_WIDTH * image.height / image.width))
    image = image.resize((_WIDTH, height))
    target = examples[0].target or ""
    write_atomic(Path(out), _html(image, shown, target).encode())
    return shown


def overlay(image: PIL.Image.Image, weights: NDArray[np.float64] | None) -> PIL.Image.Image:
    """The image, dark where nothing is looked at and reddened where much is."""
    if weights is None:
        return image
    mask = PIL.Image.fromarray((255 * weights).astype(np.uint8)).resize(image.size, PIL.Image.Resampling.BICUBIC)
    share = np.asarray(mask, np.float64)[..., None] / 255
    pixels = np.asarray(image, np.float64) * (0.35 + 0.65 * share)
    red = np.array([255.0, 60.0, 30.0])
    return PIL.Image.fromarray(np.clip(pixels * (1 - 0.3 * share) + red * 0.3 * share, 0, 255).astype(np.uint8))


def _html(image: PIL.Image.Image, shown: Mapping[str, Sequence[Look]], target: str) -> str:
    rows = []
    for name, row in shown.items():
        cells = "".join(
            f'<td><img alt="" src="{data_url("image/png", _encoded(overlay(image, one.picture)))}"><p>{_words(one)}</p>'
            f'<p class="{"right" if one.right else "wrong"}">{escape(one.answer)}</p></td>'
            for one in row
        )
        rows.append(f"<tr><th>{escape(name)}</th>{cells}</tr>")
    style = (
        "body{font:14px system-ui,sans-serif;margin:1rem;background:#fff;color:#222}td{vertical-align:top;width:250px;"
        "padding:6px}th{text-align:left;padding:6px}.right{color:#1a7a3c;font-weight:600}.wrong{color:#b3261e;"
        "font-weight:600}"
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Attention over rephrasings</title>'
        f"<style>{style}</style><h1>Attention over rephrasings</h1><p>Right answer: <b>{escape(target)}</b></p>"
        f"<table>{''.join(rows)}</table></html>\n"
    )


def _words(look: Look) -> str:
    return " ".join(
        f'<span style="background:rgba(255,150,40,{0.75 * weight:.2f})">{escape(word)}</span>'
        for word, weight in look.words
    )


def _encoded(image: PIL.Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format="PNG")
    return buffer.getvalue()
