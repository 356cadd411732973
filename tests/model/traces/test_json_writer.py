"""Traces are written and read back: nothing is lost, the schema is met, and it says what the reader demands."""

import json
from importlib import resources
from typing import Any

import pytest
from hypothesis import assume, given, settings
from jsonschema import Draft202012Validator

from kvstage_model.language.bounds import broken_bound
from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.operations import Copy, HostRead, Post, QueryEvent, SyncStream, Take
from kvstage_model.ordering.axioms import Moment
from kvstage_model.ordering.program import Issued, plain
from kvstage_model.ordering.trace import Trace, TraceEvent
from kvstage_model.schedules.schedule import IssueOrder
from kvstage_model.traces.errors import EmptyTraceError, TraceError
from kvstage_model.traces.json_fields import FIELDS, KINDS
from kvstage_model.traces.json_reader import read
from kvstage_model.traces.json_schema import text
from kvstage_model.traces.json_writer import as_json
from tests.support.programs import EVENTS, issued, programs_with_events, run
from tests.support.traces import as_data, document, good

SCHEMA = json.loads(resources.files("kvstage_model.traces").joinpath("trace.schema.json").read_text(encoding="utf-8"))
VALID = Draft202012Validator(SCHEMA)


def events(program: tuple[Issued, ...]) -> tuple[TraceEvent, ...]:
    log = run(program, IssueOrder())
    return tuple(TraceEvent(index, moment) for index, moment in log if isinstance(index, int))


@settings(max_examples=25, deadline=None)
@given(programs_with_events())
def test_what_is_written_is_read_back(program: tuple[Issued, ...]) -> None:
    assume(not any(broken_bound(each.operation) for each in program))
    trace = Trace(tuple(Issued(0, each.phase, each.step, plain(each.operation)) for each in program), events(program))
    text = as_json(trace)
    assert as_data(read(text.encode()).trace) == as_data(trace)
    VALID.validate(json.loads(text))


def test_times_and_arguments_are_read_back() -> None:
    trace = good()
    timed = Trace(trace.program, tuple(TraceEvent(e.index, e.moment, 10 * k) for k, e in enumerate(trace.events)))
    text = as_json(timed, [{"slots": 2}])
    back = read(text.encode())
    assert as_data(back.trace) == as_data(timed)
    assert back.arguments == ({"slots": 2},)
    VALID.validate(json.loads(text))


def test_a_queries_answer_is_read_back() -> None:
    trace = Trace(issued([QueryEvent(EVENTS[1], 0)]), (TraceEvent(0, Moment.BEGIN),))
    assert as_data(read(as_json(trace).encode()).trace) == as_data(trace)


def test_an_operation_is_one_line() -> None:
    lines = as_json(good()).splitlines()
    assert sum('"kind": ' in line for line in lines) == len(good().program)
    assert all(line.count('"kind": ') <= 1 for line in lines)


def test_two_buffers_of_one_name_are_not_written() -> None:
    first, second = (Buffer("b", Memory.PINNED, 1, rows).at(0, 0, 1) for rows in (1, 2))
    trace = Trace(issued([HostRead(first), Copy("s", second, first)]), (TraceEvent(0, Moment.BEGIN),))
    with pytest.raises(ValueError, match="two buffers are called 'b'"):
        as_json(trace)


def test_the_schema_lists_every_operation_and_its_fields() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    listed = {each["properties"]["kind"]["const"]: each for each in SCHEMA["$defs"]["operation"]["oneOf"]}
    assert set(listed) == set(KINDS)
    for kind, parts in FIELDS.items():
        each = listed[kind.__name__]
        assert set(each["required"]) == set(each["properties"]) == {"call", "phase", "step", "kind", *parts}


def test_the_schema_that_is_shipped_is_made_of_the_fields() -> None:
    assert resources.files("kvstage_model.traces").joinpath("trace.schema.json").read_text(encoding="utf-8") == text()


def test_a_posted_transfer_is_read_back() -> None:
    rows = Buffer("pages", Memory.DEVICE, 1, 4)
    program = issued([Post(EVENTS[0], (rows.at(0, 0, 2),), (rows.at(0, 2, 2),)), Take(EVENTS[0])])
    trace = Trace(program, events(program))
    assert as_data(read(as_json(trace).encode()).trace) == as_data(trace)
    VALID.validate(json.loads(as_json(trace)))


SPOILED: list[tuple[list[Any], Any]] = [
    (["format"], "another"),
    (["version"], 2),
    (["more"], 1),
    (["program"], []),
    (["events"], []),
    (["buffers", 0, "memory"], "disk"),
    (["buffers", 0, "rows"], 2**63),
    (["buffers", 0, "rows"], -1),
    (["buffers", 0, "name"], ""),
    (["buffers", 0, "name"], "n" * 101),
    (["program", 0, "kind"], "Move"),
    (["program", 0, "call"], None),
    (["program", 0, "stream"], "host"),
    (["program", 0, "source"], [0]),
    (["program", 0, "source", "slot"], 1.5),
    (["program", 0, "source", "more"], 1),
    (["program", 0, "aim"], 0),
    (["program", 1, "event", "index"], "0"),
    (["events", 0, "moment"], "issue"),
    (["events", 0, "operation"], True),
    (["calls"], [1]),
]
"""What both the schema and the reader refuse: a path, and what is put there."""


@pytest.mark.parametrize(("path", "value"), SPOILED, ids=str)
def test_the_schema_and_the_reader_refuse_alike(path: list[Any], value: Any) -> None:
    spoiled = document()
    assert VALID.is_valid(spoiled)
    place = spoiled
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert not VALID.is_valid(spoiled)
    with pytest.raises(TraceError):
        read(json.dumps(spoiled).encode())


def test_what_a_reader_would_refuse_as_empty_is_not_written() -> None:
    program = issued([SyncStream("s")])
    for empty in (Trace((), ()), Trace(program, ())):
        with pytest.raises(EmptyTraceError, match="the trace is empty"):
            as_json(empty)
