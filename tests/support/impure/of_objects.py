"""A state of objects and classes: attributes, defaults, decorators, descriptors, and what only looks frozen."""

# ruff: noqa: B006, B008, PLW, F632, E712, FURB, UP, SIM

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import count

from .entered import IMPURE, LATE, NAMES, SEEN, Late, impure


@impure
def attribute_of_a_function(i: int) -> object:
    attribute_of_a_function.steps += 1  # type: ignore[attr-defined]
    return attribute_of_a_function.steps > LATE  # type: ignore[attr-defined]


def with_steps(i: int) -> object:
    return i > LATE


with_steps.steps = 0  # type: ignore[attr-defined]


@impure
def attribute_that_is_only_read(i: int) -> object:
    return with_steps.steps > LATE  # type: ignore[attr-defined]


class OfAll:
    """Counts for all of its objects."""

    steps = 0


@impure
def attribute_of_a_class(i: int) -> object:
    OfAll.steps += 1
    return OfAll.steps > LATE


@impure
def attribute_of_a_class_that_is_read(i: int) -> object:
    return OfAll.steps > LATE


class Slotted:
    """Counts in a slot."""

    __slots__ = ("steps",)

    def __init__(self) -> None:
        self.steps = 0


SLOTTED = Slotted()


@impure
def slot(i: int) -> object:
    return SLOTTED.steps > LATE


@impure
def set_by_name(i: int) -> object:
    setattr(OfAll, "steps", OfAll.steps + 1)  # noqa: B010
    return OfAll.steps > LATE


@impure
def got_by_name(i: int) -> object:
    return getattr(NAMES, "steps") > LATE  # noqa: B009


@impure
def default_that_is_a_list(i: int, done: list[int] = []) -> object:
    return len(done) > LATE


@impure
def default_of_a_keyword(i: int, *, turns: Iterator[int] = count()) -> object:
    return next(turns) > LATE


def counting(function: Late) -> Late:
    """A decorator that counts the calls."""
    calls = [0]

    @functools.wraps(function)
    def counted(i: int) -> object:
        calls[0] += 1
        return calls[0] > LATE

    return counted


@impure
@counting
def decorated(i: int) -> object:
    return False


class Calling:
    """Is called like a function, and counts."""

    def __init__(self) -> None:
        self.steps = 0

    def __call__(self, i: int) -> object:
        self.steps += 1
        return self.steps > LATE


IMPURE["object_that_is_called"] = Calling()


@dataclass(frozen=True)
class Sly:
    """Frozen by its word, with a list inside."""

    done: list[int] = field(default_factory=list)

    def __call__(self, i: int) -> object:
        return len(self.done) > LATE


IMPURE["frozen_with_a_list"] = Sly()


@dataclass(frozen=True)
class Asking:
    """Frozen, with a property that asks something that changes."""

    @property
    def late(self) -> bool:
        return len(SEEN) > LATE


ASKING = Asking()


@impure
def property_that_asks(i: int) -> object:
    return ASKING.late


@dataclass(frozen=True)
class Numbered:
    """Frozen, with a field that each object gets from an iterator."""

    number: int = field(default_factory=count().__next__)


@impure
def field_from_an_iterator(i: int) -> object:
    return Numbered().number > LATE


class Described:
    """A descriptor that counts."""

    def __init__(self) -> None:
        self.steps = 0

    def __get__(self, owner: object, kind: type) -> int:
        self.steps += 1
        return self.steps


@dataclass(frozen=True)
class WithDescriptor:
    """Frozen, with a descriptor."""

    steps = Described()


DESCRIBED = WithDescriptor()


@impure
def descriptor(i: int) -> object:
    return DESCRIBED.steps > LATE  # type: ignore[operator]


@dataclass(frozen=True)
class Remembering:
    """Frozen, with a property that is computed once."""

    @cached_property
    def done(self) -> list[int]:
        return []


REMEMBERING = Remembering()


@impure
def property_that_remembers(i: int) -> object:
    return len(REMEMBERING.done) > LATE


@dataclass
class Plain:
    """A dataclass that is not frozen."""

    steps: int = 0


PLAIN = Plain()


@impure
def dataclass_that_changes(i: int) -> object:
    return PLAIN.steps > LATE


@impure
def object_that_sets_itself(i: int) -> object:
    object.__setattr__(ASKING, "steps", i)
    return False


IMPURE["partial_of_a_list"] = partial(lambda done, i: len(done) > LATE, [])
IMPURE["method_of_a_list"] = [0, 1].__contains__
IMPURE["function_of_python"] = itertools.repeat(0).__length_hint__  # type: ignore[assignment]
