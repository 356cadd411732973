"""The error of a scheme that has no exact meaning in the model."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


class UnsupportedError(Exception):
    """The scheme does something with a symbolic number that has no exact meaning in the model."""
