"""JSON from strangers, taken apart value by value: whatever is not as it must be is told with its place."""

import json
from collections.abc import Iterator
from typing import Any, NoReturn

from ..language.buffers import Memory
from .errors import TraceFormatError, TraceTooLargeError

MOST_BYTES = 4 << 20
"""Bytes of the largest trace that is read: some 20,000 operations. JSON takes up to 30 times as much memory."""
LARGEST = 2**63 - 1
"""The largest number: what other languages hold in a signed word."""
LONGEST_NAME = 100
SHOWN = 40
"""Characters of a wrong value that a message shows."""


def parsed(text: bytes) -> Any:
    """The JSON value of a text in UTF-8. Refuses what JSON libraries read in different ways: a key twice, NaN, fractions."""
    if len(text) > MOST_BYTES:
        raise TraceTooLargeError(f"the trace has more than {MOST_BYTES} bytes: write a smaller instance")
    try:
        return json.loads(
            text.decode("utf-8"),
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_fraction,
            parse_constant=_fraction,
        )
    except UnicodeDecodeError as error:
        raise TraceFormatError(f"the trace is not UTF-8: byte {error.start} is {text[error.start]:#04x}") from error
    except json.JSONDecodeError as error:
        raise TraceFormatError(f"the trace is no JSON: line {error.lineno}, column {error.colno}: {error.msg}") from error
    except RecursionError:
        raise TraceFormatError("the trace is nested deeper than any trace is") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise TraceFormatError(f"an object has {_shown(key)} twice")
        found[key] = value
    return found


def _integer(digits: str) -> int:
    if len(digits) > len(str(-LARGEST)) or abs(number := int(digits)) > LARGEST:
        raise TraceFormatError(f"{_shorter(digits)} is out of range: numbers are at most {LARGEST}")
    return number


def _fraction(digits: str) -> NoReturn:
    raise TraceFormatError(f"{_shorter(digits)} is no integer: a trace has no other numbers")


def fields(value: Any, where: str, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """An object with exactly these keys."""
    if not isinstance(value, dict):
        refuse(value, where, f"an object with {', '.join(required)}")
    for key in required:
        if key not in value:
            raise TraceFormatError(f"{where} lacks {key!r}")
    for key in value:
        if key not in required and key not in optional:
            raise TraceFormatError(f"{where} has {_shown(key)}, which is unknown: it may have {', '.join((*required, *optional))}")
    return value


def entries(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    """The entries of a list, each with its place."""
    if not isinstance(value, list):
        refuse(value, where, "a list")
    return ((f"{where}[{number}]", entry) for number, entry in enumerate(value))


def pair(value: Any, where: str) -> tuple[Any, Any]:
    """A list of two."""
    if not isinstance(value, list) or len(value) != 2:
        refuse(value, where, "a list of two")
    return value[0], value[1]


def number(value: Any, where: str, least: int = 0, most: int = LARGEST) -> int:
    """An integer of a range; true and false are none."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        refuse(value, where, f"an integer from {least} to {most}")
    return value


def name(value: Any, where: str) -> str:
    """A name that may be shown on a terminal."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME or not value.isprintable():
        refuse(value, where, f"a name of 1 to {LONGEST_NAME} printable characters")
    return value


def memory(value: Any, where: str) -> Memory:
    """A kind of memory."""
    known = [each.value for each in Memory]
    if value not in known:
        refuse(value, where, f"one of {', '.join(known)}")
    return Memory(value)


def refuse(value: Any, where: str, wanted: str) -> NoReturn:
    """Raises TraceFormatError: what was found, and what belongs there."""
    raise TraceFormatError(f"{where} is {_shown(value)}: it must be {wanted}")


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return _shorter(ascii(value[: SHOWN + 1]) if isinstance(value, str) else json.dumps(value))


def _shorter(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
