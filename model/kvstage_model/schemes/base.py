"""What the loops share: their streams, and the pool of a transfer."""

from ..language.buffers import Buffer, Memory
from ..language.paged_rows import PagedRows
from ..language.partitions import Piece, Pieces

STREAM = "copy"
"""The stream that the copies of a transfer are issued on."""

COMPUTE = "compute"
"""The stream of the kernels that gather and scatter."""


def pool_of(rows: Pieces[Piece] | PagedRows) -> Buffer:
    """The paged pool: a slot a block."""
    return Buffer("pool", Memory.DEVICE, rows.num_blocks, rows.block_size)
