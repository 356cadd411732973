"""When the `free` event of a gather is needed: iff the device ring is shallower than the pinned one.

A device slot is packed again in the step that comes `device_slots` after the one that packed it before. The host took
that piece `pinned_slots` - 1 steps after it was packed. If device_slots >= pinned_slots the host's own wait for the
piece lies in between already. The scheme keeps the event, since its depths are the caller's to choose.
"""

from collections.abc import Iterator
from typing import Annotated

from kvstage_model.language.edits import Named, edited, without
from kvstage_model.language.operations import RecordEvent, WaitEvent
from kvstage_model.language.parameters import Declared, SchemeFunction
from kvstage_model.language.partitions import Piece, Pieces
from kvstage_model.language.ranges import AtLeast, Positive
from kvstage_model.language.scheme import Scheme
from kvstage_model.schemes.gather import gather_read

from ..obligation import Obligation, Verdict
from ..theorems.t1_no_hazard import T1
from ..theorems.t3_result import T3
from ..theorems.t5_removals import removals

DEEP = "gather without 'free', device slots >= pinned slots"


def deep(pieces: Pieces[Piece], pinned_slots: Positive, more: Annotated[int, AtLeast(0)]) -> Scheme:
    """A gather whose device ring is no shallower than its pinned one."""
    return gather_read(pieces, pinned_slots + more, pinned_slots)


def shallow(pieces: Pieces[Piece], device_slots: Positive, more: Positive) -> Scheme:
    """A gather whose device ring is shallower than its pinned one."""
    return gather_read(pieces, device_slots, device_slots + more)


def without_free(function: SchemeFunction) -> Declared:
    """The scheme that neither records nor waits for `free`."""
    no_wait = edited(function, without(Named(WaitEvent, event="free")))
    return edited(no_wait, without(Named(RecordEvent, event="free")))


def findings() -> Iterator[Obligation]:
    """Without `free`: proved for a deep device ring, and then nothing else is needless; refuted for a shallow one."""
    for theorem in (T1, T3):
        yield theorem.of(without_free(deep), DEEP, "read")
    yield from removals(without_free(deep), DEEP, "read")
    yield T1.of(without_free(shallow), "gather without 'free', device slots < pinned slots", "read", Verdict.REFUTED)
