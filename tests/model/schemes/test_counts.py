"""The counts of the library's schemes against what their steps issue, one by one."""

from collections import Counter
from itertools import product

import pytest

from kvstage_model.language.operations import Copy, Gather, HostCopy, Scatter, SyncEvent, SyncStream
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.parameters import declared
from kvstage_model.language.scheme import Direction
from kvstage_model.ordering.program import unroll
from kvstage_model.schemes.counts import counts
from kvstage_model.schemes.loop import Loop
from kvstage_model.schemes.registry import COPY, ENTRIES, LIBRARY, usual_chunk
from kvstage_model.search.instances import small_values

TABLES = ((3, 0, 1, 5, 4), (2, 3, 4, 5, 0))
TRANSFERS = [
    PagedRows(table.__getitem__, 6, size, start, stop)
    for table, size, start, stop in product(TABLES, (1, 3), range(4), range(15))
    if start <= stop <= size * 5
]


LOOPS = {loop.scheme.__name__: loop for entry in ENTRIES for loop in (entry.loops.read, entry.loops.write)}


@pytest.mark.parametrize("name", LIBRARY)
@pytest.mark.parametrize("direction", Direction)
def test_the_counts_are_those_of_the_steps(name: str, direction: Direction) -> None:
    function = LIBRARY[name].read if direction is Direction.READ else LIBRARY[name].write
    wanted = {parameter.name for parameter in declared(function)}
    seen = set()
    for rows, slots, most in product(TRANSFERS, (1, 3), (1, 4)):
        options = {"rows": rows, "slots": slots, "most": most, "chunk": usual_chunk(rows)}
        scheme = function(**{key: options[key] for key in wanted})
        kinds: Counter[type] = Counter()
        moved = taken = 0
        for each in unroll([scheme]):
            if each.phase != "caller":
                operation = each.operation
                kinds[type(operation)] += 1
                if isinstance(operation, Copy | Gather | Scatter):
                    moved += operation.source.count
                if isinstance(operation, HostCopy):
                    taken += operation.source.count
        found = counts(name, direction, rows, slots=slots, most=most)
        assert found.copies == kinds[Copy]
        assert found.waits == kinds[SyncStream] + kinds[SyncEvent]
        assert found.launches == kinds[Gather] + kinds[Scatter]
        assert (found.moved, found.taken) == (moved, taken)
        seen.add(found)
    assert len(seen) > 5


WAITING = (SyncStream, SyncEvent)


def test_copies_between_pools_are_counted_too() -> None:
    assert {COPY.read, COPY.write} <= {loop.scheme for loop in LOOPS.values()}


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS.keys())
def test_a_tally_is_what_small_calls_issue(loop: Loop) -> None:
    """By kind, and in all: a copy, kernel or wait that no tally names would be one too many."""
    calls = set()
    for values in small_values(declared(loop.scheme), 3):
        stated = Counter({named.kind: 1 for named in loop.once})
        for named, steps in loop.tally.items():
            first, past = steps(**values)
            stated[named.kind] += past - first
        issued = [each.operation for each in unroll([loop.scheme(**values)]) if each.phase != "caller"]
        counting = [type(operation) for operation in issued if isinstance(operation, (Copy, Gather, Scatter, *WAITING))]
        assert Counter(counting) == +stated
        calls.add(len(counting))
    assert len(calls) > 1
