"""Bounds, against the sets of cells that an operation touches."""

from collections import Counter
from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvstage_model.language import bounds as module
from kvstage_model.language.bounds import bounds, broken_bound, unaddressed
from kvstage_model.language.buffers import Buffer, Memory, Paged, Rows
from kvstage_model.language.contract import Clause
from kvstage_model.language.operations import (
    Copy,
    Gather,
    HostCopy,
    HostRead,
    HostWrite,
    Launch,
    Operation,
    Release,
    Scatter,
    SyncStream,
)
from kvstage_model.language.paged_rows import PagedRows
from tests.support.programs import cells, total

SMALL = Buffer("small", Memory.PINNED, 2, 3)
LARGE = Buffer("large", Memory.PINNED, 3, 4)


def broken(operation: Operation, row: int = 0, other: int = 0) -> list[str]:
    return [clause.name for clause in bounds(operation, row, other) if clause.premise and not clause.conclusion]


def inside(rows: Rows) -> bool:
    """All cells are among the buffer's; an empty run must lie inside too, and no count is negative."""
    every = {(rows.buffer.name, slot, row) for slot in range(rows.buffer.slots) for row in range(rows.buffer.rows)}
    edges = 0 <= rows.slot < rows.buffer.slots and 0 <= rows.start <= rows.buffer.rows
    return rows.count >= 0 and edges and cells(rows) <= every


def any_rows() -> st.SearchStrategy[Rows]:
    inside = st.sampled_from((0, 0, 1, 1, 2, 3, -1, 5))
    return st.builds(
        Rows, st.sampled_from((SMALL, LARGE)), st.sampled_from((0, 0, 0, 1, 2, -1)), inside, st.sampled_from((1, 1, 2, 3, 4, -1))
    )


def test_a_run_is_inside_where_all_its_cells_are() -> None:
    seen: Counter[bool] = Counter()
    for slot, start, count in product(range(-1, 4), range(-1, 6), range(-1, 6)):
        rows = SMALL.at(slot, start, count)
        assert (not broken(HostRead(rows))) == inside(rows)
        assert (not broken(HostWrite(rows))) == inside(rows)
        seen[inside(rows)] += 1
    assert min(seen.values()) > 10


def test_a_copy_is_whole_where_both_sides_are_equally_long_inside_and_disjoint() -> None:
    seen: Counter[bool] = Counter()

    @settings(max_examples=400, deadline=None, derandomize=True)
    @given(any_rows(), any_rows(), st.booleans())
    def agree(source: Rows, target: Rows, same_length: bool) -> None:
        target = target.buffer.at(target.slot, target.start, source.count) if same_length else target
        whole = inside(source) and inside(target) and source.count == target.count and not cells(source) & cells(target)
        for operation in (Copy("a", source, target), HostCopy(source, target)):
            assert (not broken(operation)) == whole
        seen[whole] += 1

    agree()
    assert min(seen[True], seen[False]) > 20


@pytest.mark.parametrize(
    ("rows", "demand"),
    [
        (SMALL.at(2, 0, 1), "the slot of small exists"),
        (SMALL.at(-1, 0, 1), "the slot of small exists"),
        (SMALL.at(0, 0, -1), "the count of rows of small is not negative"),
        (SMALL.at(0, 2, 2), "the rows of small lie inside its slot"),
        (SMALL.at(0, -1, 1), "the rows of small lie inside its slot"),
    ],
)
def test_each_demand_is_named(rows: Rows, demand: str) -> None:
    assert broken(HostRead(rows)) == [demand]


def test_a_copy_onto_itself_and_one_of_two_lengths_are_named() -> None:
    assert broken(Copy("a", LARGE.at(0, 0, 2), LARGE.at(0, 1, 2))) == ["source and target are disjoint"]
    assert broken(Copy("a", LARGE.at(0, 0, 2), SMALL.at(0, 0, 1))) == ["source and target have as many rows"]
    assert broken(Copy("a", LARGE.at(0, 0, 2), LARGE.at(1, 1, 2))) == []
    assert broken(SyncStream("a")) == []


# -- kernels, row by row


def paged(*table: int, first: int = 0, count: int | None = None, size: int = 2) -> Paged:
    """Rows of a transfer through this table, in a pool of 3 blocks of 2 rows; all of them unless told otherwise."""
    rows = PagedRows(total(table), 3, size, 0, len(table) * size)
    return Paged(POOL, rows, first, len(table) * size if count is None else count)


POOL, FLAT = Buffer("pool", Memory.DEVICE, 3, 2), Buffer("flat", Memory.PINNED, 1, 6)


def reached(access: Paged) -> list[tuple[str, int, int]]:
    """The cell of each of its rows, with repetitions."""
    return [cell for k in range(access.count) for cell in cells(Paged(access.buffer, access.rows, access.first + k, 1))]


def every_cell(*buffers: Buffer) -> set[tuple[str, int, int]]:
    return {(buffer.name, slot, row) for buffer in buffers for slot in range(buffer.slots) for row in range(buffer.rows)}


def test_a_kernel_is_whole_where_each_row_is_inside_and_none_is_written_twice() -> None:
    """Against the cells, for all tables of two blocks of a pool of three and one block that is not there."""
    seen: Counter[tuple[str, bool]] = Counter()
    for table, first, count in product(product(range(-1, 4), repeat=2), range(3), range(1, 4)):
        access = paged(*table, first=first, count=count)
        if first + count > 4:
            continue
        found, flat = reached(access), FLAT.at(0, 0, count)
        inside, once = set(found) <= every_cell(POOL), len(set(found)) == len(found)
        for operation, whole in (
            (Gather("a", access, flat), inside),
            (Launch("a", (access,)), inside),
            (Scatter("a", flat, access), inside and once),
            (Launch("a", (), (access,)), inside and once),
        ):
            assert (broken_bound(operation) is None) == whole, (table, first, count)
            seen[type(operation).__name__, whole] += 1
    assert len(seen) == 6
    assert min(seen.values()) > 20


def test_a_kernel_is_outside_where_its_target_is() -> None:
    assert broken_bound(Gather("a", paged(0, 1), FLAT.at(0, 2, 4))) is None
    assert broken_bound(Gather("a", paged(0, 1), FLAT.at(0, 3, 4))) == "the rows of flat lie inside its slot"
    assert broken_bound(Scatter("a", FLAT.at(1, 0, 4), paged(0, 1))) == "the slot of flat exists"


@pytest.mark.parametrize("count", [3, 5])
def test_a_kernel_of_two_lengths_is_named(count: int) -> None:
    assert broken_bound(Gather("a", paged(0, 1), FLAT.at(0, 0, count))) == "source and target have as many rows"
    assert broken_bound(Scatter("a", FLAT.at(0, 0, count), paged(0, 1))) == "source and target have as many rows"


def test_a_kernel_of_a_negative_count_is_named() -> None:
    assert broken_bound(Gather("a", paged(0, 1, count=-1), FLAT.at(0, 0, -1))) == "the count of rows of pool is not negative"


def test_a_kernel_may_read_a_row_twice_but_not_write_it_twice() -> None:
    assert broken_bound(Gather("a", paged(1, 1), FLAT.at(0, 0, 4))) is None
    assert broken_bound(Scatter("a", FLAT.at(0, 0, 4), paged(1, 1))) == "no row of pool is written twice"
    assert broken_bound(Scatter("a", FLAT.at(0, 0, 2), paged(1, 1, first=1, count=2))) is None, "row 1 of block 1, then its row 0"


def test_without_the_demand_a_row_may_be_written_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    def fewer(operation: Operation, row: int, other: int) -> Iterator[Clause]:
        return (clause for clause in bounds(operation, row, other) if "twice" not in clause.name)

    monkeypatch.setattr(module, "bounds", fewer)
    assert broken_bound(Scatter("a", FLAT.at(0, 0, 4), paged(1, 1))) is None


def test_a_gather_within_one_buffer_reads_no_row_that_it_writes() -> None:
    """A kernel packs rows of the pool into the pool: only where no row is both read and written."""
    seen: Counter[bool] = Counter()
    for table, slot, start in product(product(range(3), repeat=2), range(3), range(2)):
        source, target = paged(*table, count=1), POOL.at(slot, start, 1)
        apart = not set(reached(source)) & cells(target)
        assert (broken_bound(Gather("a", source, target)) is None) == apart
        assert (broken_bound(Scatter("a", target, source)) is None) == apart
        assert (broken_bound(Launch("a", (source,), (target,))) is None) == apart
        assert broken_bound(Launch("a", (source,), (target,), in_place=True)) is None, "it says that it orders them itself"
        seen[apart] += 1
    assert min(seen.values()) > 5


def test_what_one_kernel_writes_is_disjoint() -> None:
    """Nothing orders its threads."""
    seen: Counter[bool] = Counter()
    for first, second in product(
        [SMALL.at(slot, start, count) for slot in (0, 1) for start in (0, 1) for count in (0, 1, 2)], repeat=2
    ):
        apart = not cells(first) & cells(second)
        assert (broken_bound(Launch("a", writes=(first, second))) is None) == apart
        same = (first.slot, first.start, first.count) == (second.slot, second.start, second.count)
        assert (broken_bound(Launch("a", reads=(first,), writes=(second,))) is None) == (apart or same)
        seen[apart] += 1
    assert min(seen.values()) > 10
    assert broken_bound(Launch("a", writes=(FLAT.at(0, 0, 2), FLAT.at(0, 1, 2)))) == "what one kernel writes is disjoint"


@pytest.mark.parametrize("memory", Memory)
def test_the_host_touches_all_but_the_devices_memory(memory: Memory) -> None:
    rows, home = Buffer("rows", memory, 1, 2).at(0, 0, 1), SMALL.at(0, 0, 1)
    for operation in (HostRead(rows), HostWrite(rows), HostCopy(rows, home), HostCopy(home, rows)):
        names = [clause.name for clause in unaddressed(operation) if clause.premise and not clause.conclusion]
        expected = ["the host can address rows, which is memory of the device"] if memory is Memory.DEVICE else []
        assert names == expected
    for later in (Copy("a", rows, home), Launch("a", (rows,), (rows,)), Release(rows), SyncStream("a")):
        assert list(unaddressed(later)) == []
