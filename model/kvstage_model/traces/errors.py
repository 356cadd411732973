"""What can be wrong with a trace that is handed over."""


class TraceError(Exception):
    """A trace can't be used: the message says where, what was found there, and what belongs there."""


class TraceFormatError(TraceError):
    """It is no JSON, or not a trace: something is missing, unknown, twice there, of the wrong type, or out of range."""


class TraceVersionError(TraceError):
    """It is a trace of a version that this kvstage does not read."""


class TraceTooLargeError(TraceError):
    """It has more bytes than a reader takes, or more operations than the race finder can judge in time."""


class TraceNotAFileError(TraceError):
    """It is not in a regular file, such as a pipe that nothing may ever write to: reading it might not end."""


class EmptyTraceError(TraceError):
    """It has no operation, or nothing happens in it: it can't show anything."""
