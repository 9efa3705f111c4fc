"""The published formats. A new one is one new file, or a class in the file of its kin, and one line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from pfungst.core import DataError, Dataset, PfungstError
from pfungst.core.registry import Registry
from pfungst.data.job import Format, Found, Job

FORMATS = Registry(
    kind="data format",
    group="pfungst.datasets",
    builtin={
        "vqa": "pfungst.data.formats.vqa:Vqa",
        "rephrasings": "pfungst.data.formats.vqa:Rephrasings",
        "okvqa": "pfungst.data.formats.vqa:OkVqa",
        "visual7w": "pfungst.data.formats.genome:Visual7W",
        "genome": "pfungst.data.formats.genome:VisualGenome",
        "cocoqa": "pfungst.data.formats.text_files:CocoQa",
        "daquar": "pfungst.data.formats.text_files:Daquar",
        "gqa": "pfungst.data.formats.genome:Gqa",
        "convqa": "pfungst.data.formats.genome:ConVqa",
        "mme": "pfungst.data.formats.text_files:Mme",
        "clevr": "pfungst.data.formats.clevr:Clevr",
        "vlmevalkit": "pfungst.data.formats.vlmevalkit:VlmEvalKit",
        "table": "pfungst.data.formats.table:TableFiles",
        "hf": "pfungst.data.formats.hf:HuggingFace",
        "world": "pfungst.data.formats:World",
    },
)


@cache
def get_format(name: str) -> Format:
    """The format of this name. Third parties may register a Format, or a function that returns a Dataset."""
    part = FORMATS.get(name)
    if isinstance(part, type) and issubclass(part, Format):
        return part()
    if isinstance(part, Format):
        return part
    if callable(part):
        return Made(name, part)
    raise PfungstError(f"The data format {name} is neither a Format nor a function that returns a Dataset.")


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
