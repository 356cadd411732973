"""When memory that is not held any more belongs to another party: the rules of an allocator.

Device memory goes back in the order of its stream, the first one that uses it: what is allocated later, and used on that stream,
may be the same memory (CUDA Runtime API, "Stream Ordered Memory Allocator"; torch's caching allocator does the same). Work on
other streams must have ended, or been waited for by that stream, by then. Host memory goes back at once.

With the rules of torch (`allocator="torch"`) an allocator also waits for what it was told of: device memory for all work of the
streams that `record_stream` named, up to the drop; pinned memory for the copies to and from it, as torch's pinned allocator
records an event after each copy with `non_blocking=True`. It is told of no kernel that reads pinned memory itself.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from kvstage_model.language.buffers import Memory
from kvstage_model.language.operations import Copy, Operation, stream_of

from .accesses import CheckedOperation
from .memory import MemoryRegion
from .source_lines import Line

DRIVER, TORCH = "driver", "torch"
"""The rules that there are."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Memory that was dropped: where, on which stream it may be used again, and the numbers of the work that is waited for."""

    region: MemoryRegion
    line: Line
    stream: str | None
    spared: frozenset[int]


class Allocator:
    """The memory of one device that was dropped, until it is handed out again."""

    def __init__(self, rules: str) -> None:
        if rules not in (DRIVER, TORCH):
            raise ValueError(f"allocator is {rules!r}: it must be {DRIVER!r} or {TORCH!r}")
        self._torch = rules == TORCH
        self._drops = 0
        self._born: dict[int, int] = {}
        self._streams: dict[int, str] = {}
        self._recorded: defaultdict[int, set[str]] = defaultdict(set)
        self._told: defaultdict[int, set[int]] = defaultdict(set)
        self._blocks: list[tuple[int, Block]] = []

    def allocated(self, region: MemoryRegion) -> list[Block]:
        """New memory was asked for: what the host may write there that was dropped before."""
        self._born[region.number] = self._drops
        return self._taken(None, self._drops) if region.memory is Memory.PINNED else []

    def used(self, stream: str, regions: Sequence[MemoryRegion]) -> list[Block]:
        """Memory is used on a stream: what was dropped there before it was allocated, if this is its first use."""
        found: list[Block] = []
        for region in regions:
            if region.memory is Memory.DEVICE and region.number in self._born and region.number not in self._streams:
                self._streams[region.number] = stream
                found += self._taken(stream, self._born[region.number])
        return found

    def record_stream(self, region: MemoryRegion, stream: str) -> None:
        """A stream uses the memory, too."""
        self._recorded[region.number].add(stream)

    def told(self, operation: Operation, number: int, regions: Sequence[MemoryRegion]) -> None:
        """Work was issued: torch's allocator of pinned memory hears of copies."""
        if isinstance(operation, Copy):
            for region in regions:
                if region.memory is Memory.PINNED:
                    self._told[region.number].add(number)

    def keeps(self, region: MemoryRegion, line: Line, noted: Sequence[CheckedOperation]) -> bool:
        """Memory is dropped: whether it waits here to be handed out. Else it is another party's at once."""
        if region.memory is not Memory.DEVICE and not (self._torch and region.memory is Memory.PINNED):
            return False
        spared = set(self._told[region.number]) if region.memory is Memory.PINNED else set()
        if self._torch and (recorded := self._recorded[region.number]):
            spared |= {each.number for each in noted if each.number is not None and stream_of(each.operation) in recorded}
        self._blocks.append((self._drops, Block(region, line, self._streams.get(region.number), frozenset(spared))))
        self._drops += 1
        return True

    def _taken(self, stream: str | None, drops: int) -> list[Block]:
        memory = Memory.PINNED if stream is None else Memory.DEVICE
        fits = [(at, each) for at, each in self._blocks if at < drops and each.region.memory is memory and each.stream == stream]
        self._blocks = [each for each in self._blocks if each not in fits]
        return [block for _, block in fits]
