"""The catalogue: every obligation that `kvstage prove` shows, each with the verdict that it must get.

A scheme must be PROVED. A broken variant must be REFUTED by the theorems that its mistake is against; if a mistake
turns out harmless to a theorem, PROVED is what the catalogue states, and that is a finding too.
"""

from collections.abc import Iterator

from kvstage_model import schemes
from kvstage_model.language.edits import Edit, Named, edited, out_of_the_loop, right_after, without
from kvstage_model.language.operations import HostCopy, SyncStream
from kvstage_model.language.parameters import SchemeFunction, allowing_duplicates
from kvstage_model.language.partitions import by_block, by_chunk, by_row
from kvstage_model.schemes.registry import ENTRIES, SchemeEntry
from kvstage_model.schemes.staged import STAGED
from kvstage_model.symbolic import division

from ..obligation import Obligation, Verdict
from ..theorems.i1_ring import I1
from ..theorems.l1_gap_lemma import L1
from ..theorems.p1_partitions import P1, Cut
from ..theorems.p2_merged_runs import P2, Fold
from ..theorems.t1_no_hazard import T1
from ..theorems.t2_single_row import T2
from ..theorems.t3_result import T3
from ..theorems.t4_counts import T4
from ..theorems.t4_fewest_waits import T4_LOWER
from ..theorems.t5_removals import removals
from ..theorems.t6_no_deadlock import T6
from ..theorems.t7_bounds import T7
from . import between_calls, engine_patterns, host_tier, ring_depths

OF_A_SCHEME = (T1, T3, T6, T7)
"""The theorems that every scheme which states a result must satisfy."""
PROVED, REFUTED = Verdict.PROVED, Verdict.REFUTED


PARTITIONS: tuple[tuple[str, Cut], ...] = (("by_row", by_row), ("by_block", by_block), ("by_chunk", by_chunk))
WAIT = Named(SyncStream, schemes.STREAM)
MISTAKES: tuple[tuple[str, Edit], ...] = (
    ("waiting behind the host's copy", right_after(WAIT, HostCopy)),
    ("waiting once after the loop", out_of_the_loop(WAIT, SyncStream(schemes.STREAM))),
)
"""Mistakes with the wait of a staged scheme. A read that waits after its use, a write that waits after its refill."""


def catalogue() -> Iterator[Obligation]:
    """All obligations: the lemmas, the partitions, the schemes, then what must be refuted."""
    yield L1.of(division.lemmas, "lemmas")
    for name, cut in PARTITIONS:
        yield P1.of(cut, name)
    yield P2.of(Fold(), "merged")
    for entry in ENTRIES:
        for direction, function in directions(entry):
            yield from of_scheme(function, entry.name, direction)
            if entry.stages:
                yield T2.of(function, entry.name, direction)
    yield I1.of(schemes.ring_read, "ring", "read")
    yield I1.of(schemes.ring_write, "ring", "write")
    yield from counts()
    for entry in ENTRIES:
        for direction, function in directions(entry):
            yield from removals(function, entry.name, direction)
            yield from _broken(entry, direction, function)
    yield from ring_depths.findings()
    yield from between_calls.obligations()
    yield from engine_patterns.obligations()
    yield from host_tier.obligations()


def directions(entry: SchemeEntry) -> tuple[tuple[str, SchemeFunction], ...]:
    """The two functions of a scheme as they are proved, with the names of their directions."""
    return ("read", entry.proved.read), ("write", entry.proved.write)


def of_scheme(function: SchemeFunction, name: str, direction: str) -> Iterator[Obligation]:
    """The obligations of a scheme that is meant to be right."""
    for theorem in OF_A_SCHEME:
        yield theorem.of(function, name, direction)


def _broken(entry: SchemeEntry, direction: str, function: SchemeFunction) -> Iterator[Obligation]:
    if entry.name in ("staged", "per_row", "per_block"):
        for mistake, edit in MISTAKES:
            for theorem in (T1, T3):
                yield theorem.of(edited(function, edit), f"{entry.name} {mistake}", direction, REFUTED)
        yield T3.of(edited(function, without(WAIT)), f"{entry.name} without {WAIT}", direction, REFUTED)
    if direction == "write" or entry.into_pools:
        yield T3.of(allowing_duplicates(function), f"{entry.name} with a block twice in the table", direction, REFUTED)


def counts() -> Iterator[Obligation]:
    """The exact counts of each loop, and the fewest waits that any could do with."""
    for entry in ENTRIES:
        if entry.loops is not STAGED or entry.name == "staged":
            for direction, loop in (("read", entry.loops.read), ("write", entry.loops.write)):
                yield T4.of(loop, entry.name, direction)
    yield T4_LOWER.of(None, "one buffer")
