"""The scheme of a call: the stager's own, or the one that is picked for its rows, built for them."""

from inspect import signature
from numbers import Integral
from typing import Any

import torch

from kvstage_model.language.buffers import Memory
from kvstage_model.language.paged_rows import PagedRows
from kvstage_model.language.parameters import SchemeFunction, default_out_of_range, demands_distinct, least_values
from kvstage_model.language.scheme import Direction, Scheme
from kvstage_model.schemes.registry import LIBRARY, SLOTS, Pair, usual_chunk

from ..devices.device import Device
from ..errors import DeviceError, SchemeError, shown
from ..pool import PagedPool
from .auto import Auto, Case, Choice

OPTIONS = {"slots", "chunk", "most"}
"""What a scheme may ask for beside the rows of the transfer."""
KEPT = 4
"""Schemes that are remembered: the caches of a step have the same rows, in few widths."""
WITHIN_A_BLOCK = 1
"""The most rows of a run where bytes lie between the blocks, which a longer run would take along."""

Built = tuple[Scheme, Choice | None]


class Choosing:
    """Schemes for one device. Any thread may ask."""

    def __init__(self, device: Device[Any, Any], scheme: Pair | Auto, slots: int | None) -> None:
        self._device = device
        self._runs = scheme
        self._slots = SLOTS if slots is None else slots
        pairs = LIBRARY.values() if isinstance(scheme, Auto) else (scheme,)
        functions = [function for pair in pairs for function in (pair.read, pair.write)]
        self._options = {each: tuple(signature(each).parameters.keys() & OPTIONS) for each in functions}
        self._least = {each: least_values(each) for each in functions}
        self.distinct = not isinstance(scheme, Auto) and demands_distinct(scheme.read)
        """Whether reads, too, are only for tables in which no block occurs twice."""
        self._known: tuple[tuple[PagedRows, Case, Built], ...] = ()
        if slots is not None and not any("slots" in names for names in self._options.values()):
            raise SchemeError(
                f"slots is {shown(slots)}, and the scheme has no ring of slots: leave it out, or choose 'ring' or 'gather'"
            )
        _check_slots(slots)
        for wrong in filter(None, map(default_out_of_range, functions)):
            raise SchemeError(wrong)

    @property
    def proved(self) -> bool:
        """Whether the schemes are the library's own, of which `kvstage prove` has shown that they can be performed."""
        return isinstance(self._runs, Auto) or self._runs in LIBRARY.values()

    def scheme(
        self, direction: Direction, pool: PagedPool, rows: PagedRows, host: torch.Tensor | None, left: int | None = None
    ) -> Built:
        """The scheme for some rows, and why it is that one, where it was picked.

        `host` is where the rows are at the host, uint8 [1, n, row_bytes], if that is the caller's memory; `left` the bytes of
        pinned memory that may still be used, if they are bounded. The same rows again are not thought about again: a scheme
        is only read.
        """
        pinned = host is None or not isinstance(self._runs, Auto) or self._is_pinned(host)
        left = left if isinstance(self._runs, Auto) else None
        case = Case(direction, pool.row_bytes, pinned, pool.gapless, self._slots, left, host is None)
        for known, before, built in self._known:
            if known is rows and before == case:
                return built
        built = self._built(rows, case)
        self._known = ((rows, case, built), *self._known[: KEPT - 1])  # another thread may be looking through the old one
        return built

    def _built(self, rows: PagedRows, case: Case) -> Built:
        if not isinstance(self._runs, Auto):
            return self._of(self._runs, rows, case), None
        most = usual_chunk(rows) if case.gapless else WITHIN_A_BLOCK
        choice = self._runs.choose(rows, case, most, lambda name: _pinned(self._of(LIBRARY[name], rows, case), case))
        return self._of(LIBRARY[choice.scheme], rows, case), choice

    def _of(self, pair: Pair, rows: PagedRows, case: Case) -> Scheme:
        chunk = usual_chunk(rows)
        usual = {"slots": self._slots, "chunk": chunk, "most": chunk if case.gapless else WITHIN_A_BLOCK}
        function = pair.read if case.direction is Direction.READ else pair.write
        given = {name: usual[name] for name in self._options[function]}
        for name, value in given.items():
            least = self._least[function].get(name, value)
            if value < least:
                raise SchemeError(f"{name} is {value}, and the scheme is proved for {name} of at least {least}: ask for more")
        return function(rows, **given)

    def owner(self, direction: Direction, choice: Choice | None) -> SchemeFunction:
        """The function that made a call's scheme: what is kept from call to call is kept for it."""
        pair = self._runs if choice is None else LIBRARY[choice.scheme]
        assert isinstance(pair, Pair), "a choice is made of the library's"
        return pair.read if direction is Direction.READ else pair.write

    def _is_pinned(self, host: torch.Tensor) -> bool:
        try:
            self._device.view(Memory.PINNED, host)
        except DeviceError:
            return False
        return True


def _check_slots(slots: object) -> None:
    if slots is not None and not (isinstance(slots, Integral) and int(slots) >= 1):
        raise SchemeError(f"slots is {shown(slots)}: a ring needs at least 1, and 2 to have a copy under way beside the host")


def _pinned(scheme: Scheme, case: Case) -> int:
    """The bytes of pinned memory that a call takes from the stager."""
    callers = None if scheme.result is None or case.borrows else scheme.result.host.name
    buffers = [each for each in scheme.buffers if each.memory is Memory.PINNED and each.name != callers]
    return case.row_bytes * sum(each.slots * each.rows for each in buffers)
