"""kvstage's model: schemes, axioms, traces and the simulator in plain Python, and the z3 model of them.

What a scheme is written with can be imported from here. z3 is imported by the modules that prove, never by this one.
"""

from .language.buffers import Buffer, Memory, Paged, Rows
from .language.operations import (
    Acquire,
    Aim,
    Copy,
    CopyBatch,
    Event,
    Gather,
    HostCopy,
    HostRead,
    HostWrite,
    Launch,
    Operation,
    Post,
    QueryEvent,
    RecordEvent,
    Release,
    Scatter,
    SyncEvent,
    SyncStream,
    Take,
    WaitEvent,
)
from .language.paged_rows import IntoLarger, IntoSmaller, PagedRows
from .language.parameters import Distinct
from .language.partitions import Piece, Pieces, Run, Runs
from .language.ranges import AtLeast, Flags, Positive
from .language.scheme import Direction, Phase, Result, Scheme, Session

__all__ = [
    "Acquire",
    "Aim",
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
    "Post",
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
    "Take",
    "WaitEvent",
]
