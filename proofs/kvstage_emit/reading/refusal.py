"""What can't be written in C++, told with its line."""


class EmitError(Exception):
    """A scheme does something that has no C++ here."""
