"""The catalogue: every obligation that `kvstage prove` shows, each with the verdict that it must get.

A scheme must be PROVED. A broken variant must be REFUTED by the theorems that its mistake is against; where a mistake
turns out harmless to a theorem, PROVED is what the catalogue states, and that is a finding too.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kvstage_model import divisors, library, pipelines, schemes
from kvstage_model.operations import HostCopy, SyncStream
from kvstage_model.parameters import SchemeFunction, allowing_duplicates
from kvstage_model.runs import by_block, by_chunk, by_row
from kvstage_model.variants import Edit, Named, edited, out_of_the_loop, right_after, without

from . import calls, handovers, shallow, tallies
from .alternation import T2
from .bounds_theorem import T7
from .hazards import T1
from .inductive import I1
from .lemmas import L1
from .merge_induction import P2, Fold
from .obligation import Obligation, Verdict
from .partitions import P1, Cut
from .progress import T6
from .removals import removals
from .result import T3

OF_A_SCHEME = (T1, T3, T6, T7)
"""The theorems that every scheme which states a result must satisfy."""

PROVED, REFUTED = Verdict.PROVED, Verdict.REFUTED


@dataclass(frozen=True)
class Entry:
    """A scheme in both directions, and its mistakes, with the theorems that each breaks."""

    name: str
    read: SchemeFunction
    write: SchemeFunction
    staging: bool = True
    """Whether it stages rows in a buffer, so that T2 has something to say."""
    into_pools: bool = False
    """Whether both directions write a pool, so that a table must not name a block twice in either."""

    @property
    def directions(self) -> tuple[tuple[str, SchemeFunction], ...]:
        """The two functions with the names of their directions."""
        return ("read", self.read), ("write", self.write)


ENTRIES = (
    Entry("staged", schemes.staged_read, schemes.staged_write),
    Entry("direct", schemes.direct_read, schemes.direct_write, staging=False),
    Entry("ring", pipelines.ring_read, pipelines.ring_write),
    Entry("gather_pinned", schemes.gather_pinned_read, schemes.gather_pinned_write, staging=False),
    Entry("gather_host", schemes.gather_host_read, schemes.gather_host_write, staging=False),
    Entry("gather_copy", schemes.gather_copy_read, schemes.gather_copy_write),
    Entry("gather", pipelines.gather_read, pipelines.gather_write),
    Entry("copy", schemes.copy_read, schemes.copy_write, staging=False, into_pools=True),
    Entry("per_row", library.per_row_read, library.per_row_write),
    Entry("per_block", library.per_block_read, library.per_block_write),
    Entry("per_run", schemes.staged_read, schemes.staged_write),
)
"""The schemes. `staged`, `direct` and `ring` are proved over any runs, `gather_copy` and `gather` over any pieces; the others
as they stand.

`per_run` is `staged` over merged runs, whose number depends on the table, so no step of theirs can be asked symbolically.
It is stated over any runs, as `staged` is, and `merged:P2` shows that merged runs are such: of a pool of one slot.
"""

PARTITIONS: tuple[tuple[str, Cut], ...] = (("by_row", by_row), ("by_block", by_block), ("by_chunk", by_chunk))

WAIT = Named(SyncStream, schemes.STREAM)

MISTAKES: tuple[tuple[str, Edit], ...] = (
    ("waiting behind the host's copy", right_after(WAIT, HostCopy)),
    ("waiting once after the loop", out_of_the_loop(WAIT, SyncStream(schemes.STREAM))),
)
"""Mistakes with the wait of a staged scheme. A read that waits behind its use, a write that waits behind its refill."""


def catalogue() -> Iterator[Obligation]:
    """All obligations: the lemmas, the partitions, the schemes, then what must be refuted."""
    yield L1.of(divisors.lemmas, "lemmas")
    for name, cut in PARTITIONS:
        yield P1.of(cut, name)
    yield P2.of(Fold(), "merged")
    for entry in ENTRIES:
        for direction, function in entry.directions:
            yield from of_scheme(function, entry.name, direction)
            if entry.staging:
                yield T2.of(function, entry.name, direction)
    yield I1.of(pipelines.ring_read, "ring", "read")
    yield I1.of(pipelines.ring_write, "ring", "write")
    yield from tallies.obligations()
    for entry in ENTRIES:
        for direction, function in entry.directions:
            yield from removals(function, entry.name, direction)
            yield from _broken(entry, direction, function)
    yield from shallow.findings()
    yield from calls.obligations()
    yield from handovers.obligations()


def of_scheme(function: SchemeFunction, name: str, direction: str) -> Iterator[Obligation]:
    """The obligations of a scheme that is meant to be right."""
    for theorem in OF_A_SCHEME:
        yield theorem.of(function, name, direction)


def _broken(entry: Entry, direction: str, function: SchemeFunction) -> Iterator[Obligation]:
    if entry.name in ("staged", "per_row", "per_block"):
        for mistake, edit in MISTAKES:
            for theorem in (T1, T3):
                yield theorem.of(edited(function, edit), f"{entry.name} {mistake}", direction, REFUTED)
        yield T3.of(edited(function, without(WAIT)), f"{entry.name} without {WAIT}", direction, REFUTED)
    if direction == "write" or entry.into_pools:
        yield T3.of(allowing_duplicates(function), f"{entry.name} with a block twice in the table", direction, REFUTED)
