"""A guard around a user's scheme function: whatever goes wrong inside it is told with its line in the user's file.

The prover runs a scheme function many times, with symbols and with ints, deep inside its own code. The guard stands
where the user's code is entered, so an exception from there is never taken for one of the prover's own.
"""

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any, TypeVar, get_args, get_origin

from kvstage_model.language.buffers import Buffer
from kvstage_model.language.operations import Operation, reads, writes
from kvstage_model.language.parameters import Declared, Parameter
from kvstage_model.language.scheme import Phase, Result, Scheme, Session
from kvstage_model.symbolic.errors import UnsupportedError
from kvstage_model.symbolic.index import Index
from kvstage_model.symbolic.well_formed import bounded, check_as_yielded

T = TypeVar("T")


class SchemeFileError(Exception):
    """A user's scheme can't be judged: it can't be loaded, it raises, or it is not made of operations."""


@dataclass(frozen=True)
class Guard:
    """Runs the code of one user's file. `shown` is its path as the user gave it, `file` the absolute one, `name` the function."""

    shown: str
    file: str
    name: str

    def call(self, what: str, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Calls user code. Raises UnsupportedError with its line added, and SchemeFileError for all else that it raises."""
        try:
            return function(*arguments, **named)
        except SchemeFileError:
            raise
        except UnsupportedError as reason:
            if str(reason).startswith(f"{self.shown}:"):  # it knows its line
                raise
            raise UnsupportedError(f"{self.line(reason)}: {reason}") from reason
        except (Exception, SystemExit) as error:  # user code may raise anything; a file that calls sys.exit must not end us
            raise SchemeFileError(f"{self.line(error)}: {what} raises {type(error).__name__}: {_message(error)}") from error

    def line(self, error: BaseException) -> str:
        """Where in the user's file an exception came from; the file alone if no line of it was running."""
        if isinstance(error, SyntaxError) and error.filename == self.file:
            return f"{self.shown}:{error.lineno}"
        here = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == self.file]
        return f"{self.shown}:{here[-1]}" if here else self.shown

    def scheme_function(self, function: Callable[..., Any], parameters: tuple[Parameter, ...]) -> Declared:
        """The same scheme function, guarded: so are its steps, those of a session's loops, and its result's functions."""
        return Declared(partial(self._scheme, function), parameters)

    def _scheme(self, function: Callable[..., Any], **arguments: Any) -> Scheme:
        scheme: Scheme = self.call(self.name, function, **arguments)
        self._demand(isinstance(scheme, Scheme), f"returns {_described(scheme)}, not a Scheme")
        self._demand(callable(scheme.step), f"returns a Scheme whose step is {_described(scheme.step)}, not a function")
        buffers = scheme.buffers
        self._demand(isinstance(buffers, tuple), f"returns a Scheme whose buffers are {_described(buffers)}, not a tuple")
        for buffer in buffers:
            self._demand(isinstance(buffer, Buffer), f"lists {_described(buffer)} among its buffers")
        result = None if scheme.result is None else self._result(scheme.result)
        prologue, epilogue = (
            self.call(f"the {once} of {self.name}", lambda once=once: tuple(self._operations(scheme, getattr(scheme, once))))
            for once in ("prologue", "epilogue")
        )
        step = partial(self._step, scheme, scheme.step)
        whole = self._session(scheme) if isinstance(scheme, Session) else scheme
        guarded = replace(whole, step=step, prologue=prologue, epilogue=epilogue, result=result)
        self._well_formed(guarded)
        return guarded

    def _result(self, result: Result) -> Result:
        self._demand(isinstance(result, Result), f"returns a Scheme whose result is {_described(result)}, not a Result")
        return replace(
            result,
            address=self._of_result("address", result.address),
            step=self._of_result("step", result.step),
            host_address=self._of_result("host_address", result.host_address),
            first=None if result.first is None else self._of_result("first", result.first),
        )

    def _of_result(self, name: str, function: Callable[[int], T]) -> Callable[[int], T]:
        self._demand(callable(function), f"returns a Result whose {name} is {_described(function)}, not a function")
        return partial(self.call, f"the {name} of {self.name}'s result", function)

    def _session(self, session: Session) -> Session:
        return replace(session, parts=tuple(self._phase(session, part) for part in session.parts))

    def _phase(self, scheme: Scheme, phase: Phase) -> Phase:
        self._demand(isinstance(phase, Phase), f"returns a Session with {_described(phase)} in it, not a Phase")
        self._demand(callable(phase.step), f"has a Phase whose step is {_described(phase.step)}, not a function")
        return replace(phase, step=partial(self._step, scheme, phase.step))

    def _step(self, scheme: Scheme, step: Callable[[int], Any], i: int) -> tuple[Operation, ...]:
        def issued() -> tuple[Operation, ...]:
            operations = tuple(bounded(self._operations(scheme, step(i))))
            number: object = i
            if isinstance(number, Index):
                number.world.demand_no_refusal()  # here the line is known
            return operations

        return self.call(f"a step of {self.name}", issued)

    def _operations(self, scheme: Scheme, yielded: Any) -> Iterator[Operation]:
        """The operations that were yielded, each one checked while the line that yields it is known."""
        self._demand(hasattr(yielded, "__iter__"), f"yields no operations: a step gives {_described(yielded)}. Is a yield missing?")
        listed = {buffer.name for buffer in scheme.buffers}
        for operation in yielded:
            frame = getattr(yielded, "gi_frame", None)
            at = f"{self.shown}:{frame.f_lineno}" if frame is not None and frame.f_code.co_filename == self.file else self.shown
            self._demand(isinstance(operation, get_args(Operation)), f"yields {_described(operation)}, which is no operation", at)
            self._well_formed(operation, at)
            try:
                check_as_yielded(operation)
            except UnsupportedError as reason:
                raise UnsupportedError(f"{at}: {reason}") from reason
            for rows in (*reads(operation), *writes(operation)):
                message = f"uses buffer {rows.buffer.name!r}, which its Scheme does not list: add it to buffers"
                self._demand(rows.buffer.name in listed, message, at)
            yield operation

    def _well_formed(self, record: object, at: str | None = None) -> None:
        wrong = _mismatch(record)
        self._demand(wrong is None, f"has a {type(record).__name__} whose {wrong}", at)

    def _demand(self, met: bool, otherwise: str, at: str | None = None) -> None:
        if not met:
            raise SchemeFileError(f"{at or self.shown}: {self.name} {otherwise}")


def _mismatch(record: Any) -> str | None:
    """The first field of a record, or of a record in it, that holds something of another type, in words."""
    for field in fields(record):
        held = getattr(record, field.name)
        if isinstance(field.type, type) and not _holds(held, field.type):
            return f"{field.name} is {_described(held)}, not {_article(field.type.__name__)}"
        if get_origin(field.type) is tuple and not isinstance(held, tuple):
            return f"{field.name} is {_described(held)}: make it a tuple, as in {field.name}=(rows,)"
        inside = _mismatch(held) if is_dataclass(held) else None
        if inside is not None:
            return f"{field.name}'s {inside}"
    return None


def _holds(held: object, kind: type) -> bool:
    """Whether a field of this type may hold a value: an index stands for an int, a bool does not."""
    return isinstance(held, int | Index) and not isinstance(held, bool) if kind is int else isinstance(held, kind)


def _described(value: object) -> str:
    """A value by its type: its text would ask symbolic indices in it for theirs."""
    if value is None or isinstance(value, str | int | float):
        return repr(value)
    return "a symbolic index" if isinstance(value, Index) else _article(type(value).__name__)


def _article(word: str) -> str:
    return f"{'an' if word[0] in 'aeiouAEIOU' else 'a'} {word}"


def _message(error: BaseException) -> str:
    return error.msg if isinstance(error, SyntaxError) else str(error)
