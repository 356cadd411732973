"""Mistakes in the runtime and in a device, each with a call that must show it: some half of some work, held back, gives
wrong bytes, or an error of the library's own.

A mutant replaces one method by one that is made from it. Mistakes that change nothing that anybody could see are not
here: one event for all slots, or a neighbour's, only makes a ring on one stream wait for more than it must. Where an event
is used again matters only across streams: it then marks the work of the one stream, and no longer that of the other one.
"""

from dataclasses import replace

import numpy as np

from kvstage import SimDevice, Transfer
from kvstage.arguments import requests
from kvstage.calls import Calls
from kvstage.devices.named_streams import NamedStreams
from kvstage.runtime.pending import Pending
from kvstage.runtime.performer import Performer
from kvstage.runtime.row_numbers import Addresses
from kvstage.runtime.runtime import Runtime
from kvstage_model.language.operations import HostCopy, RecordEvent, SyncStream
from tests.support.mutations import (
    Mutant,
    always,
    every_second,
    fewer,
    fresh_events,
    given_back_at_once,
    late,
    nothing,
    of_another_slot,
    of_others,
    of_the_table_before,
    on_copy,
    one_mark_for_all,
    ordered,
    other_slot,
    settled_without_a_wait,
    shifted,
    short_of_a_row,
    stale,
    with_arguments,
)

MUTANTS = (
    # -- a device: waits and records
    Mutant("a synchronize returns at once", SimDevice, "synchronize", nothing, "read staged"),
    Mutant("a synchronize returns at once, behind a write", SimDevice, "synchronize", nothing, "write staged"),
    Mutant("every second synchronize returns at once", SimDevice, "synchronize", every_second, "write staged"),
    Mutant(
        "a synchronize waits for another stream",
        SimDevice,
        "synchronize",
        with_arguments(lambda stream: ("other",)),
        "read staged",
    ),
    Mutant("a wait for an event returns at once", SimDevice, "wait", nothing, "read ring(2)"),
    Mutant("every second wait for an event returns at once", SimDevice, "wait", every_second, "write ring(2)"),
    Mutant("a record is lost", SimDevice, "record", nothing, "read ring(2)"),
    Mutant("every second record is lost", SimDevice, "record", every_second, "read ring(1)"),
    Mutant(
        "a record marks another stream",
        SimDevice,
        "record",
        with_arguments(lambda event, stream: (event, "other")),
        "write ring(2)",
    ),
    Mutant("a stream's wait is lost", SimDevice, "wait_event", nothing, "read gather(1, 2)"),
    Mutant("a stream's wait is lost, of a write", SimDevice, "wait_event", nothing, "write gather(2, 2)"),
    Mutant("every second wait of a stream is lost", SimDevice, "wait_event", every_second, "read gather(2, 2)"),
    Mutant(
        "a stream's wait holds back another one",
        SimDevice,
        "wait_event",
        with_arguments(lambda _, event: ("other", event)),
        "read gather(2, 2)",
    ),
    Mutant("a query always says yes", SimDevice, "query", always(True), "read direct, polled"),
    # -- a device: streams and rows
    Mutant("a copy goes to another stream", SimDevice, "copy", with_arguments(lambda _, *ends: ("other", *ends)), "read staged"),
    Mutant(
        "a gather goes to another stream",
        SimDevice,
        "gather",
        with_arguments(lambda _, *ends: ("other", *ends)),
        "read gather(2, 2)",
    ),
    Mutant(
        "a scatter goes to another stream",
        SimDevice,
        "scatter",
        with_arguments(lambda _, *ends: ("other", *ends)),
        "write gather(2, 2)",
    ),
    Mutant("the host's copy is left to a stream", SimDevice, "host_copy", late, "read staged"),
    Mutant("a copy lacks its last row", SimDevice, "copy", short_of_a_row, "read direct"),
    Mutant(
        "a gather takes the rows in reverse",
        SimDevice,
        "gather",
        with_arguments(lambda s, a, i, b: (s, a, i[::-1], b)),
        "read gather_pinned",
    ),
    Mutant(
        "a scatter puts the rows in reverse",
        SimDevice,
        "scatter",
        with_arguments(lambda s, a, b, i: (s, a, b, i[::-1])),
        "write gather_pinned",
    ),
    Mutant(
        "a gather takes the row behind",
        SimDevice,
        "gather",
        with_arguments(lambda s, a, i, b: (s, a, np.roll(i, 1), b)),
        "read gather_host",
    ),
    Mutant(
        "a scatter lacks its last row",
        SimDevice,
        "scatter",
        with_arguments(lambda s, a, b, i: (s, a[:-1], b, i[:-1])),
        "write gather_host",
    ),
    # -- one call
    Mutant("a wait for a stream is left out", Performer, "_synchronize", nothing, "read staged"),
    Mutant("the last wait is left out", Performer, "_synchronize", nothing, "write ring(2)"),
    Mutant("the last wait is left out, behind a kernel", Performer, "_synchronize", nothing, "write gather(2, 2)"),
    Mutant("a wait for an event is left out", Performer, "_sync_event", nothing, "write ring(1)"),
    Mutant("a record is left out", Performer, "_record", nothing, "write gather(1, 1)"),
    Mutant("a stream's wait is left out", Performer, "_wait_event", nothing, "write gather(1, 1)"),
    Mutant(
        "events are made anew each time", Performer, "_event", lambda _: lambda self, event: self._device.event(), "read ring(2)"
    ),
    Mutant("a record comes before its copy", Performer, "perform", ordered(of_others(RecordEvent)), "read ring(1)"),
    Mutant("a wait comes before the copy", Performer, "perform", ordered(of_others(SyncStream)), "write staged"),
    Mutant("a wait comes behind the use", Performer, "perform", ordered(lambda o: isinstance(o, SyncStream)), "read staged"),
    Mutant("the host takes first", Performer, "perform", ordered(of_others(HostCopy)), "read staged"),
    Mutant("the host refills before it waits", Performer, "perform", ordered(of_others(HostCopy)), "write ring(1)"),
    Mutant("a stream waits for another slot", Performer, "_wait_event", with_arguments(of_another_slot), "read gather(2, 2)"),
    Mutant(
        "a copy goes to another slot",
        Performer,
        "_copy",
        on_copy(lambda c: replace(c, target=other_slot(c.target))),
        "read ring(2)",
    ),
    Mutant(
        "a copy comes from another slot",
        Performer,
        "_copy",
        on_copy(lambda c: replace(c, source=other_slot(c.source))),
        "write ring(2)",
    ),
    Mutant(
        "the host takes another slot",
        Performer,
        "_host_copy",
        on_copy(lambda c: replace(c, source=other_slot(c.source))),
        "read ring(2)",
    ),
    Mutant(
        "a copy moves a row less",
        Performer,
        "_copy",
        on_copy(lambda c: replace(c, source=fewer(c.source), target=fewer(c.target))),
        "write direct",
    ),
    Mutant(
        "only one side of a copy is a row less",
        Performer,
        "_copy",
        on_copy(lambda c: replace(c, source=fewer(c.source))),
        "read direct",
    ),
    Mutant(
        "a copy begins at the next row", Performer, "_copy", on_copy(lambda c: replace(c, source=shifted(c.source))), "read direct"
    ),
    # -- from call to call
    Mutant("events are forgotten between calls", Runtime, "submit", fresh_events, "undrained"),
    Mutant("the rows of another kernel are taken", Addresses, "of", stale, "read gather(1, 1)"),
    Mutant("the blocks of the last table are taken", requests, "touched_blocks", of_the_table_before, "read direct"),
    Mutant("a result is given to the next call at once", Calls, "_borrow", given_back_at_once, "two under way"),
    Mutant("what broke off is not waited for", Runtime, "settle", settled_without_a_wait, "broken off"),
    # -- under way, and the caller's streams
    Mutant("a transfer does not wait", Transfer, "wait", lambda _: lambda self, timeout=None: self._arrived(), "read direct"),
    Mutant("what is under way is not waited for", Pending, "wait", nothing, "write gather_pinned"),
    Mutant("what is under way is always over", Pending, "query", always(True), "write direct, polled"),
    Mutant("an event that marks a transfer is used again", Pending, "__init__", one_mark_for_all, "two streams under way"),
    Mutant("the mark of what is under way is lost", Pending, "mark", nothing, "read gather_host"),
    Mutant("a call does not wait for an earlier one on another stream", Pending, "precede", nothing, "across streams"),
    Mutant("a call does not wait for the caller's stream", NamedStreams, "order_after", nothing, "behind the caller"),
    Mutant("the caller's stream does not wait for a call", NamedStreams, "order_before", nothing, "before the caller"),
)
