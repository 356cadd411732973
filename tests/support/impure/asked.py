"""What asks the machine or the time, looks at objects instead of numbers, or is written so that a reader can not follow it."""

# ruff: noqa: E721, PLW, F632, E712, FURB, UP, SIM

import json
import os
import random
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from .entered import IMPURE, LATE, impure

LAST = 200


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
def dict_of_an_object(i: int) -> object:
    return chance.__dict__.get("steps", 0) > LATE


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
made: dict[str, Any] = {}
exec("def from_text(i):\n    return i > 3000\n", made)
IMPURE["text_that_is_gone"] = made["from_text"]
