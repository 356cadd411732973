"""The caching allocator: a freed block belongs to the next allocation of its stream, and another stream says that it uses one."""

import torch

from tests.support.cuda_idioms.idiom import idiom


@idiom("documentation of Tensor.record_stream, its example", gives=[2, 2])
def tensor_of_another_stream_is_recorded(right: bool) -> list[float]:
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    made = torch.ones(2, device="cuda")
    side.wait_stream(main)
    with torch.cuda.stream(side):
        out = made * 2
    if right:
        made.record_stream(side)
    del made
    torch.zeros(2, device="cuda")
    side.synchronize()
    return out.tolist()


@idiom("documentation of Tensor.record_stream: or the tensor's own stream waits for the other before it is freed", gives=[3, 3])
def own_stream_waits_before_the_tensor_is_freed(right: bool) -> list[float]:
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    made = torch.ones(2, device="cuda")
    side.wait_stream(main)
    with torch.cuda.stream(side):
        out = made * 3
    if right:
        main.wait_stream(side)
    del made
    torch.zeros(2, device="cuda")
    side.synchronize()
    return out.tolist()


@idiom("FSDP and pipelines: a tensor is kept in a list with its event until the other stream has used it", gives=[4, 4])
def tensor_is_kept_until_its_event(right: bool) -> list[float]:
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    kept = [torch.full((2,), 2.0, device="cuda")]
    side.wait_stream(main)
    with torch.cuda.stream(side):
        out = kept[0] * 2
    used = side.record_event()
    if right:
        used.synchronize()
    kept.clear()
    torch.zeros(2, device="cuda")
    side.synchronize()
    return out.tolist()


@idiom(
    "data prefetchers: a tensor that was made on the copy stream, and is used on the main stream, is recorded there", gives=[5, 5]
)
def tensor_of_the_copy_stream_is_recorded_where_it_is_used(right: bool) -> list[float]:
    copies, main = torch.cuda.Stream(), torch.cuda.current_stream()
    with torch.cuda.stream(copies):
        sent = torch.full((2,), 4.0).pin_memory().to("cuda", non_blocking=True)
    main.wait_stream(copies)
    if right:
        sent.record_stream(main)
    out = sent + 1
    del sent
    with torch.cuda.stream(copies):
        torch.zeros(2, device="cuda")
    torch.cuda.synchronize()
    return out.tolist()


@idiom("torch's notes on CUDA memory management: memory that was used on its own stream alone is freed at any time", gives=[2, 2])
def memory_of_one_stream_is_freed_at_any_time(right: bool) -> list[float]:
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    made = torch.ones(2, device="cuda")
    side.wait_stream(main)
    with torch.cuda.stream(main if right else side):
        out = made * 2
    del made
    for _ in range(3):
        torch.zeros(2, device="cuda")
    torch.cuda.synchronize()
    return out.tolist()


@idiom("documentation of Tensor.record_stream: it prolongs a block's life, and is no wait", gives=[2, 2])
def record_stream_comes_with_a_wait(right: bool) -> list[float]:
    side = torch.cuda.Stream()
    made = torch.ones(2, device="cuda")
    if right:
        side.wait_stream(torch.cuda.current_stream())
    made.record_stream(side)
    with torch.cuda.stream(side):
        out = made * 2
    side.synchronize()
    return out.tolist()


@idiom(
    "documentation of torch.Tensor.pin_memory and the CUDA notes: torch frees pinned memory after the copies that it issued",
    gives=[1, 1, 2, 2],
)
def pinned_memory_may_be_dropped_under_way(right: bool) -> list[float]:
    side, out = torch.cuda.Stream(), torch.zeros(2, 2, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    free: list[torch.Tensor] = []
    for step in range(2):
        staging = torch.empty(2, pin_memory=True) if right or not free else free.pop()
        staging.fill_(step + 1)
        with torch.cuda.stream(side):
            out[step].copy_(staging, non_blocking=True)
        if not right:
            free.append(staging)
        del staging
    side.synchronize()
    return out.flatten().tolist()


@idiom("pools of pinned buffers in serving engines: a buffer goes back to the pool with the event of its copy", gives=[1, 1, 2, 2])
def pool_hands_a_pinned_buffer_out_after_its_event(right: bool) -> list[float]:
    out = torch.zeros(2, 2, device="cuda")
    pool = [(torch.empty(2, pin_memory=True), torch.cuda.Event())]
    for step in range(2):
        buffer, sent = pool.pop()
        if right:
            sent.synchronize()
        buffer.fill_(step + 1)
        out[step].copy_(buffer, non_blocking=True)
        sent.record()
        pool.append((buffer, sent))
    return out.flatten().tolist()


@idiom("workspaces of libraries: one workspace for each stream", gives=[1, 1, 2, 2])
def each_stream_has_a_workspace_of_its_own(right: bool) -> list[float]:
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    shared, outs = torch.zeros(2, device="cuda"), []
    for number, stream in enumerate(streams, start=1):
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            workspace = torch.empty(2, device="cuda") if right else shared
            workspace.fill_(number)
            outs.append(workspace * 1)
    torch.cuda.synchronize()
    return [value for out in outs for value in out.tolist()]


@idiom(
    "group offloading of model libraries: a parameter leaves the device while the main stream may still compute with it",
    gives=[2, 2],
)
def offloaded_parameter_is_recorded_where_it_was_used(right: bool) -> list[float]:
    copies, main, stored = torch.cuda.Stream(), torch.cuda.current_stream(), torch.full((2,), 2.0).pin_memory()
    layer = torch.nn.Parameter(stored, requires_grad=False)
    with torch.cuda.stream(copies):
        layer.data = stored.to("cuda", non_blocking=True)
    main.wait_stream(copies)
    out = layer * 1
    if right:
        layer.data.record_stream(main)
    layer.data = stored
    with torch.cuda.stream(copies):
        torch.zeros(2, device="cuda")
    torch.cuda.synchronize()
    return out.tolist()
