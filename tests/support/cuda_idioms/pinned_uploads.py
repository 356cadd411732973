"""Uploads: a pinned source is read when the copy runs, so the host leaves it alone until then."""

import torch

from tests.support.cuda_idioms.idiom import idiom


@idiom(
    "torch's tutorial on pin_memory and non_blocking: a staging buffer is written again after its copy has ended",
    gives=[0, 0, 1, 1],
)
def staging_buffer_is_refilled_after_its_event(right: bool) -> list[float]:
    staging, out, sent = torch.empty(2, pin_memory=True), torch.empty(2, 2, device="cuda"), torch.cuda.Event()
    for step in range(2):
        if right:
            sent.synchronize()
        staging.fill_(step)
        out[step].copy_(staging, non_blocking=True)
        sent.record()
    return out.flatten().tolist()


@idiom(
    "serving engines: each step's metadata goes through pinned memory of its own, which torch keeps until it is copied",
    gives=[0, 0, 1, 1],
)
def each_upload_has_fresh_pinned_memory(right: bool) -> list[float]:
    kept, outs = torch.empty(2, pin_memory=True), []
    for step in range(2):
        staging = torch.empty(2, pin_memory=True) if right else kept
        staging.fill_(step)
        outs.append(staging.to("cuda", non_blocking=True))
    return torch.cat(outs).tolist()


@idiom(
    "torch's tutorial on pin_memory and non_blocking: a pageable source may change after the call, a pinned one may not",
    gives=[1, 1],
)
def pageable_source_may_change_after_the_call(right: bool) -> list[float]:
    source = torch.ones(2, pin_memory=not right)
    out = source.to("cuda", non_blocking=True)
    source.fill_(7)
    return out.tolist()


@idiom("documentation of Tensor.copy_: a copy without non_blocking has ended when it returns", gives=[1, 1])
def blocking_upload_frees_its_source(right: bool) -> list[float]:
    source, out = torch.ones(2, pin_memory=True), torch.empty(2, device="cuda")
    out.copy_(source, non_blocking=not right)
    source.fill_(7)
    return out.tolist()


@idiom(
    "block tables of serving engines: rows of one pinned table, of which the host fills others while some are sent",
    gives=[1, 1, 2, 2],
)
def host_writes_other_rows_than_are_sent(right: bool) -> list[float]:
    table, out = torch.zeros(2, 2, pin_memory=True), torch.zeros(2, 2, device="cuda")
    table[0] = 1
    out[0].copy_(table[0], non_blocking=True)
    table[1 if right else 0] = 2
    out[1].copy_(table[1 if right else 0], non_blocking=True)
    return out.flatten().tolist()


@idiom("documentation of Tensor.pin_memory: it copies, but gives back a tensor that is pinned already", gives=[1, 1])
def pin_memory_makes_a_copy_of_pageable_memory(right: bool) -> list[float]:
    batch = torch.ones(2) if right else torch.ones(2).pin_memory()
    out = batch.pin_memory().to("cuda", non_blocking=True)
    batch.fill_(7)
    return out.tolist()


@idiom("logging beside an upload: the host may read what a copy reads", gives=[3, 3, 3])
def host_may_read_a_source_under_way(right: bool) -> list[float]:
    source = torch.full((2,), 3.0, pin_memory=True)
    out = source.to("cuda", non_blocking=True)
    first = source[0].item() if right else source.add_(1)[0].item() - 1
    return [first, *out.tolist()]


@idiom("copy streams of training loops: the consumer's stream waits for the copy", gives=[2, 2])
def consumer_waits_for_the_copy_stream(right: bool) -> list[float]:
    copies, source = torch.cuda.Stream(), torch.ones(2).pin_memory()
    with torch.cuda.stream(copies):
        sent = source.to("cuda", non_blocking=True)
    if right:
        torch.cuda.current_stream().wait_stream(copies)
    out = sent * 2
    torch.cuda.synchronize()
    return out.tolist()


@idiom("copy streams of training loops: a buffer on the device is overwritten after its last reader", gives=[1, 1, 5, 5])
def upload_waits_for_the_readers_of_its_target(right: bool) -> list[float]:
    copies, source = torch.cuda.Stream(), torch.full((2,), 5.0).pin_memory()
    target = torch.ones(2, device="cuda")
    kept = target * 1
    if right:
        copies.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(copies):
        target.copy_(source, non_blocking=True)
    torch.cuda.synchronize()
    return [*kept.tolist(), *target.tolist()]


@idiom(
    "token buffers of serving engines: a prefix of a pinned buffer is sent, and the stream is waited for once a step",
    gives=[0, 1, 1, 2],
)
def stream_is_waited_for_once_a_step(right: bool) -> list[float]:
    tokens, out = torch.zeros(8, pin_memory=True), torch.zeros(2, 2, device="cuda")
    for step in range(2):
        for at in range(2):
            tokens[at] = step + at
        out[step].copy_(tokens[:2], non_blocking=True)
        if right:
            torch.cuda.current_stream().synchronize()
    return out.flatten().tolist()


@idiom(
    "input buffers of serving engines: the host writes pinned memory through numpy, after the event of its last copy",
    gives=[0, 0, 1, 1],
)
def numpy_view_is_written_after_the_event(right: bool) -> list[float]:
    buffer, out, sent = torch.zeros(2, pin_memory=True), torch.zeros(2, 2, device="cuda"), torch.cuda.Event()
    view = buffer.numpy()
    for step in range(2):
        if right:
            sent.synchronize()
        view[:] = step
        out[step].copy_(buffer, non_blocking=True)
        sent.record()
    return out.flatten().tolist()
