"""Right code that is clean under every schedule, and its wrong twin that is found."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch

import kvstage
from kvstage import HostAccessError, RaceError, ReleasedMemoryError, StagingError

SCHEDULES = ("issue-order", "late", "seeded:1:0", "seeded:1:1", "hold:0:begin", "hold:0:end", "hold:1:begin")


@contextmanager
def on(stream: torch.cuda.Stream) -> Iterator[None]:
    with torch.cuda.stream(stream):
        yield


def upload(waits: bool) -> list[float]:
    """A pinned slot that is filled again: the host must wait for the copy."""
    pinned, sums = torch.zeros(64).pin_memory(), []
    for step in range(3):
        pinned.fill_(step)
        sums.append(pinned.to("cuda", non_blocking=True).sum())
        if waits:
            torch.cuda.current_stream().synchronize()
    return [each.item() for each in sums]


def download(waits: bool) -> list[float]:
    """A copy to pinned memory is read before it has ended."""
    rows = torch.arange(64.0, device="cuda") * 2
    pinned = rows.to("cpu", non_blocking=True)
    assert pinned.is_pinned()
    if waits:
        torch.cuda.synchronize()
    return pinned.tolist()


def side_stream(waits: bool) -> list[float]:
    """What one stream has copied is used on another one."""
    pinned, side = torch.arange(64.0).pin_memory(), torch.cuda.Stream()
    rows = torch.zeros(64, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with on(side):
        rows.copy_(pinned, non_blocking=True)
    if waits:
        torch.cuda.current_stream().wait_stream(side)
    result = (rows + 1).cpu().tolist()
    torch.cuda.synchronize()
    return result


def early_free(waits: bool) -> list[float]:
    """A tensor of a side stream is dropped while the default stream may still use it."""
    side, pinned = torch.cuda.Stream(), torch.arange(64.0).pin_memory()
    with on(side):
        rows = pinned.to("cuda", non_blocking=True)
    torch.cuda.current_stream().wait_stream(side)
    doubled = torch.empty(64, device="cuda")
    torch.mul(rows, 2, out=doubled)
    if waits:
        rows.record_stream(torch.cuda.current_stream())
    del rows
    with on(side):
        other = torch.zeros(64, device="cuda")
        other.add_(1)
    torch.cuda.synchronize()
    return doubled.tolist()


def late_record(waits: bool) -> list[float]:
    """An event that is recorded before the copy that it is meant for."""
    pinned, side, event = torch.zeros(64).pin_memory(), torch.cuda.Stream(), torch.cuda.Event()
    sums = []
    for step in range(2):
        pinned.fill_(step)
        with on(side):
            if not waits:
                event.record()
            rows = pinned.to("cuda", non_blocking=True)
            if waits:
                event.record()
            sums.append(rows.sum())
        event.synchronize()
    torch.cuda.synchronize()
    return [each.item() for each in sums]


def graph_source(waits: bool) -> list[float]:
    """A captured copy reads its pinned source anew in each replay."""
    pinned, rows, result = torch.zeros(64).pin_memory(), torch.zeros(64, device="cuda"), torch.zeros(64, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        rows.copy_(pinned, non_blocking=True)
        result.add_(rows)
    for step in (1.0, 2.0):
        pinned.fill_(step)
        graph.replay()
        if waits:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    return result.tolist()


PAIRS: dict[Callable[[bool], list[float]], tuple[type[StagingError], list[float]]] = {
    upload: (HostAccessError, [0.0, 64.0, 128.0]),
    download: (HostAccessError, [2.0 * each for each in range(64)]),
    side_stream: (RaceError, [each + 1.0 for each in range(64)]),
    early_free: (ReleasedMemoryError, [2.0 * each for each in range(64)]),
    late_record: (HostAccessError, [0.0, 64.0]),
    graph_source: (HostAccessError, [3.0] * 64),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("body", PAIRS, ids=lambda body: body.__name__)
def test_right_code_is_clean_and_gives_the_same(body: Callable[[bool], list[float]], schedule: str) -> None:
    with kvstage.simulated_cuda(schedule) as run:
        result = body(True)
    assert run.findings == ()
    assert result == PAIRS[body][1]


@pytest.mark.parametrize("body", PAIRS, ids=lambda body: body.__name__)
def test_wrong_code_is_one_finding_whose_witness_shows_it(body: Callable[[bool], list[float]]) -> None:
    kind, right = PAIRS[body]
    with kvstage.simulated_cuda(raises=False) as run:
        assert body(False) == right, "issue order hides it"
    (found,) = run.findings
    assert type(found) is kind, found
    assert str(found).count("booted_races.py") >= 2
    with kvstage.simulated_cuda(found.schedule, raises=False) as run:
        result = body(False)
    assert result != right, "under its witness the bytes are wrong"


def test_leaving_raises_what_was_found() -> None:
    with pytest.raises(HostAccessError, match="a wait is missing"), kvstage.simulated_cuda():
        download(False)


def test_a_failure_of_the_code_keeps_its_error_and_gets_the_finding_as_a_note() -> None:
    with pytest.raises(ZeroDivisionError) as caught, kvstage.simulated_cuda():
        print(download(False)[0] / 0)
    assert "a wait is missing" in caught.value.__notes__[0]


def test_one_missing_wait_is_one_finding_of_many_pairs() -> None:
    with kvstage.simulated_cuda(raises=False) as run:
        side = torch.cuda.Stream()
        parts = [torch.full((8,), float(number)).pin_memory() for number in range(6)]
        with on(side):
            moved = [part.to("cuda", non_blocking=True) for part in parts]
        first = moved[0] + 1
        second = moved[1] * 2
        rest = torch.stack(moved[2:])
        torch.cuda.synchronize()
        del first, second, rest
    (found,) = run.findings
    assert "the same wait is missing between 5 more pairs" in str(found)


def test_two_missing_waits_are_two_findings() -> None:
    with kvstage.simulated_cuda(raises=False) as run:
        download(False)
        torch.cuda.synchronize()
        side_stream(False)
    assert [type(each) for each in run.findings] == [HostAccessError, RaceError]


@pytest.mark.parametrize("disjoint", [True, False])
def test_rows_that_an_index_names_are_what_is_touched(disjoint: bool) -> None:
    """A pool whose blocks are written on one stream while others are read on another one, as caches are."""
    with kvstage.simulated_cuda("late", raises=False) as run:
        pool, side = torch.zeros(8, 4, device="cuda"), torch.cuda.Stream()
        write, read = torch.tensor([1, 3], device="cuda"), torch.tensor([0, 2] if disjoint else [2, 3], device="cuda")
        torch.cuda.synchronize()
        pool.index_copy_(0, write, torch.ones(2, 4, device="cuda"))
        with on(side):
            rows = pool.index_select(0, read)
        torch.cuda.synchronize()
        del rows
    assert len(run.findings) == (0 if disjoint else 1)


def ones(*shape: int) -> torch.Tensor:
    return torch.ones(shape, device="cuda")


INDEXED: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "scatter_ a number": lambda pool, index: pool.scatter_(0, index, 5.0),
    "scatter_": lambda pool, index: pool.scatter_(0, index, ones(1, 3)),
    "scatter_ in another dimension": lambda pool, index: pool.t().scatter_(-1, index.t(), ones(3, 1)),
    "scatter_add_": lambda pool, index: pool.scatter_add_(0, index, ones(1, 3)),
    "scatter_reduce_": lambda pool, index: pool.scatter_reduce_(0, index, ones(1, 3), "amax"),
    "gather": lambda pool, index: pool.gather(0, index),
    "gather in another dimension": lambda pool, index: pool.t().gather(1, index.t()),
    "gather out": lambda pool, index: torch.gather(pool, 0, index, out=torch.empty(0, device="cuda")),
    "take_along_dim": lambda pool, index: torch.take_along_dim(pool, index, 0),
    "index_reduce_": lambda pool, index: pool.index_reduce_(0, index[0, :2], ones(2, 3), "amax"),
}
"""Each touches no more than rows 1 and 2 of `pool` [4, 3], by an index [[1, 2, 1]]."""

NAMED = [(1, 0), (2, 1), (1, 2)]
"""The elements that the index names."""


@pytest.mark.parametrize("name", INDEXED)
def test_elements_that_an_index_names_are_what_is_touched(name: str) -> None:
    """Every other element may be written beside it, and none of those that are named."""
    touched = []
    for row in range(4):
        for column in range(3):
            with kvstage.simulated_cuda("late", raises=False) as run:
                pool, index, side = torch.zeros(4, 3, device="cuda"), torch.tensor([[1, 2, 1]], device="cuda"), torch.cuda.Stream()
                torch.cuda.synchronize()
                with on(side):
                    pool[row, column].fill_(7)
                result = INDEXED[name](pool, index)
                torch.cuda.synchronize()
                del result
            touched += [(row, column)] * bool(run.findings)
    assert touched == (sorted(NAMED) if name != "index_reduce_" else [(row, column) for row in (1, 2) for column in range(3)])


def test_what_is_scattered_into_a_new_tensor_reads_all_of_the_old_one() -> None:
    with kvstage.simulated_cuda("late", raises=False) as run:
        pool, index, side = torch.zeros(4, 3, device="cuda"), torch.tensor([[1, 2, 1]], device="cuda"), torch.cuda.Stream()
        torch.cuda.synchronize()
        with on(side):
            pool[0, 0].fill_(7)
        result = pool.scatter(0, index, 5.0)
        torch.cuda.synchronize()
        del result
    assert len(run.findings) == 1


def failing() -> None:
    """An index under way that is beyond the end, which is noticed when the device gets there."""
    with kvstage.simulated_cuda("late"):
        rows, index = torch.zeros(4, device="cuda"), torch.full((1,), 9, device="cuda")
        rows.index_fill_(0, index, 1.0)
        torch.cuda.synchronize()


def test_an_error_of_an_operator_is_raised_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(IndexError) as caught:
        failing()
    assert caught.value.__context__ is None
    monkeypatch.setattr("kvstage.cuda.simulation.raising_once", lambda move: move)
    with pytest.raises(IndexError) as caught:
        failing()
    assert isinstance(caught.value.__context__, IndexError), "without that it is raised again when the run ends"


def test_a_habit_hides_a_race_and_says_its_name() -> None:
    def body() -> None:
        pinned, one, two = torch.ones(8).pin_memory(), torch.cuda.Stream(), torch.cuda.Stream()
        rows = torch.zeros(8, device="cuda")
        torch.cuda.synchronize()
        for stream in (one, two):
            with on(stream):
                rows.copy_(pinned, non_blocking=True)
        torch.cuda.synchronize()

    with pytest.raises(RaceError), kvstage.simulated_cuda():
        body()
    with kvstage.simulated_cuda(counts_on=["one-copy-engine"]):
        body()
    with (
        pytest.raises(ValueError, match="no habit of drivers is called two-engines"),
        kvstage.simulated_cuda(counts_on=["two-engines"]),
    ):
        pass
