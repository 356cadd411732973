"""Merged paths do on each path what that path does."""

from typing import Any

import pytest
import z3

from kvstage_model.language.buffers import Buffer, Memory
from kvstage_model.language.operations import Copy, HostCopy, HostRead, Operation, SyncStream
from kvstage_model.symbolic.path_merging import identical, merge, merge_paths, shape
from kvstage_model.symbolic.world import World
from tests.support.terms import value

STAGE, OTHER = Buffer("stage", Memory.PINNED, 4, 4), Buffer("other", Memory.PINNED, 4, 4)


def copy(stream: str, slot: Any) -> Copy:
    return Copy(stream, STAGE.at(slot, 0, 1), OTHER.at(0, slot, 1))


def as_text(world: World, operation: Operation, given: dict[str, int]) -> str:
    """An operation with its numbers as they are in one case."""
    if isinstance(operation, SyncStream):
        return f"wait {operation.stream}"
    assert isinstance(operation, Copy | HostCopy)
    numbers = [rows.slot for rows in (operation.source, operation.target)]
    numbers += [rows.start for rows in (operation.source, operation.target)]
    return f"{type(operation).__name__} {[value(world, world.term(number), given) for number in numbers]}"


def step(i: Any) -> list[Operation]:
    """Steps whose operations differ in number, kind, stream and rows."""
    found: list[Operation] = [SyncStream("a")] if i >= 2 else []
    if i % 3 == 0:
        found += [copy("a", i % 2), copy("a", 3)]
    elif i % 3 == 1:
        found += [copy("b", i), SyncStream("b"), copy("a", i % 4)]
    else:
        found += [SyncStream("b"), HostCopy(STAGE.at(0, i, 1), OTHER.at(i, 0, 1)), copy("a", 0)]
    return found


def test_the_spine_gives_each_path_its_own_operations_in_order() -> None:
    world = World()
    i: Any = world.integer("i")
    paths = [world.follow(path, lambda: step(i)) for path in world.paths(lambda: step(i))]
    assert len(paths) == 6
    merged = merge_paths(world, paths)
    assert len(merged) < sum(len(operations) for _, operations in paths), "nothing was merged"
    for number in range(-4, 10):
        given = {"i": number}
        happens = [as_text(world, operation, given) for exists, operation in merged if value(world, exists, given)]
        assert happens == [as_text(world, operation, given) for operation in step(number)]


def test_a_step_that_does_the_same_on_all_paths_happens_always() -> None:
    world = World()
    i: Any = world.integer("i")

    def run() -> list[Operation]:
        return [copy("a", 0 if i > 0 else 1)]

    merged = merge_paths(world, [world.follow(path, run) for path in world.paths(run)])
    ((always, _),) = merged
    assert z3.is_true(always)


@pytest.mark.parametrize(
    ("one", "another"),
    [
        (copy("a", 0), copy("b", 0)),
        (copy("a", 0), HostCopy(STAGE.at(0, 0, 1), OTHER.at(0, 0, 1))),
        (HostRead(STAGE.at(0, 0, 1)), HostRead(OTHER.at(0, 0, 1))),
        (SyncStream("a"), SyncStream("b")),
        (HostRead(STAGE.at(0, 0, 1)), HostRead(Buffer("stage", Memory.DEVICE, 4, 4).at(0, 0, 1))),
        ((1,), (True,)),
        ((1, 2), (1,)),
    ],
)
def test_what_differs_in_more_than_its_numbers_is_never_merged(one: object, another: object) -> None:
    assert shape(one) != shape(another)
    assert not identical(World(), one, another)


def test_a_merged_number_is_the_one_of_the_path() -> None:
    world = World()
    i: Any = world.integer("i")
    merged = merge(world, world.formula(i > 0), copy("a", i), copy("a", 7))
    numbers = [value(world, world.term(merged.source.slot), {"i": number}) for number in (-1, 0, 1, 2)]
    assert numbers == [7, 7, 1, 2]


def test_identical_compares_numbers_by_their_terms() -> None:
    world = World()
    i: Any = world.integer("i")
    assert identical(world, (copy("a", i),), (copy("a", i),))
    assert not identical(world, (copy("a", i),), (copy("a", i + 1),))
    assert not identical(world, (copy("a", 1),), (copy("a", 2),))
    assert not identical(world, (copy("a", 1),), ())
