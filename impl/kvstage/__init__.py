"""kvstage: rows of a paged KV cache, moved between device blocks and host memory by schemes that are proved.

>>> import torch
>>> from kvstage import PagedPool, Stager, ThreadDevice
>>> pool = PagedPool(torch.zeros(8, 4, 3, dtype=torch.bfloat16))  # 8 blocks of 4 rows of 3 elements
>>> table = [5, 2, 7]  # rows 0 to 3 of the sequence are in block 5, rows 4 to 7 in block 2, ...
>>> with ThreadDevice() as device:
...     stager = Stager(device, scheme="per_block")
...     stager.write(pool, table, 3, torch.ones(2, 3, dtype=torch.bfloat16)).wait()  # rows 3 and 4
...     transfer = stager.read(pool, table, 0, 9)
...     transfer.wait()
>>> transfer.result().sum(dim=1).tolist()
[0.0, 0.0, 0.0, 3.0, 3.0, 0.0, 0.0, 0.0, 0.0]
>>> transfer.stats
Stats(copies=3, waits=3, bytes=54, launches=0)

Many calls with one wait, by a scheme that returns while its rows are under way:

>>> with ThreadDevice() as device:
...     stager = Stager(device, scheme="direct")
...     with stager.batch() as batch:
...         transfers = [batch.read(pool, table, 0, 9) for _ in range(22)]
...     batch.wait()
>>> batch.stats
Stats(copies=66, waits=1, bytes=1188, launches=0)
>>> all(transfer.result().equal(transfers[0].result()) for transfer in transfers)
True
"""

from kvstage_model.language.buffers import Memory
from kvstage_model.language.scheme import Direction
from kvstage_model.schemes.registry import Pair

from . import ops as ops
from .batch import Batch
from .checked.device import CheckedDevice
from .checked.findings import HostAccessError, HostThreadError, RaceError, ReleasedMemoryError, SpinningError, StagingError
from .costs import Costs
from .cuda import NoCudaHereError, simulated_cuda
from .devices.accelerator import AcceleratorDevice
from .devices.device import Device, Index
from .devices.host import HostDevice
from .devices.named_streams import NamedStreams
from .devices.opencl.device import OpenCLDevice
from .devices.simulated import SimDevice
from .devices.threads import ThreadDevice
from .errors import (
    AliasError,
    AllocationError,
    BlockIdError,
    CancelledError,
    ClosedError,
    DeviceError,
    DuplicateBlockError,
    ForkedError,
    KVStageError,
    LayoutError,
    NotFinishedError,
    OpenCLMissingError,
    PinnedMemoryError,
    RangeError,
    ReleasedError,
    SchemeError,
    TableTooShortError,
    UnknownSchemeError,
)
from .pool import PagedPool
from .runtime.stats import Stats
from .selection.auto import Choice
from .stager import Stager
from .transfer import Moved, Transfer

__all__ = [
    "AcceleratorDevice",
    "AliasError",
    "AllocationError",
    "Batch",
    "BlockIdError",
    "CancelledError",
    "CheckedDevice",
    "Choice",
    "ClosedError",
    "Costs",
    "Device",
    "DeviceError",
    "Direction",
    "DuplicateBlockError",
    "ForkedError",
    "HostAccessError",
    "HostDevice",
    "HostThreadError",
    "Index",
    "KVStageError",
    "LayoutError",
    "Memory",
    "Moved",
    "NamedStreams",
    "NoCudaHereError",
    "NotFinishedError",
    "OpenCLDevice",
    "OpenCLMissingError",
    "PagedPool",
    "Pair",
    "PinnedMemoryError",
    "RaceError",
    "RangeError",
    "ReleasedError",
    "ReleasedMemoryError",
    "SchemeError",
    "SimDevice",
    "SpinningError",
    "Stager",
    "StagingError",
    "Stats",
    "TableTooShortError",
    "ThreadDevice",
    "Transfer",
    "UnknownSchemeError",
    "simulated_cuda",
]
