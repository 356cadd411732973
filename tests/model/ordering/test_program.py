"""Programs and traces in words."""

from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.operations import Copy, HostCopy, HostRead, HostWrite, SyncStream
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.scheme import Scheme
from kvstage_model.ordering.program import HOST, Issued, describe, span, unroll, wording
from kvstage_model.schedules.schedule import Hold
from kvstage_model.schemes.registry import LIBRARY
from kvstage_model.simulation.simulator import simulate
from tests.support.programs import total

STAGE = Buffer("stage", Memory.PINNED, 2, 4)
ROW = STAGE.at(1, 0, 2)
TWO_ROWS = PagedRows(total([3, 1]), 4, 1, 0, 2)


def test_a_program_is_issued_call_by_call_and_step_by_step() -> None:
    program = unroll([LIBRARY["per_row"].read(TWO_ROWS), LIBRARY["per_row"].read(TWO_ROWS)])
    loop = [("loop", step, kind) for step in (0, 1) for kind in ("Copy", "SyncStream", "HostCopy")]
    caller = [("caller", row, kind) for row in (0, 1) for kind in ("HostRead", "HostWrite")]
    expected = [(call, *each) for call in (0, 1) for each in loop + caller]
    assert [(issued.call, issued.phase, issued.step, type(issued.operation).__name__) for issued in program] == expected


def test_the_epilogue_follows_the_loop_once() -> None:
    scheme = Scheme("late wait", (STAGE,), 2, lambda i: [Copy("one", ROW, STAGE.at(0, i, 2))], epilogue=(SyncStream("one"),))
    assert [(issued.phase, issued.step) for issued in unroll([scheme])] == [("loop", 0), ("loop", 1), ("epilogue", 0)]


def test_a_trace_reads_line_by_line() -> None:
    write = LIBRARY["per_block"].write(PagedRows(total([3, 1]), 4, 2, 1, 3))
    lines = list(simulate([write], Hold(0, 1)).trace.lines())
    assert lines[:8] == [
        "    host  begins  step 0: HostCopy rows[0].rows[0:1] -> stage[0].rows[0:1]",
        "    host  ends    step 0: HostCopy rows[0].rows[0:1] -> stage[0].rows[0:1]",
        "    host  begins  step 0: SyncStream on stream copy",
        "    copy  begins  step 0: Copy stage[0].rows[0:1] -> pool[3].rows[1:2] on stream copy",
        "    copy  ends    step 0: Copy stage[0].rows[0:1] -> pool[3].rows[1:2] on stream copy",
        "    host  ends    step 0: SyncStream on stream copy",
        "    host  begins  step 1: HostCopy rows[0].rows[1:2] -> stage[0].rows[0:1]",
        "    host  ends    step 1: HostCopy rows[0].rows[1:2] -> stage[0].rows[0:1]",
    ]
    assert lines[-1] == "    host  ends    row 1: caller's HostWrite rows[0].rows[1:2]"


def test_operations_in_words() -> None:
    assert span(ROW) == "stage[1].rows[0:2]"
    assert wording(HostRead(ROW)) == "HostRead stage[1].rows[0:2]"
    assert wording(HostWrite(ROW)) == "HostWrite stage[1].rows[0:2]"
    assert wording(HostCopy(ROW, STAGE.at(0, 2, 2))) == "HostCopy stage[1].rows[0:2] -> stage[0].rows[2:4]"
    assert wording(SyncStream("one")) == "SyncStream on stream one"


def test_places_in_words() -> None:
    assert describe(Issued(0, "epilogue", 0, SyncStream("one"))) == "epilogue: SyncStream on stream one"
    assert describe(Issued(2, "loop", 5, HostRead(ROW))) == "call 2, step 5: HostRead stage[1].rows[0:2]"
    assert describe(Issued(0, "caller", 3, HostRead(ROW))) == "row 3: caller's HostRead stage[1].rows[0:2]"


def test_work_belongs_to_its_stream_and_waits_to_the_host() -> None:
    agents = [Issued(0, "loop", 0, each).agent for each in (Copy("one", ROW, ROW), SyncStream("one"), HostRead(ROW))]
    assert agents == ["one", HOST, HOST]


def test_a_trace_is_cut_where_all_named_operations_have_ended() -> None:
    trace = simulate([LIBRARY["per_row"].read(TWO_ROWS)], Hold(0, 1)).trace
    copy, wait, taken = 0, 1, 2
    assert [event.index for event in trace.events][:6] == [wait, copy, copy, wait, taken, taken]
    assert trace.until(copy).events == trace.events[:3]
    assert trace.until(taken, copy).events == trace.events[:6]
    assert trace.until(copy).program == trace.program
