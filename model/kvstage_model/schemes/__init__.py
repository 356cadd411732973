"""The loops that ship, each once, and the registry that names them.

Read `staged` first: one buffer and a synchronize for each run. `registry` binds loops to partitions, under the names that the
library offers; `counts` says what a call asks of a device. To add a scheme, write its file here and enter it in `registry`.
"""

from .base import COMPUTE, STREAM, pool_of
from .direct import direct_read, direct_write
from .gather import (
    gather_copy_read,
    gather_copy_write,
    gather_host_read,
    gather_host_write,
    gather_pinned_read,
    gather_pinned_write,
    gather_read,
    gather_write,
)
from .pool_copy import copy_read, copy_write
from .registry import COPY, LIBRARY
from .ring import ring_read, ring_write
from .staged import staged_read, staged_write

__all__ = [
    "COMPUTE",
    "COPY",
    "LIBRARY",
    "STREAM",
    "copy_read",
    "copy_write",
    "direct_read",
    "direct_write",
    "gather_copy_read",
    "gather_copy_write",
    "gather_host_read",
    "gather_host_write",
    "gather_pinned_read",
    "gather_pinned_write",
    "gather_read",
    "gather_write",
    "pool_of",
    "ring_read",
    "ring_write",
    "staged_read",
    "staged_write",
]
