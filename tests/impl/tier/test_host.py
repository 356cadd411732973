"""The host tier against a naive copy: whatever sequences do to blocks, what a read gives is what the pool holds."""

import pytest
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from kvstage import HostDevice, LayoutError, PagedPool, Stager, ThreadDevice
from kvstage.errors import BlockIdError, RangeError, TableTooShortError
from kvstage.tier import BlockVersions, HostSequence, HostTier
from kvstage_model.tier import Block, Mirror

BLOCKS, SIZE = 7, 3
WIDTHS = (2, 5)


class Told:
    """A sequence as an engine has it: its blocks, its length, and its copy at the host."""

    def __init__(self, copy: HostSequence) -> None:
        self.table: list[int] = []
        self.length = 0
        self.copy = copy


class Engine(RuleBasedStateMachine):
    """An engine of three sequences over few blocks, which share, rewrite, cut and lose them."""

    kind = HostDevice

    @initialize()
    def start(self) -> None:
        self.device = self.kind()
        self.stager = Stager(self.device, scheme="per_block")
        self.tensors = [torch.zeros(BLOCKS, SIZE, width) for width in WIDTHS]
        self.versions = BlockVersions(BLOCKS, SIZE)
        tier = HostTier(self.stager, self.versions, [PagedPool(tensor) for tensor in self.tensors])
        self.sequences = [Told(tier.sequence()) for _ in range(3)]
        self.free = list(range(BLOCKS))
        self.stamp = 0.0

    def put(self, told: Told, start: int, stop: int) -> None:
        for row in range(start, stop):
            self.stamp += 1
            for tensor in self.tensors:
                tensor[told.table[row // SIZE], row % SIZE] = self.stamp
        self.versions.written(told.table, start, stop)

    def holders(self, block: int) -> int:
        return sum(block in told.table for told in self.sequences)

    @rule(which=st.integers(0, 2), count=st.integers(1, 4))
    def append(self, which: int, count: int) -> None:
        told = self.sequences[which]
        needed = -(-(told.length + count) // SIZE) - len(told.table)
        tail = told.table[-1] if told.length % SIZE and told.table else None
        if needed > len(self.free) or (tail is not None and self.holders(tail) > 1):
            return
        told.table += [self.free.pop() for _ in range(needed)]
        self.put(told, told.length, told.length + count)
        told.length += count

    @rule(which=st.integers(0, 2), data=st.data())
    def rewrite(self, which: int, data: st.DataObject) -> None:
        told = self.sequences[which]
        if told.length:
            start = data.draw(st.integers(0, told.length - 1))
            self.put(told, start, data.draw(st.integers(start + 1, told.length)))

    @rule(which=st.integers(0, 2), data=st.data())
    def truncate(self, which: int, data: st.DataObject) -> None:
        told = self.sequences[which]
        length = data.draw(st.integers(0, told.length))
        keep = -(-length // SIZE)
        if any(self.holders(block) > 1 for block in told.table[length // SIZE :]):
            return
        self.versions.cut(told.table, length)
        self.free += told.table[keep:]
        told.table, told.length = told.table[:keep], length

    @rule(which=st.integers(0, 2))
    def preempt(self, which: int) -> None:
        told = self.sequences[which]
        alone = [block for block in told.table if self.holders(block) == 1]
        self.versions.freed(alone)
        self.free += alone
        told.table, told.length = [], 0

    @rule(which=st.integers(0, 2), other=st.integers(0, 2))
    def share(self, which: int, other: int) -> None:
        """The whole blocks of one sequence become the prefix of another, which is empty."""
        told, source = self.sequences[which], self.sequences[other]
        if which != other and not told.table:
            told.table = source.table[: source.length // SIZE]
            told.length = len(told.table) * SIZE

    @rule(which=st.integers(0, 2))
    @precondition(lambda self: self.free)
    def copy_on_write(self, which: int) -> None:
        told = self.sequences[which]
        if told.table and self.holders(told.table[-1]) > 1:
            old, new = told.table[-1], self.free.pop()
            for tensor in self.tensors:
                tensor[new] = tensor[old]
            told.table = [*told.table[:-1], new]
            self.versions.written(told.table, (len(told.table) - 1) * SIZE, told.length)

    @rule(which=st.integers(0, 2), data=st.data())
    def read(self, which: int, data: st.DataObject) -> None:
        told = self.sequences[which]
        length = data.draw(st.sampled_from([told.length, told.length, data.draw(st.integers(0, told.length))]))
        read = told.copy.read(told.table, length)
        read.wait()
        for rows, tensor in zip(read.rows, self.tensors, strict=True):
            naive = [tensor[told.table[row // SIZE], row % SIZE] for row in range(length)]
            assert torch.equal(rows, torch.stack(naive) if naive else tensor.new_empty(0, tensor.shape[2]))
        again = told.copy.read(told.table, length)
        again.wait()
        assert again.moved == 0

    def teardown(self) -> None:
        if hasattr(self, "stager"):
            self.stager.close()
            self.device.close()


class OnThreads(Engine):
    kind = ThreadDevice


def run(machine: type[Engine], examples: int) -> None:
    unlimited = settings(
        max_examples=examples,
        database=None,
        stateful_step_count=25,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=unlimited)


def test_every_read_gives_what_the_pool_holds() -> None:
    run(Engine, 60)


@pytest.mark.extended
@pytest.mark.parametrize("machine", [Engine, OnThreads])
@pytest.mark.parametrize("part", range(8))
def test_every_read_of_many_engines_gives_what_the_pool_holds(machine: type[Engine], part: int) -> None:
    run(machine, 650)


def reads_right(rewrite_after_cut: bool) -> bool:
    """Two rows are read; then the second is cut and written anew, or written in place; what a read gives after that is right."""
    tensor, versions, table = torch.zeros(4, 2, 1), BlockVersions(4, 2), [3, 1]
    with HostDevice() as device, Stager(device, scheme="per_block") as stager:
        history = HostTier(stager, versions, [PagedPool(tensor)]).sequence()
        versions.written(table, 0, 2)
        history.read(table, 2).wait()
        if rewrite_after_cut:
            versions.cut(table, 1)
        tensor[3, 1] = 5
        versions.written(table, 1, 2)
        read = history.read(table, 2)
        read.wait()
        return read.rows[0].flatten().tolist() == [0, 5]


def appended_always(block: Block, _: int, stop: int) -> Block:
    return Block(block.generation, block.kept, max(block.written, stop))


def cut_unseen(block: Block, length: int) -> Block:
    return Block(block.generation, min(block.kept, length), min(block.written, length))


@pytest.mark.parametrize(("name", "wrong", "after_cut"), [("rewritten", appended_always, False), ("cut", cut_unseen, True)])
def test_a_rule_that_forgets_a_change_is_seen(name: str, wrong: object, after_cut: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert reads_right(after_cut)
    monkeypatch.setattr(f"kvstage.tier.versions.{name}", wrong)
    assert not reads_right(after_cut)


def another_block_right() -> bool:
    """A sequence is read, and read again after another block took the place of its own."""
    tensor, versions = torch.tensor([0.0, 1.0, 2.0, 3.0]).view(4, 1, 1).repeat(1, 2, 1), BlockVersions(4, 2)
    with HostDevice() as device, Stager(device, scheme="per_block") as stager:
        history = HostTier(stager, versions, [PagedPool(tensor)]).sequence()
        for table in ([3], [1]):
            versions.written(table, 0, 2)
        history.read([3], 2).wait()
        read = history.read([1], 2)
        read.wait()
        return read.rows[0].flatten().tolist() == [1, 1]


def test_a_decision_that_forgets_the_block_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert another_block_right()
    monkeypatch.setattr("kvstage.tier.host.still_right", lambda mirror, number, block: mirror.right)
    assert not another_block_right()


def test_a_decode_step_moves_its_new_row_alone() -> None:
    """22 caches of 500 rows, then 8 steps: one row of each, and one copy."""
    versions, table = BlockVersions(40, 16), [*range(39, 3, -1)]
    tensors = [torch.randn(40, 16, 3) for _ in range(22)]
    with HostDevice() as device, Stager(device, scheme="per_block") as stager:
        history = HostTier(stager, versions, [PagedPool(tensor) for tensor in tensors]).sequence()
        versions.written(table, 0, 500)
        first = history.read(table, 500)
        first.wait()
        assert first.moved == 500
        for length in range(501, 509):
            versions.written(table, length - 1, length)
            for tensor in tensors:
                tensor[table[(length - 1) // 16], (length - 1) % 16] = length
            step = history.read(table, length)
            step.wait()
            assert step.moved == 1
            for rows, tensor in zip(step.rows, tensors, strict=True):
                assert torch.equal(rows, tensor[table].flatten(0, 1)[:length])


def test_what_failed_does_not_count_as_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, versions = PagedPool(torch.ones(4, 2, 3)), BlockVersions(4, 2)
    with HostDevice() as device, Stager(device, scheme="per_block") as stager:
        history = HostTier(stager, versions, [pool]).sequence()
        versions.written([3, 1], 0, 4)
        with monkeypatch.context() as patch:
            patch.setattr(device, "copy", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                history.read([3, 1], 4)
        read = history.read([3, 1], 4)
        read.wait()
        assert (read.moved, read.rows[0].sum().item()) == (4, 12)


def test_what_does_not_fit_is_refused_by_name() -> None:
    versions = BlockVersions(4, 2)
    with HostDevice() as device, Stager(device, scheme="per_block") as stager:
        with pytest.raises(LayoutError, match="share their block tables"):
            HostTier(stager, versions, [PagedPool(torch.ones(4, 3, 3))])
        history = HostTier(stager, versions, [PagedPool(torch.ones(4, 2, 3))]).sequence()
        with pytest.raises(TableTooShortError, match="1 blocks, and 3 rows take 2"):
            history.read([3], 3)
        with pytest.raises(BlockIdError, match="block 4"):
            history.read([3, 4], 3)
        with pytest.raises(RangeError):
            history.read([3, 1], -1)
    with pytest.raises(RangeError, match="num_blocks is 0"):
        BlockVersions(0, 2)
    assert versions.block(3).generation == 0
    assert Mirror(-1, 0, 0).right == 0
