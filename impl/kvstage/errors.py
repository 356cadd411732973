"""The errors of the library. Each says what was wrong, which value, and what to do.

Those of a call are raised before its first copy: a call that is refused has written nothing. An error of the device
itself, while copies run, comes as the device raised it.
"""


def shown(value: object) -> str:
    """A value in a message, as `repr` has it; Python itself refuses to print an integer of some thousands of digits."""
    try:
        return repr(value)
    except ValueError:
        return f"an integer of {value.bit_length()} bits" if isinstance(value, int) else f"a {type(value).__name__}"


class KVStageError(Exception):
    """What all errors of the library have in common."""


class RangeError(KVStageError, ValueError):
    """`start` or `stop` is no row number: negative, no integer, or stop < start; or `pinned_bytes` is no number of bytes, or
    `timeout` no number of seconds.
    """


class BlockIdError(KVStageError, ValueError):
    """A block that the rows touch is not in the pool: its id is negative, too large, or no integer."""


class DuplicateBlockError(KVStageError, ValueError):
    """A write names one block twice: two rows would land in one place."""


class TableTooShortError(KVStageError, ValueError):
    """The block table ends before the rows do."""


class LayoutError(KVStageError, ValueError):
    """A tensor has the wrong dtype, shape or strides, or is none, or a block table is no list of integers."""


class AliasError(KVStageError, ValueError):
    """The two sides of a call share memory, or are not known to share none."""


class DeviceError(KVStageError, RuntimeError):
    """A tensor lies where the device can't copy from or to, or a stager was given no device."""


class PinnedMemoryError(KVStageError, MemoryError):
    """A call needs more pinned memory than `pinned_bytes` leaves: `asked` and `left` are bytes."""

    def __init__(self, asked: int, left: int, budget: int) -> None:
        super().__init__(
            f"{asked} bytes of pinned memory are needed, and {left} of the budget of {budget} are left: release transfers "
            "whose rows you have used, pass memory of your own as `out`, move fewer rows at once, or raise pinned_bytes"
        )
        self.asked = asked
        self.left = left


class AllocationError(KVStageError, MemoryError):
    """The device has no memory for what a call needs: staging of so many slots, or the rows."""


class ForkedError(KVStageError, RuntimeError):
    """The process was forked: streams and their threads stayed behind in the parent."""


class OpenCLMissingError(DeviceError):
    """There is no pyopencl, or no OpenCL driver for the CPU."""


class ClosedError(KVStageError, RuntimeError):
    """The device or the stager was closed, or the batch has ended."""


class UnknownSchemeError(KVStageError, LookupError):
    """The library has no scheme of this name."""


class SchemeError(KVStageError, ValueError):
    """A scheme does something that the library can't run, or names rows outside its own buffers; or a stager was given slots,
    costs, a hook or a direction that are none; or an operator's number was asked for of what is no stager.
    """


class NotFinishedError(KVStageError, RuntimeError):
    """The rows were asked for, or released, before `wait()` returned or `query()` was True."""


class CancelledError(KVStageError, RuntimeError):
    """The rows of a transfer that was cancelled were asked for."""


class ReleasedError(KVStageError, RuntimeError):
    """The rows of a transfer were asked for after `release()` gave their memory back."""
