"""Addresses of a run as rows of buffers, as a trace has them: named buffers as the program says, other memory byte by byte."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from kvstage_model import Buffer, Memory, Rows

from .errors import CppError


@dataclass(frozen=True, slots=True)
class Region:
    """Memory from `begin` on that is one buffer of a trace. A row has `row_bytes` bytes."""

    begin: int
    buffer: Buffer
    row_bytes: int

    @property
    def end(self) -> int:
        """The first address after it."""
        return self.begin + self.buffer.slots * self.buffer.rows * self.row_bytes


class Regions:
    """All memory that a run has touched. `touched` are the ranges outside of named and allocated memory: pageable."""

    def __init__(self, named: list[Region], allocated: list[tuple[int, int, str]], touched: list[tuple[int, int]]) -> None:
        found = list(named)
        for begin, size, kind in allocated:
            if not any(begin < region.end and region.begin < begin + size for region in named):
                found.append(Region(begin, Buffer(f"{kind} memory {len(found)}", Memory(kind), 1, size), 1))
        for begin, end in _merged(touched):
            if not any(begin < region.end and region.begin < end for region in found):
                found.append(Region(begin, Buffer(f"pageable memory {len(found)}", Memory.PAGEABLE, 1, end - begin), 1))
        self._regions = sorted(found, key=lambda region: region.begin)
        self._begins = [region.begin for region in self._regions]

    def rows(self, address: int, size: int) -> Iterator[Rows]:
        """The rows of a range of bytes, one run in each slot. Raises CppError if it isn't whole rows of one buffer."""
        number = bisect_right(self._begins, address) - 1
        region = self._regions[number] if number >= 0 else None
        if region is None or address + size > region.end:
            raise CppError(
                f"the trace can't say which buffer has the {size} bytes at {address:#x}: name the buffer as large as it is"
            )
        first, rest = divmod(address - region.begin, region.row_bytes)
        count, part = divmod(size, region.row_bytes)
        if rest or part:
            raise CppError(
                f"{size} bytes from byte {address - region.begin} of {region.buffer.name!r} on are no whole rows of "
                f"{region.row_bytes} bytes: give kvstage_name_buffer the bytes of one row"
            )
        while count:
            slot, row = divmod(first, region.buffer.rows)
            here = min(count, region.buffer.rows - row)
            yield Rows(region.buffer, slot, row, here)
            first, count = first + here, count - here


def _merged(ranges: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Ranges that meet or touch, as one."""
    last: tuple[int, int] | None = None
    for begin, end in sorted(ranges):
        if last is not None and begin <= last[1]:
            last = last[0], max(last[1], end)
            continue
        if last is not None:
            yield last
        last = begin, end
    if last is not None:
        yield last


def paired(source: list[Rows], target: list[Rows]) -> Iterator[tuple[Rows, Rows]]:
    """Two lists of equally many rows, cut so that each run lies in one slot on both sides."""
    source, target = list(source), list(target)
    while source and target:
        count = min(source[0].count, target[0].count)
        yield _first(source[0], count), _first(target[0], count)
        for rows in (source, target):
            left = rows[0].count - count
            rows[:1] = [Rows(rows[0].buffer, rows[0].slot, rows[0].start + count, left)] if left else []
    if source or target:
        raise CppError("a copy has more rows on one side than on the other: give both buffers rows of as many bytes")


def _first(rows: Rows, count: int) -> Rows:
    return Rows(rows.buffer, rows.slot, rows.start, count)
