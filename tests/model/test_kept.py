"""What a function keeps from one run to the next: found wherever Python lets it, and nothing found where it keeps none."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import pytest

from kvstage_model import kept as module
from kvstage_model.arguments import symbolic_arguments
from kvstage_model.kept import Kept
from kvstage_model.parameters import Parameter
from kvstage_model.runs import PagedRows, Pieces, Runs
from kvstage_model.world import World

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


KEEPING = {
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


@pytest.mark.parametrize("function", [lambda: len(SEEN), Counted().read, lambda: [last, {"a": last}]])
def test_what_is_only_read_is_not(function: Callable[[], object]) -> None:
    kept = Kept.by(function)
    function()
    assert not kept.changed()


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
