"""Arguments of calls, written and read back: the same scheme comes out, and what breaks a promise is refused."""

import json
from typing import Annotated, Any

import pytest

from kvstage_model import schemes
from kvstage_model.language.operations import Event, QueryEvent, RecordEvent
from kvstage_model.language.parameters import SchemeFunction, declared
from kvstage_model.language.ranges import AtLeast, Flags
from kvstage_model.language.scheme import Scheme
from kvstage_model.ordering.program import unroll
from kvstage_model.schemes import registry
from kvstage_model.search.instances import small_values
from kvstage_model.traces.call_arguments import MOST, arguments_as_json, called
from kvstage_model.traces.errors import TraceFormatError, TraceTooLargeError
from kvstage_model.traces.matching import Names, departure


def asking(rounds: Annotated[int, AtLeast(0)], ready: Flags) -> Scheme:
    return Scheme("asking", (), rounds, lambda i: [RecordEvent(Event("e"), "s"), QueryEvent(Event("e"), ready(i))])


FUNCTIONS: list[SchemeFunction] = [
    registry.LIBRARY["per_row"].read,
    registry.LIBRARY["ring"].write,
    schemes.staged_read,
    schemes.direct_write,
    schemes.ring_read,
    schemes.gather_read,
    schemes.gather_write,
    schemes.gather_pinned_write,
    schemes.copy_read,
    schemes.copy_write,
    asking,
]


def written(function: SchemeFunction, values: dict[str, Any]) -> Any:
    """Through JSON and back."""
    return json.loads(json.dumps(arguments_as_json(values, function(**values).steps)))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: getattr(function, "__name__", None))
def test_the_scheme_that_is_built_from_written_arguments_is_the_one_that_was_called(function: SchemeFunction) -> None:
    instances = list(small_values(declared(function), 3))[::3]
    assert instances
    for values in instances:
        wanted, built = function(**values), called(function, written(function, values), "calls[0]")
        assert departure(unroll([built]), unroll([wanted]), Names({name: name for name in ("pool", "out", "rows")})) is None
        for attribute in ("buffers", "steps"):
            assert str(getattr(built, attribute)) == str(getattr(wanted, attribute))


ROWS = {"table": [3, 1], "num_blocks": 4, "block_size": 2, "start": 1, "stop": 4}
RUNS = {"counts": [1, 2], "places": [[3, 1], [1, 0], [1, 1]], "longest": 2, "num_blocks": 4, "block_size": 2}
REFUSED: list[tuple[SchemeFunction, dict[str, Any], str]] = [
    (registry.LIBRARY["per_row"].read, {}, "calls.0. lacks 'rows'"),
    (registry.LIBRARY["per_row"].read, {"rows": ROWS, "slots": 2}, "has 'slots', which is unknown"),
    (registry.LIBRARY["per_row"].read, {"rows": ROWS | {"stop": 5}}, "table has 2 blocks of 2 rows, and stop is 5"),
    (registry.LIBRARY["per_row"].read, {"rows": ROWS | {"stop": 0}}, "stop is 0: it must be an integer from 1"),
    (registry.LIBRARY["per_row"].read, {"rows": ROWS | {"table": [4, 1]}}, r"table\[0\] is 4"),
    (registry.LIBRARY["per_row"].read, {"rows": ROWS | {"block_size": 0}}, "block_size is 0"),
    (registry.LIBRARY["per_row"].write, {"rows": ROWS | {"table": [1, 1]}}, "table has a block twice"),
    (registry.LIBRARY["ring"].read, {"rows": ROWS, "slots": 0}, "slots is 0: it must be an integer from 1"),
    (schemes.staged_read, {"runs": RUNS | {"counts": [1, 1]}}, "3 places for 2 rows"),
    (schemes.staged_read, {"runs": RUNS | {"counts": [1, 0, 2]}}, r"counts\[1\] is 0"),
    (schemes.staged_read, {"runs": RUNS | {"counts": [3]}}, r"counts\[0\] is 3"),
    (schemes.staged_read, {"runs": RUNS | {"counts": [2, 1]}}, "the 2 rows from row 0 on do not lie side by side"),
    (schemes.staged_read, {"runs": RUNS | {"places": [[3, 1], [1, 0], [1, 2]]}}, r"places\[2\] is 2"),
    (schemes.staged_write, {"runs": RUNS | {"places": [[1, 0], [1, 0], [1, 1]]}}, "a place twice"),
    (asking, {"rounds": 2, "ready": [0, 2]}, r"ready\[1\] is 2"),
]


@pytest.mark.parametrize(("function", "arguments", "says"), REFUSED, ids=[says for *_, says in REFUSED])
def test_arguments_that_break_a_promise_are_refused(function: SchemeFunction, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(TraceFormatError, match=says):
        called(function, arguments, "calls[0]")


def test_twin_the_arguments_that_were_broken_are_good() -> None:
    assert called(registry.LIBRARY["per_row"].write, {"rows": ROWS}, "calls[0]").steps == 3
    assert called(schemes.staged_write, {"runs": RUNS}, "calls[0]").steps == 2
    assert called(asking, {"rounds": 2, "ready": [0, 1]}, "calls[0]").steps == 2


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (registry.LIBRARY["ring"].read, {"rows": ROWS, "slots": 10**18}),
        (registry.LIBRARY["per_row"].read, {"rows": ROWS | {"table": [0], "block_size": 2**60, "start": 0, "stop": 2**60}}),
        (registry.LIBRARY["direct"].read, {"rows": ROWS | {"table": [0], "block_size": 2**60, "start": 0, "stop": 2**60}}),
        (asking, {"rounds": MOST + 1, "ready": []}),
    ],
)
def test_a_few_digits_do_not_ask_for_a_huge_scheme(function: SchemeFunction, arguments: dict[str, Any]) -> None:
    with pytest.raises(TraceTooLargeError):
        called(function, arguments, "calls[0]")
