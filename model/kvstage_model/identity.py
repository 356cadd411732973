"""What overloading can't see: `is` compares objects, and a symbolic condition is neither True nor False."""

import dis
from collections.abc import Iterator
from types import CodeType

from .symbolic import UnsupportedError

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
