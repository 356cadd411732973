"""Edits change what they name and nothing else."""

import pytest

from kvstage_model.language.edits import Edit, Named, edited, out_of_the_loop, right_after, without
from kvstage_model.language.operations import Copy, HostCopy, SyncStream
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.parameters import declared
from kvstage_model.language.partitions import by_row
from kvstage_model.language.scheme import Scheme
from kvstage_model.ordering.program import unroll
from kvstage_model.schemes.staged import staged_read, staged_write

ROWS = PagedRows(lambda k: k, 4, 2, 0, 3)
WAIT = Named(SyncStream, "copy")


def kinds(scheme: Scheme) -> list[str]:
    """The kinds of the operations of loop and epilogue."""
    return [type(issued.operation).__name__ for issued in unroll([scheme]) if issued.phase != "caller"]


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (without(WAIT), ["Copy", "HostCopy"] * 3),
        (without(Named(SyncStream)), ["Copy", "HostCopy"] * 3),
        (without(Named(SyncStream, "another")), ["Copy", "SyncStream", "HostCopy"] * 3),
        (without(Named(HostCopy)), ["Copy", "SyncStream"] * 3),
        (right_after(WAIT, HostCopy), ["Copy", "HostCopy", "SyncStream"] * 3),
        (right_after(Named(HostCopy), Copy), ["Copy", "HostCopy", "SyncStream"] * 3),
        (out_of_the_loop(WAIT, SyncStream("copy")), [*["Copy", "HostCopy"] * 3, "SyncStream"]),
        (out_of_the_loop(WAIT), ["Copy", "HostCopy"] * 3),
    ],
)
def test_an_edit_of_the_read(edit: Edit, expected: list[str]) -> None:
    assert kinds(edit(staged_read(by_row(ROWS)))) == expected


def test_an_operation_moves_behind_the_one_before_it_too() -> None:
    assert kinds(right_after(WAIT, HostCopy)(staged_write(by_row(ROWS)))) == ["HostCopy", "SyncStream", "Copy"] * 3


def test_operations_are_taken_out_of_the_epilogue_too() -> None:
    moved = out_of_the_loop(WAIT, SyncStream("copy"))(staged_read(by_row(ROWS)))
    assert kinds(without(WAIT)(moved)) == ["Copy", "HostCopy"] * 3


def test_an_edited_function_declares_and_promises_what_the_original_does() -> None:
    function = edited(staged_write, without(WAIT))
    assert declared(function) == declared(staged_write)
    scheme = function(runs=by_row(ROWS))
    assert scheme.name == "staged write without SyncStream on stream copy"
    assert scheme.result is not None
    assert kinds(scheme) == ["HostCopy", "Copy"] * 3
    assert kinds(staged_write(by_row(ROWS))) == ["HostCopy", "Copy", "SyncStream"] * 3, "the original is as it was"
