"""Cache layers for transformers whose rows live in paged pools, and come to the model through a stager.

`staged_cache(config, stager, ...)` gives a `Cache(layers=[...])` for `generate` or a forward pass of `glm5_next`. A sparse
attention layer reads all rows that it has cached before, puts the new ones behind them, and writes the new ones to its
pools: what a serving engine does whose pages lie where its kernels can't reach them. Other layers page nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import torch
from transformers import Cache, DynamicCache
from transformers.cache_utils import CacheLayerMixin

from kvstage import Device, PagedPool, Stager, Transfer
from kvstage_model.language.buffers import Memory

from .glm import INDEXER_WIDTH, LATENT_WIDTH
from .pools import BLOCK_SIZE, FILL, SPARE, blocks, raw, shuffled_table


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a stager: `direction` read or write, rows [start, stop) of cache number `cache`."""

    direction: str
    cache: int
    start: int
    stop: int


@dataclass(slots=True)
class Log:
    """The calls made so far, and the seconds that they took on the host, waits included."""

    calls: list[Call] = field(default_factory=list)
    seconds: float = 0.0


class PagedRows:
    """Memory for one cache of one sequence: `capacity` rows of `width` bf16 elements, on the device and at the host.

    `pool` has blocks of 32 rows in the device's memory, some of them spare; `table` names those of the sequence, shuffled,
    in the same order for the same `number`; `host` [capacity, width] is memory that the device can copy to and from.
    """

    def __init__(self, number: int, capacity: int, width: int, device: Device[Any, Any]) -> None:
        self.number = number
        self.table = shuffled_table(capacity, seed=number)
        self.pool = PagedPool(bf16(device, Memory.DEVICE, blocks(capacity) + SPARE, BLOCK_SIZE, width), name=f"cache {number}")
        self.host = bf16(device, Memory.PINNED, capacity, width)

    def paged(self) -> torch.Tensor:
        """The rows that the pool holds, [capacity, width], by plain indexing: what staging is compared with."""
        rows = self.pool.tensor.cpu()[self.table].flatten(0, 1)
        return rows[: len(self.host)]


class StagedRows:
    """The rows of one cache, staged: `length` of them so far, in the pool and, behind the last call, at the host."""

    def __init__(self, rows: PagedRows, stager: Stager, log: Log) -> None:
        self.rows = rows
        self.length = 0
        self._stager = stager
        self._log = log

    def append(self, rows: torch.Tensor) -> torch.Tensor:
        """Stages the rows cached so far to the host, puts `rows`, [n, width], behind them there, and writes those to the pool.

        Gives all rows, [length, width]: a view of the host's memory, which the next call writes again.
        """
        start, self.length = self.length, self.length + len(rows)
        host = self.rows.host
        if start:
            self._staged(Call("read", self.rows.number, 0, start), host)
        host[start : self.length] = rows
        self._staged(Call("write", self.rows.number, start, self.length), host)
        return host[: self.length]

    def _staged(self, call: Call, host: torch.Tensor) -> None:
        began = perf_counter()
        stage(self._stager, call, self.rows, host).wait()
        self._log.seconds += perf_counter() - began
        self._log.calls.append(call)


def stage(stager: Stager, call: Call, rows: PagedRows, host: torch.Tensor) -> Transfer[Any]:
    """Makes the call: between the pool of `rows`, and the same rows of `host` [capacity, width]."""
    part = host[call.start : call.stop]
    if call.direction == "read":
        return stager.read(rows.pool, rows.table, call.start, call.stop, out=part)
    return stager.write(rows.pool, rows.table, call.start, part)


class StagedLayer(CacheLayerMixin):  # type: ignore[misc]
    """The cache of one sparse attention layer, for one sequence: a batch of 1, nothing reordered or repeated."""

    is_croppable = True

    def __init__(self, latent: StagedRows, indexer: StagedRows) -> None:
        super().__init__()
        self.latent = latent
        self.indexer = indexer
        self.is_indexer_initialized = False

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """The pools exist already: checks that the rows are of one sequence."""
        if key_states.shape[:2] != (1, 1):
            raise ValueError(f"latent rows of shape {list(key_states.shape)}: a staged layer caches one sequence, [1, 1, n, width]")
        self.values = value_states.new_empty(1, 1, 0, value_states.shape[-1])
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """New latent rows [1, 1, n, 512], and rotary parts [1, 1, n, 0]: gives those of the whole sequence."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        self.keys = self.latent.append(key_states[0, 0])[None, None]
        self.values = value_states.new_empty(1, 1, self.latent.length, value_states.shape[-1])
        return self.keys, self.values

    def update_indexer(self, indexer_key_states: torch.Tensor) -> torch.Tensor:
        """New indexer rows [1, n, 257]: gives those of the whole sequence."""
        self.is_indexer_initialized = True
        return self.indexer.append(indexer_key_states[0])[None]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Rows that a query of this length sees, and where they begin."""
        return self.get_seq_length() + query_length, 0

    def get_seq_length(self) -> int:
        """Rows cached so far."""
        return self.latent.length

    def get_max_length(self) -> int:
        """Rows that the pools have room for."""
        return len(self.latent.rows.host)

    def crop(self, tokens_to_remove: int) -> None:
        """Forgets the last rows: `tokens_to_remove` is 0 or negative, as for transformers' own layers."""
        if not -self.latent.length <= tokens_to_remove <= 0:
            raise ValueError(f"crop({tokens_to_remove}) of {self.latent.length} rows: pass 0, or minus the rows to remove")
        self.latent.length += tokens_to_remove
        self.indexer.length += tokens_to_remove

    def reset(self) -> None:
        """Forgets all rows; their blocks stay this layer's."""
        self.latent.length = self.indexer.length = 0

    def offload(self) -> None:
        """Nothing: the rows are in the pools."""

    def prefetch(self) -> None:
        """Nothing: `update` stages the rows."""

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Refused: there is one sequence."""
        raise NotImplementedError("a staged layer caches one sequence: beams need a table of blocks each")

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Refused: there is one sequence."""
        raise NotImplementedError("a staged layer caches one sequence: a batch needs a table of blocks for each")

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Refused: there is one sequence."""
        raise NotImplementedError("a staged layer caches one sequence: a batch needs a table of blocks for each")


def staged_cache(config: Any, stager: Stager, device: Device[Any, Any], capacity: int, log: Log) -> Cache:
    """A cache for a `glm5_next` model, one sequence of at most `capacity` tokens, staged by `stager` on its `device`.

    `config` is the model's. The layers that page nothing are those of transformers' DynamicCache.
    """
    layers = DynamicCache(config=config).layers
    numbers = iter(range(2 * len(layers)))
    for index, kind in enumerate(config.get_text_config().layer_types):
        if kind == "indexed_attention":
            widths = (LATENT_WIDTH, INDEXER_WIDTH)
            latent, indexer = (PagedRows(next(numbers), capacity, width, device) for width in widths)
            layers[index] = StagedLayer(StagedRows(latent, stager, log), StagedRows(indexer, stager, log))
    return Cache(layers=layers)


def staged_rows(cache: Cache) -> Iterator[StagedRows]:
    """The paged rows of each cache, by number: latent, then indexer, layer by layer."""
    for layer in cache.layers:
        if isinstance(layer, StagedLayer):
            yield layer.latent
            yield layer.indexer


def bf16(device: Device[Any, Any], memory: Memory, *shape: int) -> torch.Tensor:
    """Memory of the device, every byte FILL: touched, and equal to no row."""
    size = 2 * torch.Size(shape).numel()
    tensor = device.allocate(memory, size).view(torch.bfloat16).view(shape)
    raw(tensor).fill_(FILL)
    return tensor
