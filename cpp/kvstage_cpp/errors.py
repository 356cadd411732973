"""What ends a command, and is told in one line."""


class CppError(Exception):
    """A program can't be run or built, or a file can't be read or written."""
