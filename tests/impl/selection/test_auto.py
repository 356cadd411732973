"""`scheme="auto"` against the definition: the least of the model over every scheme that the memory allows."""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kvstage import AcceleratorDevice, HostDevice, PagedPool, SchemeError, SimDevice, Stager, ThreadDevice
from kvstage.costs import HOST, PCIE_5, Costs
from kvstage.selection import auto
from kvstage.selection.auto import Auto, Case
from kvstage_model.language.buffers import Memory
from kvstage_model.language.operations import Copy, Gather, HostCopy, Scatter, SyncEvent, SyncStream
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.parameters import declared
from kvstage_model.language.scheme import Direction, Scheme
from kvstage_model.ordering.program import unroll
from kvstage_model.schedules.schedule import IssueOrder
from kvstage_model.schemes import registry
from kvstage_model.schemes.registry import LIBRARY, usual_chunk
from tests.support.fake_accelerator import fake
from tests.support.plain import plain_read, random_blocks, random_rows, same

__all__ = ["fake"]


def built(name: str, rows: PagedRows, case: Case, most: int) -> Scheme:
    function = LIBRARY[name].read if case.direction is Direction.READ else LIBRARY[name].write
    options = {"rows": rows, "slots": case.slots, "chunk": usual_chunk(rows), "most": most if case.gapless else 1}
    return function(**{parameter.name: options[parameter.name] for parameter in declared(function)})


def pinned_bytes(name: str, rows: PagedRows, case: Case, most: int) -> int:
    """What a scheme holds in pinned memory: its staging, and the rows at the host where the stager lends them."""
    scheme = built(name, rows, case, most)
    callers = [] if case.borrows else [scheme.result.host.name]
    held = [each for each in scheme.buffers if each.memory is Memory.PINNED and each.name not in callers]
    return sum(each.slots * each.rows * case.row_bytes for each in held)


def seconds(name: str, rows: PagedRows, case: Case, costs: Costs, most: int) -> float:
    """By the formula, counting what each step of the scheme issues."""
    kinds: Counter[type] = Counter()
    moved = taken = 0
    for each in unroll([built(name, rows, case, most)]):
        if each.phase != "caller":
            kinds[type(each.operation)] += 1
            moved += each.operation.source.count if isinstance(each.operation, Copy | Gather | Scatter) else 0
            taken += each.operation.source.count if isinstance(each.operation, HostCopy) else 0
    issued = (kinds[SyncStream] + kinds[SyncEvent]) * costs.wait + kinds[Copy] * costs.copy
    issued += (kinds[Gather] + kinds[Scatter]) * costs.launch
    return issued + case.row_bytes * (moved / costs.bandwidth + taken / costs.host_bandwidth)


def allowed(name: str, case: Case, costs: Costs) -> bool:
    """Whether a scheme can run with this memory, from what its buffers say."""
    if name in ("direct", "gather_pinned", "gather_copy") and not case.pinned:
        return False
    reached = {"gather_pinned": Memory.PINNED, "gather_host": Memory.PAGEABLE}.get(name)
    reached = Memory.DEVICE if name in ("gather", "gather_copy") else reached
    return reached is None or reached in costs.kernels


KERNELS = [frozenset(), frozenset({Memory.DEVICE}), frozenset({Memory.DEVICE, Memory.PINNED}), frozenset(Memory)]


@st.composite
def cases(draw):
    size = draw(st.sampled_from([1, 2, 4]))
    blocks = draw(st.integers(1, 8))
    table = draw(st.one_of(st.permutations(range(blocks)), st.just(list(range(blocks)))))
    start = draw(st.integers(0, blocks * size - 1))
    stop = draw(st.integers(start + 1, blocks * size))
    rows = PagedRows(list(table).__getitem__, blocks, size, start, stop)
    direction, flags = draw(st.sampled_from(Direction)), draw(st.tuples(st.booleans(), st.booleans()))
    width = draw(st.sampled_from([2, 514, 1024]))
    left = draw(st.one_of(st.none(), st.integers(0, 2 * (stop - start)).map(width.__mul__)))
    return rows, Case(direction, width, *flags, draw(st.integers(1, 4)), left, draw(st.booleans()))


@given(
    cases(),
    st.sampled_from(KERNELS),
    st.tuples(*[st.sampled_from([1e-7, 1e-6, 1e-5, 1e-4])] * 3),
    st.tuples(*[st.sampled_from([1e6, 1e8, 5e10])] * 2),
    st.sampled_from([1, 3, registry.CHUNK]),
)
@settings(max_examples=400, deadline=None)
def test_nothing_that_is_possible_is_quicker(case, kernels, times, bandwidths, chunk):
    (rows, case), costs = case, Costs(*times, *bandwidths, kernels, "drawn")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "CHUNK", chunk)  # so that a few slots may be less than all rows
        check_choice(rows, case, costs)


def check_choice(rows: PagedRows, case: Case, costs: Costs) -> None:
    most = usual_chunk(rows)
    takes = {name: pinned_bytes(name, rows, case, most) for name in LIBRARY if allowed(name, case, costs)}
    choice = Auto(costs).choose(rows, case, most, takes.__getitem__)
    fitting = [name for name, size in takes.items() if case.left is None or size <= case.left]
    if not fitting:
        assert takes[choice.scheme] == min(takes.values())
        return
    assert choice.scheme in fitting
    expected = {name: seconds(name, rows, case, costs, most) for name in fitting}
    assert choice.seconds == pytest.approx(expected[choice.scheme])
    assert choice.seconds == pytest.approx(min(expected.values()))


def test_where_not_all_rows_fit_a_few_slots_do():
    """A ring and runs wait for each block of these, gather for each 2048 rows."""
    table = [7 * k % 1024 for k in range(1024)]
    rows = PagedRows(table.__getitem__, 1024, 32, 0, 32768)
    budget = 4 * 2048 * 1024
    takes = {"gather_pinned": 4 * budget, "direct": 4 * budget, "gather_copy": 4 * budget, "ring": 4 * 32768, "per_run": 32768}
    choice = Auto(PCIE_5).choose(rows, Case(Direction.READ, 1024, True, True, 4, budget), 2048, (takes | {"gather": budget}).get)
    assert choice.scheme == "gather"
    assert choice.why.startswith("gather: 16 copies, 16 kernels and 16 waits")


NO_KERNELS = replace(PCIE_5, kernels=frozenset())
KEPT_TO_THE_DEVICE = replace(PCIE_5, kernels=frozenset({Memory.DEVICE}))
SCATTERED, IN_ORDER = [7, 2, 11, 0, 9, 4, 13, 6], [3, 4, 5, 6, 7, 8, 9, 10]


@pytest.mark.parametrize(
    ("table", "stop", "pinned", "costs", "scheme"),
    [
        (SCATTERED, 256, True, HOST, "gather_host"),
        (SCATTERED, 256, True, PCIE_5, "gather_pinned"),
        (SCATTERED, 256, False, PCIE_5, "gather"),
        (SCATTERED, 256, True, KEPT_TO_THE_DEVICE, "gather_copy"),
        (SCATTERED, 256, True, NO_KERNELS, "direct"),
        (SCATTERED, 256, False, NO_KERNELS, "ring"),
        (IN_ORDER, 256, False, NO_KERNELS, "per_run"),
        (SCATTERED, 20, True, replace(PCIE_5, launch=6e-6), "direct"),
        (SCATTERED, 40, True, replace(PCIE_5, launch=6e-6), "gather_pinned"),
    ],
)
def test_the_runs_and_the_memory_decide(table, stop, pinned, costs, scheme):
    rows = PagedRows(table.__getitem__, 16, 32, 0, stop)
    choice = Auto(costs).choose(rows, Case(Direction.READ, 1024, pinned, True, 4), usual_chunk(rows))
    assert choice.scheme == scheme
    assert choice.why.startswith(f"{scheme}: ")
    assert "; next " in choice.why
    assert choice.why.endswith(f"(costs {costs.source})")


def test_the_same_rows_are_not_thought_about_again(monkeypatch):
    asked = []
    real = auto.counts
    monkeypatch.setattr(auto, "counts", lambda name, *rest, **more: (asked.append(name), real(name, *rest, **more))[1])
    pools = [PagedPool(torch.rand(16, 4, width)) for width in (2, 3, 2)]
    stager = Stager(HostDevice(), costs=PCIE_5)
    choices = [stager.read(pool, SCATTERED, 1, 30).choice for pool in pools]
    assert choices[0] is choices[2] is not choices[1]
    thought = len(asked)
    stager.read(pools[0], SCATTERED, 1, 29)
    assert thought < len(asked) <= 2 * thought


@pytest.mark.parametrize("make", [HostDevice, ThreadDevice, lambda: SimDevice(IssueOrder())])
def test_a_stager_needs_no_scheme(make):
    blocks = random_blocks(1, 16, 4, (3,), torch.bfloat16, padding=1)
    pool = PagedPool(blocks.tensor)
    with make() as device, Stager(device) as stager:
        rows = random_rows(2, 20, (3,), torch.bfloat16)
        write = stager.write(pool, SCATTERED, 3, rows)
        write.wait()
        read = stager.read(pool, SCATTERED, 3, 23)
        read.wait()
        assert same(read.result(), rows)
        for direction, transfer in [(Direction.READ, read), (Direction.WRITE, write)]:
            assert transfer.choice is not None
            assert transfer.choice.scheme in LIBRARY
            assert stager.choice(pool, SCATTERED, 3, 23, direction).scheme in LIBRARY
        assert stager.costs is not None
        again = Stager(device, costs=stager.costs)
        assert again.costs is stager.costs
    assert same(read.result(), plain_read(blocks.tensor, SCATTERED, 3, 23))


def test_a_scheme_that_is_named_is_not_chosen():
    pool = PagedPool(torch.rand(16, 4, 3))
    stager = Stager(HostDevice(), scheme="per_row")
    read = stager.read(pool, [1], 0, 2)
    assert (read.stats.copies, read.choice, stager.costs, stager.choice(pool, [1], 0, 2)) == (2, None, None, None)
    with pytest.raises(SchemeError, match="costs are what 'auto' picks"):
        Stager(HostDevice(), scheme="per_row", costs=PCIE_5)


def test_rows_in_ordinary_memory_pass_through_pinned_memory_on_an_accelerator(fake):
    pool = PagedPool(fake.on_device(torch.rand(16, 32, 64)))
    with AcceleratorDevice() as device, Stager(device, costs=PCIE_5) as stager:
        ordinary, pinned = torch.empty(256, 64), fake.pin(torch.empty(256, 64))
        schemes = []
        for out in (None, ordinary, pinned):
            read = stager.read(pool, SCATTERED, 0, 256, out=out)
            read.wait()
            assert same(read.result(), plain_read(pool.tensor, SCATTERED, 0, 256))
            schemes.append(read.choice.scheme)
        assert schemes == ["gather_pinned", "gather", "gather_pinned"]
        assert stager.write(pool, SCATTERED, 0, ordinary).choice.scheme == "gather"
