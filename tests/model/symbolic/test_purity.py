"""What a function keeps from one run to the next: found wherever Python lets it, and nothing found where it keeps none."""

from array import array
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count
from types import SimpleNamespace

import numpy as np
import pytest

from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.parameters import Parameter
from kvstage_model.language.partitions import Pieces, Runs
from kvstage_model.symbolic import purity as module
from kvstage_model.symbolic.arguments import symbolic_arguments
from kvstage_model.symbolic.errors import UnsupportedError
from kvstage_model.symbolic.purity import Kept
from kvstage_model.symbolic.world import World

SEEN: list[int] = []
last = 0


@dataclass
class Counted:
    """An object that counts."""

    steps: int = 0
    names: dict[str, int] = field(default_factory=dict)

    def count(self) -> None:
        """Counts in a field."""
        self.steps += 1

    def name(self) -> None:
        """Counts in a dict in a field."""
        self.names["steps"] = self.names.get("steps", 0) + 1

    def read(self) -> int:
        """Counts nothing."""
        return self.steps


class Plain:
    """An object that is no dataclass."""

    def __init__(self) -> None:
        self.inner = Counted()

    def __call__(self) -> None:
        """Counts in an object that it holds."""
        self.inner.count()


def in_a_closure() -> Callable[[], object]:
    """A list around the function."""
    done: list[int] = []
    return lambda: done.append(1)


def in_a_variable() -> Callable[[], object]:
    """A variable around the function."""
    done = False

    def step() -> None:
        nonlocal done
        done = True

    return step


def in_a_container() -> Callable[[], object]:
    """A set in a tuple in a dict, two functions away."""
    kept: dict[str, tuple[set[int], deque[int]]] = {"kept": (set(), deque())}

    def note() -> None:
        kept["kept"][0].add(1)

    def step() -> None:
        note()

    return step


def in_a_default(done: list[int] = []) -> None:  # noqa: B006 the mistake that is looked for
    """A default that is made once."""
    done.append(1)


def in_a_keyword(*, done: list[int] = []) -> None:  # noqa: B006
    """The same, of a keyword."""
    done.append(1)


def in_the_module() -> None:
    """A list of the module, by way of another function of it."""
    _note()


def _note() -> None:
    SEEN.append(1)


def in_a_name_of_the_module() -> None:
    """A number of the module."""
    global last
    last += 1


def in_a_generator_of_the_module() -> None:
    """The same list, in a function inside the function."""

    def inner() -> None:
        SEEN.append(2)

    inner()


class Slotted:
    """An object whose count is in a slot."""

    __slots__ = ("steps",)

    def __init__(self) -> None:
        self.steps = 0

    def __call__(self) -> None:
        """Counts in the slot."""
        self.steps += 1


class OfAll:
    """A class that counts for all of its objects."""

    steps = 0

    def in_the_class(self) -> None:
        """Counts in the class of an object."""
        type(self).steps += 1

    @staticmethod
    def by_name() -> None:
        """Counts in the class by its name."""
        OfAll.steps += 1


class Listed(list[int]):
    """A list with an attribute."""

    steps = 0

    def count(self) -> None:
        """Counts in the attribute."""
        self.steps += 1


def in_an_attribute() -> None:
    """An attribute of the function itself."""
    in_an_attribute.steps += 1  # type: ignore[attr-defined]


in_an_attribute.steps = 0  # type: ignore[attr-defined]
COUNTS, ROOM, NAMES = array("i", [0]), bytearray(1), SimpleNamespace(steps=0)


def in_an_array() -> None:
    """An array of the module."""
    COUNTS[0] += 1


def in_a_bytearray() -> None:
    """Bytes of the module."""
    ROOM[0] += 1


def in_a_namespace() -> None:
    """A namespace of the module."""
    NAMES.steps += 1


def in_numpy() -> Callable[[], object]:
    """An array of numpy around the function, and a view of it."""
    numbers = np.zeros(4)[::2]

    def step() -> None:
        numbers[1] += 1

    return step


KEEPING = {
    "attribute of a function": in_an_attribute,
    "slot": Slotted(),
    "class": OfAll().in_the_class,
    "class by its name": OfAll.by_name,
    "attribute of a list": Listed().count,
    "array": in_an_array,
    "bytearray": in_a_bytearray,
    "namespace": in_a_namespace,
    "memoryview": partial(memoryview.__setitem__, memoryview(bytearray(b"a")), 0, 1),
    "numpy": in_numpy(),
    "method of a list": partial([].append, 1),
    "closure": in_a_closure(),
    "variable": in_a_variable(),
    "container": in_a_container(),
    "default": in_a_default,
    "keyword": in_a_keyword,
    "partial": partial(list.append, [], 1),
    "module": in_the_module,
    "name of the module": in_a_name_of_the_module,
    "inner function": in_a_generator_of_the_module,
    "method": Counted().count,
    "dict of an object": Counted().name,
    "object": Plain(),
}


@pytest.mark.parametrize("function", KEEPING.values(), ids=KEEPING)
def test_what_is_kept_is_seen(function: Callable[[], object]) -> None:
    kept = Kept.by(function)
    assert not kept.changed()
    function()
    assert kept.changed()
    assert not Kept.by(function).changed()


def only_read() -> Callable[[], object]:
    """A class, an array and a namespace that are only read, and an object that is made anew."""

    def step() -> object:
        return OfAll.steps + COUNTS[0] + NAMES.steps + Slotted().steps + len(Listed(range(3)))

    return step


@pytest.mark.parametrize("function", [lambda: len(SEEN), Counted().read, lambda: [last, {"a": last}], only_read()])
def test_what_is_only_read_is_not(function: Callable[[], object]) -> None:
    kept = Kept.by(function)
    function()
    assert not kept.changed()


TURNS = count()


def around(turns: Iterator[object]) -> Callable[[], object]:
    """A function that takes the next of something around it."""
    return lambda: next(turns)


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (around(count()), r"'turns' \(count\)"),
        (around(chain([1], [2])), r"'turns' \(chain\)"),
        (around(i for i in range(3)), r"'turns' \(generator\)"),
        (around(iter([1])), r"'turns' \(list_iterator\)"),
        (lambda: next(TURNS), r"'TURNS' \(count\)"),
        (partial(next, iter([1])), r"one in a partial \(list_iterator\)"),
        (SimpleNamespace(turns=count()).__repr__, r"'turns' \(count\)"),
    ],
)
def test_an_iterator_is_refused_by_name_for_nobody_sees_where_it_stands(function: Callable[[], object], what: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"a step reaches {what}, an iterator, which moves on whenever it is asked"):
        Kept.by(function)


def test_what_can_be_iterated_again_and_again_is_none() -> None:
    listed = ([1], {2: 3}, range(4), "text")
    assert not Kept.by(lambda: [list(each) for each in listed]).changed()  # type: ignore[call-overload]


@pytest.mark.parametrize("kind", [Runs, PagedRows, Pieces])
def test_what_the_prover_notes_down_of_its_own_arguments_does_not_count(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tables note down where they were asked."""

    def looking_up() -> Kept:
        world = World()
        call, i = world.integer("call"), world.integer("i")
        given = symbolic_arguments(world, (Parameter("rows", kind),), call)["rows"]
        kept = Kept.by(lambda: given.address(i))
        given.address(i)
        return kept

    assert not looking_up().changed()
    monkeypatch.setattr(module, "PROVER", module.PROVER[1:])
    assert looking_up().changed()
