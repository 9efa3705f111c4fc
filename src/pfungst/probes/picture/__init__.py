"""What should not matter in the pixels."""

from pfungst.probes.picture.operations import Operation
from pfungst.probes.picture.probe import OPERATIONS, Picture, change, disturbed
from pfungst.probes.picture.topics import topics

__all__ = ["OPERATIONS", "Operation", "Picture", "change", "disturbed", "topics"]
