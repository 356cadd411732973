"""kvstage's model: schemes, axioms, traces and the simulator in plain Python, and the z3 model of them.

What a scheme is written with can be imported from here. z3 is imported by the modules that prove, never by this one.
"""

from .operations import (
    Buffer,
    Copy,
    Event,
    Gather,
    HostCopy,
    HostRead,
    HostWrite,
    Launch,
    Memory,
    Paged,
    RecordEvent,
    Rows,
    Scatter,
    SyncEvent,
    SyncStream,
    WaitEvent,
)
from .parameters import Distinct
from .ranges import AtLeast, Positive
from .runs import PagedRows, Piece, Pieces, Run, Runs
from .scheme import Direction, Result, Scheme

__all__ = [
    "AtLeast",
    "Buffer",
    "Copy",
    "Direction",
    "Distinct",
    "Event",
    "Gather",
    "HostCopy",
    "HostRead",
    "HostWrite",
    "Launch",
    "Memory",
    "Paged",
    "PagedRows",
    "Piece",
    "Pieces",
    "Positive",
    "RecordEvent",
    "Result",
    "Rows",
    "Run",
    "Runs",
    "Scatter",
    "Scheme",
    "SyncEvent",
    "SyncStream",
    "WaitEvent",
]
