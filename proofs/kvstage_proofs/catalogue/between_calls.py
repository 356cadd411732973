"""What lies between calls: events that outlive a call or don't, drains, and callers that are kernels of a stream.

A ring that writes may return while its last copies run, if the caller's kernels are on the same stream, or wait for an
event. Its next call fills the same slots: with events that outlive the call, the wait for the slot covers those copies;
with fresh events in each call it covers nothing, and a drain at the end is needed (the mistake: the events were local to
the call, the buffers were not).
"""

from collections.abc import Iterator
from dataclasses import replace

from kvstage_model import schemes
from kvstage_model.language.edits import Edit, Named, edited, handed_to, without
from kvstage_model.language.operations import SyncStream
from kvstage_model.language.parameters import SchemeFunction
from kvstage_model.language.scheme import Scheme
from kvstage_model.schemes import sessions
from kvstage_model.schemes.base import STREAM

from ..obligation import Obligation, Verdict
from ..theorems.t1_no_hazard import T1
from ..theorems.t3_result import T3
from ..theorems.t5_removals import removals
from ..theorems.t6_no_deadlock import T6
from ..theorems.t7_bounds import T7

CALLERS_STREAM = "caller"
"""A stream of the caller's own."""


def fresh_events(scheme: Scheme) -> Scheme:
    """The scheme whose every call makes events of its own."""
    return replace(scheme, fresh_events=True)


def on_the_same_stream(scheme: Scheme) -> Scheme:
    """The scheme whose result is used by kernels on the copies' own stream, so that the host need not wait at the end."""
    result = None if scheme.result is None else replace(scheme.result, target_on=STREAM)
    return without(Named(SyncStream))(replace(scheme, result=result))


def both(*edits: Edit) -> Edit:
    """One edit after the other."""

    def edit(scheme: Scheme) -> Scheme:
        for one in edits:
            scheme = one(scheme)
        return scheme

    return edit


def to_the_caller(scheme: Scheme) -> Scheme:
    """The scheme between kernels of the caller's own stream."""
    return handed_to(scheme, STREAM, CALLERS_STREAM)


PROVED = (
    ("ring with fresh events", "read", edited(schemes.ring_read, fresh_events)),
    ("ring with fresh events", "write", edited(schemes.ring_write, fresh_events)),
    ("ring without a drain, used on its stream", "write", edited(schemes.ring_write, on_the_same_stream)),
    ("direct between kernels", "read", edited(schemes.direct_read, to_the_caller)),
    ("direct between kernels", "write", edited(schemes.direct_write, to_the_caller)),
    ("gather_pinned between kernels", "read", edited(schemes.gather_pinned_read, to_the_caller)),
    ("gather_pinned between kernels", "write", edited(schemes.gather_pinned_write, to_the_caller)),
    ("gather_copy between kernels", "read", edited(schemes.gather_copy_read, to_the_caller)),
    ("gather_copy between kernels", "write", edited(schemes.gather_copy_write, to_the_caller)),
)
"""Ways to call a scheme that hold."""

UNDRAINED = edited(schemes.ring_write, both(on_the_same_stream, fresh_events))
"""Events forgotten between calls, and nothing drained: the next call fills slots that are still being copied from."""

SESSIONS: tuple[tuple[str, SchemeFunction], ...] = (
    ("ring session", sessions.ring_session),
    ("ring session on two streams", sessions.ring_session_on_two_streams),
    ("batch session", sessions.batch_session),
)


def obligations() -> Iterator[Obligation]:
    """Calls that hold, then what must be refuted: forgotten events, and each caller edge taken out."""
    for name, direction, function in PROVED:
        for theorem in (T1, T3):
            yield theorem.of(function, name, direction)
    for name, session in SESSIONS:
        yield T1.of(session, name)
        yield T6.of(session, name)
        yield T7.of(session, name)
    yield T1.of(UNDRAINED, "ring without a drain, with fresh events", "write", Verdict.REFUTED)
    for name, direction, function in PROVED:
        yield from removals(function, name, direction)
    for name, session in SESSIONS:
        yield from removals(session, name, "-")
