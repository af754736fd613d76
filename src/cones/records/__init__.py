"""Runs as files: their specifications, folders and records, and the session that fills them."""

from cones.records.folder import Folder, Named
from cones.records.method import MethodSpec
from cones.records.problem import ProblemSpec
from cones.records.record import Record, read_record, rounded
from cones.records.session import Pause, Session, execute, read_checkpoint

__all__ = [
    "Folder",
    "MethodSpec",
    "Named",
    "Pause",
    "ProblemSpec",
    "Record",
    "Session",
    "execute",
    "read_checkpoint",
    "read_record",
    "rounded",
]
