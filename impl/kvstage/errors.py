"""The errors of the library. Each says what was wrong, which value, and what to do.

All are raised before the first copy of a call: a call that is refused has written nothing. An error of the device
itself, while copies run, comes as whatever the device raised.
"""


class KVStageError(Exception):
    """What all errors of the library have in common."""


class RangeError(KVStageError, ValueError):
    """`start` or `stop` is no row number: negative, no integer, or stop < start."""


class BlockIdError(KVStageError, ValueError):
    """A block that the rows touch is not in the pool: its id is negative, too large, or no integer."""


class DuplicateBlockError(KVStageError, ValueError):
    """A write names one block twice: two rows would land in one place."""


class TableTooShortError(KVStageError, ValueError):
    """The block table ends before the rows do."""


class LayoutError(KVStageError, ValueError):
    """A tensor has the wrong dtype, shape or strides, or a block table is no list of integers."""


class AliasError(KVStageError, ValueError):
    """The rows at the host share memory with the pool."""


class DeviceError(KVStageError, RuntimeError):
    """A tensor lies where the device can't copy from or to."""


class ClosedError(KVStageError, RuntimeError):
    """The device or the stager was closed, or the batch has ended."""


class UnknownSchemeError(KVStageError, LookupError):
    """The library has no scheme of this name."""


class SchemeError(KVStageError, ValueError):
    """A scheme does something that the library can't run, or names rows outside its own buffers."""


class NotFinishedError(KVStageError, RuntimeError):
    """The rows were asked for before `wait()` returned or `query()` was True, or waited for inside an open batch."""
