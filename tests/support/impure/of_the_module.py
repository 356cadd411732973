"""A state of the module: what is kept in a list, a dict, a number or an iterator that the step finds there."""

import threading
from array import array
from collections import Counter, defaultdict, deque
from contextvars import ContextVar
from functools import cache, lru_cache
from itertools import count

import numpy as np

from .entered import LATE, NAMES, SEEN, impure

TABLE: dict[str, int] = {}
GROUP: set[int] = set()
QUEUE: deque[int] = deque()
ROOM, NUMBERS, ROWS = bytearray(1), array("i", [0]), np.zeros(3)
TALLY: Counter[str] = Counter()
LACKING: defaultdict[str, int] = defaultdict(int)
COUNT, TURNS = ContextVar("count", default=0), count()
LOCAL = threading.local()
GENERATED = (i for i in range(10**6))
steps = 0


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
def names_of_the_module(i: int) -> object:
    return globals()["steps"] > LATE


@impure
def executed_text(i: int) -> object:
    exec("SEEN.append(1)")
    return len(SEEN) > LATE


@impure
def evaluated_text(i: int) -> object:
    return eval("len(SEEN)") > LATE


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


@impure
def deletion(i: int) -> object:
    del SEEN[:]
    return False
