"""Events: where they are recorded, what a wait covers, and whom it holds back."""

import torch

from tests.support.cuda_idioms.idiom import idiom


@idiom("documentation of Event.record: it marks what the stream was given before the call", gives=[6, 6])
def event_is_recorded_after_the_work(right: bool) -> list[float]:
    side, done = torch.cuda.Stream(), torch.cuda.Event()
    with torch.cuda.stream(side):
        if not right:
            done.record()
        out = torch.full((2,), 3.0, device="cuda")
        if right:
            done.record()
    torch.cuda.current_stream().wait_event(done)
    return (out * 2).tolist()


@idiom("CUDA runtime documentation of cudaEventRecord: recording again forgets what was marked before", gives=[1, 1, 2, 2])
def each_stream_has_an_event_of_its_own(right: bool) -> list[float]:
    main, streams = torch.cuda.current_stream(), [torch.cuda.Stream(), torch.cuda.Stream()]
    shared = torch.cuda.Event()
    events = [torch.cuda.Event(), torch.cuda.Event()] if right else [shared, shared]
    outs = []
    for number, (stream, event) in enumerate(zip(streams, events, strict=True), start=1):
        with torch.cuda.stream(stream):
            outs.append(torch.full((2,), float(number), device="cuda"))
        event.record(stream)
    for event in events:
        main.wait_event(event)
    return torch.cat(outs).tolist()


@idiom("CUDA runtime documentation of cudaStreamWaitEvent: an event that was never recorded holds nothing back", gives=[5, 5])
def event_that_is_waited_for_was_recorded(right: bool) -> list[float]:
    side, done = torch.cuda.Stream(), torch.cuda.Event()
    with torch.cuda.stream(side):
        out = torch.full((2,), 5.0, device="cuda")
    if right:
        done.record(side)
    done.wait()
    return (out * 1).tolist()


@idiom("documentation of Event.query: polling loops of serving engines", gives=[4, 4])
def answer_of_a_query_is_heeded(right: bool) -> list[float]:
    landed, done = torch.zeros(2, pin_memory=True), torch.cuda.Event()
    landed.copy_(torch.full((2,), 4.0, device="cuda"), non_blocking=True)
    done.record()
    while not done.query() and right:
        pass
    return landed.tolist()


@idiom("documentation of Event.elapsed_time: benchmarks wait for the event at the end, not for the one at the start", gives=[2, 2])
def host_waits_for_the_event_at_the_end(right: bool) -> list[float]:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    landed = torch.zeros(2, pin_memory=True)
    start.record()
    landed.copy_(torch.full((2,), 2.0, device="cuda"), non_blocking=True)
    end.record()
    (end if right else start).synchronize()
    return landed.tolist()


@idiom("documentation of Event.wait: it holds back the stream that is current, or the one that it is given", gives=[3, 3])
def consumer_s_stream_is_the_one_that_waits(right: bool) -> list[float]:
    producer, done = torch.cuda.Stream(), torch.cuda.Event()
    main = torch.cuda.current_stream()
    with torch.cuda.stream(producer):
        out = torch.full((2,), 3.0, device="cuda")
        done.record()
        if right:
            done.wait(main)
        else:
            done.wait()
    return (out * 1).tolist()


@idiom("CUDA programming guide, cross-stream dependencies: one event, and each consumer waits for it", gives=[2, 2, 3, 3])
def every_consumer_waits_for_the_event(right: bool) -> list[float]:
    consumers = [torch.cuda.Stream(), torch.cuda.Stream()]
    made, out = torch.ones(2, device="cuda"), torch.zeros(2, 2, device="cuda")
    ready = torch.cuda.current_stream().record_event()
    for number, consumer in enumerate(consumers):
        if right or number == 0:
            consumer.wait_event(ready)
        with torch.cuda.stream(consumer):
            torch.add(made, number + 1, out=out[number])
    torch.cuda.synchronize()
    return out.flatten().tolist()


@idiom(
    "pipelines of three streams: a wait for the middle one covers the first only if the middle one has waited for it", gives=[4, 4]
)
def order_is_passed_on_along_a_chain(right: bool) -> list[float]:
    first, middle = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(first):
        made = torch.full((2,), 4.0, device="cuda")
    if right:
        middle.wait_event(first.record_event())
    with torch.cuda.stream(middle):
        other = torch.zeros(2, device="cuda")
    torch.cuda.current_stream().wait_event(middle.record_event())
    return (made + other).tolist()


@idiom(
    "CUDA runtime documentation of cudaStreamWaitEvent: what is recorded after the wait does not change what it waits for",
    gives=[6, 6],
)
def wait_is_for_the_record_that_was_there(right: bool) -> list[float]:
    side, done = torch.cuda.Stream(), torch.cuda.Event()
    done.record(side)
    if not right:
        torch.cuda.current_stream().wait_event(done)
    with torch.cuda.stream(side):
        out = torch.full((2,), 6.0, device="cuda")
    done.record(side)
    if right:
        torch.cuda.current_stream().wait_event(done)
    return (out * 1).tolist()
