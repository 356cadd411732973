"""The values of an instance in words."""

from typing import Any

from ..language.paged_rows import PagedRows, PairedRows
from ..language.partitions import Piece, Pieces, Runs
from ..language.ranges import Flags


def _in_words(value: Any, later: Any) -> str:
    return value_in_words(value) if later is value else f"{value_in_words(value)}, then {value_in_words(later)}"


def value_in_words(value: Any) -> str:
    """The value of a parameter, as a report shows it."""
    if isinstance(value, PagedRows | Pieces) and not _length(value):
        return "no rows"
    if isinstance(value, PagedRows):
        blocks = (value.stop - 1) // value.block_size + 1
        table = [value.table(block) for block in range(blocks)]
        return f"rows {value.start}..{value.stop - 1}, blocks of {value.block_size}, table {table}"
    if isinstance(value, PairedRows):
        blocks = (value.small.stop - 1) // value.small.block_size // value.factor + 1
        larger = [value.table(block) for block in range(blocks)]
        return f"{value_in_words(value.small)}, and blocks of {value.block_size}, table {larger}"
    if isinstance(value, Runs):
        runs = [value.part(i) for i in range(value.number)]
        return "runs " + ", ".join(f"pool[{run.slot}].rows[{run.start}:{run.start + run.count}]" for run in runs)
    if isinstance(value, Pieces):
        places = [value.address(position) for position in range(value.length)]
        return f"pieces of up to {value.longest} rows, at " + ", ".join(f"pool[{slot}].rows[{row}]" for slot, row in places)
    if isinstance(value, Flags):
        return "answers " + " ".join(str(value(step)) for step in range(4)) + " .."
    return str(value)


def _length(value: PagedRows | Pieces[Piece]) -> int:
    return value.stop - value.start if isinstance(value, PagedRows) else value.length
