"""Public bugs in which streams, blocks or the allocator lack an order: no host access is part of the race but one.

Reduced to the pattern, as the engine's code has it; the repair is the reported one.
"""

import threading

import torch

from tests.support.cuda_idioms.idiom import idiom


def cache(value: float = 0.0) -> torch.Tensor:
    """Four blocks of two numbers on the device; what fills them has ended."""
    made = torch.full((4, 2), value, device="cuda")
    torch.cuda.synchronize()
    return made


@idiom("vllm-project/vllm#31341 and #46278: blocks are stored before the step has written them", gives=[5, 5])
def store_does_not_wait_for_the_step(repaired: bool) -> list[float]:
    blocks, stores, host = cache(), torch.cuda.Stream(), torch.zeros(4, 2, pin_memory=True)
    blocks[1].fill_(5)
    step_done = torch.cuda.current_stream().record_event()
    if repaired:
        stores.wait_event(step_done)
    with torch.cuda.stream(stores):
        host[1].copy_(blocks[1], non_blocking=True)
    stores.synchronize()
    return host[1].tolist()


@idiom("sgl-project/sglang#30254: a transfer thread sends a chunk without the event of the stream that wrote it", gives=[6, 6])
def transfer_thread_has_no_event(repaired: bool) -> list[float]:
    blocks, registered, sent = cache(), torch.zeros(2, pin_memory=True), list[float]()
    registered.copy_(blocks[2].fill_(6), non_blocking=True)
    written = torch.cuda.current_stream().record_event()

    def transfer() -> None:
        if repaired:
            written.synchronize()
        sent.extend(registered.tolist())

    worker = threading.Thread(target=transfer)
    worker.start()
    worker.join()
    return sent


@idiom("vllm-project/vllm#50696: fresh blocks are zeroed on the compute stream, and loaded on another one", gives=[8, 8])
def load_does_not_wait_for_the_zeroing(repaired: bool) -> list[float]:
    blocks, loads, stored = cache(1.0), torch.cuda.Stream(), torch.full((2,), 8.0).pin_memory()
    blocks[3].zero_()
    if repaired:
        loads.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(loads):
        blocks[3].copy_(stored, non_blocking=True)
    torch.cuda.synchronize()
    return blocks[3].tolist()


@idiom("sgl-project/sglang#22811: keys and values wait for their layer's load, the indexer's keys do not", gives=[3, 3, 4, 4])
def one_of_two_readers_forgets_the_wait(repaired: bool) -> list[float]:
    blocks, index, loads = cache(), cache(), torch.cuda.Stream()
    stored = [torch.full((2,), 3.0).pin_memory(), torch.full((2,), 4.0).pin_memory()]
    with torch.cuda.stream(loads):
        blocks[0].copy_(stored[0], non_blocking=True)
        blocks_loaded = loads.record_event()
        index[0].copy_(stored[1], non_blocking=True)
        index_loaded = loads.record_event()
    torch.cuda.current_stream().wait_event(blocks_loaded)
    attention = blocks[0] * 1
    if repaired:
        torch.cuda.current_stream().wait_event(index_loaded)
    scores = index[0] * 1
    torch.cuda.synchronize()
    return [*attention.tolist(), *scores.tolist()]


@idiom("NVIDIA/TensorRT-LLM#9056: pending transfers are kept by block, though two blocks share a slot in host memory", gives=[2, 2])
def transfers_of_one_slot_have_no_order(repaired: bool) -> list[float]:
    blocks, host = cache(2.0), torch.zeros(2, 2, pin_memory=True)
    offload, onboard = torch.cuda.Stream(), torch.cuda.Stream()
    pending: dict[object, torch.cuda.Event] = {}
    with torch.cuda.stream(offload):
        host[1].copy_(blocks[0], non_blocking=True)
        pending[("host", 1) if repaired else "block 0"] = offload.record_event()
    earlier = pending.get(("host", 1) if repaired else "block 7")
    if earlier is not None:
        onboard.wait_event(earlier)
    with torch.cuda.stream(onboard):
        blocks[3].copy_(host[1], non_blocking=True)
    torch.cuda.synchronize()
    return blocks[3].tolist()


@idiom(
    "NVIDIA/TensorRT-LLM#15272: slot 0 of the device and slot 0 of the host have one entry among the pending transfers",
    gives=[2, 2],
)
def pending_transfers_of_two_pools_share_a_key(repaired: bool) -> list[float]:
    blocks, host, streams = cache(1.0), torch.zeros(2, 2, pin_memory=True), [torch.cuda.Stream() for _ in range(3)]
    pending: dict[object, torch.cuda.Event] = {}
    with torch.cuda.stream(streams[0]):
        blocks[0].fill_(2)
        pending[("device", 0) if repaired else 0] = streams[0].record_event()
    with torch.cuda.stream(streams[1]):
        host[0].copy_(blocks[1], non_blocking=True)
        pending[("host", 0) if repaired else 0] = streams[1].record_event()
    streams[2].wait_event(pending[("device", 0) if repaired else 0])
    with torch.cuda.stream(streams[2]):
        host[1].copy_(blocks[0], non_blocking=True)
    torch.cuda.synchronize()
    return host[1].tolist()


@idiom("NVIDIA/Megatron-LM#7398: an inline reload reads the pinned staging that a download is filling", gives=[4, 4])
def reload_does_not_wait_for_the_offload(repaired: bool) -> list[float]:
    blocks, staging = cache(4.0), torch.zeros(2, pin_memory=True)
    offload, reload = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(offload):
        staging.copy_(blocks[0], non_blocking=True)
    if repaired:
        reload.wait_stream(offload)
    with torch.cuda.stream(reload):
        back = staging.to("cuda", non_blocking=True)
    torch.cuda.synchronize()
    return back.tolist()


@idiom("sgl-project/sglang#26380: the scheduler's stream writes index tables that the forward still reads", gives=[20])
def next_schedule_overwrites_the_tables_of_the_forward(repaired: bool) -> list[float]:
    values, table = torch.arange(4.0, device="cuda") * 10, torch.full((1,), 2, device="cuda")
    schedule, forward = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(forward):
        out = values.gather(0, table)
    if repaired:
        schedule.wait_stream(forward)
    with torch.cuda.stream(schedule):
        table.fill_(3)
    torch.cuda.synchronize()
    return out.tolist()


@idiom("ROCm/ATOM#1956: staging is allocated on the default stream, and first written on another one", gives=[1, 1])
def staging_is_allocated_on_another_stream_than_writes_it(repaired: bool) -> list[float]:
    blocks, packs, main = cache(), torch.cuda.Stream(), torch.cuda.current_stream()
    old = torch.ones(2, device="cuda")
    torch.add(old, 0, out=blocks[0])
    del old
    with torch.cuda.stream(packs if repaired else main):
        staging = torch.empty(2, device="cuda")
    with torch.cuda.stream(packs):
        staging.fill_(9)
    staging.record_stream(packs)
    torch.cuda.synchronize()
    return blocks[0].tolist()


@idiom(
    "pytorch/pytorch#180665: gradients are freed on the stream that reduced them, while another one copies them out", gives=[5, 5]
)
def gradients_are_freed_under_their_download(repaired: bool) -> list[float]:
    reduce_scatter, all_reduce = torch.cuda.Stream(), torch.cuda.Stream()
    host, kept = torch.zeros(2, pin_memory=True), list[torch.Tensor]()
    with torch.cuda.stream(reduce_scatter):
        gradient = torch.full((2,), 5.0, device="cuda")
    all_reduce.wait_stream(reduce_scatter)
    with torch.cuda.stream(all_reduce):
        host.copy_(gradient, non_blocking=True)
    if repaired:
        kept.append(gradient)
    del gradient
    with torch.cuda.stream(reduce_scatter):
        torch.zeros(2, device="cuda")
    all_reduce.synchronize()
    kept.clear()
    return host.tolist()


@idiom("meta-pytorch/torchrec#4231: a storage is emptied on the main stream, while another stream copies it out", gives=[5, 5])
def storage_is_emptied_under_its_download(repaired: bool) -> list[float]:
    offload, host = torch.cuda.Stream(), torch.zeros(2, pin_memory=True)
    stashed = torch.full((2,), 5.0, device="cuda")
    offload.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(offload):
        host.copy_(stashed, non_blocking=True)
    if repaired:
        stashed.record_stream(offload)
    stashed.untyped_storage().resize_(0)
    torch.zeros(2, device="cuda")
    offload.synchronize()
    return host.tolist()


@idiom(
    "huggingface/diffusers#12721: the current stream is asked inside the context of the copy stream, which waits for itself",
    gives=[1, 1],
)
def copy_stream_waits_for_itself(repaired: bool) -> list[float]:
    weights, copies, main = cache(1.0), torch.cuda.Stream(), torch.cuda.current_stream()
    following = torch.full((2,), 6.0).pin_memory()
    out = weights[0] * 1
    with torch.cuda.stream(copies):
        copies.wait_stream(main if repaired else torch.cuda.current_stream())
        weights[0].copy_(following, non_blocking=True)
    torch.cuda.synchronize()
    return out.tolist()


@idiom("vllm-project/vllm#29870: blocks of a preempted request get a new owner while their store is under way", gives=[2, 2])
def preempted_blocks_are_overwritten_under_their_store(repaired: bool) -> list[float]:
    blocks, stores, host = cache(2.0), torch.cuda.Stream(), torch.zeros(2, pin_memory=True)
    with torch.cuda.stream(stores):
        host.copy_(blocks[1], non_blocking=True)
    if repaired:
        torch.cuda.current_stream().wait_stream(stores)
    blocks[1].fill_(7)
    torch.cuda.synchronize()
    return host.tolist()


@idiom("sgl-project/sglang#31427: a page in host memory is evicted, and filled anew, while it is loaded", gives=[3, 3])
def host_page_is_evicted_under_its_load(repaired: bool) -> list[float]:
    blocks, loads, stores = cache(9.0), torch.cuda.Stream(), torch.cuda.Stream()
    page = torch.full((2,), 3.0).pin_memory()
    with torch.cuda.stream(loads):
        blocks[0].copy_(page, non_blocking=True)
    if repaired:
        loads.record_event().synchronize()
    with torch.cuda.stream(stores):
        page.copy_(blocks[1], non_blocking=True)
    torch.cuda.synchronize()
    return blocks[0].tolist()


@idiom(
    "deepspeedai/DeepSpeed#7898: the reducer waits for the default stream, and the gradients are made on the forward's",
    gives=[6, 6],
)
def reducer_waits_for_the_wrong_stream(repaired: bool) -> list[float]:
    forward, reducing = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(forward):
        gradient = torch.full((2,), 3.0, device="cuda")
    reducing.wait_stream(forward if repaired else torch.cuda.default_stream())
    with torch.cuda.stream(reducing):
        out = gradient * 2
    torch.cuda.synchronize()
    return out.tolist()
