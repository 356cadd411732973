"""`Stager`: moves rows between paged pools and host memory with schemes that are proved.

It checks what it is given, then lets the runtime perform the scheme; everything refused is refused before that.
"""

from numbers import Integral
from types import TracebackType
from typing import Any, TypeVar

from kvstage_model.language.scheme import Direction
from kvstage_model.schemes.registry import LIBRARY, Pair

from .arguments.block_table import BlockTable
from .arguments.requests import Request
from .batch import Batch
from .calls import Calls, Hook
from .costs import Costs
from .devices.device import Device
from .devices.lock import lock_of
from .errors import DeviceError, RangeError, SchemeError, UnknownSchemeError, shown
from .pool import PagedPool
from .selection.auto import Auto, Choice
from .selection.measurement import costs_of
from .submitter import Submitter
from .transfer import Transfer

R = TypeVar("R")
AUTO = "auto"


class Stager(Submitter):
    """Reads rows of a sequence out of a pool, writes them into it, and copies blocks between pools, on one device.

    `scheme` is a name of `kvstage_model.schemes.LIBRARY` (raises UnknownSchemeError for others), or a `Pair` of your own:
    prove that first. With "auto" each call runs the one of the library that is expected to be the quickest for its rows
    and memory: `Transfer.choice` says which, and why. What is expected comes from `costs`; None takes what the device
    states of itself, or else measures it now, in some hundredths of a second and with 4 MiB of pinned memory beside any
    budget: the device must be idle. `slots` is the number of slots of "ring" and "gather" (raises SchemeError for schemes
    that have none).

    `pinned_bytes` bounds the pinned memory that the stager allocates; a call that needs more raises PinnedMemoryError, with
    nothing written. `on_transfer` is called with a `Moved` for each transfer that has ended, as soon as a wait, a query, or
    a later call sees it, on that thread. A transfer whose work failed, or that moved nothing, is not told. What the hook
    raises comes out there, and it is not called again for that transfer. By then the rows have arrived: wait or query
    again, then take the result. A later call has issued nothing yet: call again. A call whose scheme finishes inside it has
    moved its rows, and returns no transfer. A hook may call the stager; one that waits for another thread may wait for ever.

    Calls of one stager are in order on the device, whichever schemes they run: a call's work begins after that of the calls
    before it, also if they have not been waited for. Those of two stagers are not.

    A stager keeps its memory and its events from call to call: staging, and results that were released. Several threads
    may use it, and other stagers of its device: calls on one device go one by one, each with the waits that its scheme
    makes inside the call; `Transfer.wait`, `query` and `close` keep no thread from calling. Calls leave no trace in autograd,
    but bump the version counters of what they write; results are ordinary tensors, also under `torch.inference_mode`, and
    tensors made there can be read and written from anywhere.

    What is proved, and what is not. The theorems are about one scheme, called again and again, each call after the end of
    the one before. "per_row", "per_block", "per_run", "ring" and "gather" are run just so: all of their waits are inside the
    call. "direct", "gather_pinned", "gather_host" and "gather_copy" end with one wait, which is `Transfer.wait`: a caller
    that waits for each transfer before the next call runs what is proved. One that has several under way relies on their
    stream, which is in order (A3), on a stream's wait for the mark of those on other streams (A6), and on their having no
    memory in common but the caller's, and device memory that only work on that stream touches: `batch session` proves that a
    write and a read by "direct" then have no hazard, and "gather_copy between kernels" that no call of it needs a wait for
    the one before; that each row is right, and that the others are like "direct", is an argument, not one of the theorems.
    No other party may write the rows of a call, nor read those it writes, before its transfer is done: the library does not
    look for that.

    Memory that work under way may touch is kept by the transfer and by the stager, also when the transfer is dropped;
    and by the device, when both are. `close`, or leaving the `with`, waits for all of it. A call that breaks off, by
    an error of the device or from the keyboard, leaves each row that it writes as it was, as it should be, or half of
    each; all other rows are untouched. Its copies may still run: the next call, or `close`, waits for them before it does
    anything else, and nothing of their memory is used again until then. After a fork the child gets ForkedError from every
    call.

    >>> import torch
    >>> from kvstage import ThreadDevice
    >>> pool, table = PagedPool(torch.zeros(8, 4, 3)), [5, 2]
    >>> with ThreadDevice() as device, Stager(device, scheme="ring", slots=2) as stager:
    ...     stager.write(pool, table, 2, torch.ones(4, 3)).wait()
    ...     read = stager.read(pool, table, 0, 8)
    ...     read.wait()
    >>> read.result()[:, 0].tolist()
    [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0]
    """

    def __init__(
        self,
        device: Device[Any, Any],
        *,
        scheme: str | Pair = AUTO,
        costs: Costs | None = None,
        slots: int | None = None,
        pinned_bytes: int | None = None,
        on_transfer: Hook | None = None,
    ) -> None:
        _check_device(device)
        _check_budget(pinned_bytes)
        _check_hook(on_transfer)
        chosen = _chosen(device, scheme, costs)
        self.costs: Costs | None = chosen.costs if isinstance(chosen, Auto) else None
        """What "auto" picks by: pass it to other stagers of the device, so that it is measured once."""
        self.device = device
        """What it moves rows on."""
        super().__init__(Calls(device, chosen, slots, pinned_bytes, on_transfer))

    def choice(
        self, pool: PagedPool, block_table: BlockTable, start: int, stop: int, direction: Direction = Direction.READ
    ) -> Choice | None:
        """What `scheme="auto"` would run for these rows, and why, with rows at the host in memory as the stager likes it.

        None if the stager was told which scheme to run. Nothing is moved. Raises what `read` and `write` raise of rows
        and tables, and ClosedError after `close`.
        """
        return self._calls.choice(pool, block_table, start, stop, direction)

    def batch(self) -> Batch:
        """A context manager for many calls with one wait: `with stager.batch() as batch: batch.read(...)`; `batch.wait()`."""
        return Batch(self._calls)

    def close(self) -> None:
        """Waits for everything under way, and refuses new calls; the device stays open. May be called twice.

        A call of another thread that is on its way in is waited for, or gets ClosedError: nothing is written after the end.

        Raises the first error of work that has not been asked for: call it again for the next.
        """
        self._calls.close()

    def _check_open(self) -> None:
        self._calls.check_open()

    def _submit(self, request: Request) -> Transfer[R]:
        return self._calls.submit(request)

    def __enter__(self) -> "Stager":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


def _check_device(device: object) -> None:
    lacks = [name for name in vars(Device) if not name.startswith("_") and not hasattr(device, name)]
    if isinstance(device, type) or lacks:
        what = f"the class {device.__name__}" if isinstance(device, type) else f"{device!r}, without {', '.join(lacks)}"
        raise DeviceError(
            f"device is {what}: pass a device such as AcceleratorDevice(), HostDevice() or ThreadDevice(); `kvstage.Device` says "
            "what one of your own needs"
        )


def _check_budget(pinned_bytes: object) -> None:
    if pinned_bytes is not None and not (isinstance(pinned_bytes, Integral) and int(pinned_bytes) >= 0):
        raise RangeError(f"pinned_bytes is {shown(pinned_bytes)}: it must be a number of bytes from 0 on, or None for no bound")


def _check_hook(on_transfer: object) -> None:
    if on_transfer is not None and not callable(on_transfer):
        raise SchemeError(f"on_transfer is {on_transfer!r}: pass a function of one `Moved`, or None")


def _chosen(device: Device[Any, Any], scheme: object, costs: object) -> Pair | Auto:
    if costs is not None and not isinstance(costs, Costs):
        raise SchemeError(
            f"costs are {costs!r}: pass a `kvstage.Costs`, such as kvstage.costs.PCIE_5, or None for the device's own"
        )
    if isinstance(scheme, str) and scheme == AUTO:
        with lock_of(device):  # to measure is to issue work
            return Auto(costs_of(device) if costs is None else costs)
    if costs is not None:
        raise SchemeError(f"costs are what {AUTO!r} picks a scheme by: leave them out, or the scheme")
    if isinstance(scheme, Pair):
        return scheme
    if not isinstance(scheme, str) or scheme not in LIBRARY:
        raise UnknownSchemeError(f"there is no scheme {scheme!r}: choose {AUTO!r}, or one of {', '.join(map(repr, LIBRARY))}")
    return LIBRARY[scheme]
