"""kvstage's model: schemes, axioms, traces and the simulator in plain Python, and the z3 model of them.

What a scheme is written with can be imported from here. z3 is imported by the modules that prove, never by this one.
"""

from .buffers import Buffer, Memory, Paged, Rows
from .operations import (
    Acquire,
    Copy,
    CopyBatch,
    Event,
    Gather,
    HostCopy,
    HostRead,
    HostWrite,
    Launch,
    Operation,
    QueryEvent,
    RecordEvent,
    Release,
    Scatter,
    SyncEvent,
    SyncStream,
    WaitEvent,
)
from .paired import IntoLarger, IntoSmaller
from .parameters import Distinct
from .ranges import AtLeast, Flags, Positive
from .runs import PagedRows, Piece, Pieces, Run, Runs
from .scheme import Direction, Phase, Result, Scheme, Session

__all__ = [
    "Acquire",
    "AtLeast",
    "Buffer",
    "Copy",
    "CopyBatch",
    "Direction",
    "Distinct",
    "Event",
    "Flags",
    "Gather",
    "HostCopy",
    "HostRead",
    "HostWrite",
    "IntoLarger",
    "IntoSmaller",
    "Launch",
    "Memory",
    "Operation",
    "Paged",
    "PagedRows",
    "Phase",
    "Piece",
    "Pieces",
    "Positive",
    "QueryEvent",
    "RecordEvent",
    "Release",
    "Result",
    "Rows",
    "Run",
    "Runs",
    "Scatter",
    "Scheme",
    "Session",
    "SyncEvent",
    "SyncStream",
    "WaitEvent",
]
