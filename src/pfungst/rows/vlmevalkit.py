"""What the data sets of VLMEvalKit and the predictions it writes have in common."""

from __future__ import annotations

CIRCLE = 1_000_000
"""Rotation r of a question of a circular evaluation has the index of the original plus r times this."""


def hallusion_group(id_: str) -> str:
    """The set of a question of HallusionBench, whose id is category, subcategory, with image or not, set, figure and
    question, joined by `_`; empty for any other id."""
    parts = id_.split("_")
    return "_".join((*parts[:2], parts[3])) if len(parts) == 6 else ""


def contrast_group(data: str, id_: str, image: str, place: int | None) -> str:
    """The contrast group of a question: its data set tells by its name and the order of its rows alone which questions
    look alike but are not answered alike. Empty for data sets without such groups.

    image: names the image. place: counts the rows from 0; None where they are not in order.
    """
    data = data.casefold()
    if data == "mme":  # two questions an image
        return image
    if data == "hallusionbench":
        return hallusion_group(id_)
    # one question on two images, or two questions on two images
    rows = {"mmvp": 2, "naturalbench": 4, "naturalbenchdataset": 4}.get(data)
    return str(place // rows) if rows is not None and place is not None else ""
