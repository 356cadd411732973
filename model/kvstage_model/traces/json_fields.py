"""What each kind of operation consists of, in a trace that is written down. One table, for the writer and the reader."""

from enum import Enum
from typing import get_args

from ..language.operations import (
    Acquire,
    Copy,
    CopyBatch,
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

FORMAT = "kvstage trace"
VERSION = 1


class FieldForm(Enum):
    """What a field of an operation holds, and its form in JSON."""

    NAME = "a name"
    ROWS = "rows: {buffer, slot, start, count}"
    PLACES = "rows of a kernel: {buffer, places}, each place [slot, row]"
    ACCESSES = "a list of rows of either form"
    PAIRS = "a list of [source rows, target rows]"
    EVENT = "an event: {name, index, call}"
    ANSWER = "1 for yes, 0 for not yet"


_STREAM = {"stream": FieldForm.NAME}
_SOURCE, _TARGET = {"source": FieldForm.ROWS}, {"target": FieldForm.ROWS}
_EVENT = {"event": FieldForm.EVENT}

FIELDS: dict[type, dict[str, FieldForm]] = {
    Copy: _STREAM | _SOURCE | _TARGET,
    Gather: _STREAM | {"source": FieldForm.PLACES} | _TARGET,
    Scatter: _STREAM | _SOURCE | {"target": FieldForm.PLACES},
    CopyBatch: _STREAM | {"copies": FieldForm.PAIRS},
    Launch: _STREAM | {"reads": FieldForm.ACCESSES, "writes": FieldForm.ACCESSES},
    RecordEvent: _EVENT | _STREAM,
    SyncEvent: _EVENT,
    WaitEvent: _STREAM | _EVENT,
    QueryEvent: _EVENT | {"answer": FieldForm.ANSWER},
    HostCopy: _SOURCE | _TARGET,
    HostRead: _SOURCE,
    HostWrite: _TARGET,
    SyncStream: _STREAM,
    Release: _TARGET,
    Acquire: _TARGET,
    Post: _EVENT | {"reads": FieldForm.ACCESSES, "writes": FieldForm.ACCESSES},
    Take: _EVENT,
}
"""The fields of each operation, by its class. The `aim` of a wait is a hint for proofs, and no part of a trace."""

KINDS: dict[str, type] = {kind.__name__: kind for kind in FIELDS}
"""The operations by name, as `kind` names them in a trace."""

assert {kind.__name__ for kind in get_args(Operation)} == set(KINDS), "an operation without its fields can't be written"
