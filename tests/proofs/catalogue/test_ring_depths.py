"""When a gather that reads needs its event `free`: searched at each small pair of depths, against the rule that is stated."""

from itertools import product
from typing import Any

import pytest

from kvstage_model.language.edits import Named
from kvstage_model.language.operations import RecordEvent, WaitEvent
from kvstage_model.language.parameters import Declared, SchemeFunction, declared
from kvstage_model.ordering.program import unroll
from kvstage_model.schemes.gather import gather_read, gather_write
from kvstage_model.search.faults import hazard
from kvstage_model.search.instances import instances
from kvstage_model.search.search import search
from kvstage_proofs.catalogue import ring_depths
from kvstage_proofs.catalogue.ring_depths import findings, without_free
from kvstage_proofs.judging.judge import judge
from kvstage_proofs.obligation import Verdict
from kvstage_proofs.theorems import t1_no_hazard
from kvstage_proofs.theorems.t5_removals import removals
from tests.support.solver import claimed

DEPTHS = tuple(product((1, 2, 3), repeat=2))


def of_depths(function: SchemeFunction, device_slots: int, pinned_slots: int) -> Declared:
    """The gather of these depths, over any pieces."""
    pieces, *_ = declared(function)
    return Declared(lambda pieces: function(pieces=pieces, device_slots=device_slots, pinned_slots=pinned_slots), (pieces,))


@pytest.mark.parametrize(("device_slots", "pinned_slots"), DEPTHS)
def test_without_free_an_instance_races_where_the_device_ring_is_shallower_and_only_there(
    device_slots: int, pinned_slots: int
) -> None:
    bare = without_free(of_depths(gather_read, device_slots, pinned_slots))
    assert (search(bare, hazard) is not None) == (device_slots < pinned_slots)


@pytest.mark.parametrize(("device_slots", "pinned_slots"), [(1, 1), (1, 2), (2, 1), (2, 2)])
@pytest.mark.parametrize("function", [gather_read, gather_write])
def test_nothing_else_is_needless_at_any_small_depth(function: SchemeFunction, device_slots: int, pinned_slots: int) -> None:
    """Row by row of the removal table, at fixed depths: over all depths, one that needs it would hide one that does not."""
    rows = list(removals(of_depths(function, device_slots, pinned_slots), "gather", "-"))
    assert len(rows) == 6
    needless = {row.statement.scheme for row in rows if row.search(None) is None}
    free = {row.statement.scheme for row in rows if "'free'" in row.statement.scheme}
    assert len(free) == 2
    assert needless == (free if function is gather_read and device_slots >= pinned_slots else set())


def test_neither_record_nor_wait_is_left() -> None:
    issued = [each.operation for calls, _ in instances(without_free(ring_depths.deep)) for each in unroll(calls)]
    assert issued
    assert not any(Named(kind, event="free")(operation) for kind in (RecordEvent, WaitEvent) for operation in issued)


def test_the_findings_state_both_sides() -> None:
    stated = {each.statement.name: each.statement.expected for each in findings()}
    assert stated["gather without 'free', device slots >= pinned slots.read:T1"] is Verdict.PROVED
    assert stated["gather without 'free', device slots < pinned slots.read:T1"] is Verdict.REFUTED
    rest = [name for name, expected in stated.items() if expected is Verdict.REFUTED and ">=" in name]
    assert len(rest) == 4, "all that is left of a deep gather is needed"


@pytest.mark.extended
def test_one_slot_fewer_is_not_proved() -> None:
    """The twin: a device ring that may be one slot shallower than the pinned one."""

    def too_shallow(**arguments: Any) -> Any:
        pinned, more = arguments["pinned_slots"], arguments["more"]
        return gather_read(arguments["pieces"], pinned + more, pinned + 1)

    function = without_free(Declared(too_shallow, declared(ring_depths.deep)))
    assert claimed(t1_no_hazard.queries(function)) is Verdict.UNKNOWN
    assert judge(t1_no_hazard.T1.of(function, "too shallow", expected=Verdict.REFUTED)).ok
