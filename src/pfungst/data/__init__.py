"""What is asked: data sets in their published formats, read into examples."""

from pfungst.data.checking import CheckReport, check
from pfungst.data.formats import FORMATS, get_format
from pfungst.data.formats.clevr import scenes
from pfungst.data.job import BadRecord, Format, Job
from pfungst.data.loading import load
from pfungst.rows.files import File

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
