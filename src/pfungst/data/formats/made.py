"""Data sets that a function makes: the embedded world, and functions that third parties register."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pfungst.core import DataError, Dataset
from pfungst.data.job import Format, Found, Job


class Made(Format):
    """Wraps `function(place, **options) -> Dataset`. `place` is left out where the specification has none."""

    expects = "nothing"
    reads_files = False

    def __init__(self, name: str, function: Callable[..., Dataset]) -> None:
        self.name = name
        self.title: str = (function.__doc__ or name).strip().partition("\n")[0]
        self._function = function

    @property
    def options(self) -> Callable[..., Dataset]:
        return self._function

    def read(self, job: Job) -> Iterator[Found]:
        splits = [] if job.split in (None, "all") else list(dict.fromkeys(job.split.split("+")))
        for split in job.in_turn(splits or [""]):
            data = self._make(job, split)
            job.name, job.metric = data.name, data.metric
            job.notes.update(data.notes)
            job.skipped += data.skipped
            for number, example in enumerate(data.examples, start=1):
                yield example, None, number
        if len(splits) > 1:
            job.notes["split"] = "+".join(splits)

    def _make(self, job: Job, split: str) -> Dataset:
        arguments = {**job.options, **({"split": split} if split else {})}
        places = [job.place] if job.place else []
        try:
            data = self.options(*places, **arguments)
        except TypeError as error:
            raise DataError(f"The data set {self.name} cannot be made with these options: {error}.") from error
        if not isinstance(data, Dataset):
            raise DataError(f"The data set {self.name} gave a {type(data).__name__}, not a Dataset.")
        return data


class World(Made):
    """`world`: the embedded CLEVR world, scenes, programs and images made on this machine, nothing to download."""

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
