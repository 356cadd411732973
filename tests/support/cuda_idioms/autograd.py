"""Autograd: the backward pass runs on the streams of the forward pass, and its result belongs to the stream that asked for it."""

from typing import Any

import torch

from tests.support.cuda_idioms.idiom import idiom


def weight(value: float = 1.0) -> torch.Tensor:
    """A leaf of two elements on the device, in nobody's way."""
    made = torch.full((2,), value, device="cuda", requires_grad=True)
    torch.cuda.synchronize()
    return made


@idiom(
    "torch's notes on CUDA semantics, stream semantics of backward passes: gradients belong to the stream around backward()",
    gives=[2, 2],
)
def gradients_are_joined_from_the_stream_around_backward(right: bool) -> list[float]:
    side, main, leaf = torch.cuda.Stream(), torch.cuda.current_stream(), weight()
    with torch.cuda.stream(side):
        (leaf * 2).sum().backward()
    if right:
        main.wait_stream(side)
    assert leaf.grad is not None
    return (leaf.grad * 1).tolist()


@idiom(
    "torch's notes on CUDA semantics, stream semantics of backward passes: a gradient to start from is made on that stream",
    gives=[4, 4],
)
def initial_gradient_is_made_on_the_same_stream(right: bool) -> list[float]:
    side, main, leaf = torch.cuda.Stream(), torch.cuda.current_stream(), weight()
    with torch.cuda.stream(side):
        loss = leaf * 2
    main.wait_stream(side)
    start = torch.full((2,), 2.0, device="cuda")
    if right:
        side.wait_stream(main)
    with torch.cuda.stream(side):
        loss.backward(gradient=start)
    side.synchronize()
    assert leaf.grad is not None
    return leaf.grad.tolist()


@idiom(
    "torch's notes on CUDA semantics: forward on a side stream, joined before backward() and its result on the main stream",
    gives=[18, 18],
)
def forward_on_a_side_stream_is_joined(right: bool) -> list[float]:
    side, main, leaf = torch.cuda.Stream(), torch.cuda.current_stream(), weight()
    factor = torch.full((2,), 3.0, device="cuda")
    if right:
        side.wait_stream(main)
    with torch.cuda.stream(side):
        loss = (leaf * factor).square().sum()
    main.wait_stream(side)
    loss.backward()
    assert leaf.grad is not None
    return (leaf.grad * 1).tolist()


@idiom("saved_tensors_hooks that offload activations: what is unpacked waits for its download and its upload", gives=[6, 6])
def unpacked_activation_waits_for_its_copies(right: bool) -> list[float]:
    copies, main, leaf = torch.cuda.Stream(), torch.cuda.current_stream(), weight(3.0)

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        landed = torch.empty(tensor.shape, pin_memory=True)
        copies.wait_stream(main)
        with torch.cuda.stream(copies):
            landed.copy_(tensor, non_blocking=True)
        tensor.record_stream(copies)
        return landed

    def unpack(landed: torch.Tensor) -> torch.Tensor:
        with torch.cuda.stream(copies):
            back = landed.to("cuda", non_blocking=True)
        if right:
            main.wait_stream(copies)
        back.record_stream(main)
        return back

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        loss = leaf.square().sum()
    loss.backward()
    torch.cuda.synchronize()
    assert leaf.grad is not None
    return leaf.grad.tolist()


@idiom("gradient hooks that download: the copy stream waits for the stream that made the gradient", gives=[5, 5])
def gradient_hook_waits_for_the_gradient(right: bool) -> list[float]:
    copies, landed, leaf = torch.cuda.Stream(), torch.zeros(2, pin_memory=True), weight()

    def download(tensor: torch.Tensor) -> None:
        assert tensor.grad is not None
        if right:
            copies.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(copies):
            landed.copy_(tensor.grad, non_blocking=True)

    leaf.register_post_accumulate_grad_hook(download)
    (leaf * 5).sum().backward()
    torch.cuda.synchronize()
    return landed.tolist()


class OnAnotherStream(torch.autograd.Function):
    """Doubles on a stream of its own, forth and back; `joined` says whether the way back joins it."""

    @staticmethod
    def forward(ctx: Any, given: torch.Tensor, side: torch.cuda.Stream, joined: bool) -> torch.Tensor:
        """`given` doubled."""
        ctx.side, ctx.joined = side, joined
        return _doubled(given, side, True)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """`gradient` doubled."""
        return _doubled(gradient, ctx.side, ctx.joined), None, None


def _doubled(given: torch.Tensor, side: torch.cuda.Stream, joined: bool) -> torch.Tensor:
    caller = torch.cuda.current_stream()
    out = torch.empty_like(given)
    side.wait_stream(caller)
    with torch.cuda.stream(side):
        torch.mul(given, 2, out=out)
    given.record_stream(side)
    if joined:
        caller.wait_stream(side)
    return out


@idiom("autograd functions with a stream of their own: backward joins it as forward does", gives=[2, 2])
def function_joins_its_stream_in_both_directions(right: bool) -> list[float]:
    leaf = weight()
    OnAnotherStream.apply(leaf, torch.cuda.Stream(), right).sum().backward()
    assert leaf.grad is not None
    out = leaf.grad * 1
    torch.cuda.synchronize()
    return out.tolist()
