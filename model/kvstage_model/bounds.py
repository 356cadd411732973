"""What every operation must keep to by itself: its rows lie inside their buffers, and it does not overlap itself."""

from collections.abc import Iterator

from .operations import Operation, Rows, disjoint, reads, writes


def bounds(operation: Operation) -> Iterator[tuple[str, bool]]:
    """Each demand on one operation, in words, and whether it is met. Read with ints and with symbols."""
    for rows in (*reads(operation), *writes(operation)):
        yield from _inside(rows)
    for source in reads(operation):
        for target in writes(operation):
            yield "source and target have as many rows", source.count == target.count
            if source.buffer.name == target.buffer.name:
                yield "source and target are disjoint", disjoint(source, target)


def _inside(rows: Rows) -> Iterator[tuple[str, bool]]:
    name, last = rows.buffer.name, rows.start + rows.count
    yield f"the slot of {name} exists", (rows.slot >= 0) & (rows.slot < rows.buffer.slots)
    yield f"the count of rows of {name} is not negative", rows.count >= 0
    yield f"the rows of {name} lie inside its slot", (rows.start >= 0) & (last <= rows.buffer.rows)
