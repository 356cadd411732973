"""What overloading can't see: `is` compares objects, and a symbolic condition is neither True nor False."""

import dis
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from types import (
    BuiltinMethodType,
    CellType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any

from .errors import UnsupportedError

PLAIN = (int, float, complex, str, bytes, type(None))
"""What is compared by value: it can't change, and a variable that holds it may be given another one."""
CONTAINERS = (list, tuple, dict, set, frozenset, deque)
HOLDERS = (Iterator, MethodType, BuiltinMethodType, MethodWrapperType, partial, SimpleNamespace)
"""What else of Python's own a name of a module may stand for that changes, or holds what does."""
PROVER = ("kvstage_model.symbolic.arguments", "kvstage_model.symbolic.index", "kvstage_model.symbolic.world")
"""Where the prover itself notes down what it met: the arguments that it hands to a scheme, and its own numbers."""
OWN = ("kvstage_model.", "kvstage_proofs.")
"""Modules whose global names hold nothing that changes."""
LIBRARIES = ("kvstage", "kvstage_model", "kvstage_proofs", *sys.stdlib_module_names)
INSTALLED = ("site-packages", "dist-packages")
"""What is in the path of a package that is no scheme's."""
ITERATOR = (
    "a step reaches {what}, an iterator, which moves on whenever it is asked: a step must depend on its index and its parameters "
    "alone; compute what it gives from the index, or list it in a tuple"
)
MOST = 10_000
"""How many objects are looked at: a function may reach a whole program."""


@dataclass(frozen=True, eq=False)
class Kept:
    """Everything that a function reaches, and what it held when this was made."""

    reached: tuple[tuple[object, tuple[object, ...]], ...]

    @classmethod
    def by(cls, function: Callable[..., object]) -> "Kept":
        """What a function reaches by its closure, its defaults, the names of its module, and the objects in them.

        Raises UnsupportedError where an iterator or a generator is among them: nobody can see where it stands.
        """
        seen: dict[int, tuple[object, tuple[object, ...]]] = {}
        waiting: list[object] = [function]
        while waiting and len(seen) < MOST:
            value = waiting.pop()
            if id(value) not in seen and _module(value) not in PROVER:
                held = tuple(_held(value))
                _demand_no_iterator(value, held)
                seen[id(value)] = value, tuple(map(_mark, held))
                waiting += filter(_is_watched, held)
        return cls(tuple(seen.values()))

    def functions(self) -> list[FunctionType]:
        """The functions among what is reached."""
        return [value for value, _ in self.reached if isinstance(value, FunctionType)]

    def changed(self) -> bool:
        """Whether any of it holds something else by now."""
        return any(tuple(map(_mark, _held(value))) != marks for value, marks in self.reached)


def _module(value: object) -> str:
    """The module of a function or a class, or of the class of anything else."""
    return str(getattr(value if isinstance(value, FunctionType | type) else type(value), "__module__", ""))


def of_a_user(module: str) -> bool:
    """Whether a module is a user's, as schemes are: not Python's, not this library's, and in no package that is installed."""
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return module.partition(".")[0] not in LIBRARIES and not any(folder in file for folder in INSTALLED)


def _is_watched(value: object) -> bool:
    """Whether what a value holds may change. Of classes it is those of users: libraries note down things in theirs."""
    return not isinstance(value, (*PLAIN, ModuleType)) and (not isinstance(value, type) or of_a_user(value.__module__))


def _demand_no_iterator(value: object, held: tuple[object, ...]) -> None:
    for each in held:
        if isinstance(each, Iterator):
            names = {**value.__globals__, **_closure(value)} if isinstance(value, FunctionType) else getattr(value, "__dict__", {})
            name = next((repr(name) for name, named in names.items() if named is each), f"one in a {type(value).__name__}")
            raise UnsupportedError(ITERATOR.format(what=f"{name} ({type(each).__name__})"))


def _mark(value: object) -> object:
    """What stands for a value in a comparison: itself where it is plain, else which object it is."""
    return (type(value), value) if isinstance(value, PLAIN) else id(value)


def _held(value: Any) -> Iterator[object]:
    """What a value holds, in an order that stays while nothing changes."""
    match value:
        case dict() | MappingProxyType():
            yield from value.keys()
            yield from value.values()
        case list() | tuple() | set() | frozenset() | deque():
            yield from value
        case MethodType():
            yield from (value.__func__, value.__self__)
        case BuiltinMethodType() | MethodWrapperType():
            yield value.__self__
        case partial():
            yield from (value.func, *value.args, *value.keywords.values())
        case staticmethod() | classmethod():
            yield value.__func__
        case property():
            yield from (value.fget, value.fset)
        case FunctionType():
            yield from (*_closure(value).values(), *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
            if not _module(value).startswith(OWN):
                yield from _globals(value)
        case type():
            yield from value.__bases__
        case _:
            yield from _in_buffer(value)
    if not isinstance(value, MethodType):  # a method shows the attributes of its function
        yield from getattr(value, "__dict__", {}).values()
    yield from _in_slots(value)
    yield type(value)


def _in_slots(value: object) -> Iterator[object]:
    """The values of the attributes that classes keep in slots."""
    for kind in type(value).__mro__:
        for slot in vars(kind).values() if "__slots__" in vars(kind) else ():
            if isinstance(slot, MemberDescriptorType) and hasattr(value, slot.__name__):
                yield slot.__get__(value)


def _in_buffer(value: Any) -> Iterator[object]:
    """What stands for the bytes of an array, and for the changes of a tensor, which counts them."""
    if type(value).__module__.startswith("torch"):
        yield getattr(value, "_version", None)
    try:
        yield sha256(memoryview(value).tobytes()).digest()
    except (TypeError, ValueError, BufferError):  # it has none
        return


def _closure(function: FunctionType) -> dict[str, object]:
    """The variables around a function that it uses, by name, and what they hold; without those that are not yet bound."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells if _is_bound(cell)}


def _is_bound(cell: CellType) -> bool:
    return cell != CellType()  # an empty one is equal to another empty one only


def _globals(function: FunctionType) -> Iterator[object]:
    """What the names of a function's module stand for that it uses: what may change, also in other modules of a user."""
    names = sorted(set(_names(function.__code__)))
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType) and of_a_user(value.__name__):
            inside = (vars(value).get(inner) for inner in names)
            yield from (each for each in inside if _may_change(each, function))
        elif _may_change(value, function):
            yield value


def _may_change(value: object, function: FunctionType) -> bool:
    """Whether a function that uses a name for this value may find it changed."""
    module = _module(value)
    if module == function.__module__ or isinstance(value, (*PLAIN, *CONTAINERS)):
        return True
    user = of_a_user(_module(function))
    return user and (of_a_user(module) or isinstance(value, HOLDERS) or any(True for _ in _in_buffer(value)))


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


IDENTITY = (
    "line {line} of {name} asks whether something `is {constant}`, which the truth of a symbolic condition never is: "
    "write the condition alone, or `not` and the condition"
)


def demand_no_truth_by_identity(code: CodeType) -> None:
    """Raises UnsupportedError where code, or a function inside it, compares by `is` or `is not` with True or False."""
    instructions = list(dis.get_instructions(code))
    for number, instruction in enumerate(instructions):
        for operand in _operands(instructions[:number]) if instruction.opname == "IS_OP" else ():
            if operand.opname == "LOAD_CONST" and isinstance(operand.argval, bool):
                line = (instruction.positions and instruction.positions.lineno) or code.co_firstlineno
                raise UnsupportedError(IDENTITY.format(line=line, name=code.co_name, constant=operand.argval))
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            demand_no_truth_by_identity(inner)


def _operands(before: list[dis.Instruction]) -> Iterator[dis.Instruction]:
    """The last instruction of each operand of what comes next: backwards, past all that the right one is made of."""
    if not before:
        return
    yield before[-1]
    pushed = 0
    for number in range(len(before) - 1, 0, -1):
        pushed += dis.stack_effect(before[number].opcode, before[number].arg)
        if pushed == 1:
            yield before[number - 1]
            return
