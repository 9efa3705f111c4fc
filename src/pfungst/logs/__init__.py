"""What other tools wrote: files of answers that were already given, read into one kind of record."""

from pfungst.logs.reading import LOGS, read_log
from pfungst.logs.records import About, Log, LogFormat, Record
from pfungst.rows.fields import Bad

__all__ = ["LOGS", "About", "Bad", "Log", "LogFormat", "Record", "read_log"]
