"""Gathers and scatters touch what their index names: known when they begin, since the index may be under way itself.

Rows, or for `gather` and `scatter_` elements: `self[index[i][j]][j]` in dimension 0 (docs: torch.gather, Tensor.scatter_).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from kvstage_model.language.buffers import Rows

from ..checked.byte_runs import bounds
from .memory import MOST_RUNS
from .operators import Operator, tensors_in
from .simulation import Touched, allocator

READS = {"aten::index_select": ("self", "dim", "index"), "aten::embedding": ("weight", None, "indices")}
WRITES = {
    "aten::index_copy_": ("self", "dim", "index"),
    "aten::index_add_": ("self", "dim", "index"),
    "aten::index_fill_": ("self", "dim", "index"),
    "aten::index_reduce_": ("self", "dim", "index"),
}
IN_PLACE = frozenset({"aten::index_copy", "aten::index_add", "aten::index_reduce"})
"""What torch makes of `index_copy_` and its like: an `out=` that is the tensor itself."""

ELEMENTS_READ = "aten::gather"
ELEMENTS_WRITTEN = frozenset({"aten::scatter", "aten::scatter_add", "aten::scatter_reduce"})
"""In place, as those of IN_PLACE: what makes a new tensor reads and writes all of it."""

BY_LIST = {"aten::index": False, "aten::index_put_": True, "aten::_index_put_impl_": True}
"""Whether the rows are written."""


def touched(args: Any, kwargs: Any, written: list[torch.Tensor]) -> Touched:
    """The bytes of the tensors that a call reads, and of those that it writes."""
    marks = {id(tensor) for tensor in written}
    reads = tuple(rows for each in tensors_in((args, kwargs)) if id(each) not in marks for rows in allocator.rows(each))
    writes = tuple(rows for each in written for rows in allocator.rows(each))
    return reads, writes


@dataclass(frozen=True, slots=True)
class _Indexed:
    """The tensor whose rows or, along a dimension, elements an index names."""

    pool: torch.Tensor
    index: torch.Tensor
    writing: bool
    dim: int | None = None

    @property
    def is_exact(self) -> bool:
        """Whether what the index names can be told by strides."""
        if not self.pool.numel():
            return False
        return self.pool[:1].is_contiguous() if self.dim is None else 0 < self.pool.dim() == self.index.dim()

    def runs(self) -> Callable[[torch.Tensor], list[tuple[int, int]]]:
        """From the index's numbers to bytes of the storage, as `bounds` has them; beyond MOST_RUNS all from first to last."""
        size, dim = self.pool.element_size(), self.dim or 0
        start, steps = self.pool.storage_offset() * size, [step * size for step in self.pool.stride()]
        width, shape = (self.pool[:1].numel() * size, (-1,)) if self.dim is None else (size, tuple(self.index.shape))
        count, by_element = self.pool.shape[dim], self.dim is not None

        def named(numbers: torch.Tensor) -> list[tuple[int, int]]:
            places: Any = start + numbers.reshape(shape).to(torch.int64).remainder(count).numpy() * steps[dim]
            for at, many in enumerate(shape if by_element else ()):
                if at != dim:
                    places = places + np.expand_dims(np.arange(many) * steps[at], tuple(range(1, len(shape) - at)))
            found = bounds(places.ravel(), width)
            return found if len(found) <= MOST_RUNS else [(found[0][0], found[-1][1])]

        return named


def exact_rows(known: Operator, args: Any, kwargs: Any, touches: Touched) -> Callable[[], Touched] | None:
    """What a call touches, to be asked when it begins; None if it is what its tensors are."""
    found = _elements(known, args, kwargs) or _rows(known, args, kwargs)
    block = None if found is None else allocator.block(found.pool)
    if found is None or block is None or not found.is_exact:
        return None
    pool, index, writing, buffer = found.pool, found.index, found.writing, block.buffer
    whole, named = allocator.rows(pool), found.runs()
    numbers = allocator.plain(index) if index.is_cuda else index.clone()
    others = [tensor for tensor in tensors_in((args, kwargs)) if tensor is not pool]
    rest = tuple(rows for tensor in others for rows in allocator.rows(tensor))

    def exactly() -> Touched:
        runs = tuple(buffer.at(0, first, stop - first) for first, stop in named(numbers))
        if writing:
            return rest, (*runs, *_without(touches[1], whole))
        return (*runs, *rest), touches[1]

    return exactly


def _without(rows: tuple[Rows, ...], others: tuple[Rows, ...]) -> tuple[Rows, ...]:
    left = {(each.buffer.name, each.start, each.count) for each in others}
    return tuple(each for each in rows if (each.buffer.name, each.start, each.count) not in left)


def _elements(known: Operator, args: Any, kwargs: Any) -> _Indexed | None:
    in_place = known.name.endswith("_") or known.value("out", args, kwargs) is args[0]
    writing = in_place and known.name.removesuffix("_") in ELEMENTS_WRITTEN
    if not writing and known.name != ELEMENTS_READ:
        return None
    pool, dim, index = (known.value(name, args, kwargs) for name in ("self", "dim", "index"))
    return _Indexed(pool, index, writing, dim % max(pool.dim(), 1))


def _rows(known: Operator, args: Any, kwargs: Any) -> _Indexed | None:
    names = READS.get(known.name) or WRITES.get(known.name)
    if names is not None:
        pool, dim, index = names
        if dim is not None and known.value(dim, args, kwargs) != 0:
            return None
        return _Indexed(known.value(pool, args, kwargs), known.value(index, args, kwargs), known.name in WRITES)
    if known.name in IN_PLACE and known.value("out", args, kwargs) is args[0] and args[1] == 0:
        return _Indexed(args[0], args[2], True)
    if known.name in BY_LIST:
        indices = known.value("indices", args, kwargs)
        if (
            indices
            and indices[0] is not None
            and indices[0].dtype in (torch.int64, torch.int32)
            and not any(each is not None for each in indices[1:])
        ):
            return _Indexed(args[0], indices[0], BY_LIST[known.name])
    return None
