"""Functions that are functions of their argument, written in all the ways that people write such: the twins of `impure`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from functools import partial, wraps
from types import MappingProxyType
from typing import NamedTuple

from kvstage_model.language.operations import Copy, Event, SyncStream

Late = Callable[[int], object]
LATE, WORDS, SIZES = 3000, ("a", "b"), (1, 2, 3)
TABLE = MappingProxyType({"a": 1, "b": 2})
PURE: dict[str, Late] = {}


def pure(function: Late) -> Late:
    """Enters a function under its name."""
    PURE[function.__name__] = function
    return function


class Slot(int, Enum):
    """A number with a name."""

    K = 0
    V = 1


class Side(IntEnum):
    """Another."""

    LEFT = 0
    RIGHT = 1


class Way(Enum):
    """A name and no number."""

    IN = "in"
    OUT = "out"


@dataclass(frozen=True)
class Plan:
    """A frozen record, with a property, a method and a record inside."""

    slots: int
    way: Way = Way.IN
    more: tuple[int, ...] = ()
    inner: "Plan | None" = None

    @property
    def doubled(self) -> int:
        return 2 * self.slots

    def slot(self, i: int) -> int:
        return i % self.slots

    def __call__(self, i: int) -> object:
        return self.slot(i) > LATE


class Pair(NamedTuple):
    """A named tuple."""

    first: int
    second: int


PLAN, BOTH = Plan(2, inner=Plan(3)), Pair(1, 2)


@pure
def comparison(i: int) -> object:
    return i > LATE and not (i % 2 == 0 or i == 7)


@pure
def chained(i: int) -> object:
    return 0 <= i - LATE < 5 or i == -1


@pure
def conditional(i: int) -> object:
    return (i if i > 3 else 3) > LATE


@pure
def choice(i: int) -> object:
    if i > LATE:
        return True
    if i < 0:
        late = False
    elif i == 2:
        late = True
    else:
        late = False
    return late


@pure
def loop_over_constants(i: int) -> object:
    late = False
    for number, size in enumerate(SIZES):
        if number == 1:
            continue
        late = late or i > LATE + size
    return late


@pure
def comprehension(i: int) -> object:
    return any(i > LATE + size for size in SIZES) and len([size for size in SIZES if size > 0]) == 3


@pure
def unpacking(i: int) -> object:
    (a, b), *rest = (i, 2), 3, 4
    return a + b + rest[0] > LATE


@pure
def arithmetic(i: int) -> object:
    quotient, remainder = divmod(i, 4)
    return max(quotient, abs(remainder), min(i, 5), sum(SIZES)) > LATE


@pure
def helper(i: int) -> object:
    return beyond(i, LATE)


def beyond(i: int, last: int = LATE, *, more: int = 0) -> bool:
    return i > last + more


@pure
def closure(i: int) -> object:
    def inner(more: int) -> bool:
        return i + more > LATE

    return inner(1)


@pure
def anonymous(i: int) -> object:
    return (lambda j, k=1: j + k > LATE)(i)


@pure
def record(i: int) -> object:
    return PLAN.doubled + PLAN.slot(i) + replace(PLAN, slots=4).slots > LATE


@pure
def record_inside(i: int) -> object:
    return PLAN.inner is not None and PLAN.inner.slots > LATE


@pure
def record_made_in_the_step(i: int) -> object:
    return Plan(3, more=(1, 2)).slot(i) > LATE


@pure
def member_of_an_enum(i: int) -> object:
    return PLAN.way is Way.OUT or PLAN.way == Way.OUT


@pure
def member_that_is_a_number(i: int) -> object:
    return i == Slot.V + LATE or i == Side.RIGHT + LATE


@pure
def named_tuple(i: int) -> object:
    return BOTH.first + BOTH[1] + i > LATE


@pure
def text(i: int) -> object:
    return f"{WORDS[0]}{SIZES[1]}" == "".join(WORDS)


@pure
def mapping(i: int) -> object:
    return TABLE["a"] + i > LATE


@pure
def cases(i: int) -> object:
    match WORDS[1]:
        case "a" | "c":
            return True
        case other:
            return other == "c"


@pure
def membership(i: int) -> object:
    return i in (LATE, LATE + 1) or "a" not in WORDS


@pure
def kind_of_a_record(i: int) -> object:
    return isinstance(SyncStream("a"), Copy | Event)


@pure
def constant_range(i: int) -> object:
    return [k for k in range(2, 8, 2) if i > LATE + k] == [1]


@pure
def refusing(i: int) -> object:
    if len(SIZES) > 9:
        raise ValueError("there are too many")
    return False


@pure
def asserting(i: int) -> object:
    assert len(SIZES) == 3
    return i > LATE


def announced(function: Late) -> Late:
    """A decorator that keeps nothing."""

    @wraps(function)
    def called(i: int) -> object:
        return function(i)

    return called


@pure
@announced
def decorated(i: int) -> object:
    return i > LATE


@pure
def delegating(i: int) -> object:
    return tuple(numbers(i)) == (0, 1)


def numbers(i: int) -> Iterator[int]:
    yield 0
    yield from more_numbers(i)


def more_numbers(i: int) -> Iterator[int]:
    for number in (1, 2):
        if i > LATE:
            yield number


PURE["partial_of_numbers"] = partial(beyond, last=LATE)
PURE["method_of_a_record"] = PLAN.slot
PURE["record_that_is_called"] = PLAN
PURE["lambdas_in_one_line"] = (lambda i: i > LATE, lambda i: i < 0)[1]
