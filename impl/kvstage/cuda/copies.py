"""Copies and conversions, and the other operators with a meaning of their own.

Sources: docs of Tensor.to, Tensor.copy_ and Tensor.pin_memory; CUDA notes, "Use pinned memory buffers"; CUDA Runtime API, "API
synchronization behavior": a copy from pageable memory has read it when the call returns, one to pageable memory has ended by
then. A copy between host and device whose two sides differ in layout goes by a temporary on the host, one whose dtypes differ
is converted on the device if it is non_blocking, and on the host otherwise.
"""

from collections.abc import Callable
from typing import Any

import torch

from . import boot
from .habits import TO_DEVICE, TO_HOST
from .operators import operator
from .rows import touched
from .simulation import DEFAULT, Simulation, allocator

aten = torch.ops.aten


def copy(simulation: Simulation, op: Any, args: Any, kwargs: Any) -> torch.Tensor:
    """`target.copy_(source, non_blocking)`."""
    target, source = args[0], args[1]
    non_blocking = bool(args[2] if len(args) > 2 else kwargs.get("non_blocking", False))
    if target.is_cuda and source.is_cuda:
        place, origin = (
            allocator.plain(target),
            allocator.plain(source.expand_as(target) if source.shape != target.shape else source),
        )
        simulation.launch("copy_ on the device", touched((source,), {}, [target]), lambda half: copy_half(place, origin, half))
    elif target.is_cuda:
        _to_device(simulation, target, source, non_blocking)
    else:
        _to_host(simulation, target, source, non_blocking)
    return target  # type: ignore[no-any-return]


def _to_device(simulation: Simulation, target: torch.Tensor, source: torch.Tensor, non_blocking: bool) -> None:
    stream = simulation.stream
    place, reads = allocator.plain(target), allocator.rows(source)
    direct = _same_layout(target, source) and (source.dtype == target.dtype or non_blocking)
    if reads and direct:
        origin = allocator.plain(source)
    else:  # read before the call returns: pageable memory, or by a temporary that is
        if reads:
            simulation.host("copy_ by way of a temporary", reads, ())
        origin, reads = source.detach().clone(), ()
    if origin.shape != place.shape:
        origin = origin.expand_as(place)
    writes = allocator.rows(target)
    if not non_blocking:
        simulation.refuse_in_capture("a copy that blocks", stream)
    _move(simulation, TO_DEVICE, reads, writes, place, origin)
    if not non_blocking:
        simulation.wait_unasked(stream)


def _to_host(simulation: Simulation, target: torch.Tensor, source: torch.Tensor, non_blocking: bool) -> None:
    stream = simulation.stream
    origin, writes = allocator.plain(source), allocator.rows(target)
    if origin.shape != target.shape:
        origin = origin.expand_as(target)
    if writes and _same_layout(target, source) and (source.dtype == target.dtype or non_blocking):
        _move(simulation, TO_HOST, allocator.rows(source), writes, allocator.plain(target), origin)
        if not non_blocking:
            simulation.wait_unasked(stream)
        return
    simulation.refuse_in_capture("a copy to pageable memory", stream)
    kept: list[torch.Tensor] = []
    simulation.launch(TO_HOST, (allocator.rows(source), ()), lambda half: None if half else kept.append(origin.clone()))
    simulation.wait_unasked(stream)
    if writes:
        simulation.host("copy_ by way of a temporary", (), writes)
    boot.on_cpu(aten.copy_.default, (target, kept[0]), {})


def _move(simulation: Simulation, what: str, reads: Any, writes: Any, place: torch.Tensor, origin: torch.Tensor) -> None:
    simulation.launch(what, (reads, writes), lambda half: copy_half(place, origin, half))


def copy_half(place: torch.Tensor, value: torch.Tensor, half: int) -> None:
    """Copies the first or the second half of the elements, cut in the first dimension that can be cut."""
    at = next((at for at, count in enumerate(place.shape) if count > 1), None)
    if at is None:
        if half == 1:
            place.copy_(value)
        return
    middle = place.shape[at] // 2
    start, count = (0, middle) if half == 0 else (middle, place.shape[at] - middle)
    place.narrow(at, start, count).copy_(value.narrow(at, start, count))


def _same_layout(target: torch.Tensor, source: torch.Tensor) -> bool:
    """Whether no temporary is needed between host and device: elements lie in the same order, without gaps."""
    if target.shape != source.shape:
        return False
    if target.is_contiguous() and source.is_contiguous():
        return True
    dense = target.numel() == _extent(target)
    return dense and target.stride() == source.stride()


def _extent(tensor: torch.Tensor) -> int:
    return 1 + sum((count - 1) * step for count, step in zip(tensor.shape, tensor.stride(), strict=True)) if tensor.numel() else 0


def to_copy(simulation: Simulation, op: Any, args: Any, kwargs: Any) -> torch.Tensor:
    """`tensor.to(...)` that makes a new tensor. To the CPU with non_blocking it is pinned memory (docs: Tensor.to)."""
    source, where = args[0], kwargs.get("device")
    where = source.device if where is None else torch.device(where)
    dtype, non_blocking = kwargs.get("dtype") or source.dtype, bool(kwargs.get("non_blocking"))
    layout = kwargs.get("memory_format") or torch.preserve_format
    shape = torch.empty_strided(source.shape, source.stride(), dtype=source.dtype, device="meta")
    like = torch.empty_like(shape, dtype=dtype, memory_format=layout)
    if where.type == "meta":
        return like
    if where.type == "cuda":
        new = simulation.allocate(like.shape, like.stride(), dtype)
    elif non_blocking or kwargs.get("pin_memory"):
        new = simulation.allocate(like.shape, like.stride(), dtype, pinned=True)
    else:
        new = torch.empty_strided(like.shape, like.stride(), dtype=dtype, device="cpu")
    return copy(simulation, op, (new, source, non_blocking), {})


def empty(simulation: Simulation, op: Any, args: Any, kwargs: Any) -> torch.Tensor:
    """`torch.empty` and `empty_strided`."""
    shape, dtype = tuple(args[0]), kwargs.get("dtype") or torch.get_default_dtype()
    if operator(op).name == "aten::empty_strided":
        return simulation.allocate(shape, args[1], dtype)
    layout = kwargs.get("memory_format") or torch.contiguous_format
    stride = torch.empty(shape, device="meta", memory_format=layout).stride()
    return simulation.allocate(shape, stride, dtype)


def item(simulation: Simulation, op: Any, args: Any, kwargs: Any) -> Any:
    """`tensor.item()`: waits for the current stream."""
    simulation.launch("item", (allocator.rows(args[0]), ()), _nothing)
    simulation.wait_unasked(simulation.stream)
    return allocator.plain(args[0]).item()


def record_stream(simulation: Simulation, op: Any, args: Any, kwargs: Any) -> None:
    """`tensor.record_stream(stream)`."""
    block = allocator.block(args[0]) or allocator.blocks.get(args[0].untyped_storage().data_ptr())
    if block is not None:
        block.recorded.add(str(args[1].stream_id) if args[1].stream_id else DEFAULT)


def resize(simulation: Simulation, op: Any, args: Any, kwargs: Any) -> torch.Tensor:
    """`tensor.resize_(shape)`: new memory with the old bytes if it does not fit."""
    tensor, shape = args[0], tuple(args[1])
    stride = torch.empty(shape, device="meta").stride()
    fits = tensor.untyped_storage().nbytes() >= (tensor.storage_offset() + torch.Size(shape).numel()) * tensor.element_size()
    if fits:
        arguments = (tensor, tensor.untyped_storage(), tensor.storage_offset(), list(shape), list(stride))
    else:
        new = simulation.allocate(shape, stride, tensor.dtype)
        if tensor.numel():
            flat = boot.as_strided(new, (tensor.numel(),), (1,))
            copy(simulation, aten.copy_.default, (flat, boot.as_strided(tensor, (tensor.numel(),), (1,)), True), {})
        arguments = (tensor, new.untyped_storage(), 0, list(shape), list(stride))
    boot.on_cpu(aten.set_.source_Storage_storage_offset, arguments, {})
    return tensor  # type: ignore[no-any-return]


def _plainly(simulation: Simulation, op: Any, args: Any, kwargs: Any) -> Any:
    return boot.on_cpu(op, args, kwargs)


def _nothing(half: int) -> None:
    pass


SPECIAL: dict[str, Callable[[Simulation, Any, Any, Any], Any]] = {
    "aten::copy_": copy,
    "aten::_to_copy": to_copy,
    "aten::empty": empty,
    "aten::empty_strided": empty,
    "aten::resize_": resize,
    "aten::_local_scalar_dense": item,
    "aten::record_stream": record_stream,
    "aten::set_": _plainly,
    "aten::is_set_to": _plainly,
    "aten::is_pinned": lambda *_: False,
    "aten::_fused_sdp_choice": lambda *_: 0,  # the formula as such: fused kernels differ in rounding alone
}
"""Operators that are no plain kernels."""

OVERRIDDEN = ("copy_", "_to_copy", "is_pinned", "_fused_sdp_choice")
"""Those for which torch has a kernel for every device, which would come before ours."""
