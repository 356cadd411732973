"""`scheme="auto"`: the scheme that the cost model expects to be the quickest for one transfer, and why."""

from collections.abc import Iterator
from dataclasses import dataclass

from kvstage_model.buffers import Memory
from kvstage_model.counts import Counts, counts
from kvstage_model.records import record
from kvstage_model.runs import PagedRows
from kvstage_model.scheme import Direction

from .costs import Costs


@dataclass(frozen=True, slots=True)
class Choice:
    """The scheme that was picked, by its name in the library, the seconds that the model expects, and why, in words."""

    scheme: str
    seconds: float
    why: str


@record(frozen=True, slots=True)
class Case:
    """What decides beside the rows: the direction, the bytes of a row, and the memory.

    `pinned`: the rows at the host are in pinned memory, or may be put there. `gapless`: no bytes lie between the pool's blocks.
    """

    direction: Direction
    row_bytes: int
    pinned: bool
    gapless: bool
    slots: int


class Auto:
    """Picks a scheme for a transfer."""

    def __init__(self, costs: Costs) -> None:
        self.costs = costs

    def choose(self, rows: PagedRows, case: Case, most: int) -> Choice:
        """The quickest scheme that the memory allows. `most` is the most rows of a merged run."""
        expected: list[tuple[float, str, Counts]] = []
        for name in self._possible(case):
            least = min(expected, default=None)
            if name == "per_run" and least is not None and self._per_run_at_best(rows, case) >= least[0]:
                continue  # to merge the runs takes a look at each block
            found = counts(name, case.direction, rows, slots=case.slots, most=most if case.gapless else 1)
            expected.append((self.costs.seconds(found, case.row_bytes), name, found))
        expected.sort(key=lambda each: each[0])
        return Choice(expected[0][1], expected[0][0], self._why(expected))

    def _possible(self, case: Case) -> Iterator[str]:
        """The schemes that the memory allows. "per_row" and "per_block" never wait less than a ring of blocks does."""
        kernels = self.costs.kernels
        if Memory.PAGEABLE in kernels:
            yield "gather_host"
        elif case.pinned and Memory.PINNED in kernels:
            yield "gather_pinned"
        if case.pinned:
            yield "direct"
        if Memory.DEVICE in kernels:
            yield "gather"
        yield "ring"
        yield "per_run"

    def _per_run_at_best(self, rows: PagedRows, case: Case) -> float:
        length = rows.stop - rows.start
        return self.costs.seconds(Counts(copies=1, waits=1, launches=0, moved=length, taken=length), case.row_bytes)

    def _why(self, expected: list[tuple[float, str, Counts]]) -> str:
        first, *others = (
            f"{name}: {found.copies} copies, {found.launches} kernels and {found.waits} waits, {1e3 * seconds:.3f} ms expected"
            for seconds, name, found in expected
        )
        return f"{first}; {f'next {others[0]}' if others else 'nothing else is possible'} (costs {self.costs.source})"
