"""CUDA graphs: a replay reads and writes the addresses that were captured, whatever lies there by then."""

import torch

from tests.support.cuda_idioms.idiom import idiom


def graph_of_doubling(given: torch.Tensor, out: torch.Tensor) -> torch.cuda.CUDAGraph:
    """A graph that writes twice `given` to `out`."""
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        torch.mul(given, 2, out=out)
    return graph


@idiom("torch's notes on CUDA graphs: the static input is filled, the graph replayed, the static output read", gives=[2, 2, 4, 4])
def replay_waits_for_its_static_input(right: bool) -> list[float]:
    given, out = torch.zeros(2, device="cuda"), torch.zeros(2, device="cuda")
    copies, main, results = torch.cuda.Stream(), torch.cuda.current_stream(), []
    graph = graph_of_doubling(given, out)
    for step in (1, 2):
        copies.wait_stream(main)
        with torch.cuda.stream(copies):
            given.fill_(step)
        if right:
            main.wait_stream(copies)
        graph.replay()
        results.append(out.clone())
    torch.cuda.synchronize()
    return torch.cat(results).tolist()


@idiom(
    "decoding loops with graphs: a pinned input of a captured copy is filled again after the replay has read it", gives=[1, 1, 2, 2]
)
def captured_source_is_refilled_after_the_replay(right: bool) -> list[float]:
    source, given = torch.zeros(2, pin_memory=True), torch.zeros(2, device="cuda")
    out, graph = torch.zeros(2, 2, device="cuda"), torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        given.copy_(source, non_blocking=True)
    for step in range(2):
        source.fill_(step + 1)
        graph.replay()
        out[step].copy_(given)
        if right:
            torch.cuda.current_stream().synchronize()
    return out.flatten().tolist()


@idiom("torch's notes on CUDA graphs: an output is copied before the next replay overwrites it", gives=[2, 2, 4, 4])
def static_output_is_taken_before_the_next_replay(right: bool) -> list[float]:
    given, out = torch.ones(2, device="cuda"), torch.zeros(2, device="cuda")
    side, main, landed = torch.cuda.Stream(), torch.cuda.current_stream(), torch.zeros(2, 2, pin_memory=True)
    graph = graph_of_doubling(given, out)
    for step in range(2):
        graph.replay()
        side.wait_stream(main)
        with torch.cuda.stream(side):
            landed[step].copy_(out, non_blocking=True)
        if right:
            main.wait_stream(side)
        given.mul_(2)
    torch.cuda.synchronize()
    return landed.flatten().tolist()


@idiom("torch's notes on CUDA graphs: a side stream, such as that of the warm-up, is joined before a replay", gives=[4, 4])
def side_stream_is_joined_before_a_replay(right: bool) -> list[float]:
    state, graph = torch.ones(2, device="cuda"), torch.cuda.CUDAGraph()
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    side.wait_stream(main)
    with torch.cuda.graph(graph):
        state.mul_(2)
    with torch.cuda.stream(side):
        state.add_(1)
    if right:
        main.wait_stream(side)
    graph.replay()
    torch.cuda.synchronize()
    return state.tolist()


@idiom("graphs that are replayed on a stream of their own: the stream is joined in both directions", gives=[6, 6])
def replay_on_a_side_stream_is_joined(right: bool) -> list[float]:
    given, out, side = torch.full((2,), 3.0, device="cuda"), torch.zeros(2, device="cuda"), torch.cuda.Stream()
    graph = graph_of_doubling(given, out)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        graph.replay()
    if right:
        torch.cuda.current_stream().wait_stream(side)
    return (out * 1).tolist()


@idiom(
    "piecewise graphs: a graph that reads what another one writes is replayed after it, on one stream or with a wait", gives=[8, 8]
)
def graphs_that_share_memory_are_replayed_in_order(right: bool) -> list[float]:
    first, second, third = torch.full((2,), 2.0, device="cuda"), torch.zeros(2, device="cuda"), torch.zeros(2, device="cuda")
    graphs = [graph_of_doubling(first, second), graph_of_doubling(second, third)]
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    torch.cuda.synchronize()
    for graph, stream in zip(graphs, streams, strict=True):
        with torch.cuda.stream(streams[0] if right else stream):
            graph.replay()
    torch.cuda.synchronize()
    return third.tolist()
