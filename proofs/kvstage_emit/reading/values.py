"""What a name may stand for beside numbers: runs in a C++ struct, lists of runs, answers of queries, functions read as text."""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NoReturn

from kvstage_model.language.buffers import Rows
from kvstage_model.language.partitions import Piece, Run

from .liveness import FUNCTIONS
from .number import ATOM, CHOICE, Expression, Knowledge, Number, Truth, bound
from .refusal import EmitError

STRUCTS: tuple[type, ...] = (Run, Piece)
"""Records that are structs in C++, under the same names."""


class Scope:
    """The names of one call of a function, within those of the function around it."""

    def __init__(self, names: dict[str, Any], around: "Scope | None" = None) -> None:
        self.names, self.around = names, around

    def find(self, name: str) -> Any:
        """What a name stands for. Raises KeyError."""
        if name in self.names:
            return self.names[name]
        if self.around is None:
            raise KeyError(name)
        return self.around.find(name)


@dataclass(frozen=True, eq=False)
class Readable:
    """A function that is read as text when it is called, from here or by Python."""

    node: FUNCTIONS
    scope: Scope
    file: str
    run: Callable[..., Any]

    @property
    def name(self) -> str:
        """Its name."""
        return getattr(self.node, "name", "<lambda>")

    @property
    def parameters(self) -> list[str]:
        """The names of its parameters."""
        return [each.arg for each in (*self.node.args.posonlyargs, *self.node.args.args)]

    def __call__(self, *values: Any, **named: Any) -> Any:
        """What it returns: a generator if it yields."""
        return self.run(self, values, named)


@dataclass(frozen=True, eq=False)
class RunList:
    """A list of runs that grows: a std::vector<Run>."""

    name: str
    knowledge: Knowledge
    add: Callable[[str], None]

    @property
    def length(self) -> Number:
        """How many there are."""
        return Number(self.knowledge, f"Index({self.name}.size())")

    @property
    def filled(self) -> Truth:
        """Whether there is one."""
        return Truth(self.knowledge, f"!{self.name}.empty()", ATOM - 1)

    def element(self, index: object) -> Run:
        """The run at an index; -1 is the last one."""
        which = f"{self.name}.back()" if isinstance(index, int) and index == -1 else f"{self.name}[{bound(index, CHOICE)}]"
        run: Run = struct(self.knowledge, Run, which)
        return run

    def __getitem__(self, index: object) -> Run:
        return self.element(index)

    def append(self, run: Run) -> None:
        """One more at its end."""
        self.add(f"{self.name}.push_back({struct_text(run)});")

    def store(self, index: object, run: Run) -> None:
        """Another one in place of the last."""
        if index != -1:
            raise EmitError("only the last run of a list can be replaced")
        self.add(f"{self.name}.back() = {struct_text(run)};")


@dataclass(eq=False)
class Answer:
    """A flag that the query of this step answers: a number from then on."""

    name: str
    number: Number | None = None

    def __bool__(self) -> NoReturn:
        raise EmitError("a flag decides before its query has answered: yield the QueryEvent first")


def struct(knowledge: Knowledge, kind: type, text: str, twins: Any = None) -> Any:
    """A record whose fields are those of a C++ value; what is known of them, if it is another one's copy."""
    names = [field.name for field in fields(kind)]
    return kind(*(Number(knowledge, f"{text}.{name}", ATOM, getattr(getattr(twins, name, None), "twin", None)) for name in names))


def struct_text(value: Any) -> str:
    """A record as C++: the value that all its fields are of, or an aggregate with its type."""
    names = [field.name for field in fields(value)]
    texts = [bound(getattr(value, name), CHOICE) for name in names]
    whole = texts[0].removesuffix(f".{names[0]}")
    if all(text == f"{whole}.{name}" for text, name in zip(texts, names, strict=True)):
        return whole
    return f"{type(value).__name__}{{{', '.join(texts)}}}"


def is_struct(value: object) -> bool:
    """Whether a value is one of STRUCTS."""
    return is_dataclass(value) and type(value) in STRUCTS


def rows_text(rows: Rows, name: str) -> str:
    """A run of rows of the buffer that has this C++ name."""
    return f"{name}.at({', '.join(bound(each, CHOICE) for each in (rows.slot, rows.start, rows.count))})"


def kind_of(value: object) -> str | None:
    """The C++ type of a value that a variable can hold."""
    if isinstance(value, Truth | bool):
        return "bool"
    if isinstance(value, Expression | int):
        return "Index"
    return type(value).__name__ if is_struct(value) else None


def value_text(value: Any) -> str:
    """A value of such a type as C++."""
    return struct_text(value) if is_struct(value) else bound(value, CHOICE)
