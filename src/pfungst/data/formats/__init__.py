"""The published formats. A new one is one new file, or a class in the file of its kin, and one line here."""

from __future__ import annotations

from functools import cache

from pfungst.core import PfungstError
from pfungst.core.registry import Registry
from pfungst.data.formats.made import Made
from pfungst.data.job import Format

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
        "world": "pfungst.data.formats.made:World",
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
