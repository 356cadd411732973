"""Moving a scheme to other streams, and handing its result to the kernels of a stream instead of the host."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from .operations import Event, OnStream, Operation, RecordEvent, SyncStream, WaitEvent
from .scheme import Result, Scheme


def on_stream(scheme: Scheme, old: str, new: str) -> Scheme:
    """The scheme with the work of one stream issued on another one."""

    def move(operations: Iterable[Operation]) -> Iterator[Operation]:
        for operation in operations:
            if isinstance(operation, OnStream | SyncStream) and operation.stream == old:
                moved: Operation = replace(operation, stream=new)
                yield moved
            else:
                yield operation

    return scheme.changed(move, f"{scheme.name} on {new}")


def handed_to(scheme: Scheme, stream: str, caller: str) -> Scheme:
    """The scheme whose caller is the kernels of stream `caller`: events order it after them, and them after it.

    The host waits for nothing at the end. `stream` is the one that the scheme ends on.
    """
    before, after = Event("caller's"), Event("moved")
    prologue = (RecordEvent(before, caller), WaitEvent(stream, before))
    epilogue = (RecordEvent(after, stream), WaitEvent(caller, after))
    result: Result | None = None if scheme.result is None else replace(scheme.result, target_on=caller, source_on=caller)
    return replace(scheme, name=f"{scheme.name} for {caller}", prologue=prologue, epilogue=epilogue, result=result)
