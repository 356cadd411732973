"""What torch documents of streams, events, copies and memory, on the simulated device."""

import threading

import pytest
import torch

import kvstage

LATE = ("issue-order", "late")


@pytest.fixture(params=LATE)
def run(request):
    with kvstage.simulated_cuda(request.param) as run:
        yield run


def test_an_event_never_recorded_has_ended_and_holds_nothing_up(run):
    event = torch.cuda.Event()
    assert event.query()
    event.synchronize()
    torch.cuda.current_stream().wait_event(event)


def test_nothing_ends_late_before_it_is_waited_for():
    with kvstage.simulated_cuda("late"):
        event = torch.cuda.Event()
        torch.ones(4, device="cuda").add_(1)
        event.record()
        assert not event.query()
        event.synchronize()
        assert event.query()


def test_a_wait_is_for_the_record_before_it():
    """The record that comes after the wait moves the event, and not the wait."""
    with kvstage.simulated_cuda("late", raises=False) as run:
        side, event, pinned = torch.cuda.Stream(), torch.cuda.Event(), torch.ones(8).pin_memory()
        with torch.cuda.stream(side):
            event.record()
            torch.cuda.current_stream().wait_event(event)
        torch.cuda.default_stream().wait_event(event)
        with torch.cuda.stream(side):
            rows = pinned.to("cuda", non_blocking=True)
            event.record()
        doubled = rows * 2
        torch.cuda.synchronize()
        del doubled
    (found,) = run.findings
    assert "nothing orders them" in str(found)


def test_polling_ends():
    with kvstage.simulated_cuda("late"):
        torch.ones(4, device="cuda")
        asked = 0
        while not torch.cuda.current_stream().query():
            asked += 1
        assert asked < 1000


@pytest.mark.parametrize("schedule", LATE)
def test_a_pageable_source_is_read_before_the_copy_returns(schedule):
    with kvstage.simulated_cuda(schedule):
        source = torch.ones(8)
        rows = source.to("cuda", non_blocking=True)
        source.fill_(5)
        assert rows.tolist() == [1.0] * 8


@pytest.mark.parametrize("schedule", LATE)
def test_a_copy_to_pageable_memory_has_ended_when_it_returns(schedule):
    with kvstage.simulated_cuda(schedule):
        target = torch.zeros(8)
        target.copy_(torch.ones(8, device="cuda") * 3, non_blocking=True)
        assert target.tolist() == [3.0] * 8


def test_a_converted_copy_reads_a_pinned_source_late_if_it_does_not_block():
    with kvstage.simulated_cuda(raises=False) as run:
        pinned = torch.ones(8).pin_memory()
        rows = pinned.to("cuda", torch.float16, non_blocking=True)
        pinned.fill_(2)
        torch.cuda.synchronize()
        del rows
    assert len(run.findings) == 1
    with kvstage.simulated_cuda() as run:
        pinned = torch.ones(8).pin_memory()
        rows = pinned.to("cuda", torch.float16)
        pinned.fill_(2)
        assert rows.tolist() == [1.0] * 8


def test_a_copy_is_torn_where_the_host_looks_in_between():
    with kvstage.simulated_cuda("hold:1:end", raises=False):
        pinned, rows = torch.zeros(8).pin_memory(), torch.ones(8, device="cuda")
        pinned.copy_(rows, non_blocking=True)
        assert pinned.tolist() == [1.0] * 4 + [0.0] * 4


def test_freed_memory_is_used_again_in_the_order_of_its_own_stream(run):
    for step in range(4):
        rows = torch.full((8,), float(step), device="cuda")
        assert (rows * 2).tolist() == [2.0 * step] * 8


def test_a_pinned_tensor_may_be_dropped_under_a_copy_of_torchs(run):
    def moved():
        return torch.arange(8.0).pin_memory().to("cuda", non_blocking=True)

    rows = [moved() for _ in range(4)]
    assert all(each.tolist() == list(range(8)) for each in rows)


def test_threads_have_their_own_current_stream(run):
    side, seen = torch.cuda.Stream(), []
    with torch.cuda.stream(side):
        thread = threading.Thread(target=lambda: seen.append(torch.cuda.current_stream() == torch.cuda.default_stream()))
        thread.start()
        thread.join()
        assert torch.cuda.current_stream() == side
    assert seen == [True]


@pytest.mark.parametrize("joined", [True, False])
def test_backward_runs_on_the_stream_of_the_forward(joined):
    with kvstage.simulated_cuda("late", raises=False) as run:
        side, weight = torch.cuda.Stream(), torch.ones(4, device="cuda", requires_grad=True)
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            loss = (weight * 3).sum()
        if joined:
            torch.cuda.current_stream().wait_stream(side)
        loss.backward()
        assert weight.grad.tolist() == [3.0] * 4
        torch.cuda.synchronize()
    streams = {each.operation.stream for each in run.accesses.noted if "mul" in each.what or "expand" in each.what}
    assert streams == {side.name}, "the product, and its derivative"
    assert not run.findings, "the pass waits for the stream at its end, and begins after what the caller has done"


def test_an_error_that_unwinds_over_the_last_reference_keeps_its_kind():
    def fail():
        rows = torch.ones(4, device="cuda")
        raise KeyError(len(rows))

    with kvstage.simulated_cuda(), pytest.raises(KeyError):
        fail()


def test_memory_figures(run):
    before = torch.cuda.memory_allocated()
    rows = torch.zeros(1000, device="cuda")
    assert torch.cuda.memory_allocated() - before == 4096
    assert torch.cuda.max_memory_allocated() >= before + 4096
    del rows
    assert torch.cuda.memory_allocated() == before


def test_a_storage_that_gives_up_its_memory(run):
    rows = torch.ones(8, device="cuda")
    storage = rows.untyped_storage()
    before = torch.cuda.memory_allocated()
    storage.resize_(0)
    assert storage.nbytes() == 0
    assert torch.cuda.memory_allocated() == before - 512
    storage.resize_(32)
    rows.fill_(4)
    assert rows.tolist() == [4.0] * 8


def test_graphs_refuse_what_can_not_be_captured(run):
    rows, graph = torch.ones(4, device="cuda"), torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="can't be captured"), torch.cuda.graph(graph):
        rows.sum().item()
    with pytest.raises(RuntimeError, match="non-default stream"):
        torch.cuda.CUDAGraph().capture_begin()


def test_external_streams_and_outside_use_are_refused(run):
    with pytest.raises(RuntimeError, match="no other code has streams"):
        torch.cuda.ExternalStream(1)


def test_outside_of_a_run_there_is_no_device():
    with kvstage.simulated_cuda():
        pass
    with pytest.raises(kvstage.NoCudaHereError, match="only inside"):
        torch.ones(2, device="cuda")


def test_random_numbers_are_the_same_under_every_schedule():
    found = []
    for schedule in ("issue-order", "late", "seeded:3:1"):
        with kvstage.simulated_cuda(schedule):
            torch.cuda.manual_seed(7)
            own = torch.Generator(device="cuda").manual_seed(3)
            assert own.device.type == "cuda"
            drawn = [
                torch.randn(4, device="cuda"),
                torch.rand(4, device="cuda", generator=own),
                torch.empty(4, device="cuda").normal_(),
            ]
            drawn.append(torch.nn.functional.dropout(torch.ones(8, device="cuda")))
            found.append([each.tolist() for each in drawn])
    assert found[0] == found[1] == found[2]
    assert found[0][0] != found[0][2]


def test_a_trace_of_the_run_can_be_drawn(run):
    from kvstage_model.ordering.races import races
    from kvstage_model.traces.svg import as_svg

    rows = torch.ones(4, device="cuda") + 1
    torch.cuda.synchronize()
    del rows
    trace = run.trace()
    assert not list(races(trace.program))
    assert as_svg(trace).startswith("<svg")


@pytest.mark.parametrize("schedule", ["issue-order", "late", "hold:2:begin"])
def test_work_that_is_issued_in_inference_mode_runs_when_the_code_has_left_it(schedule):
    with kvstage.simulated_cuda(schedule):
        rows, index = torch.zeros(4, 2, device="cuda"), torch.tensor([1, 3], device="cuda")
        with torch.inference_mode():
            rows[index] = torch.ones(2, 2, device="cuda") * 5
            rows.add_(1)
        rows.mul_(2)
        assert rows[:, 0].tolist() == [2.0, 12.0, 2.0, 12.0]


def test_hidden_waits_are_told_if_torch_is_asked(run):
    rows = torch.ones(4, device="cuda")
    torch.cuda.set_sync_debug_mode("error")
    assert torch.cuda.get_sync_debug_mode() == 2
    torch.cuda.synchronize()
    rows.add_(1)
    for hidden in (rows.sum().item, rows.nonzero, rows.cpu):
        with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
            hidden()
    torch.cuda.set_sync_debug_mode("warn")
    with pytest.warns(UserWarning, match="synchronizing"):
        assert rows.sum().item() == 8.0
    torch.cuda.set_sync_debug_mode("default")
    assert rows.tolist() == [2.0] * 4


def test_looking_at_memory_that_never_changes_ends():
    def look():
        flag = torch.zeros(1).pin_memory()
        flag.copy_(torch.ones(1, device="cuda"), non_blocking=True)
        while flag.item() == 0:
            pass

    with pytest.raises(kvstage.SpinningError, match="reads the same bytes over and over"), kvstage.simulated_cuda("late"):
        look()
