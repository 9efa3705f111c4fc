"""What a player can tell besides its answers: where it looks, and what it was sent, word for word.

`draw_attention` is Figure 4 of Cycle-Consistency for Robust VQA: one row per model, one column per wording of a
question. What is told about the cases of a report is kept in the run folder. The trials hold questions and choices; a
player that chats puts them into a prompt of its own, and probes may say how.
"""

from __future__ import annotations

import io
import logging
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import PIL.Image
import PIL.ImageDraw
from numpy.typing import NDArray

from pfungst.core import Asker, Dataset, Example, Image, PfungstError, Player, Query, Run
from pfungst.core.files import write_atomic, write_json
from pfungst.core.images import as_rgb
from pfungst.core.types import as_player
from pfungst.report.cases import MOST_WORDS, Case, Tools, sample_of
from pfungst.report.page import data_url
from pfungst.report.pictures import Thumbnail

if TYPE_CHECKING:
    import PIL.Image

    from pfungst.players.zoo import ZooPlayer


_WIDTH = 240
"""Of an image, in pixels."""
_LINE, _TEXT = 13, 58


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
    from pfungst.models.vocabulary import plain_answer, split_words

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
    """Write the figure to `out` (.html or .png): one row per player, in the order given, one column per wording.

    examples : the wordings of one question about one image, the original first
    """
    place = Path(out)
    if place.suffix not in (".html", ".png"):
        raise PfungstError(f"The figure is written as .html or .png, not as {place.name}.")
    if not examples or examples[0].image is None:
        raise PfungstError("There is no image to draw attention on.")
    shown = {name: looks(player, examples) for name, player in players.items()}
    image = as_rgb(examples[0].image)
    height = max(1, round(_WIDTH * image.height / image.width))
    image = image.resize((_WIDTH, height))
    target = examples[0].target or ""
    if place.suffix == ".png":
        write_atomic(place, _encoded(_png(image, shown, target)))
    else:
        write_atomic(place, _html(image, shown, target).encode())
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


def _png(image: PIL.Image.Image, shown: Mapping[str, Sequence[Look]], target: str) -> PIL.Image.Image:
    columns = max(len(row) for row in shown.values())
    cell, high = _WIDTH + 10, image.height + _TEXT + 26
    whole = PIL.Image.new("RGB", (90 + columns * cell, 20 + len(shown) * high), "white")
    pen = PIL.ImageDraw.Draw(whole)
    pen.text((6, 4), f"right answer: {target}", fill="black")
    for r, (name, row) in enumerate(shown.items()):
        top = 20 + r * high
        pen.text((6, top + image.height // 2), _latin(name)[:14], fill="black")
        for c, one in enumerate(row):
            left = 90 + c * cell
            whole.paste(overlay(image, one.picture), (left, top))
            x, y = left, top + image.height + 2
            for word, weight in one.words:
                width = int(pen.textlength(_latin(word) + " "))
                if x + width > left + _WIDTH:
                    x, y = left, y + _LINE
                if y > top + image.height + _TEXT - _LINE:
                    break
                pen.rectangle(
                    (x, y, x + width - 2, y + _LINE - 1), fill=(255, 255 - int(110 * weight), 255 - int(215 * weight))
                )
                pen.text((x, y), _latin(word), fill="black")
                x += width
            told = textwrap.shorten(_latin(one.answer), 34)
            pen.text((left, top + image.height + _TEXT), told, fill=(26, 122, 60) if one.right else (179, 38, 30))
    return whole


def _latin(text: str) -> str:
    """What the built-in font can draw."""
    return text.encode("latin-1", "replace").decode("latin-1")


LOOKS, PROMPTS = "looks.json", "prompts.json"
"""Files: key of an answer -> the weights over its image, and what the player was sent for it."""
MOST_LOOKS = 48
"""Cases whose maps are drawn, taken from the probes in turn."""
MOST_PROMPTS = 1_000_000
"""Characters of all prompts that are kept: a report must stay small."""
_LOGGER = logging.getLogger("pfungst")


def add_looks(run: Path, player: Player, data: Dataset) -> None:
    """Note where a player that can tell looks, for cases that its report will show. Others have no such file."""
    player = as_player(player)
    if not player.has("look"):
        return
    sample = sample_of(Run.open(run))
    tools = Tools(run, data=data)
    asked: dict[str, tuple[Mapping[str, Any], Query]] = {}
    for case in _in_turn(sample.cases)[:MOST_LOOKS]:
        for row in (case.clean, case.disturbed):
            image = tools.image(row, case, sample.cases)
            # Who reads scenes is asked about the one of the example alone: that of another image is not kept.
            own = row["image"] == case.clean["image"]
            if image is not None and (own or not player.reads_scenes):
                scene = tools.examples[case.example_id].scene if own else None
                query = Query(row["question"], image, tuple(row["choices"] or ()), scene)
                asked.setdefault(row["key"], (row, query))
    if not asked:
        return
    rows, queries = zip(*asked.values(), strict=True)
    try:
        maps = player.look(queries)
    except Exception as error:  # of a player: the exam is finished, and its report must not be lost
        _LOGGER.warning(f"The report has no attention maps: {error}.")
        return
    drawn = {row["key"]: picture_weights(maps, at) for at, row in enumerate(rows)}
    found = {key: np.round(weights, 2).tolist() for key, weights in drawn.items() if weights is not None}
    if found:
        write_json(run / LOOKS, found)


def draw_looks(
    case: Case, looks: Mapping[str, Any], tools: Tools, cases: Sequence[Case]
) -> list[tuple[str, Thumbnail]]:
    """The images of a case under the player's attention, before and after."""
    found: dict[str, tuple[str, Thumbnail]] = {}
    for row in (case.clean, case.disturbed):
        if row["key"] not in looks or row["key"] in found or tools.images.room <= 0:
            continue
        seen = tools.image(row, case, cases)
        if seen is not None:
            picture = as_rgb(seen).copy()
            picture.thumbnail((320, 320))
            image = tools.images.of(f"look {row['key']}", overlay(picture, np.asarray(looks[row["key"]], np.float64)))
            if image is not None:
                found[row["key"]] = (f"where it looks, {row['variant']}: {row['answer'] or '(no answer)'}", image)
    return list(found.values())


def _in_turn(cases: Sequence[Case]) -> list[Case]:
    """The cases, one of each probe in turn."""
    probes = list(dict.fromkeys(case.probe for case in cases))
    place = dict.fromkeys(probes, 0)
    order = []
    for case in cases:
        order.append((place[case.probe], probes.index(case.probe)))
        place[case.probe] += 1
    return [case for _, case in sorted(zip(order, cases, strict=True), key=lambda one: one[0])]


def add_prompts(run: Path, player: Player, data: Dataset) -> None:
    """Note what a player that can tell was sent, for cases that its report will show. Others have no such file."""
    player = as_player(player)
    if not player.has("prompt"):
        return
    cases = sample_of(Run.open(run)).cases
    asker = Asker(player)
    wanted = {row["key"]: row for case in cases for row in (case.clean, case.disturbed)}
    found: dict[str, str] = {}
    length = 0
    for query in _queries(wanted, found, cases, Tools(run, data=data)):
        query = asker.visible(query)
        key = query.key(asker.fingerprint)
        if key in wanted and key not in found and length < MOST_PROMPTS:
            found[key] = player.prompt(query)[:MOST_WORDS]
            length += len(found[key])
    if found:
        write_json(run / PROMPTS, found)


def _queries(
    wanted: Mapping[str, Mapping[str, Any]], found: Mapping[str, str], cases: Sequence[Case], tools: Tools
) -> Iterator[Query]:
    """The queries behind these rows. Where a probe says how to ask, which rows do not tell, it makes them anew."""
    for row in wanted.values():
        # The key of a query needs no more of an image than its digest.
        image = cast(Image, SimpleNamespace(digest=row["image"])) if row["image"] else None
        yield Query(row["question"], image, tuple(row["choices"] or ()), take=row["take"])
    for probe in dict.fromkeys(case.probe for case in cases):
        mine = [case for case in cases if case.probe == probe]
        if any(row["key"] not in found for case in mine for row in (case.clean, case.disturbed)):
            yield from tools.queries(probe, mine)
