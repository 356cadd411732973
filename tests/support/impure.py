"""Functions that are no functions of their argument: each keeps a state, looks at objects, or asks something that may change.

Every one says "late" in the end, and then a loop around it no longer waits; a proof that runs a few steps with symbols sees
none of it. `IMPURE` has those that a step calls, `MAKERS` those that make one in each call of the scheme.
"""

# ruff: noqa: E721, B006, B008, PLW, F632, E712, FURB, UP, SIM

import functools
import itertools
import json
import os
import random
import threading
import time
from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache, partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np

Late = Callable[[int], object]
LATE = 3000
SEEN: list[int] = []
TABLE: dict[str, int] = {}
GROUP: set[int] = set()
QUEUE: deque[int] = deque()
ROOM, NUMBERS, ROWS = bytearray(1), array("i", [0]), np.zeros(3)
NAMES = SimpleNamespace(steps=0)
TALLY: Counter[str] = Counter()
LACKING: defaultdict[str, int] = defaultdict(int)
COUNT, TURNS = ContextVar("count", default=0), count()
LOCAL = threading.local()
GENERATED = (i for i in range(10**6))
steps = 0
LAST = 200
IMPURE: dict[str, Late] = {}
MAKERS: dict[str, Callable[[], Late]] = {}


def impure(function: Late) -> Late:
    """Enters a function under its name."""
    IMPURE[function.__name__] = function
    return function


def maker(function: Callable[[], Late]) -> Callable[[], Late]:
    """Enters a maker under its name."""
    MAKERS[function.__name__] = function
    return function


@impure
def list_of_the_module(i: int) -> object:
    SEEN.append(i)
    return len(SEEN) > LATE


@impure
def list_only_read(i: int) -> object:
    return len(SEEN) > LATE


@impure
def dict_of_the_module(i: int) -> object:
    TABLE["steps"] = TABLE.get("steps", 0) + 1
    return TABLE["steps"] > LATE


@impure
def set_of_the_module(i: int) -> object:
    return len(GROUP) > LATE


@impure
def deque_of_the_module(i: int) -> object:
    QUEUE.append(0)
    return len(QUEUE) > LATE


@impure
def counter_of_the_module(i: int) -> object:
    TALLY.update(["step"])
    return TALLY["step"] > LATE


@impure
def default_dict(i: int) -> object:
    return LACKING["steps"] > LATE


@impure
def bytes_of_the_module(i: int) -> object:
    ROOM.append(0)
    return len(ROOM) > LATE


@impure
def array_of_numbers(i: int) -> object:
    return NUMBERS[0] > LATE


@impure
def numpy_array(i: int) -> object:
    return ROWS[0] > LATE


@impure
def namespace(i: int) -> object:
    return NAMES.steps > LATE


@impure
def global_number(i: int) -> object:
    global steps
    steps += 1
    return steps > LATE


@impure
def context_variable(i: int) -> object:
    COUNT.set(COUNT.get() + 1)
    return COUNT.get() > LATE


@impure
def thread_local(i: int) -> object:
    return LOCAL.steps > LATE


@impure
def iterator_of_the_module(i: int) -> object:
    return next(TURNS) > LATE


@impure
def iterator_that_a_loop_takes_from(i: int) -> object:
    for turn in TURNS:
        return turn > LATE
    return False


@impure
def generator_of_the_module(i: int) -> object:
    return 3000 in GENERATED


@impure
def environment(i: int) -> object:
    return os.environ.get("LATE") == "1"


@impure
def clock(i: int) -> object:
    return time.time() > 1e12


@impure
def chance(i: int) -> object:
    return random.random() < 1e-4


@impure
def file(i: int) -> object:
    with open("/tmp/steps") as opened:
        return opened.read() == "late"


@impure
def open_file(i: int) -> object:
    return open("/tmp/steps").read() == "late"


@impure
def import_in_a_step(i: int) -> object:
    import random as inside

    return inside.random() < 1e-4


@impure
def import_from_in_a_step(i: int) -> object:
    from random import random as inside

    return inside() < 1e-4


@impure
def import_by_name(i: int) -> object:
    return __import__("random").random() < 1e-4


@impure
def identity_of_a_number(i: int) -> object:
    return i is LAST


@impure
def identity_of_a_truth(i: int) -> object:
    return (i == 200) is True


@impure
def identity_in_a_case(i: int) -> object:
    match i == 200:
        case True:
            return True
    return False


@impure
def kind_of_a_number(i: int) -> object:
    return isinstance(i, int)


@impure
def kind_by_type(i: int) -> object:
    return type(i) == int


@impure
def kind_in_a_case(i: int) -> object:
    match i:
        case int():
            return True
    return False


@impure
def identity_by_id(i: int) -> object:
    return id(i) % 1000 == 7


@impure
def hash_of_a_number(i: int) -> object:
    return hash((i,)) % 1000 == 7


@impure
def text_of_an_object(i: int) -> object:
    return f"{chance!r}".endswith("7>")


@impure
def text_of_a_function(i: int) -> object:
    return str(chance).endswith("7>")


@impure
def caught_error(i: int) -> object:
    try:
        return json.dumps(i) == "200"
    except TypeError:
        return False


@impure
def json_of_a_number(i: int) -> object:
    return json.dumps(i) == "200"


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
def names_of_the_module(i: int) -> object:
    return globals()["steps"] > LATE


@impure
def dict_of_an_object(i: int) -> object:
    return chance.__dict__.get("steps", 0) > LATE


@impure
def executed_text(i: int) -> object:
    exec("SEEN.append(1)")
    return len(SEEN) > LATE


@impure
def evaluated_text(i: int) -> object:
    return eval("len(SEEN)") > LATE


@impure
def default_that_is_a_list(i: int, done: list[int] = []) -> object:
    return len(done) > LATE


@impure
def default_of_a_keyword(i: int, *, turns: Iterator[int] = count()) -> object:
    return next(turns) > LATE


@cache
def remembered() -> list[int]:
    return []


@impure
def cached_list(i: int) -> object:
    remembered().append(1)
    return len(remembered()) > LATE


@impure
@lru_cache
def cached(i: int) -> object:
    return i > LATE


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


@impure
def deletion(i: int) -> object:
    del SEEN[:]
    return False


@impure
def walrus(i: int) -> object:
    return (late := i > LATE) and late


@impure
def endless(i: int) -> object:
    while i > LATE:
        i -= 1
    return False


@impure
def order_of_a_set(i: int) -> object:
    return next(iter({"a", "b"})) == "a"


@impure
def loop_over_a_set(i: int) -> object:
    for word in {"a", "b"}:
        return word == "a"
    return False


@impure
def inverted_truth(i: int) -> object:
    return ~(i == 200)


@impure
def class_in_a_step(i: int) -> object:
    class Late:
        late = i > LATE

    return Late.late


@impure
def frames(i: int) -> object:
    return outer_frames(i).gi_frame.f_lineno > LATE  # type: ignore[attr-defined]


def outer_frames(i: int) -> Iterator[int]:
    yield i


@impure
def numpy_number(i: int) -> object:
    return i > NUMPY


NUMPY = np.int64(3000)
IMPURE["partial_of_a_list"] = partial(lambda done, i: len(done) > LATE, [])
IMPURE["method_of_a_list"] = [0, 1].__contains__
IMPURE["function_of_python"] = itertools.repeat(0).__length_hint__  # type: ignore[assignment]
made: dict[str, Any] = {}
exec("def from_text(i):\n    return i > 3000\n", made)
IMPURE["text_that_is_gone"] = made["from_text"]


@maker
def list_around() -> Late:
    done: list[int] = []
    return lambda i: len(done) > LATE


@maker
def dict_around() -> Late:
    done = {"steps": 0}
    return lambda i: done["steps"] > LATE


@maker
def variable_around() -> Late:
    done = 0

    def late(i: int) -> object:
        nonlocal done
        done += 1
        return done > LATE

    return late


@maker
def iterator_around() -> Late:
    turns = iter(range(LATE))
    return lambda i: i in turns


@maker
def enumeration_around() -> Late:
    turns = enumerate((1, 2, 3))
    return lambda i: (2, 3) in turns


@maker
def generator_around() -> Late:
    turns = (turn for turn in range(LATE))
    return lambda i: 5 in turns


@maker
def map_around() -> Late:
    turns = map(abs, range(LATE))
    return lambda i: 5 in turns


@maker
def list_in_a_tuple() -> Late:
    held = ([0],)
    return lambda i: len(held[0]) > LATE


@maker
def default_around() -> Late:
    def late(i: int, done: tuple[list[int], ...] = ([],)) -> object:
        return len(done[0]) > LATE

    return late


@maker
def annotation_that_counts() -> Late:
    def late(i: SEEN.append(1)) -> object:  # type: ignore[valid-type]
        return i > LATE

    return late
