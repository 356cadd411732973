"""One size of rows for all memory that shares bytes, or copies to one another."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from kvstage_model.language.buffers import Access, Buffer, Listed, Paged, Rows, parts
from kvstage_model.language.operations import Operation, moves, placed, reads, writes
from kvstage_model.ordering.program import Issued


@dataclass(frozen=True, slots=True)
class Lies:
    """Where a buffer lies: its first and last address, the bytes from slot to slot and from row to row, and those of a row.

    A `bytewise` one is memory that was not viewed as slots and rows.
    """

    start: int
    stop: int
    slot: int
    row: int
    width: int
    bytewise: bool = False

    def run(self, rows: Rows) -> tuple[int, int]:
        """First address and length of a run of rows; if rows have gaps, with those in between."""
        length = (rows.count - 1) * self.row + self.width if rows.count else 0
        return self.start + rows.slot * self.slot + rows.start * self.row, length


@dataclass(eq=False)
class _Shared:
    """Memory that is one buffer, as far as its buffers share bytes; `unit` is what all that copy to one another have."""

    buffers: list[Buffer]
    start: int
    stop: int
    whole: Buffer | None = None
    unit: int = 1


class RowUnits:
    """The accesses of a program, with buffers that share no byte."""

    def __init__(self, lies: Mapping[Buffer, Lies], program: Sequence[Issued]) -> None:
        self._lies = lies
        self._known = {_key(buffer): buffer for buffer in lies}
        operations = [issued.operation for issued in program]
        touched = [access for operation in operations for access in (*reads(operation), *writes(operation))]
        used = dict.fromkeys(buffer for buffer in map(self._buffer, touched) if buffer is not None)
        self._shared = {buffer: shared for shared in _sharing(list(used), lies) for buffer in shared.buffers}
        for together in self._together(operations):
            self._measure(together, touched)

    def changed(self, operation: Operation) -> Operation:
        """An operation with its accesses as they are told."""
        return placed(operation, self._told)

    def _told(self, access: Access) -> Access:
        shared = self._memory(access)
        if shared is None or shared.whole is None:
            return access
        runs = [((start - shared.start) // shared.unit, length // shared.unit) for start, length in self._runs(access)]
        if isinstance(access, Rows):
            return shared.whole.at(0, *runs[0])
        places = tuple((0, start + row) for start, count in runs for row in range(count))
        return Paged(shared.whole, Listed(places), 0, len(places))

    def _buffer(self, access: Access) -> Buffer | None:
        """The buffer of an access; another party's stands for the one of its name and size."""
        return access.buffer if access.buffer in self._lies else self._known.get(_key(access.buffer))

    def _memory(self, access: Access) -> _Shared | None:
        buffer = self._buffer(access)
        return None if buffer is None else self._shared.get(buffer)

    def _runs(self, access: Access) -> Iterator[tuple[int, int]]:
        buffer = self._buffer(access)
        assert buffer is not None
        return (self._lies[buffer].run(rows) for rows in parts(access))

    def _together(self, operations: Sequence[Operation]) -> list[list[_Shared]]:
        """Memory that rows move between: row r of the one is row r of the other, so their rows have one size."""
        groups: dict[int, list[_Shared]] = {id(shared): [shared] for shared in self._shared.values()}
        for operation in operations:
            for pair in moves(operation):
                one, other = (groups.get(id(self._memory(end))) for end in pair)
                if one is not None and other is not None and one is not other:
                    one += other
                    groups.update((id(shared), one) for shared in other)
        return list({id(group): group for group in groups.values()}.values())

    def _measure(self, together: list[_Shared], touched: Sequence[Access]) -> None:
        """Gives each of these memories one buffer, if they can't stay as they are."""
        if all(len(shared.buffers) == 1 and not self._lies[shared.buffers[0]].bytewise for shared in together):
            return
        mine = {id(shared) for shared in together}
        unit = 0
        for access, memory in ((access, self._memory(access)) for access in touched):
            if memory is not None and id(memory) in mine:
                unit = gcd(unit, *(number for start, length in self._runs(access) for number in (start - memory.start, length)))
        for shared in together:
            first = min(shared.buffers, key=lambda buffer: self._lies[buffer].bytewise)  # a view was told which memory it is
            shared.unit = max(unit, 1)
            shared.whole = Buffer(first.name, first.memory, 1, -(-(shared.stop - shared.start) // shared.unit))


def _key(buffer: Buffer) -> tuple[str, int, int]:
    return buffer.name, buffer.slots, buffer.rows


def _sharing(buffers: Sequence[Buffer], lies: Mapping[Buffer, Lies]) -> Iterator[_Shared]:
    """The buffers whose bytes lie in one another, together."""
    found: _Shared | None = None
    for buffer in sorted(buffers, key=lambda each: lies[each].start):
        where = lies[buffer]
        if found is not None and where.start < found.stop:
            found.buffers.append(buffer)
            found.stop = max(found.stop, where.stop)
            continue
        if found is not None:
            yield found
        found = _Shared([buffer], where.start, where.stop)
    if found is not None:
        yield found
