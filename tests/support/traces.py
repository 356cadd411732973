"""Traces to write, read and spoil."""

import json
from typing import Any

from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.scheme import Scheme
from kvstage_model.ordering.program import Issued
from kvstage_model.ordering.trace import Trace
from kvstage_model.schedules.schedule import Hold
from kvstage_model.schemes.registry import LIBRARY
from kvstage_model.simulation.simulator import simulate
from kvstage_model.traces.json_writer import as_json
from tests.support.programs import total

ROWS = PagedRows(total([3, 1]), 4, 2, 1, 4)
"""Three rows: one of block 3, two of block 1."""


def ring() -> Scheme:
    """A ring of two slots."""
    return LIBRARY["ring"].read(ROWS, 2)


def good() -> Trace:
    """A run of the ring in which the first copy ends late."""
    return simulate([ring()], Hold(0, 1)).trace


def document() -> Any:
    """The same as JSON values, to be spoiled."""
    return json.loads(as_json(good()))


def as_data(trace: Trace) -> Any:
    """All of a trace as plain values: records of operations compare by identity only."""
    return [_issued(issued) for issued in trace.program], list(trace.events)


def _issued(issued: Issued) -> Any:
    operation = issued.operation
    return issued.call, issued.phase, issued.step, type(operation).__name__, _plain(operation)


def _plain(value: Any) -> Any:
    if hasattr(value, "address"):
        return "an address"
    if hasattr(value, "__dataclass_fields__"):
        addressed = hasattr(value, "rows") and hasattr(value.rows, "address")
        places = [value.rows.address(value.first + k) for k in range(value.count)] if addressed else None
        kept = [name for name in value.__dataclass_fields__ if name not in ("aim", *(("first", "rows") if addressed else ()))]
        return {name: _plain(getattr(value, name)) for name in kept} | {"places": places}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value
