"""The rows at the host: what a call checks of the tensor that it takes them from, or puts them into."""

import torch

from ..errors import AliasError, DeviceError, LayoutError
from ..pool import PagedPool, has_memory, is_plain, same_memory


def check_tensor(name: str, tensor: object) -> None:
    """Raises LayoutError for anything but a tensor of one shape."""
    if not isinstance(tensor, torch.Tensor):
        raise LayoutError(f"{name} is a {type(tensor).__name__}: it must be a tensor; of a numpy array torch.from_numpy makes one")
    if tensor.is_nested:
        raise LayoutError(f"{name} is a nested tensor: rows have one shape, so pass each of its parts in a call of its own")


def check_rows(name: str, tensor: torch.Tensor, pool: PagedPool, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """Raises DeviceError, LayoutError or AliasError unless the tensor can hold rows of the pool in that shape and dtype."""
    if not tensor.is_cpu:
        raise DeviceError(f"{name} is on {tensor.device}: it must be a CPU tensor, because the host takes or fills it")
    if tensor.dtype != dtype:
        wanted = f"{pool} is {pool.dtype}" if dtype == pool.dtype else f"dtype={dtype} was asked for"
        raise LayoutError(
            f"{name} is {tensor.dtype} and {wanted}: rows move as raw bytes, so convert them first; "
            "of bfloat16 pools the library does it, with dtype=torch.float32"
        )
    if tuple(tensor.shape) != shape:
        raise LayoutError(f"{name} has shape {list(tensor.shape)}: it must be {list(shape)}, rows of {pool}")
    if not is_plain(tensor):
        raise LayoutError(
            f"{name} is {tensor.layout}, quantised per channel, or a lazy conjugate or negative: it must hold its rows"
        )
    if not has_memory(tensor):
        raise LayoutError(f"{name} is a {type(tensor).__name__} without memory of its own: pass the tensor that has the rows")
    if not tensor.is_contiguous():
        raise LayoutError(
            f"{name} has shape {list(shape)} and strides {list(tensor.stride())}: it must be contiguous; use .contiguous()"
        )
    start = tensor.data_ptr()
    if same_memory((start, start + tensor.nbytes), pool.span):
        raise AliasError(
            f"{name} lies in the memory of {pool}, in a block or between two: the call could overwrite what it has still to move; "
            "use a copy"
        )
