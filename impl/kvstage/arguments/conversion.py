"""bf16 to f32 and back, at the host: what a call does with its rows where the caller asks for another dtype.

To f32 every bit pattern is exact, NaNs and their payloads too. To bf16 numbers are rounded to the nearest, ties to even,
as torch does it. A NaN keeps its sign and the upper 7 bits of its payload, which are all that bf16 has room for (torch
itself makes one and the same NaN of all of them); where those are 0, it becomes the quiet NaN of that sign. So what was
bf16 once comes back bit by bit.
"""

import torch
from torch.autograd.graph import increment_version

from ..errors import LayoutError
from ..pool import PagedPool

PAYLOAD, QUIET = 0x7F, 0x40
"""The bits of a bf16 that tell NaNs apart, and the one that a quiet NaN has."""


def dtype_at_host(pool: PagedPool, dtype: torch.dtype | None) -> torch.dtype:
    """The dtype that the caller wants at the host. Raises LayoutError if rows of the pool can't be converted to it."""
    if dtype is None or dtype == pool.dtype:
        return pool.dtype
    if (pool.dtype, dtype) != (torch.bfloat16, torch.float32):
        raise LayoutError(
            f"dtype is {dtype}, and {pool} is {pool.dtype}: the library converts bfloat16 pools to and from float32 only; "
            "leave dtype out, and convert the rows yourself"
        )
    return dtype


def to_float32(rows: torch.Tensor, target: torch.Tensor) -> None:
    """bf16 rows to f32 rows of the same shape. Exact."""
    increment_version(target)
    with torch.inference_mode():  # no trace in autograd, and a target made under inference_mode can be written
        target.copy_(rows)


def to_bfloat16(rows: torch.Tensor, target: torch.Tensor) -> None:
    """f32 rows to bf16 rows of the same shape."""
    with torch.inference_mode():
        target.copy_(rows)
        if not rows.numel() or not rows.amax().isnan():
            return
        nan = rows.isnan()
        upper = rows.view(torch.int32)[nan] >> 16
        target.view(torch.int16)[nan] = torch.where(upper & PAYLOAD == 0, upper | QUIET, upper).to(torch.int16)
