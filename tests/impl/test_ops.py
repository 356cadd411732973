"""The operators: what they move, and what a compiler sees of them."""

import gc

import pytest
import torch

from kvstage import ClosedError, HostDevice, RangeError, Stager, ops
from tests.support.plain import plain_read, plain_write, random_blocks, random_rows, same

TABLE = torch.tensor([4, 1, 5, -1])


@pytest.fixture
def stager():
    with Stager(HostDevice(), scheme="gather_host") as stager:
        yield stager


def test_they_are_the_stagers_own_calls(stager):
    blocks, number = random_blocks(1, 6, 4, (3,), torch.bfloat16, padding=2), ops.number_of(stager)
    rows = random_rows(2, 7, (3,), torch.bfloat16)
    after = plain_write(blocks, TABLE.tolist(), 3, rows)
    torch.ops.kvstage.write(blocks.tensor, TABLE, 3, rows, number)
    assert torch.equal(blocks.base, after)
    assert same(torch.ops.kvstage.read(blocks.tensor, TABLE, 3, 10, number), rows)
    assert same(torch.ops.kvstage.read(blocks.tensor, TABLE, 1, 12, number), plain_read(blocks.tensor, TABLE.tolist(), 1, 12))
    assert torch.ops.kvstage.read(blocks.tensor, TABLE, 5, 5, number).shape == (0, 3)


def test_results_are_memory_of_their_own(stager):
    blocks, number = random_blocks(1, 6, 4, (3,), torch.float32), ops.number_of(stager)
    first = torch.ops.kvstage.read(blocks.tensor, TABLE, 0, 8, number)
    kept = first.clone()
    torch.ops.kvstage.read(blocks.tensor, TABLE, 4, 12, number)
    assert same(first, kept)


def test_a_number_belongs_to_one_stager_for_its_life(stager):
    other = Stager(HostDevice(), scheme="gather_host")
    number = ops.number_of(other)
    assert ops.number_of(stager) == ops.number_of(stager) != number == ops.number_of(other)
    pool = torch.zeros(6, 4, 3)
    del other
    gc.collect()
    with pytest.raises(ClosedError, match=f"no stager of number {number}"):
        torch.ops.kvstage.read(pool, TABLE, 0, 4, number)
    assert ops.number_of(Stager(HostDevice(), scheme="gather_host")) != number
    with pytest.raises(RangeError, match="start is -1"):
        torch.ops.kvstage.read(pool, TABLE, -1, 4, ops.number_of(stager))


def attention(pool: torch.Tensor, table: torch.Tensor, start: int, fresh: torch.Tensor, query: torch.Tensor, number: int):
    """Puts fresh rows into the cache, reads the whole history, and attends to it."""
    torch.ops.kvstage.write(pool, table, start, fresh, number)
    history = torch.ops.kvstage.read(pool, table, 0, start + fresh.shape[0], number)
    return torch.softmax(query @ history.T, dim=-1) @ history


def test_the_full_graph_compiles_once_for_every_length(stager):
    number, compiled = ops.number_of(stager), []

    def backend(graph, inputs):
        compiled.append([node.target for node in graph.graph.nodes if "kvstage" in str(node.target)])
        return graph

    def step(pool, table, start, fresh, query):
        return attention(pool, table, start, fresh, query, number)

    fast = torch.compile(step, fullgraph=True, dynamic=True, backend=backend)
    pool, generator = torch.zeros(6, 4, 8), torch.Generator().manual_seed(1)
    expected_pool, start = pool.clone(), 0
    for length in (3, 2, 5, 2):
        fresh, query = torch.randn(length, 8, generator=generator), torch.randn(length, 8, generator=generator)
        found = fast(pool, TABLE, start, fresh, query)
        assert same(found, attention(expected_pool, TABLE, start, fresh, query, number))
        assert same(pool, expected_pool)
        start += length
    assert len(compiled) <= 2, "once, and once more at most for the length 0 of the history before the first step"
    assert all(len(each) == 2 for each in compiled)


def test_aot_sees_what_is_written(stager):
    """The tracer behind most compilers asks the fakes, and must keep a write between two reads."""
    number = ops.number_of(stager)

    def step(pool, table, fresh):
        before = torch.ops.kvstage.read(pool, table, 0, 4, number)
        torch.ops.kvstage.write(pool, table, 1, fresh, number)
        return before, torch.ops.kvstage.read(pool, table, 0, 4, number)

    pool, fresh = torch.rand(6, 4, 3), torch.rand(2, 3)
    old, new = plain_read(pool, [4], 0, 4), torch.cat([pool[4, :1], fresh, pool[4, 3:]])
    before, after = torch.compile(step, fullgraph=True, backend="aot_eager")(pool, TABLE, fresh)
    assert same(before, old)
    assert same(after, new)
    assert same(pool[4].clone(), new)


@pytest.mark.extended
@pytest.mark.parametrize("direction", ["read", "write"])
def test_torchs_own_check_of_operators(stager, direction):
    number, pool = ops.number_of(stager), torch.rand(6, 4, 3)
    arguments = (pool, TABLE, 1, 7, number) if direction == "read" else (pool, TABLE, 1, torch.rand(6, 3), number)
    checks = torch.library.opcheck(getattr(torch.ops.kvstage, direction).default, arguments)
    assert set(checks.values()) == {"SUCCESS"}


@pytest.mark.parametrize("backend", [None, "aot_eager"])
def test_no_gradient_and_no_trace_of_one(stager, backend):
    """A pool that requires grad is read as a constant; torch's own rule would give rows that claim a graph, and fail in it."""
    number, weight = ops.number_of(stager), torch.ones(3, requires_grad=True)

    def loss(pool, weight):
        return (torch.ops.kvstage.read(pool, TABLE, 0, 4, number) * weight).sum()

    run = loss if backend is None else torch.compile(loss, fullgraph=True, backend=backend)
    leaf = torch.full((6, 4, 3), 2.0, requires_grad=True)
    for pool in (leaf, leaf * 2):
        rows = torch.ops.kvstage.read(pool, TABLE, 0, 4, number)
        assert not rows.requires_grad
        weight.grad = None
        run(pool, weight).backward()
        assert same(weight.grad, pool.detach()[4].sum(0))
        assert leaf.grad is None


def test_twin_without_the_rule_rows_claim_a_graph_that_fails(stager):
    @torch.library.custom_op("kvstage_test::read", mutates_args=())
    def read(pool: torch.Tensor) -> torch.Tensor:
        return pool[4].detach().clone()

    rows = read(torch.ones(6, 4, 3, requires_grad=True))
    assert rows.requires_grad
    with pytest.raises(RuntimeError, match="autograd"):
        rows.sum().backward()
