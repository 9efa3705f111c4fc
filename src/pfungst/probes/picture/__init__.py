"""What should not matter in the pixels."""

from pfungst.probes.picture.operations import Operation, topics
from pfungst.probes.picture.probe import OPERATIONS, Picture, change, disturbed

__all__ = ["OPERATIONS", "Operation", "Picture", "change", "disturbed", "topics"]
