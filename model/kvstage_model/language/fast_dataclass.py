"""`fast_dataclass`: what `dataclass` is to the type checker, and quicker at run time.

`@fast_dataclass(frozen=True, ...)` is frozen when types are checked. At run time it is not: a frozen dataclass takes three times
as long to make, and the library makes some eight for each block, while a device waits for its next operation.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from dataclasses import dataclass as fast_dataclass
else:
    from dataclasses import dataclass

    T = TypeVar("T")

    def fast_dataclass(*, frozen: bool, **options: bool) -> Callable[[type[T]], type[T]]:
        """A dataclass; `frozen` is a promise that the type checker holds its users to."""
        assert frozen, "what changes is a plain dataclass"
        return dataclass(**options)


__all__ = ["fast_dataclass"]
