"""Python's expressions over C++ numbers: what is known is computed, what is not becomes text."""

import ast
import builtins
import operator
from collections.abc import Callable
from typing import Any

from .lines import Lines
from .number import CHOICE, OR, Knowledge, Number, Truth, bound, negated, twin
from .refusal import EmitError
from .values import Answer, Readable, RunList, Scope, kind_of

OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
COMPARISONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


class Fork(Exception):  # noqa: N818 - it is no error
    """A condition between two schemes: all that follows is written once for each."""

    def __init__(self, test: Truth) -> None:
        self.test = test


class Evaluator:
    """Expressions of functions that are read. `lines` is what was written for them so far."""

    def __init__(self, lines: Lines, decisions: tuple[bool, ...] = ()) -> None:
        self.lines, self.knowledge = lines, Knowledge()
        self._decisions, self._taken = decisions, 0

    # -- provided by functions

    def nested(self, node: ast.Lambda, scope: Scope, file: str) -> Readable:
        """A function in a function."""
        raise NotImplementedError

    # -- choices

    def choose(self, test: Truth) -> bool:
        """Which way the whole function goes: it is written once for each."""
        if self.lines.depth:
            raise EmitError("a condition in a step chooses between what is no number: make it an `if` around what depends on it")
        if self._taken == len(self._decisions):
            raise Fork(test)
        taken = self._decisions[self._taken]
        self._taken += 1
        self.knowledge.assume(test.twin if taken else negated(test))
        return taken

    def truth(self, value: Any) -> Any:
        """A value as a condition: a Truth, or a bool that is known."""
        if isinstance(value, Number):
            return value != 0
        if isinstance(value, RunList):
            return value.filled
        return value if isinstance(value, Truth) else bool(value)

    def _alone(self, node: ast.expr, scope: Scope, file: str) -> Any:
        """An operand that is evaluated or not: it must need no lines before it."""
        before = len(self.lines.written)
        value = self.eval(node, scope, file)
        if len(self.lines.written) > before:
            raise EmitError(f"{ast.unparse(node)!r} takes lines of its own, and is evaluated only sometimes: make it an `if`")
        return value

    # -- expressions

    def eval(self, node: ast.expr, scope: Scope, file: str) -> Any:
        """The value of an expression."""
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise EmitError(f"there is no C++ for {ast.unparse(node)!r}")
        value = method(node, scope, file)
        return value.number if isinstance(value, Answer) and value.number is not None else value

    def _constant(self, node: ast.Constant, *_: Any) -> Any:
        return node.value

    def _name(self, node: ast.Name, scope: Scope, _: str) -> Any:
        try:
            return scope.find(node.id)
        except KeyError:
            if hasattr(builtins, node.id):
                return getattr(builtins, node.id)
            raise EmitError(f"the name {node.id!r} stands for nothing here") from None

    def _tuple(self, node: ast.Tuple, scope: Scope, file: str) -> Any:
        return tuple(self._items(node.elts, scope, file))

    def _list(self, node: ast.List, scope: Scope, file: str) -> Any:
        return self._items(node.elts, scope, file)

    def _items(self, nodes: list[ast.expr], scope: Scope, file: str) -> list[Any]:
        found: list[Any] = []
        for each in nodes:
            if isinstance(each, ast.Starred):
                found += self.eval(each.value, scope, file)
            else:
                found.append(self.eval(each, scope, file))
        return found

    def _dict(self, node: ast.Dict, scope: Scope, file: str) -> Any:
        made: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            held = self.eval(value, scope, file)
            made |= held if key is None else {self.eval(key, scope, file): held}
        return made

    def _joinedstr(self, node: ast.JoinedStr, scope: Scope, file: str) -> str:
        parts = [each.value if isinstance(each, ast.FormattedValue) else each for each in node.values]
        return "".join(str(self.eval(part, scope, file)) for part in parts)

    def _lambda(self, node: ast.Lambda, scope: Scope, file: str) -> Readable:
        return self.nested(node, scope, file)

    def _attribute(self, node: ast.Attribute, scope: Scope, file: str) -> Any:
        return getattr(self.eval(node.value, scope, file), node.attr)

    def _subscript(self, node: ast.Subscript, scope: Scope, file: str) -> Any:
        held, index = self.eval(node.value, scope, file), self.eval(node.slice, scope, file)
        return held[index]

    def _unaryop(self, node: ast.UnaryOp, scope: Scope, file: str) -> Any:
        value = self.eval(node.operand, scope, file)
        if isinstance(node.op, ast.Not):
            truth = self.truth(value)
            return ~truth if isinstance(truth, Truth) else not truth
        known: dict[type, Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}
        return known[type(node.op)](value)

    def _binop(self, node: ast.BinOp, scope: Scope, file: str) -> Any:
        if type(node.op) not in OPERATORS:
            raise EmitError(f"there is no C++ for {ast.unparse(node)!r}")
        return OPERATORS[type(node.op)](self.eval(node.left, scope, file), self.eval(node.right, scope, file))

    def _compare(self, node: ast.Compare, scope: Scope, file: str) -> Any:
        values = [self.eval(each, scope, file) for each in (node.left, *node.comparators)]
        whole: Any = True
        for sign, first, second in zip(node.ops, values, values[1:], strict=False):
            if isinstance(second, Number) and isinstance(first, int):  # Python would turn 0 <= i around
                first = Number(self.knowledge, bound(first, CHOICE), twin=first)
            part = COMPARISONS[type(sign)](first, second)
            if part is False:
                return False
            whole = part if whole is True else whole if part is True else whole & part
        return whole

    def _boolop(self, node: ast.BoolOp, scope: Scope, file: str) -> Any:
        both = isinstance(node.op, ast.And)
        found: Any = None  # a condition, once there is one
        value: Any = both
        for each in node.values:
            if found is None:
                value = self.eval(each, scope, file)
            else:
                with self.knowledge.assuming(found.twin if both else negated(found)):
                    value = self._alone(each, scope, file)
            truth = self.truth(value)
            if isinstance(truth, Truth):
                found = truth if found is None else found & truth if both else found | truth
            elif truth is not both:
                if found is None:
                    return value  # as Python would
                return truth
        return value if found is None else found

    def _ifexp(self, node: ast.IfExp, scope: Scope, file: str) -> Any:
        test = self.truth(self.eval(node.test, scope, file))
        if not isinstance(test, Truth):
            return self.eval(node.body if test else node.orelse, scope, file)
        before = len(self.lines.written), [set(names) for names in self.lines.blocks]
        with self.knowledge.assuming(test.twin):
            first = self.eval(node.body, scope, file)
        with self.knowledge.assuming(negated(test)):
            second = self.eval(node.orelse, scope, file)
        alone = len(self.lines.written) == before[0]
        if alone and kind_of(first) == kind_of(second) == "Index":
            text = f"{test.bound(OR)} ? {bound(first, OR)} : {bound(second, OR)}"
            return Number(self.knowledge, text, CHOICE, self._either(test, first, second))
        if alone and kind_of(first) == kind_of(second) == "bool":
            return Truth(self.knowledge, f"{test.bound(OR)} ? {bound(first, OR)} : {bound(second, OR)}", CHOICE)
        self._back_to(before)
        return self.eval(node.body if self.choose(test) else node.orelse, scope, file)

    def _generatorexp(self, node: Any, scope: Scope, file: str) -> Any:
        return iter(self._listcomp(node, scope, file))

    def _setcomp(self, node: Any, scope: Scope, file: str) -> Any:
        return set(self._listcomp(node, scope, file))

    def _listcomp(self, node: Any, scope: Scope, file: str) -> list[Any]:
        return [self.eval(node.elt, inner, file) for inner in self._turns(node.generators, scope, file)]

    def _dictcomp(self, node: ast.DictComp, scope: Scope, file: str) -> dict[Any, Any]:
        turns = self._turns(node.generators, scope, file)
        return {self.eval(node.key, inner, file): self.eval(node.value, inner, file) for inner in turns}

    def _turns(self, generators: list[ast.comprehension], scope: Scope, file: str) -> list[Scope]:
        scopes = [scope]
        for each in generators:
            scopes = [turn for outer in scopes for turn in self._turns_of(each, outer, file)]
        return scopes

    def _turns_of(self, each: ast.comprehension, scope: Scope, file: str) -> list[Scope]:
        found = []
        source = self.eval(each.iter, scope, file)
        for value in () if isinstance(source, RunList) else source:  # of a list of runs, only what the proof alone needs is made
            inner = Scope({}, scope)
            self.unpack(each.target, value, inner)
            tests = [self.truth(self.eval(test, inner, file)) for test in each.ifs]
            if any(isinstance(test, Truth) for test in tests):
                raise EmitError("a condition on numbers in a comprehension: make it a loop")
            if all(tests):
                found.append(inner)
        return found

    def unpack(self, target: ast.expr, value: Any, scope: Scope) -> None:
        """Binds the names of a target, without a line for any."""
        if isinstance(target, ast.Name):
            scope.names[target.id] = value
            return
        if not isinstance(target, ast.Tuple | ast.List):
            raise EmitError(f"there is no C++ for the target {ast.unparse(target)!r}")
        for each, part in zip(target.elts, value, strict=True):
            self.unpack(each, part, scope)

    def _back_to(self, before: tuple[int, list[set[str]]]) -> None:
        del self.lines.written[before[0] :]
        self.lines.blocks = before[1]

    def _either(self, test: Truth, first: Any, second: Any) -> Any:
        """A new index that is known to be the first if the condition holds, else the second."""
        if test.twin is None or twin(first) is None or twin(second) is None:
            return None
        world = self.knowledge.world
        found = world.integer(f"either {len(world.facts)}")
        world.assume_implied(test.twin, found == twin(first))
        world.assume_implied(negated(test), found == twin(second))
        return found
