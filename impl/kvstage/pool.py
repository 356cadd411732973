"""Paged pools, and the one place where rows become bytes.

Rows are moved as raw bytes: the dtype is never looked at, so NaN patterns, fp8 and packed rows arrive as they were.
The views are detached: a write leaves no trace in autograd, however the tensors were made, and a pool made under
`torch.inference_mode` can be written from outside it.
"""

from collections.abc import Callable
from math import prod

import torch

from .errors import LayoutError


class PagedPool:
    """Blocks of rows, as a KV cache holds them: a view of `tensor`, which stays the caller's.

    `tensor` is [num_blocks, block_size, *row], of any dtype and on any device. The rows of one block must lie side by
    side; blocks may lie any distance apart (padding, layers packed between them). Raises LayoutError.

    >>> layers = torch.zeros(8, 3, 4, 5, dtype=torch.bfloat16)  # blocks outermost, 3 layers inside
    >>> PagedPool(layers[:, 1], name="layer 1")
    PagedPool(8 blocks of 4 rows of [5] torch.bfloat16, name='layer 1')

    `row_bytes` is the size of a row, `span` the addresses that the pool's memory lies between now, gaps included;
    `gapless` is whether there are none. A tensor that is given other memory, another dtype or shape in place (by
    `module.to()`, `tensor.data =` or `resize_`) is no longer the pool's: calls then raise LayoutError. A copy of a pool, and
    one that was pickled, is a new pool of the tensor that was copied with it.
    """

    def __init__(self, tensor: torch.Tensor, *, name: str = "") -> None:
        self.name = name
        self.tensor = tensor
        _check_blocks(tensor, self)
        self.num_blocks: int = tensor.shape[0]
        self.block_size: int = tensor.shape[1]
        self.row_shape: tuple[int, ...] = tuple(tensor.shape[2:])
        self.dtype: torch.dtype = tensor.dtype
        self.bytes: torch.Tensor = as_bytes(tensor, 2)
        """The same memory as uint8: [num_blocks, block_size, row_bytes]."""
        self.row_bytes: int = self.bytes.shape[2]
        self.gapless: bool = self.bytes.is_contiguous()
        self._strides = tensor.stride()

    @property
    def span(self) -> tuple[int, int]:
        """Where the memory lies now: `tensor.share_memory_()` moves it."""
        return span(self.bytes)

    def check_tensor(self) -> None:
        """Raises LayoutError if the tensor is not the one any more that the pool was made of."""
        tensor, shape = self.tensor, (self.num_blocks, self.block_size, *self.row_shape)
        if tensor.dtype != self.dtype or tensor.shape != shape or tensor.stride() != self._strides:
            now = f"{list(tensor.shape)} {tensor.dtype} with strides {list(tensor.stride())}"
            raise LayoutError(f"the tensor of {self} is {now} now, and was {list(shape)} {self.dtype}: make a new PagedPool of it")
        if tensor.data_ptr() != self.bytes.data_ptr():
            raise LayoutError(f"the tensor of {self} has other memory now, as after module.to(): make a new PagedPool of it")
        if not has_memory(tensor):
            raise LayoutError(f"the memory of {self} was given back, as by resize_(0) of its storage: make a new PagedPool")

    def __reduce__(self) -> "tuple[Callable[[type[PagedPool], torch.Tensor, str], PagedPool], tuple[object, ...]]":
        return _pool_of, (type(self), self.tensor, self.name)

    def rows(self, slot: int, start: int, count: int) -> torch.Tensor:
        """The bytes of `count` rows from `start` on in block `slot`: a uint8 view [count, row_bytes]."""
        return self.bytes[slot, start : start + count]

    def __str__(self) -> str:
        return f"pool {self.name!r}" if self.name else "the pool"

    def __repr__(self) -> str:
        rows = f"{self.block_size} rows of {list(self.row_shape)} {self.dtype}"
        return f"PagedPool({self.num_blocks} blocks of {rows}, name={self.name!r})"


def _pool_of(kind: type[PagedPool], tensor: torch.Tensor, name: str) -> PagedPool:
    return kind(tensor, name=name)


def as_bytes(tensor: torch.Tensor, leading: int) -> torch.Tensor:
    """The tensor's memory as uint8, outside autograd: the first `leading` dimensions, then the bytes of one row.

    Everything after the first `leading` dimensions must be contiguous.
    """
    row = prod(tensor.shape[leading:])
    return tensor.detach().as_strided((*tensor.shape[:leading], row), (*tensor.stride()[:leading], 1)).view(torch.uint8)


def packed_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The memory of contiguous rows as a buffer of one slot, outside autograd: uint8 [1, n, row_bytes]."""
    count, *row_shape = tensor.shape
    row = prod(row_shape)
    return tensor.detach().as_strided((1, count, row), (count * row, row, 1)).view(torch.uint8)


def span(tensor: torch.Tensor) -> tuple[int, int]:
    """The first address of a tensor's memory, and the one after its last byte, gaps between its blocks included."""
    start = tensor.data_ptr()
    if tensor.is_contiguous():
        return start, start + tensor.nbytes
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return start, start + (last + 1) * tensor.element_size()


def same_memory(first: tuple[int, int], second: tuple[int, int]) -> bool:
    """Whether two spans of memory have a byte in common."""
    return max(first[0], second[0]) < min(first[1], second[1])


def disjoint(first: PagedPool, second: PagedPool) -> bool:
    """Whether two pools are known to share no byte: neither lies in the other's span, or their blocks interleave.

    So do the layers of one cross-layer tensor: blocks one distance apart, and those of the one in the gaps of the other.
    """
    if not same_memory(first.span, second.span):
        return True
    distance = first.bytes.stride(0)
    if distance <= 0 or distance != second.bytes.stride(0):
        return False
    behind = (second.span[0] - first.span[0]) % distance
    return first.block_size * first.row_bytes <= behind <= distance - second.block_size * second.row_bytes


def check_pool(name: str, pool: object) -> None:
    """Raises LayoutError for anything but a pool of the tensor that it was made of."""
    if not isinstance(pool, PagedPool):
        raise LayoutError(f"{name} is a {type(pool).__name__}: it must be a PagedPool; of a tensor PagedPool(tensor) makes one")
    pool.check_tensor()


def _check_blocks(tensor: torch.Tensor, pool: PagedPool) -> None:
    if not isinstance(tensor, torch.Tensor):
        raise LayoutError(
            f"{pool} is made of a {type(tensor).__name__}: it must be a tensor; of a numpy array torch.from_numpy makes one"
        )
    if not is_plain(tensor):
        raise LayoutError(
            f"{pool} is {tensor.layout}, nested, quantised per channel, or a lazy conjugate or negative: its memory must hold "
            "the values of one shape as they are"
        )
    shape = list(tensor.shape)
    if not has_memory(tensor):
        raise LayoutError(f"{pool} is a {type(tensor).__name__} without memory of its own: pass the tensor that has the rows")
    if tensor.dim() < 2 or not tensor.numel():
        raise LayoutError(f"{pool} has shape {shape}: it must be [num_blocks, block_size, *row], with no size 0")
    if not tensor[0].is_contiguous():
        raise LayoutError(
            f"{pool} has shape {shape} and strides {list(tensor.stride())}: the rows of one block must lie side by side "
            f"(strides {list(torch.empty(shape[1:], device='meta').stride())} behind the first); only blocks may lie apart"
        )
    block = prod(shape[1:])
    if shape[0] > 1 and tensor.stride(0) < block:
        raise LayoutError(
            f"{pool} has a block of {block} elements every {tensor.stride(0)}: "
            "they overlap, so a write to one would change others; use a tensor of its own memory"
        )


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether the tensor's memory holds its values as they are, and in one shape."""
    if tensor.layout is not torch.strided or tensor.is_nested:
        return False
    per_channel = tensor.is_quantized and tensor.qscheme() not in (torch.per_tensor_affine, torch.per_tensor_symmetric)
    return not (per_channel or tensor.is_conj() or tensor.is_neg())


def has_memory(tensor: torch.Tensor) -> bool:
    """Whether all elements of a plain tensor lie in its storage: not those of torch's fake ones, nor after a `resize_(0)`."""
    try:
        storage = tensor.untyped_storage()
    except (RuntimeError, NotImplementedError):
        return False
    if not tensor.numel() or tensor.device.type == "meta":
        return True
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    end = (int(tensor.storage_offset()) + last + 1) * tensor.element_size()
    return storage.device == tensor.device and storage.nbytes() >= end
