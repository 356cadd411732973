"""The parameters of a scheme function as C++ parameters, and the values that the function is read with."""

from collections.abc import Callable
from typing import Any

from kvstage_model.language.paged_rows import PagedRows, PairedRows
from kvstage_model.language.parameters import Parameter
from kvstage_model.language.partitions import Pieces, Runs, by_block, by_chunk
from kvstage_model.language.ranges import Flags
from kvstage_model.symbolic.arguments import symbolic_arguments

from ..reading.number import ATOM, CHOICE, Number, bound, twin
from ..reading.statements import Reader
from ..reading.values import Answer

CHUNK = "chunk"
"""The number that a user's `Pieces` are cut by."""


class Arguments:
    """What a scheme function is called with, and what its C++ function takes and demands for it."""

    def __init__(self, reader: Reader, parameters: tuple[Parameter, ...]) -> None:
        self.reader = reader
        self.taken: list[str] = []
        self.demands: list[str] = []
        self.rows: dict[int, str] = {}
        self.numbers: list[Number] = []
        self._kept: list[Any] = []
        self._call = reader.knowledge.world.integer("call")
        self.values = {each.name: self._value(each) for each in parameters}
        for name in list(self.rows.values())[1:]:
            self.demands.append(f"demand_one_pool({next(iter(self.rows.values()))}, {name});")

    def _symbolic(self, parameter: Parameter) -> Any:
        return symbolic_arguments(self.reader.knowledge.world, (parameter,), self._call)[parameter.name]

    def _value(self, parameter: Parameter) -> Any:
        name, kind, reader = parameter.name, parameter.kind, self.reader
        if kind is int:
            return self._number(parameter)
        if kind is Flags:
            return Flags(lambda _: reader_answer(self, name))
        if issubclass(kind, PairedRows):
            return self._pair(parameter)
        rows = self._paged(Parameter(name, PagedRows, parameter.distinct))
        if issubclass(kind, Runs):
            return reader.function(by_block)(rows)  # type: ignore[arg-type]
        if issubclass(kind, Pieces):
            known = next((each for each in self.numbers if each.text == CHUNK), None)
            chunk = known if known is not None else self._number(Parameter(CHUNK, int, least=1))
            return reader.function(by_chunk)(rows, chunk)  # type: ignore[arg-type]
        return rows

    def _number(self, parameter: Parameter) -> Number:
        number = Number(self.reader.knowledge, parameter.name, twin=self._symbolic(parameter))
        self.taken.append(f"Index {parameter.name}")
        self.demands.append(f'demand_at_least("{parameter.name}", {parameter.name}, {parameter.least});')
        self.numbers.append(number)
        return number

    def _paged(self, parameter: Parameter) -> PagedRows:
        name = parameter.name
        self.taken.append(f"const PagedRows& {name}")
        self.demands.append(f'{name}.{"demand_distinct" if parameter.distinct else "demand_valid"}("{name}");')
        return self._rows(name, self._symbolic(parameter))

    def _rows(self, text: str, symbolic: PagedRows) -> PagedRows:
        def number(field: str) -> Any:
            return Number(self.reader.knowledge, f"{text}.{field}", ATOM, getattr(symbolic, field))

        rows = PagedRows(
            self._table(text, symbolic.table), number("num_blocks"), number("block_size"), number("start"), number("stop")
        )
        self.rows[id(rows)] = text
        self._kept.append(rows)
        return rows

    def _table(self, text: str, symbolic: Callable[[int], int]) -> Callable[[int], int]:
        def table(block: Any) -> Any:
            known = twin(block)
            found = None if known is None else self.reader.knowledge.known(lambda: symbolic(known))
            return Number(self.reader.knowledge, f"{text}.table({bound(block, CHOICE)})", ATOM, found)

        return table

    def _pair(self, parameter: Parameter) -> PairedRows:
        name, symbolic = parameter.name, self._symbolic(parameter)
        into = "larger" if parameter.kind.__name__ == "IntoLarger" else "smaller"
        self.taken.append(f"const PairedRows& {name}")
        self.demands.append(f'{name}.{f"demand_distinct_{into}" if parameter.distinct else "demand_valid"}("{name}");')
        small = self._rows(f"{name}.small", symbolic.small)
        num_blocks, factor = (
            Number(self.reader.knowledge, f"{name}.{each}", ATOM, getattr(symbolic, each)) for each in ("num_blocks", "factor")
        )
        made: PairedRows = parameter.kind(small, self._table(name, symbolic.table), num_blocks, factor)
        self._kept.append(made)
        return made


def reader_answer(arguments: Arguments, name: str) -> Any:
    """The answer of a flag: the one that this step's query got, or one that is still to come."""
    answers: dict[str, Answer] = arguments.reader.answers  # type: ignore[attr-defined]
    return answers.setdefault(name, Answer(f"{name}_answer"))
