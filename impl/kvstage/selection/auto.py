"""`scheme="auto"`: the scheme that the cost model expects to be the quickest for one transfer, and why."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kvstage_model.language.buffers import Memory
from kvstage_model.language.fast_dataclass import fast_dataclass
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.scheme import Direction
from kvstage_model.schemes.counts import Counts, counts
from kvstage_model.schemes.registry import OFFERED

from ..costs import Costs

SMALL = ("per_block", "per_row")
"""The schemes with the least staging. Merged runs never wait more, so they are for when there is no room for those or a ring."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The scheme that was picked, by its name in the library, the seconds that the model expects, and why, in words."""

    scheme: str
    seconds: float
    why: str


@fast_dataclass(frozen=True, slots=True)
class Case:
    """What decides beside the rows: the direction, the bytes of a row, and the memory.

    `pinned`: the rows at the host are in pinned memory, or may be put there. `gapless`: no bytes lie between the pool's blocks.
    `left`: the bytes of pinned memory that the stager may still use, if that is bounded. `borrows`: those rows count there.
    """

    direction: Direction
    row_bytes: int
    pinned: bool
    gapless: bool
    slots: int
    left: int | None = None
    borrows: bool = True


class Auto:
    """Picks a scheme for a transfer."""

    def __init__(self, costs: Costs) -> None:
        self.costs = costs

    def choose(self, rows: PagedRows, case: Case, most: int, pinned: Callable[[str], int] | None = None) -> Choice:
        """The quickest scheme that the memory allows. `most` is the most rows of a merged run.

        `pinned` says how many bytes of pinned memory a scheme takes, where those are bounded. If there is room for none,
        it is the one that takes the least.
        """
        expected: list[tuple[float, str, Counts]] = []
        fitting, too_large = self._fitting(case, pinned)
        for name in sorted(fitting, key=lambda each: each == "per_run"):  # last: to merge the runs takes a look at each block
            least = min(expected, default=None)
            if name == "per_run" and least is not None and self._per_run_at_best(rows, case) >= least[0]:
                continue
            found = counts(name, case.direction, rows, slots=case.slots, most=most if case.gapless else 1)
            expected.append((self.costs.seconds(found, case.row_bytes), name, found))
        expected.sort(key=lambda each: each[0])
        return Choice(expected[0][1], expected[0][0], self._why(expected) + _left_out(too_large, case.left))

    def _fitting(self, case: Case, pinned: Callable[[str], int] | None) -> tuple[list[str], dict[str, int]]:
        """The schemes that there is room for, and what the others take."""
        possible = list(self._possible(case))
        if case.left is None or pinned is None:
            return possible, {}
        takes = {name: pinned(name) for name in possible}
        if max(takes["ring"], takes["per_run"]) > case.left:
            takes |= {name: pinned(name) for name in SMALL}
        fitting = [name for name, size in takes.items() if size <= case.left] or [min(takes, key=lambda name: takes[name])]
        return fitting, {name: size for name, size in takes.items() if size > case.left}

    def _possible(self, case: Case) -> Iterator[str]:
        """The schemes that the kinds of memory allow, but for those that another one always beats."""
        reach_host = Memory.PAGEABLE in self.costs.kernels
        for name, entry in OFFERED.items():
            needs = entry.needs
            if needs is None or (needs.pinned and not case.pinned):
                continue
            if needs.kernels is not None and needs.kernels not in self.costs.kernels:
                continue
            if needs.kernels is Memory.PINNED and reach_host:
                continue  # the same kernel reaches ordinary memory
            if needs.only_if_short and case.pinned and case.left is None:
                continue
            yield name

    def _per_run_at_best(self, rows: PagedRows, case: Case) -> float:
        length = rows.stop - rows.start
        return self.costs.seconds(Counts(copies=1, waits=1, launches=0, moved=length, taken=length), case.row_bytes)

    def _why(self, expected: list[tuple[float, str, Counts]]) -> str:
        first, *others = (
            f"{name}: {found.copies} copies, {found.launches} kernels and {found.waits} waits, {1e3 * seconds:.3f} ms expected"
            for seconds, name, found in expected
        )
        return f"{first}; {f'next {others[0]}' if others else 'nothing else is possible'} (costs {self.costs.source})"


def _left_out(too_large: dict[str, int], left: int | None) -> str:
    if not too_large:
        return ""
    takes = ", ".join(f"{name} takes {size}" for name, size in too_large.items())
    return f"; of pinned memory {left} bytes are left, and {takes}"
