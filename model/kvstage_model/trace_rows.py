"""The rows that two operations have in common."""

from itertools import product

from .buffers import Access, overlap, parts
from .operations import Operation, reads, writes


def common(operation: Operation, other: Operation) -> tuple[str, Access]:
    """What an operation does with the first rows that it has in common with another one: "writes" or "reads", and which.

    At least one of the two writes them. Raises ValueError where they have none in common.
    """
    for verb, mine in (*(("writes", access) for access in writes(operation)), *(("reads", access) for access in reads(operation))):
        for theirs in (*writes(other), *(reads(other) if verb == "writes" else ())):
            for first, second in product(parts(mine), parts(theirs)):
                if overlap(first, second):
                    return verb, first
    raise ValueError("the two operations have no row in common that either writes")
