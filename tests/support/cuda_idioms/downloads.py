"""Downloads: the host reads, or reuses, what a copy writes after it has ended."""

import torch

from tests.support.cuda_idioms.idiom import idiom


@idiom("torch's tutorial on pin_memory and non_blocking: a copy to the host is read after a synchronize", gives=[0, 2, 4])
def host_reads_after_an_event(right: bool) -> list[float]:
    landed = (torch.arange(3.0, device="cuda") * 2).to("cpu", non_blocking=True)
    done = torch.cuda.current_stream().record_event()
    if right:
        done.synchronize()
    return landed.tolist()


@idiom("documentation of Tensor.cpu: it returns when the bytes are there", gives=[1, 1])
def blocking_download_is_read_at_once(right: bool) -> list[float]:
    made = torch.ones(2, device="cuda")
    landed = made.cpu() if right else made.to("cpu", non_blocking=True)
    return landed.tolist()


@idiom("documentation of Tensor.item: it waits for the value", gives=[6])
def item_waits_for_its_value(right: bool) -> list[float]:
    total = torch.arange(4.0, device="cuda").sum()
    if right:
        return [total.item()]
    landed = torch.empty((), pin_memory=True)
    landed.copy_(total, non_blocking=True)
    return [landed.item()]


@idiom("documentation of Tensor.item: it waits for the stream that is current, and for no other", gives=[3])
def stream_of_item_has_waited_for_the_counter(right: bool) -> list[float]:
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    counter = torch.zeros((), device="cuda")
    side.wait_stream(main)
    with torch.cuda.stream(side):
        counter.add_(3)
    if right:
        main.wait_stream(side)
    return [counter.item()]


@idiom("documentation of Tensor.copy_: pageable memory is there when a blocking copy returns", gives=[8, 8])
def blocking_download_into_pageable_memory(right: bool) -> list[float]:
    landed = torch.zeros(2, pin_memory=not right)
    landed.copy_(torch.full((2,), 8.0, device="cuda"), non_blocking=not right)
    return landed.tolist()


@idiom("checkpoint writers: many copies, one wait after the last", gives=[0, 0, 1, 1, 2, 2])
def one_wait_after_the_last_of_many_copies(right: bool) -> list[float]:
    landed = torch.zeros(3, 2, pin_memory=True)
    for row in range(3):
        if not right and row == 2:
            torch.cuda.current_stream().synchronize()
        landed[row].copy_(torch.full((2,), float(row), device="cuda"), non_blocking=True)
    if right:
        torch.cuda.current_stream().synchronize()
    return landed.flatten().tolist()


@idiom("activation offloading: the copy stream waits for what computes the activation", gives=[3, 3])
def download_waits_for_its_producer(right: bool) -> list[float]:
    copies, landed = torch.cuda.Stream(), torch.zeros(2, pin_memory=True)
    made = torch.ones(2, device="cuda") * 3
    if right:
        copies.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(copies):
        landed.copy_(made, non_blocking=True)
    copies.synchronize()
    return landed.tolist()


@idiom("activation offloading: memory that is being copied out is overwritten after the copy", gives=[1, 1])
def source_is_overwritten_after_its_download(right: bool) -> list[float]:
    copies, landed = torch.cuda.Stream(), torch.zeros(2, pin_memory=True)
    made, main = torch.ones(2, device="cuda"), torch.cuda.current_stream()
    copies.wait_stream(main)
    with torch.cuda.stream(copies):
        landed.copy_(made, non_blocking=True)
    if right:
        main.wait_stream(copies)
    made.fill_(7)
    torch.cuda.synchronize()
    return landed.tolist()


@idiom("numpy arrays over pinned memory: the view is read after the copy", gives=[4, 4])
def numpy_view_is_read_after_the_copy(right: bool) -> list[float]:
    landed = torch.zeros(2, pin_memory=True)
    landed.copy_(torch.full((2,), 4.0, device="cuda"), non_blocking=True)
    if right:
        torch.cuda.synchronize()
    return [float(value) for value in landed.numpy()]


@idiom(
    "engines that sample a step ahead: the tokens of a step are read after its event, while the next step is under way",
    gives=[10, 10, 11, 11],
)
def tokens_are_read_a_step_later(right: bool) -> list[float]:
    landed = [torch.zeros(2, pin_memory=True) for _ in range(2)]
    events = [torch.cuda.Event(), torch.cuda.Event()]
    read: list[float] = []
    for step in range(3):
        if step < 2:
            landed[step].copy_(torch.full((2,), 10.0 + step, device="cuda"), non_blocking=True)
            events[step].record()
        if step:
            if right:
                events[step - 1].synchronize()
            read += landed[step - 1].tolist()
    return read


@idiom("metrics of training loops: values stay on the device until one download at the end", gives=[0, 1, 2])
def metrics_are_gathered_on_the_device(right: bool) -> list[float]:
    losses = [torch.full((), float(step), device="cuda") for step in range(3)]
    if right:
        return torch.stack(losses).tolist()
    landed = [loss.to("cpu", non_blocking=True) for loss in losses]
    return [each.item() for each in landed]
