"""Streams: work on another stream starts after what it needs, and is waited for before its result is used."""

import torch

from tests.support.cuda_idioms.idiom import idiom


@idiom("torch's notes on CUDA semantics, the example of a side stream that sums what the default stream fills", gives=[1, 3, 5, 7])
def side_stream_waits_for_its_input(right: bool) -> list[float]:
    side = torch.cuda.Stream()
    made = torch.arange(4.0, device="cuda") * 2
    if right:
        side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        out = made + 1
    torch.cuda.current_stream().wait_stream(side)
    return (out * 1).tolist()


@idiom("documentation of Stream.wait_stream", gives=[2, 2, 2, 2])
def main_stream_waits_for_the_result(right: bool) -> list[float]:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        out = torch.ones(4, device="cuda")
    if right:
        torch.cuda.current_stream().wait_stream(side)
    return (out * 2).tolist()


@idiom("documentation of Stream.wait_stream: what is given to the stream after the call is not waited for", gives=[3, 3, 3, 3])
def wait_comes_after_the_work_it_is_for(right: bool) -> list[float]:
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    if not right:
        main.wait_stream(side)
    with torch.cuda.stream(side):
        out = torch.full((4,), 3.0, device="cuda")
    if right:
        main.wait_stream(side)
    return (out + 0).tolist()


@idiom("torch's notes on CUDA semantics: a stream that torch makes does not take part in the default stream's order", gives=[5, 5])
def host_waits_for_a_side_stream_alone(right: bool) -> list[float]:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        out = torch.full((2,), 5.0, device="cuda")
    if right:
        side.synchronize()
    else:
        torch.cuda.current_stream().synchronize()
    return (out * 1).tolist()


@idiom("tutorials that time or print after torch.cuda.synchronize()", gives=[1, 1, 2, 2])
def device_synchronize_joins_all_streams(right: bool) -> list[float]:
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(first):
        ones = torch.ones(2, device="cuda")
    with torch.cuda.stream(second):
        twos = torch.full((2,), 2.0, device="cuda")
    if right:
        torch.cuda.synchronize()
    else:
        first.synchronize()
    return torch.cat([ones, twos]).tolist()


@idiom("offloading hooks of model libraries: the stream to wait for is asked before the copy stream is entered", gives=[4, 4, 4])
def caller_s_stream_is_asked_outside_the_context(right: bool) -> list[float]:
    side = torch.cuda.Stream()
    made = torch.full((3,), 2.0, device="cuda")
    caller = torch.cuda.current_stream()
    with torch.cuda.stream(side):
        side.wait_stream(caller if right else torch.cuda.current_stream())
        out = made * 2
    caller.wait_stream(side)
    return (out * 1).tolist()


@idiom("documentation of torch.cuda.set_stream: the current stream stays chosen until it is set again", gives=[7, 7])
def stream_that_was_set_is_joined_when_it_is_left(right: bool) -> list[float]:
    before, side = torch.cuda.current_stream(), torch.cuda.Stream()
    torch.cuda.set_stream(side)
    out = torch.full((2,), 6.0, device="cuda")
    torch.cuda.set_stream(before)
    if right:
        before.wait_stream(side)
    return (out + 1).tolist()


@idiom("documentation of the stream context: contexts nest, and leaving one is no wait", gives=[3, 3])
def inner_stream_is_joined_by_the_outer(right: bool) -> list[float]:
    outer, inner = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(outer):
        made = torch.ones(2, device="cuda")
        inner.wait_stream(outer)
        with torch.cuda.stream(inner):
            made.add_(1)
        if right:
            outer.wait_stream(inner)
        out = made + 1
    outer.synchronize()
    return out.tolist()


@idiom("CUDA programming guide, stream priorities: they are hints to the scheduler", gives=[9, 9])
def high_priority_is_no_order(right: bool) -> list[float]:
    urgent = torch.cuda.Stream(priority=-1)
    with torch.cuda.stream(urgent):
        out = torch.full((2,), 9.0, device="cuda")
    if right:
        torch.cuda.current_stream().wait_stream(urgent)
    return (out * 1).tolist()


@idiom("CUDA programming guide, fork and join: branches wait for the fork, the join for all branches", gives=[2, 2, 4, 4])
def all_branches_are_joined(right: bool) -> list[float]:
    main = torch.cuda.current_stream()
    branches = [torch.cuda.Stream(), torch.cuda.Stream()]
    made, out = torch.full((2,), 2.0, device="cuda"), torch.zeros(2, 2, device="cuda")
    for factor, branch in enumerate(branches, start=1):
        branch.wait_stream(main)
        with torch.cuda.stream(branch):
            torch.mul(made, factor, out=out[factor - 1])
    for branch in branches if right else branches[:1]:
        main.wait_stream(branch)
    return out.flatten().tolist()


@idiom("CUDA programming guide: streams that add to one accumulator in turn", gives=[3, 3])
def accumulator_is_handed_from_stream_to_stream(right: bool) -> list[float]:
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    total = torch.zeros(2, device="cuda")
    first.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(first):
        total.add_(1)
    second.wait_stream(first if right else torch.cuda.current_stream())
    with torch.cuda.stream(second):
        total.mul_(3)
    torch.cuda.synchronize()
    return total.tolist()


@idiom("documentation of torch.accelerator and torch.Stream, the names that do not say which device", gives=[8, 8])
def streams_by_the_device_independent_names(right: bool) -> list[float]:
    main, side = torch.accelerator.current_stream(), torch.Stream(device="cuda")
    made = torch.full((2,), 4.0, device="cuda")
    side.wait_event(main.record_event())
    with side:
        out = made * 2
    if right:
        main.wait_event(side.record_event())
    return (out * 1).tolist()
