"""Memory of the simulated device, and pinned memory of the host: blocks, and the rules by which torch's allocators use them again.

A block is the memory of one storage. Its bytes are CPU memory that outlives the tensors on it for as long as work under way
needs it. No two blocks share a byte, and a freed one is never handed out again; that it could be is an access of its own, see
`Allocator`.
"""

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch

from kvstage_model.language.buffers import Buffer, Memory, Rows

from ..checked.byte_runs import strided_bounds
from ..checked.source_lines import Line
from . import boot

FRESH, FREED = 0xFF, 0xDD
"""What new and freed memory is filled with, so that bytes that were never written, or are somebody else's by now, show."""

GRAIN = 512
"""Bytes in which torch's allocator counts (docs: "Memory management" of the CUDA notes, small blocks)."""

MOST_RUNS = 4096
"""Runs of bytes that one tensor is noted as; beyond, all bytes from its first to its last count."""


@dataclass(eq=False, slots=True, weakref_slot=True)
class Block:
    """The memory of one storage: `bytes` are its bytes as a uint8 CPU tensor [size].

    `stream` is the one that it was allocated for, None for pinned memory; `recorded` are those that record_stream named.
    """

    buffer: Buffer
    bytes: torch.Tensor
    line: Line | None
    stream: str | None
    recorded: set[str] = field(default_factory=set)
    typed: dict[torch.dtype, torch.Tensor] = field(default_factory=dict)
    freed: Line | None = None

    @property
    def size(self) -> int:
        """In bytes."""
        return self.buffer.rows

    @property
    def pinned(self) -> bool:
        """Whether this is memory of the host."""
        return self.buffer.memory is Memory.PINNED

    @property
    def rows(self) -> Rows:
        """All of its bytes."""
        return self.buffer.at(0, 0, self.size)


class Allocator:
    """All blocks of the process: tensors outlive the run in which they were made.

    Torch's caching allocator hands a freed block out again to work of the stream that it was allocated for, which needs no wait;
    streams that `record_stream` named are waited for first (docs: Tensor.record_stream; CUDA notes, "Memory management"). So the
    next allocation on that stream counts as a write to all that was freed there. Pinned memory is handed out again after the
    copies that torch itself has issued (docs: torch.Tensor.pin_memory; CUDA notes, "Use pinned memory buffers").
    """

    def __init__(self) -> None:
        self.blocks: dict[int, Block] = {}
        self.by_name: weakref.WeakValueDictionary[str, Block] = weakref.WeakValueDictionary()
        self.waiting: dict[str, list[Block]] = {}
        self.allocated = self.peak = self.pinned = 0
        self.on_free: Callable[[Block], None] = lambda block: None
        self._slots: dict[int, int] = {}
        self._made = 0

    def tensor(
        self,
        shape: Iterable[int],
        stride: Iterable[int],
        dtype: torch.dtype,
        line: Line | None,
        stream: str | None,
        memory: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, Block]:
        """A new tensor with a block of its own: on the device for a stream, pinned for None. `memory` is used where it is given."""
        shape, stride = tuple(shape), tuple(stride)
        extent = 0 if 0 in shape else 1 + sum((count - 1) * step for count, step in zip(shape, stride, strict=True))
        size = extent * dtype.itemsize
        if memory is None:
            memory = torch.full((max(size, 1),), FRESH, dtype=torch.uint8, device="cpu")
        block = self._block(memory, size, line, stream)
        address = memory.data_ptr()
        if dtype in boot.DL_TYPES:
            lent, slot = boot.lend(address, shape, stride, dtype, cuda=stream is not None)
        else:
            whole, slot = boot.lend(address, (size,), (1,), torch.uint8, cuda=stream is not None)
            lent = boot.as_strided(boot.view_dtype(whole, dtype), shape, stride)
        self.blocks[address] = block
        self._slots[slot] = address
        return lent, block

    def _block(self, memory: torch.Tensor, size: int, line: Line | None, stream: str | None) -> Block:
        kind = Memory.PINNED if stream is None else Memory.DEVICE
        block = Block(Buffer(f"{kind.value} {self._made}", kind, 1, size), memory, line, stream)
        self._made += 1
        self.by_name[block.buffer.name] = block
        if stream is None:
            self.pinned += 1
        else:
            self.allocated += _rounded(size)
            self.peak = max(self.peak, self.allocated)
        return block

    def collect(self) -> None:
        """Looks which tensors are gone."""
        for slot in boot.freed():
            block = self.blocks.pop(self._slots.pop(slot))
            if block.pinned:
                self.pinned -= 1
            else:
                self.allocated -= _rounded(block.size)
            self.on_free(block)

    def resized(self, storage: torch.UntypedStorage, size: int, line: Line | None, stream: str) -> Block:
        """A storage gets another size: what it had is freed, and what it has is new, though its bytes stay where they are.

        Raises RuntimeError where it grows beyond what it had when it was made.
        """
        old = self.blocks[storage.data_ptr()]
        if size > len(old.bytes):
            raise RuntimeError(
                f"a simulated storage of {len(old.bytes)} bytes can't grow to {size}: resize it to no more than it was made with"
            )
        self.allocated -= _rounded(old.size)
        new = self.blocks[storage.data_ptr()] = self._block(old.bytes, size, line, stream)
        boot.set_size(storage, size)
        self.on_free(old)
        return new

    def block(self, tensor: torch.Tensor) -> Block | None:
        """The block of a tensor on the device or in pinned memory; None for one without a byte, and for pageable memory."""
        return self.blocks.get(tensor.data_ptr() - int(tensor.storage_offset()) * tensor.element_size())

    def rows(self, tensor: torch.Tensor) -> tuple[Rows, ...]:
        """The bytes of a tensor, as runs of its block's."""
        block = self.block(tensor)
        count, size = tensor.numel(), tensor.element_size()
        if block is None or not count:
            return ()
        start = int(tensor.storage_offset()) * size
        if tensor.is_contiguous():
            return (block.buffer.at(0, start, count * size),)
        steps = tuple(step * size for step in tensor.stride())
        bounds = strided_bounds(start, tuple(tensor.shape), steps, size)
        if len(bounds) > MOST_RUNS:
            bounds = [(bounds[0][0], bounds[-1][1])]
        return tuple(block.buffer.at(0, first, stop - first) for first, stop in bounds)

    def plain(self, tensor: torch.Tensor) -> torch.Tensor:
        """The same bytes as a CPU tensor that does not keep the storage alive."""
        block = self.block(tensor)
        if block is None:
            return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
        typed = block.typed.get(tensor.dtype)
        if typed is None:
            typed = block.typed[tensor.dtype] = _typed(block, tensor.dtype)
        plain = typed.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        if tensor.is_conj():
            plain = plain.conj()
        return torch._neg_view(plain) if tensor.is_neg() else plain

    def is_pinned(self, tensor: torch.Tensor) -> bool:
        """Whether a CPU tensor lies in pinned memory."""
        if not self.pinned:
            return False
        block = self.block(tensor) or self.blocks.get(tensor.untyped_storage().data_ptr())
        return block is not None and block.pinned


def _typed(block: Block, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(0, dtype=dtype, device="cpu").set_(block.bytes.untyped_storage())


def _rounded(size: int) -> int:
    return max(GRAIN, -(-size // GRAIN) * GRAIN) if size else 0
