"""What is noted: accesses of one line as one, refusals as one, and only what may be in somebody's way."""

from kvstage.checked.accesses import Accesses, Program
from kvstage.checked.byte_runs import EVERYTHING
from kvstage.checked.source_lines import Line, users_line
from kvstage_model.language.buffers import Rows
from kvstage_model.language.operations import Copy, HostRead, HostWrite, QueryEvent, RecordEvent
from kvstage_model.ordering.program import wording

ONE, TWO = Line("loop.py", 1), Line("loop.py", 2)


def rows(start: int, count: int) -> Rows:
    return EVERYTHING.at(0, start, count)


def words(program: Program) -> list[str]:
    return [wording(each.operation) for each in program.noted]


def noted(accesses: Accesses) -> list[tuple[type, int, int]]:
    """Kind, first byte and bytes of what the host did."""
    found = []
    for each in accesses.noted:
        operation = each.operation
        assert isinstance(operation, HostRead | HostWrite)
        bytes_ = operation.source if isinstance(operation, HostRead) else operation.target
        found.append((type(operation), bytes_.start, bytes_.count))
    return found


def test_what_one_line_does_side_by_side_is_one_access() -> None:
    accesses = Accesses()
    for at in range(8):
        accesses.host((rows(10 + at, 1),), (rows(50 + 2 * at, 2),), "host access", ONE)
    assert noted(accesses) == [(HostRead, 10, 8), (HostWrite, 50, 16)]
    accesses.host((rows(30, 1),), (), "host access", ONE)
    accesses.host((rows(18, 1),), (), "host access", TWO)
    assert noted(accesses)[2:] == [(HostRead, 30, 1), (HostRead, 18, 1)]


def test_a_loop_of_several_lines_is_an_access_for_each_of_them() -> None:
    accesses = Accesses()
    for at in range(500):
        accesses.host((rows(at, 1),), (), "host access", ONE)
        accesses.host((rows(1000 + at, 1),), (rows(5000 + at, 1),), "host access", TWO)
    assert noted(accesses) == [(HostRead, 0, 500), (HostRead, 1000, 500), (HostWrite, 5000, 500)]


def test_accesses_around_something_else_stay_two() -> None:
    accesses = Accesses()
    accesses.host((), (rows(0, 4),), "host access", ONE)
    accesses.synchronize("a", TWO)
    accesses.host((), (rows(0, 4),), "host access", ONE)
    assert len(accesses.noted) == 3


def test_of_refusals_in_a_row_the_last_is_kept() -> None:
    accesses, event, other = Accesses(), object(), object()
    accesses.record(event, "a", ONE)
    for answer in (False, False, False, True, False):
        accesses.query(event, answer, TWO)
    accesses.query(other, False, TWO)
    answers = [each.operation.answer for each in accesses.noted if isinstance(each.operation, QueryEvent)]
    assert answers == [0, 1, 0, 0]
    recorded = accesses.noted[0].operation
    assert isinstance(recorded, RecordEvent)
    assert recorded.event.index == 0


def test_a_program_has_what_streams_touch_and_nothing_of_the_host_alone() -> None:
    accesses = Accesses()
    accesses.host((), (rows(100, 50),), "host access", ONE)
    accesses.host((), (rows(7, 2),), "host access", TWO)
    accesses.later(Copy("a", rows(0, 8), rows(200, 8)), "copy 0", ONE)
    accesses.synchronize("a", ONE)
    found = accesses.program(lambda rows: rows.start)
    assert words(found) == [
        "HostWrite memory[0].rows[7:9]",
        "Copy memory[0].rows[0:8] -> memory[0].rows[200:208] on stream a",
        "SyncStream on stream a",
    ]
    assert [each.number for each in found.noted] == [None, 0, None]


def test_programs_are_equal_where_what_was_issued_is() -> None:
    def program(base: int, *, stream: str = "a", count: int = 8, answer: bool = True) -> Program:
        accesses, event = Accesses(), object()
        accesses.later(Copy(stream, rows(base, count), rows(base + 64, count)), "copy 0", ONE)
        accesses.record(event, "a", ONE)
        accesses.query(event, answer, TWO)
        return accesses.program(lambda rows: rows.start - base)

    assert program(0) == program(1000)
    assert hash(program(0)) == hash(program(1000))
    for other in (program(0, stream="b"), program(0, count=4), program(0, answer=False)):
        assert program(0) != other


def test_the_users_line_is_the_innermost_that_is_not_ours() -> None:
    line = users_line()
    assert line is not None
    assert line.text == "line = users_line()"
    assert line.place.endswith(f"test_accesses.py:{line.number}")
    assert Line("/nowhere/loop.py", 3).place == "/nowhere/loop.py:3"
    assert Line("/nowhere/loop.py", 3).text == ""
