"""A call without a device: every operation of a scheme that is not proved is looked at before the first is issued.

The performer makes the same checks while it issues, so here it performs on a device that does nothing; what it refuses
then is refused with nothing written.
"""

from operator import index
from typing import Any

from kvstage_model.language.scheme import Scheme

from ..errors import SchemeError
from .performer import Binding, Order, Performer
from .row_numbers import Addresses


class _NoMemory:
    """A handle on nothing. Raises SchemeError for what is no place in memory."""

    def __getitem__(self, run: tuple[Any, slice]) -> "_NoMemory":
        slot, rows = run
        for number in (slot, rows.start, rows.stop):
            try:
                index(number)
            except TypeError as error:
                raise SchemeError(f"the scheme names a slot or a row by {number!r}: both are integers") from error
        return self


class _NoDevice:
    """Does nothing, whatever it is asked for."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def rehearse(scheme: Scheme, addresses: Addresses, row_bytes: int, length: int) -> None:
    """Goes through a whole call. Raises SchemeError if any operation of it can't be performed."""
    memory = {buffer.name: (_NoMemory(), buffer.slots, buffer.rows) for buffer in scheme.buffers}
    performer = Performer(_NoDevice(), addresses, Binding(memory, {}, row_bytes, length), Order(None, (), []))
    performer.perform(scheme.prologue)
    for i in range(scheme.steps):
        performer.perform(scheme.step(i))
    performer.perform(scheme.epilogue)
