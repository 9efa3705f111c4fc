"""What is asked: data sets in their published formats, read into examples."""

from pfungst.data._check import CheckReport, check
from pfungst.data._files import File
from pfungst.data._job import BadRecord, Format, Job
from pfungst.data._load import load
from pfungst.data.formats import FORMATS, get_format
from pfungst.data.formats.clevr import scenes

__all__ = [
    "FORMATS",
    "BadRecord",
    "CheckReport",
    "File",
    "Format",
    "Job",
    "check",
    "get_format",
    "load",
    "scenes",
]
