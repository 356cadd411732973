"""Gathers and scatters touch the rows that their index names: known when they begin, since the index may be under way itself."""

from collections.abc import Callable
from typing import Any

import torch

from kvstage_model.language.buffers import Rows

from ..checked.byte_runs import bounds
from .operators import Operator, tensors_in
from .simulation import Touched, allocator

READS = {"aten::index_select": ("self", "dim", "index"), "aten::embedding": ("weight", None, "indices")}
WRITES = {
    "aten::index_copy_": ("self", "dim", "index"),
    "aten::index_add_": ("self", "dim", "index"),
    "aten::index_fill_": ("self", "dim", "index"),
}
IN_PLACE = frozenset({"aten::index_copy", "aten::index_add"})
"""What torch makes of `index_copy_` and `index_add_`: an `out=` that is the tensor itself."""

BY_LIST = {"aten::index": False, "aten::index_put_": True, "aten::_index_put_impl_": True}
"""Whether the rows are written."""


def touched(args: Any, kwargs: Any, written: list[torch.Tensor]) -> Touched:
    """The bytes of the tensors that a call reads, and of those that it writes."""
    marks = {id(tensor) for tensor in written}
    reads = tuple(rows for each in tensors_in((args, kwargs)) if id(each) not in marks for rows in allocator.rows(each))
    writes = tuple(rows for each in written for rows in allocator.rows(each))
    return reads, writes


def exact_rows(known: Operator, args: Any, kwargs: Any, touches: Touched) -> Callable[[], Touched] | None:
    """What a call touches, to be asked when it begins; None if it is what its tensors are."""
    found = _pool_and_index(known, args, kwargs)
    if found is None:
        return None
    pool, index, writing = found
    block = allocator.block(pool)
    if block is None or not pool.numel() or not pool[:1].is_contiguous():
        return None
    whole = allocator.rows(pool)
    size = pool.element_size()
    step, width, start = pool.stride(0) * size, pool[:1].numel() * size, pool.storage_offset() * size
    numbers, count = (allocator.plain(index) if index.is_cuda else index.clone()), pool.shape[0]
    others = [tensor for tensor in tensors_in((args, kwargs)) if tensor is not pool]
    rest = tuple(rows for tensor in others for rows in allocator.rows(tensor))

    def exactly() -> Touched:
        places: Any = numbers.reshape(-1).to(torch.int64).remainder(count).numpy()
        runs = tuple(block.buffer.at(0, first, stop - first) for first, stop in bounds(start + places * step, width))
        if writing:
            return rest, (*runs, *_without(touches[1], whole))
        return (*runs, *rest), touches[1]

    return exactly


def _without(rows: tuple[Rows, ...], others: tuple[Rows, ...]) -> tuple[Rows, ...]:
    left = {(each.buffer.name, each.start, each.count) for each in others}
    return tuple(each for each in rows if (each.buffer.name, each.start, each.count) not in left)


def _pool_and_index(known: Operator, args: Any, kwargs: Any) -> tuple[torch.Tensor, torch.Tensor, bool] | None:
    names = READS.get(known.name) or WRITES.get(known.name)
    if names is not None:
        pool, dim, index = names
        if dim is not None and known.value(dim, args, kwargs) != 0:
            return None
        return known.value(pool, args, kwargs), known.value(index, args, kwargs), known.name in WRITES
    if known.name in IN_PLACE and known.value("out", args, kwargs) is args[0] and args[1] == 0:
        return args[0], args[2], True
    if known.name in BY_LIST:
        indices = known.value("indices", args, kwargs)
        if (
            indices
            and indices[0] is not None
            and indices[0].dtype in (torch.int64, torch.int32)
            and not any(each is not None for each in indices[1:])
        ):
            return args[0], indices[0], BY_LIST[known.name]
    return None
