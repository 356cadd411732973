"""Symbolic indices: a scheme's ordinary Python (+ - * // % min max if and or) becomes linear terms and paths.

A scheme is annotated `int` and written like the loop it replaces. While it is proved it gets an `Index` for each
number. A comparison of indices gives a `Condition`; when Python asks for its truth, the run forks (see `World`).
Anything that an index can't do raises `UnsupportedError` by name: it is never silently a number or silently False.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


class UnsupportedError(Exception):
    """The scheme does something with a symbolic number that has no exact meaning in the model."""
