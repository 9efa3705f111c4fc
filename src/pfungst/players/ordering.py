"""In which order questions are asked, where the order is free."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from pfungst.core import PfungstError, Query


def by_image(queries: Sequence[Query], digests: dict[int, str]) -> list[int]:
    """Positions with those of one image together: it is encoded once, and servers that keep the beginning of a prompt
    read it once. `digests` takes what was found out on the way, by the id of the image object."""
    groups: dict[str, list[int]] = {}
    for index, query in enumerate(queries):
        image, name = query.image, ""
        if image is not None and id(image) in digests:
            name = digests[id(image)]
        elif image is not None:
            with suppress(PfungstError):  # told when the image is needed
                name = digests[id(image)] = image.digest
        groups.setdefault(name, []).append(index)
    return [index for group in groups.values() for index in group]
