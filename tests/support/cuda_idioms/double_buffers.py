"""Double buffers and rings: a slot is used again after its last user."""

import torch

from tests.support.cuda_idioms.idiom import idiom


@idiom("CUDA samples of overlapped transfers: two staging buffers, an event for each", gives=[0, 0, 1, 1, 2, 2, 3, 3])
def two_staging_buffers_with_an_event_each(right: bool) -> list[float]:
    slots = [torch.empty(2, pin_memory=True) for _ in range(2)]
    sent, out = [torch.cuda.Event(), torch.cuda.Event()], torch.empty(4, 2, device="cuda")
    for step in range(4):
        slot = step % 2
        if right:
            sent[slot].synchronize()
        slots[slot].fill_(step)
        out[step].copy_(slots[slot], non_blocking=True)
        sent[slot].record()
    return out.flatten().tolist()


@idiom("rings of staging buffers in loaders: the record stands after the copy that it is for", gives=[0, 0, 1, 1, 2, 2, 3, 3])
def ring_records_after_each_copy(right: bool) -> list[float]:
    slots, sent = torch.empty(3, 2, pin_memory=True), [torch.cuda.Event() for _ in range(3)]
    out = torch.empty(4, 2, device="cuda")
    for step in range(4):
        slot = step % 3
        sent[slot].synchronize()
        slots[slot].fill_(step)
        if not right:
            sent[slot].record()
        out[step].copy_(slots[slot], non_blocking=True)
        if right:
            sent[slot].record()
    return out.flatten().tolist()


@idiom("rings of staging buffers in loaders: one event for a round of slots, recorded after the last of them", gives=[0, 1, 2, 3])
def one_event_for_a_round_of_slots(right: bool) -> list[float]:
    slots, sent, out = torch.empty(2, 1, pin_memory=True), torch.cuda.Event(), torch.empty(4, device="cuda")
    for first in (0, 2):
        sent.synchronize()
        for slot in range(2):
            slots[slot] = first + slot
            out[first + slot].copy_(slots[slot, 0], non_blocking=True)
            if right or slot == 0:
                sent.record()
    return out.tolist()


@idiom("download loops with one buffer: the host takes what has landed before the next copy is issued", gives=[0, 0, 1, 1, 2, 2])
def buffer_is_taken_before_it_is_filled_again(right: bool) -> list[float]:
    landed, done, taken = torch.zeros(2, pin_memory=True), torch.cuda.Event(), list[float]()
    for step in range(3):
        done.synchronize()
        if right and step:
            taken += landed.tolist()
        landed.copy_(torch.full((2,), float(step), device="cuda"), non_blocking=True)
        done.record()
        if not right and step:
            taken += landed.tolist()
    done.synchronize()
    return taken + landed.tolist()


@idiom(
    "pipelines with buffers on the device: 'filled' holds back the reader, 'free' holds back the next copy",
    gives=[0, 0, 2, 2, 4, 4],
)
def device_slots_have_filled_and_free_events(right: bool) -> list[float]:
    copies, main = torch.cuda.Stream(), torch.cuda.current_stream()
    source = torch.arange(3.0).repeat_interleave(2).view(3, 2).pin_memory()
    slots, out = torch.empty(2, 2, device="cuda"), torch.empty(3, 2, device="cuda")
    free = [main.record_event(), main.record_event()]
    for step in range(3):
        slot = step % 2
        if right or step < 2:
            copies.wait_event(free[slot])
        with torch.cuda.stream(copies):
            slots[slot].copy_(source[step], non_blocking=True)
        main.wait_event(copies.record_event())
        torch.mul(slots[slot], 2, out=out[step])
        free[slot].record(main)
    torch.cuda.synchronize()
    return out.flatten().tolist()


@idiom(
    "rings of staging buffers in loaders: what is under way is drained before the buffers go to somebody else", gives=[0, 0, 1, 1]
)
def ring_is_drained_at_the_end(right: bool) -> list[float]:
    slots, sent = torch.empty(2, 2, pin_memory=True), [torch.cuda.Event(), torch.cuda.Event()]
    out = torch.empty(2, 2, device="cuda")
    for step in range(2):
        slots[step].fill_(step)
        out[step].copy_(slots[step], non_blocking=True)
        sent[step].record()
    for event in sent if right else sent[:1]:
        event.synchronize()
    slots.fill_(9)
    return out.flatten().tolist()
