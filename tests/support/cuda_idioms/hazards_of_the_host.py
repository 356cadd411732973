"""Public bugs in which the host is too early: it overwrites what a copy still reads, or reads what a copy has not written.

Reduced to the pattern, as the engine's code has it; the repair is the reported one.
"""

import torch

from tests.support.cuda_idioms.idiom import idiom


class Mirrored:
    """A persistent pinned buffer of four numbers with its twin on the device, as engines keep for each input of a step."""

    def __init__(self) -> None:
        self.cpu = torch.zeros(4, pin_memory=True)
        self.gpu = torch.zeros(4, device="cuda")

    def send(self) -> torch.Tensor:
        """The device's twin, with the copy under way."""
        return self.gpu.copy_(self.cpu, non_blocking=True)


@idiom("NVIDIA/TensorRT-LLM#15546: one pinned table for the block offsets of all iterations", gives=[10, 20])
def block_offsets_through_one_pinned_table(repaired: bool) -> list[float]:
    pages, sums = torch.arange(4.0, device="cuda") * 10, []
    table, on_device = torch.zeros(1, dtype=torch.int64, pin_memory=True), torch.zeros(1, dtype=torch.int64, device="cuda")
    for block in (1, 2):
        staging = torch.zeros(1, dtype=torch.int64, pin_memory=True) if repaired else table
        staging[0] = block
        on_device.copy_(staging, non_blocking=True)
        sums.append(pages.gather(0, on_device))
    return torch.cat(sums).tolist()


@idiom(
    "vllm-project/vllm#24527 and #25279: the fence covers the inputs that are prepared, and not the states that are updated before",
    gives=[0, 0, 1, 2],
)
def fence_is_smaller_than_the_writes(repaired: bool) -> list[float]:
    sampling, inputs, sent, seen = Mirrored(), Mirrored(), torch.cuda.Event(), []
    for step in range(2):
        if repaired:
            sent.synchronize()
        sampling.cpu[0] = step
        if not repaired:
            sent.synchronize()
        inputs.cpu[0] = 2 * step
        seen += [sampling.send()[:1] * 1, inputs.send()[:1] * 1]
        sent.record()
    return torch.cat(seen).tolist()


@idiom("vllm-project/vllm#48085: the block numbers to be zeroed are overwritten, and other blocks are zeroed", gives=[0, 0, 7, 7])
def zeroing_of_fresh_blocks_hits_others(repaired: bool) -> list[float]:
    blocks = torch.full((4,), 7.0, device="cuda")
    pinned, on_device = torch.zeros(1, dtype=torch.int64, pin_memory=True), torch.zeros(1, dtype=torch.int64, device="cuda")
    for block in (0, 1):
        ids = torch.zeros(1, dtype=torch.int64, pin_memory=True) if repaired else pinned
        ids[0] = block
        on_device.copy_(ids, non_blocking=True)
        blocks.index_fill_(0, on_device, 0.0)
    return blocks.tolist()


@idiom("vllm-project/vllm#51667: the events of a ring of pinned buffers are forgotten between two calls", gives=[1, 2, 3, 4])
def ring_forgets_its_events_between_calls(repaired: bool) -> list[float]:
    buffers, cache = torch.zeros(2, 1, pin_memory=True), torch.zeros(4, device="cuda")
    loads = torch.cuda.Stream()
    torch.cuda.synchronize()

    def load(first: int) -> None:
        events = [torch.cuda.Event(), torch.cuda.Event()]
        for slot in range(2):
            events[slot].synchronize()
            buffers[slot] = first + slot + 1
            with torch.cuda.stream(loads):
                cache[first + slot].copy_(buffers[slot, 0], non_blocking=True)
                events[slot].record()
        for event in events if repaired else ():
            event.synchronize()

    load(0)
    load(2)
    loads.synchronize()
    return cache.tolist()


@idiom("ROCm/ATOM#1784: the mirrored inputs are fenced in prefill, and not in every forward", gives=[1, 2, 3])
def only_one_kind_of_step_is_fenced(repaired: bool) -> list[float]:
    inputs, seen = Mirrored(), []
    for step, kind in enumerate(("prefill", "decode", "decode"), start=1):
        if repaired or kind == "prefill":
            torch.cuda.current_stream().synchronize()
        inputs.cpu[0] = step
        seen.append(inputs.send()[:1] * 1)
    return torch.cat(seen).tolist()


@idiom("vllm-project/vllm-ascend#13726: metadata is sent after the record that the next step waits for", gives=[0, 1])
def metadata_is_sent_after_the_record(repaired: bool) -> list[float]:
    metadata, done, seen = Mirrored(), torch.cuda.Event(), []
    for step in range(2):
        done.synchronize()
        metadata.cpu[0] = step
        if not repaired:
            done.record()
        seen.append(metadata.send()[:1] * 1)
        if repaired:
            done.record()
    return torch.cat(seen).tolist()


@idiom("1bit-MONSTER/1bit-MONSTER#2344: keys and values go through one staging buffer", gives=[1, 1, 2, 2])
def keys_and_values_share_a_staging_buffer(repaired: bool) -> list[float]:
    cache = torch.zeros(2, 2, device="cuda")
    for_keys, for_values = torch.zeros(2, pin_memory=True), torch.zeros(2, pin_memory=True)
    for_keys.fill_(1)
    cache[0].copy_(for_keys, non_blocking=True)
    staging = for_values if repaired else for_keys
    staging.fill_(2)
    cache[1].copy_(staging, non_blocking=True)
    torch.cuda.current_stream().synchronize()
    return cache.flatten().tolist()


@idiom("NVIDIA/TensorRT-LLM#19172: a request gives its pooled pinned prompt back while it is being sent", gives=[1, 1, 2, 2])
def pooled_source_is_given_back_too_early(repaired: bool) -> list[float]:
    free = [torch.zeros(2, pin_memory=True) for _ in range(2)]
    under_way: list[tuple[torch.Tensor, torch.cuda.Event]] = []
    prompts = []
    for request in (1, 2):
        source = free.pop()
        source.fill_(request)
        prompts.append(source.to("cuda", non_blocking=True))
        if repaired:
            under_way.append((source, torch.cuda.current_stream().record_event()))
        else:
            free.append(source)
    free += [source for source, sent in under_way if sent.query()]
    return torch.cat(prompts).tolist()


@idiom(
    "NVIDIA/cudf#22284 and vllm-project/vllm#32799: pinning a reused source takes away that it is read at once", gives=[1, 1, 2, 2]
)
def pinning_a_reused_source(repaired: bool) -> list[float]:
    source, out = torch.zeros(2, pin_memory=not repaired), torch.zeros(2, 2, device="cuda")
    for step in range(2):
        source.fill_(step + 1)
        out[step].copy_(source, non_blocking=True)
    return out.flatten().tolist()


@idiom("microsoft/onnxruntime#32121: a buffer goes back to its pool, though a captured copy reads it in each replay", gives=[3, 3])
def source_of_a_captured_copy_is_given_back(repaired: bool) -> list[float]:
    free, on_device = [torch.zeros(2, pin_memory=True), torch.zeros(2, pin_memory=True)], torch.zeros(2, device="cuda")
    graph, source = torch.cuda.CUDAGraph(), free.pop()
    source.fill_(3)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        on_device.copy_(source, non_blocking=True)
    if not repaired:
        free.append(source)
    graph.replay()
    other = free.pop()
    other.fill_(9)
    return on_device.tolist()


@idiom("vllm-project/vllm#36013: the counts of accepted tokens are read before their copy has ended", gives=[4])
def accepted_tokens_are_read_too_early(repaired: bool) -> list[float]:
    counts, landed = torch.full((1,), 4.0, device="cuda"), torch.zeros(1, pin_memory=True)
    copied = torch.cuda.Event()
    landed.copy_(counts, non_blocking=True)
    copied.record()
    if repaired:
        copied.synchronize()
    return landed.tolist()


@idiom("vllm-project/vllm#51599: the host moves rows of the live batch, into which a copy is under way", gives=[6, 5])
def live_rows_are_moved_under_a_download(repaired: bool) -> list[float]:
    live, accepted = torch.tensor([1.0, 5.0, 6.0]).pin_memory(), torch.tensor([4.0], device="cuda")
    landed = torch.zeros(1, pin_memory=True) if repaired else live[:1]
    landed.copy_(accepted, non_blocking=True)
    copied = torch.cuda.current_stream().record_event()
    live[0] = live[2]  # the request of row 0 has ended, and the last row takes its place
    copied.synchronize()
    return live[:2].tolist()
