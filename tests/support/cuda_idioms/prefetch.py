"""Prefetching: the next batch, the next layer's weights, the next pages, on a copy stream beside the work."""

from collections.abc import Iterator

import torch

from tests.support.cuda_idioms.idiom import idiom


def batches() -> list[torch.Tensor]:
    """Three pinned batches of two."""
    return [torch.full((2,), float(number)).pin_memory() for number in range(3)]


@idiom("the data prefetcher of training examples: preload on a stream of its own, join it in next()", gives=[0, 0, 1, 1, 2, 2])
def prefetcher_is_joined_before_its_batch_is_used(right: bool) -> list[float]:
    copies, main = torch.cuda.Stream(), torch.cuda.current_stream()

    def prefetched() -> Iterator[torch.Tensor]:
        for batch in batches():
            with torch.cuda.stream(copies):
                sent = batch.to("cuda", non_blocking=True)
            if right:
                main.wait_stream(copies)
            sent.record_stream(main)
            yield sent

    outs = [sent + 0 for sent in prefetched()]
    torch.cuda.synchronize()
    return torch.cat(outs).tolist()


@idiom("the data prefetcher of training examples: a batch is recorded on the stream that uses it", gives=[0, 0, 1, 1, 2, 2])
def prefetched_batch_is_recorded_on_the_main_stream(right: bool) -> list[float]:
    copies, main = torch.cuda.Stream(), torch.cuda.current_stream()
    outs = []
    for batch in batches():
        with torch.cuda.stream(copies):
            sent = batch.to("cuda", non_blocking=True)
        main.wait_stream(copies)
        if right:
            sent.record_stream(main)
        outs.append(sent + 0)
        del sent
    torch.cuda.synchronize()
    return torch.cat(outs).tolist()


@idiom("layer-wise weight offloading: a layer waits for the event of its own weights", gives=[6, 6])
def layer_waits_for_its_own_weights(right: bool) -> list[float]:
    copies, main = torch.cuda.Stream(), torch.cuda.current_stream()
    weights = [torch.full((2,), float(factor)).pin_memory() for factor in (1, 2, 3)]
    sent, ready = [], []
    with torch.cuda.stream(copies):
        for weight in weights:
            sent.append(weight.to("cuda", non_blocking=True))
            ready.append(copies.record_event())
    hidden = torch.ones(2, device="cuda")
    for layer in range(3):
        main.wait_event(ready[layer if right else max(layer - 1, 0)])
        hidden = hidden * sent[layer]
    torch.cuda.synchronize()
    return hidden.tolist()


@idiom("layer-wise weight offloading: the next layer is fetched into other memory than this layer computes with", gives=[2, 2])
def next_layer_is_fetched_into_the_other_buffer(right: bool) -> list[float]:
    copies, main = torch.cuda.Stream(), torch.cuda.current_stream()
    weights = [torch.full((2,), float(factor)).pin_memory() for factor in (1, 2)]
    buffers = torch.empty(2, 2, device="cuda")
    buffers[0].copy_(weights[0], non_blocking=True)
    hidden = torch.ones(2, device="cuda")
    copies.wait_stream(main)
    hidden = hidden * buffers[0]
    with torch.cuda.stream(copies):
        buffers[1 if right else 0].copy_(weights[1], non_blocking=True)
    main.wait_stream(copies)
    hidden = hidden * buffers[1 if right else 0]
    torch.cuda.synchronize()
    return hidden.tolist()


@idiom("paged KV caches: pages are loaded beside attention, which reads other pages", gives=[1, 1, 9, 9])
def loaded_pages_are_not_those_that_are_read(right: bool) -> list[float]:
    copies, main = torch.cuda.Stream(), torch.cuda.current_stream()
    pages, loaded = torch.ones(4, 2, device="cuda"), torch.full((2, 2), 9.0).pin_memory()
    copies.wait_stream(main)
    out = pages[0:2].sum(0) / 2
    with torch.cuda.stream(copies):
        pages[2:4].copy_(loaded, non_blocking=True) if right else pages[1:3].copy_(loaded, non_blocking=True)
    torch.cuda.synchronize()
    return [*out.tolist(), *pages[2].tolist()]


@idiom("paged KV caches: rows by number, scattered on the copy stream beside a gather of other rows", gives=[1, 1, 1, 1])
def scattered_rows_are_not_those_that_are_gathered(right: bool) -> list[float]:
    copies, main = torch.cuda.Stream(), torch.cuda.current_stream()
    pages = torch.ones(4, 2, device="cuda")
    gathered, scattered = torch.arange(0, 2, device="cuda"), torch.arange(2, 4, device="cuda") - (0 if right else 1)
    rows = torch.full((2, 2), 9.0, device="cuda")
    torch.cuda.synchronize()
    out = pages.index_select(0, gathered)
    with torch.cuda.stream(copies):
        pages.index_copy_(0, scattered, rows)
    main.wait_stream(copies)
    torch.cuda.synchronize()
    return out.flatten().tolist()


@idiom(
    "paged KV caches: new rows are written to the slots of one request, while another request's are copied out", gives=[1, 1, 1, 1]
)
def rows_are_written_to_the_slots_of_another_request(right: bool) -> list[float]:
    copies, landed = torch.cuda.Stream(), torch.zeros(2, 2, pin_memory=True)
    cache, fresh = torch.ones(4, 2, device="cuda"), torch.full((2, 2), 9.0, device="cuda")
    slots = torch.arange(2, 4, device="cuda") if right else torch.arange(1, 3, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(copies):
        landed.copy_(cache[0:2], non_blocking=True)
    cache[slots] = fresh
    torch.cuda.synchronize()
    return landed.flatten().tolist()


@idiom("token buffers on the device: sampled tokens are scattered to other places than those that are copied out", gives=[1, 1])
def tokens_are_scattered_to_other_places(right: bool) -> list[float]:
    copies, landed = torch.cuda.Stream(), torch.zeros(2, pin_memory=True)
    tokens, sampled = torch.ones(4, device="cuda"), torch.full((2,), 9.0, device="cuda")
    places = torch.arange(2, 4, device="cuda") if right else torch.arange(1, 3, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(copies):
        landed.copy_(tokens[0:2], non_blocking=True)
    tokens.scatter_(0, places, sampled)
    torch.cuda.synchronize()
    return landed.tolist()
