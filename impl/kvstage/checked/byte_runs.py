"""Which bytes a tensor has, as runs of addresses, whatever its strides."""

from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from kvstage_model.language.buffers import Buffer, Memory, Rows

Bytes: TypeAlias = NDArray[np.uint8]
EVERYTHING = Buffer("memory", Memory.PAGEABLE, 1, 2**63)
"""All bytes of the process as one buffer: a row is a byte, and its number the address."""


def byte_runs(tensor: torch.Tensor) -> tuple[Rows, ...]:
    """The bytes of a plain tensor: runs that don't touch one another, by address."""
    size = tensor.element_size()
    return strided_runs(tensor.data_ptr(), tuple(tensor.shape), tuple(step * size for step in tensor.stride()), size)


def strided_runs(start: int, shape: tuple[int, ...], steps: tuple[int, ...], size: int) -> tuple[Rows, ...]:
    """The bytes of elements of `size` bytes, `steps` bytes apart in each dimension: runs as `byte_runs` has them."""
    return tuple(EVERYTHING.at(0, first, stop - first) for first, stop in strided_bounds(start, shape, steps, size))


def strided_bounds(start: int, shape: tuple[int, ...], steps: tuple[int, ...], size: int) -> list[tuple[int, int]]:
    """The same as (first byte, byte after the last), in rising order."""
    if 0 in shape:
        return []
    dimensions = sorted((step, count) for step, count in zip(steps, shape, strict=True) if count > 1)
    length, starts = size, np.array([start])
    for step, count in dimensions:
        if len(starts) == 1 and step <= length:  # the next bytes lie side by side with these
            length += step * (count - 1)
        else:
            starts = np.add.outer(starts, np.arange(count) * step).ravel()
    return bounds(starts, length)


def runs(starts: NDArray[np.int64], length: int) -> tuple[Rows, ...]:
    """Pieces of `length` bytes each, from these addresses on, as runs that don't touch one another."""
    return tuple(EVERYTHING.at(0, first, stop - first) for first, stop in bounds(starts, length))


def bounds(starts: NDArray[np.int64], length: int) -> list[tuple[int, int]]:
    """The same as (first byte, byte after the last), in rising order."""
    if not len(starts):
        return []
    starts = np.unique(starts)
    first = np.flatnonzero(np.diff(starts, prepend=starts[0] - length - 1) > length)
    last = np.append(first[1:], len(starts)) - 1
    return list(zip(starts[first].tolist(), (starts[last] + length).tolist(), strict=True))
