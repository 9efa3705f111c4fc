"""The embedded CLEVR world: scenes, programs and images made on this machine, nothing to download."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pfungst.core import DataError, Dataset
from pfungst.data.formats.made import Made
from pfungst.data.job import Found, Job


class World(Made):
    """`world`: the data set that comes with the package."""

    name = "world"
    title = "the embedded CLEVR world"

    def __init__(self) -> None:
        """Nothing is imported before it is needed."""

    @property
    def options(self) -> Callable[..., Dataset]:
        from pfungst.world import embedded

        return embedded

    def read(self, job: Job) -> Iterator[Found]:
        if job.place:
            raise DataError(f"The embedded world takes no path, but {job.place!r} was given.")
        return super().read(job)
