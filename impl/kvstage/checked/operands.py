"""What a checked device's operations reach through the tensors that they are given. Raised before anything is issued."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import torch

from kvstage_model.language.buffers import Rows, overlap

from ..devices.device import Index
from ..errors import AliasError, DeviceError, LayoutError
from .byte_runs import EVERYTHING, byte_runs, runs
from .host_view import HostView, Watcher


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """A uint8 view of a tensor: its last dimension in bytes. Raises LayoutError if rows have gaps."""
    if not tensor.dim():
        tensor = tensor.view(1)
    if tensor.stride(-1) != 1 and tensor.shape[-1] > 1:
        raise LayoutError(f"a row has gaps (strides {tuple(tensor.stride())}): give rows whose elements lie side by side")
    return tensor.view(torch.uint8)


def refuse_unseen(tensor: torch.Tensor, watcher: Watcher) -> None:
    """Raises DeviceError for a tensor whose uses go unnoted. If it has not a byte, nothing can go unseen."""
    if tensor.numel() and (not isinstance(tensor, HostView) or tensor.watcher is not watcher):
        raise DeviceError(
            f"a tensor {list(tensor.shape)} is not one of the device's own, so what the host does to it would go unseen: "
            "make it with device.allocate or device.host_view, anew for each run; of a Stager that goes for pool, out and rows"
        )


def gaps(*tensors: torch.Tensor) -> bool:
    """Whether the rows of some tensor don't lie side by side."""
    return not all(tensor.is_contiguous() for tensor in tensors)


def refuse_post(reads: Sequence[torch.Tensor], writes: Sequence[torch.Tensor]) -> None:
    """Raises LayoutError if both sides have tensors, and not the same number of bytes."""
    read, written = (sum(each.numel() for each in ends) for ends in (reads, writes))
    if reads and writes and read != written:
        raise LayoutError(f"a transfer of {read} bytes to {written}: both sides of a post have the same size")


def refuse_copy(source: torch.Tensor, target: torch.Tensor, *, runs: bool = False) -> None:
    """Raises LayoutError if the two differ in bytes, or in shape if one has gaps, AliasError if they overlap.

    With `runs`, neither may have gaps.
    """
    if source.numel() != target.numel():
        raise LayoutError(f"a copy of {source.numel()} bytes to {target.numel()}: both sides of a copy have the same size")
    for end in (source, target) if runs else ():
        if not end.is_contiguous():
            raise LayoutError(f"one side of a copy has gaps (strides {tuple(end.stride())}): copy rows that lie side by side")
    if gaps(source, target) and source.shape != target.shape:
        raise LayoutError(
            f"a copy of {list(source.shape)} bytes to {list(target.shape)}, and the rows of one have gaps: give both one shape"
        )
    if any(overlap(mine, other) for mine, other in product(byte_runs(source), byte_runs(target))):
        raise AliasError("source and target of a copy overlap: which bytes arrive depends on the driver")


def side_by_side(tensor: torch.Tensor) -> Rows:
    """The bytes of a tensor without gaps."""
    return EVERYTHING.at(0, tensor.data_ptr(), tensor.numel())


def index_of(index: object) -> Index:
    """The numbers of rows as a numpy array: a list or a tensor will do. Raises LayoutError for numbers that are no integers."""
    array = np.asarray(index)
    if array.dtype.kind not in "iu" and array.size:
        raise LayoutError(f"a kernel's index is {array.dtype}: give the numbers of rows as integers")
    return array.astype(np.int64)


def rows_of(pool: torch.Tensor, index: Index, packed: torch.Tensor, *, once: bool = False) -> tuple[Rows, ...]:
    """The rows of a pool that a kernel reaches; with `once` none of them twice. Raises LayoutError."""
    if pool.dim() != 3 or packed.dim() != 2 or packed.shape != (len(index), pool.shape[2]):
        raise LayoutError(
            f"a kernel on a pool {tuple(pool.shape)} with {len(index)} rows in {tuple(packed.shape)} bytes: "
            "give a pool [slots, rows, width], an index [n] and rows [n, width]"
        )
    count = pool.shape[0] * pool.shape[1]
    outside = index[(index < 0) | (index >= count)]
    if len(outside):
        raise LayoutError(f"a kernel reaches row {outside[0]} of a pool of {count} rows")
    if once and len(np.unique(index)) < len(index):
        raise LayoutError("a kernel writes a row of the pool twice: which bytes stay depends on the driver")
    slots, places = np.divmod(index, max(pool.shape[1], 1))
    return runs(pool.data_ptr() + slots * pool.stride(0) + places * pool.stride(1), pool.shape[2]) if pool.numel() else ()
