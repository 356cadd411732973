"""The language of schemes: buffers, operations, transfers cut into runs, and declared parameters.

Read `buffers`, `operations` and `scheme` first: with them a scheme can be read. `partitions` cuts a transfer into runs, by the
`contract` that schemes may assume; `edits` makes broken variants; the address formula is `paged_rows`.
"""

from .buffers import Buffer, Memory, Paged, Rows
from .merged_runs import merged
from .operations import (
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
from .paged_rows import IntoLarger, IntoSmaller, PagedRows
from .parameters import Distinct
from .partitions import Piece, Pieces, Run, Runs, by_block, by_chunk, by_row
from .ranges import AtLeast, Flags, Positive
from .scheme import Direction, Phase, Result, Scheme, Session

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
    "by_block",
    "by_chunk",
    "by_row",
    "merged",
]
