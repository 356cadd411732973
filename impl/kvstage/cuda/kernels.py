"""Operators on the device: issued on the current stream, and run on the CPU's memory when the schedule says so.

`call` gets every operator that has a tensor on cuda, below autograd. If the work would be done before the host acts again
(issue order, nothing under way) it is done at once, and its results' memory becomes the new tensors'. Otherwise the results'
shapes come from torch's meta kernels, and the bytes later.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch

from . import boot
from .copies import SPECIAL, copy_half
from .operators import Operator, exchanged, operator, tensors_in
from .rows import exact_rows, touched
from .runs import running
from .simulation import Simulation, Touched, allocator

CUDA, HERE = torch.device("cuda", 0), torch.device("cpu")

_shapes: dict[Any, Any] = {}
"""What operators give for arguments of a kind, in shapes and dtypes."""


def fallback(op: Any, *args: Any, **kwargs: Any) -> Any:
    """What torch calls for an operator that has a tensor on cuda."""
    simulation = running()
    with simulation.lock, boot.BelowModes():
        return call(simulation, op, args, kwargs)


def call(simulation: Simulation, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Issues one operator."""
    known = operator(op)
    args = known.with_tensors(args, kwargs)
    allocator.collect()
    special = SPECIAL.get(known.name)
    if special is not None:
        return special(simulation, op, args, kwargs)
    if known.is_view:
        return boot.on_cpu(op, args, kwargs)
    return launch(simulation, known, args, kwargs)


def launch(simulation: Simulation, known: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Issues a kernel. Raises RuntimeError for tensors of two devices, as torch does."""
    _refuse_two_devices(known, args, kwargs)
    written = list(tensors_in(known.written(args, kwargs)))
    run = _runner(simulation, known, args, kwargs)
    if known.synchronises(args):
        simulation.launch(known.text, touched(args, kwargs, written), _nothing)
        simulation.wait_unasked(simulation.stream)
        return exchanged(run(), lambda each: _upload(simulation, each) if isinstance(each, torch.Tensor) else each)
    touches = touched(args, kwargs, written)
    if known.has_out and not all(tensor.numel() for tensor in written):
        _resize_out(simulation, known, args, kwargs, written)
        run, touches = _runner(simulation, known, args, kwargs), touched(args, kwargs, written)
    exactly = exact_rows(known, args, kwargs, touches)
    if not any(known.new_results) or (known.has_out and known.writes):
        simulation.launch(known.text, touches, lambda half: None if half else _done(run()), exactly=exactly)
        return known.result(args, kwargs, None)
    simulation.machine.pause()
    eager = simulation.capture is None and simulation.eager()
    results = simulation.at_once(run) if eager else _inferred(known, args, kwargs)
    return known.result(args, kwargs, _issue(simulation, known, results, eager, run, touches, exactly))


def _issue(
    simulation: Simulation, known: Operator, results: Any, eager: bool, run: Callable[[], Any], touches: Touched, exactly: Any
) -> Any:
    """Gives the results memory, and issues the work that fills it."""
    places: list[torch.Tensor] = []
    made: list[torch.Tensor] = []

    def new(result: Any) -> Any:
        if not isinstance(result, torch.Tensor):
            return result
        memory = _memory_of(result) if eager else None
        tensor = simulation.allocate(result.shape, result.stride(), result.dtype, memory=memory)
        made.append(tensor)
        places.append(result if memory is not None else allocator.plain(tensor))
        return tensor

    outcome = exchanged(results, new)
    reads, writes = touches
    touches = reads, (*writes, *(rows for tensor in made for rows in allocator.rows(tensor)))
    fill: Callable[[int], None] = _nothing
    if eager:
        for place, result in zip(places, tensors_in(results), strict=True):
            if place is not result:
                place.copy_(result)
    else:
        fill = _filling(run, places)
    if exactly is not None:
        inner, added = exactly, touches[1][len(writes) :]

        def exactly() -> Touched:
            exact_reads, exact_writes = inner()
            return exact_reads, (*exact_writes, *added)

    simulation.launch(known.text, touches, fill, exactly=exactly)
    return outcome


def _filling(run: Callable[[], Any], places: list[torch.Tensor]) -> Callable[[int], None]:
    """Work that computes when it begins, and writes half of each result then, the rest when it ends."""
    kept: list[torch.Tensor] = []

    def fill(half: int) -> None:
        if half == 0:
            kept[:] = tensors_in(run())
        for place, value in zip(places, kept, strict=False):
            if place.shape == value.shape:  # what a CPU kernel does not give (a saved mean, in eval) is not read
                copy_half(place, value, half)
        if half == 1:
            kept.clear()

    return fill


def _memory_of(result: torch.Tensor) -> torch.Tensor | None:
    """The memory of a result, if it has it for itself."""
    storage = result.untyped_storage()
    if result.storage_offset() or not storage.nbytes() or storage.data_ptr() in allocator.blocks or not storage.resizable():
        return None
    return torch.empty(0, dtype=torch.uint8, device=HERE).set_(storage)


def _runner(simulation: Simulation, known: Operator, args: Any, kwargs: Any) -> Callable[[], Any]:
    """The operator on CPU tensors. Random numbers are drawn from a seed that is drawn now, so every schedule gives the same."""

    def exchange(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return allocator.plain(leaf) if leaf.is_cuda else leaf.clone()
        if isinstance(leaf, torch.device):
            return HERE
        return leaf

    plain_args, plain_kwargs = exchanged(args, exchange), exchanged(kwargs, exchange)
    op = known.op
    if not known.is_random:
        return lambda: op(*plain_args, **plain_kwargs)
    given = known.value("generator", args, kwargs)
    seed = simulation.draw(given)
    if known.takes_generator:
        at = known.positions["generator"]
        if at < len(plain_args):
            plain_args = (*plain_args[:at], None, *plain_args[at + 1 :])
        return lambda: op(*plain_args, **{**plain_kwargs, "generator": torch.Generator(HERE).manual_seed(seed)})

    def draw() -> Any:
        with torch.random.fork_rng([]):
            torch.default_generator.manual_seed(seed)
            return op(*plain_args, **plain_kwargs)

    return draw


def _inferred(known: Operator, args: Any, kwargs: Any) -> Any:
    """The shapes of a call's results, as tensors of torch's device "meta". Remembered for arguments of the same kind."""
    kind = (
        known.op,
        exchanged(args, _kind),
        tuple(sorted((name, _hashable(exchanged(each, _kind))) for name, each in kwargs.items())),
    )
    try:
        key = _hashable(kind)
        if key in _shapes:
            return _shapes[key]
    except TypeError:
        key = None

    def exchange(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device="meta")
        return torch.device("meta") if isinstance(leaf, torch.device) else None if isinstance(leaf, torch.Generator) else leaf

    def zeros(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return torch.zeros(leaf.shape, dtype=leaf.dtype, device=HERE)
        return HERE if isinstance(leaf, torch.device) else None if isinstance(leaf, torch.Generator) else leaf

    with boot.BelowModes():
        try:
            found = known.op(*exchanged(args, exchange), **exchanged(kwargs, exchange))
        except (NotImplementedError, RuntimeError, AssertionError):  # torch has no meta kernel: look at a result for zeros
            found = known.op(*exchanged(args, zeros), **exchanged(kwargs, zeros))
    if key is not None:
        _shapes[key] = exchanged(found, lambda leaf: leaf.to("meta") if isinstance(leaf, torch.Tensor) else leaf)
    return found


def _kind(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return (leaf.shape, leaf.stride(), leaf.dtype, leaf.device.type)
    return (type(leaf), None if isinstance(leaf, torch.Generator) else leaf)


def _hashable(value: Any) -> Any:
    value = tuple(map(_hashable, value)) if isinstance(value, tuple | list) else value
    hash(value)
    return value


def _resize_out(simulation: Simulation, known: Operator, args: Any, kwargs: Any, written: list[torch.Tensor]) -> None:
    """`out=` tensors without elements get memory of the result's size, as torch's own are resized."""
    for tensor, like in zip(written, tensors_in(_inferred(known, args, kwargs)), strict=False):
        if tensor.shape != like.shape:
            moved = simulation.allocate(like.shape, like.stride(), tensor.dtype)
            arguments = (tensor, moved.untyped_storage(), 0, list(like.shape), list(like.stride()))
            boot.on_cpu(torch.ops.aten.set_.source_Storage_storage_offset, arguments, {})


def _upload(simulation: Simulation, value: torch.Tensor) -> torch.Tensor:
    """A result that the host knows already, as a tensor of the device."""
    tensor = simulation.allocate(value.shape, value.stride(), value.dtype)
    allocator.plain(tensor).copy_(value)
    return tensor


def _refuse_two_devices(known: Operator, args: Any, kwargs: Any) -> None:
    for tensor in _strangers(args, kwargs):
        if not known.has_index and "index" not in known.name:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, cuda:0 and {tensor.device}! "
                f"({known.text})"
            )


def _strangers(args: Any, kwargs: Any) -> Iterator[torch.Tensor]:
    return (tensor for tensor in tensors_in((args, kwargs)) if not tensor.is_cuda and tensor.dim())


def _nothing(half: int) -> None:
    pass


def _done(result: Any) -> None:
    del result
