"""Python's statements as C++: an assignment defines a constant under its name, an `if` and a loop stay what they are.

A function is run once, both branches of each `if` one after the other. A generator hands out its operations while its lines
are written, so that Python's own code may edit them on their way.
"""

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kvstage_model.language.buffers import Rows

from .functions import NOTHING, Functions, Steps
from .lines import Line
from .liveness import bound_names, has_return, needed, returns
from .number import CHOICE, Expression, Number, Truth, bound, negated, twin
from .refusal import EmitError
from .values import STRUCTS, Answer, RunList, Scope, is_struct, kind_of, struct, struct_text, value_text


class Reader(Functions):
    """Functions as C++ lines."""

    def _block(self, statements: Sequence[ast.stmt], scope: Scope, file: str, after: frozenset[str]) -> Steps:
        """Runs statements up to the first return; `after` are the names that are needed once they have run."""
        for number, statement in enumerate(statements):
            rest = statements[number + 1 :]
            with self._at(statement, file):
                if isinstance(statement, ast.Return):
                    return self.eval(statement.value, scope, file) if statement.value else None
                if isinstance(statement, ast.If):
                    test = self.truth(self.eval(statement.test, scope, file))
                    if not isinstance(test, Truth):
                        taken = statement.body if test else statement.orelse
                        value = yield from self._block(taken, scope, file, needed(rest, after))
                    elif has_return([statement]):
                        return (yield from self._ended_if(statement, test, rest, scope, file, after))
                    else:
                        value = yield from self._if(statement, test, scope, file, needed(rest, after))
                elif isinstance(statement, ast.For):
                    value = yield from self._for(statement, scope, file, needed(rest, after))
                elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield):
                    value, self.where = NOTHING, f"{file}:{statement.lineno}: "
                    yield from self._handed_out([self.eval(statement.value.value or ast.Constant(None), scope, file)])
                elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.YieldFrom):
                    value, self.where = NOTHING, f"{file}:{statement.lineno}: "
                    yield from self._handed_out(self.eval(statement.value.value, scope, file))
                else:
                    value = NOTHING
                    self._simple(statement, scope, file)
            if value is not NOTHING:
                return value
        return NOTHING

    def _handed_out(self, operations: Any) -> Steps:
        for operation in operations:
            self.suspended += 1
            yield operation
            self.suspended -= 1

    def _simple(self, statement: ast.stmt, scope: Scope, file: str) -> None:
        match statement:
            case ast.FunctionDef(name=name):
                scope.names[name] = self.nested(statement, scope, file)
            case ast.Assign(targets=[target], value=value):
                self._assign(target, self.eval(value, scope, file), scope, file)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.List(elts=[]), annotation=kind) if (
                ast.unparse(kind) == "list[Run]"
            ):
                fresh = self.lines.fresh(name)
                self.lines.add(f"std::vector<Run> {fresh};")
                scope.names[name] = RunList(fresh, self.knowledge, self.lines.add)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, self.eval(value, scope, file), scope, file)
            case ast.AugAssign(target=ast.Name(id=name), op=sign, value=value):
                whole = ast.BinOp(ast.Name(name, ast.Load()), sign, value)
                self._assign(ast.Name(name, ast.Store()), self.eval(whole, scope, file), scope, file)
            case ast.Expr(value=value):
                self.eval(value, scope, file)
            case ast.Pass():
                pass
            case ast.Assert(test=test):
                if isinstance(self.truth(self.eval(test, scope, file)), Truth):
                    raise EmitError("an assertion about numbers of the scheme: declare their ranges instead")
            case _:
                raise EmitError(f"there is no C++ for {ast.unparse(statement).splitlines()[0]!r}")

    def _assign(self, target: ast.expr, value: Any, scope: Scope, file: str) -> None:
        if isinstance(target, ast.Name):
            scope.names[target.id] = self._named(target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            for each, part in zip(target.elts, value, strict=True):
                self._assign(each, part, scope, file)
        elif isinstance(target, ast.Subscript):
            held, index = self.eval(target.value, scope, file), self.eval(target.slice, scope, file)
            if isinstance(held, RunList):
                held.store(index, value)
            elif self.lines.depth:
                raise EmitError("a step changes a container: what it does must depend on its index alone")
            else:
                held[index] = value
        else:
            raise EmitError(f"there is no C++ for the target {ast.unparse(target)!r}")

    def _named(self, name: str, value: Any) -> Any:
        """A value under the name that it is assigned to: a constant of that name, if it is a number, a run or rows."""
        if isinstance(value, Expression):
            if value.text.isidentifier() and value.text not in self._changing:
                return value
            kind = "bool" if isinstance(value, Truth) else "Index"
            return type(value)(self.knowledge, self.lines.define(kind, name, value.text), twin=value.twin)
        if is_struct(value):
            whole, kind = struct_text(value), type(value).__name__
            if whole.isidentifier() and whole not in self._changing:
                return value
            return struct(self.knowledge, type(value), self.lines.define(kind, name, whole.removeprefix(kind)), value)
        if isinstance(value, Rows) and id(value) not in self.name_of_rows:
            fresh = self.lines.define("Rows", name, self.rows(value))
            self.name_of_rows[id(value)] = value, fresh, self.lines.blocks[-1]
        if isinstance(value, Answer):
            value.name = name
        return value

    def rows(self, rows: Rows) -> str:
        """Rows as C++: under their name, if it is known here."""
        raise NotImplementedError

    # -- branches and loops

    def _if(self, statement: ast.If, test: Truth, scope: Scope, file: str, after: frozenset[str]) -> Steps:
        body, orelse = statement.body, statement.orelse
        carried = sorted((bound_names(body) | bound_names(orelse)) & after)
        before, at = dict(scope.names), len(self.lines.written)
        fresh = {name: self.lines.fresh(name) for name in carried}
        ends: list[dict[str, Any]] = []
        for condition, head, statements in ((test.twin, f"if ({test.text}) {{", body), (negated(test), "} else {", orelse)):
            scope.names = dict(before)
            if statements or (carried and ends):
                with self.lines.block(head), self.knowledge.assuming(condition):
                    yield from self._block(statements, scope, file, after)
                    self._carry(fresh, scope)
            ends.append({name: scope.names.get(name, NOTHING) for name in carried})
        scope.names = before | {name: self._joined(name, fresh[name], [end[name] for end in ends], at) for name in carried}
        return NOTHING

    def _carry(self, fresh: dict[str, str], scope: Scope) -> None:
        for name, variable in fresh.items():
            value = scope.names.get(name, NOTHING)
            if kind_of(value) is not None:
                self.lines.add(f"{variable} = {value_text(value)};")

    def _joined(self, name: str, variable: str, values: list[Any], at: int) -> Any:
        """A name after an `if`: a variable that was declared before it."""
        kinds = {kind_of(value) for value in values if value is not NOTHING}
        if None in kinds and all(value is values[0] for value in values):
            return values[0]
        if len(kinds) != 1 or None in kinds:
            raise EmitError(f"{name!r} is a number, a truth or a run on one way through an `if`, and something else on another")
        return self._declared(kinds.pop() or "", variable, at, [twin(value) for value in values])

    def _declared(self, kind: str, variable: str, at: int, twins: Sequence[Any] = ()) -> Any:
        start = {"Index": " = 0", "bool": " = false"}.get(kind, "{}")
        self.lines.written.insert(at, Line(self.lines.depth, f"{kind} {variable}{start};"))
        self._changing.add(variable)
        if kind in ("Index", "bool"):
            return (Number if kind == "Index" else Truth)(self.knowledge, variable)
        return struct(self.knowledge, next(each for each in STRUCTS if each.__name__ == kind), variable)

    def _ended_if(
        self, statement: ast.If, test: Truth, rest: Sequence[ast.stmt], scope: Scope, file: str, after: frozenset[str]
    ) -> Steps:
        """An `if` that may end the function: what comes after it belongs to the branch that goes on."""
        body, orelse = statement.body, statement.orelse
        if returns(body):
            orelse = [*orelse, *rest]
        elif returns(orelse):
            body = [*body, *rest]
        else:
            raise EmitError("a return deep in an `if`: let one branch end the function, and the other go on")
        if not self.lines.depth:
            return (yield from self._block(body if self.choose(test) else orelse, scope, file, after))
        before, at, values = dict(scope.names), len(self.lines.written), list[Any]()
        variable = self.lines.fresh("result")
        for condition, head, statements in ((test.twin, f"if ({test.text}) {{", body), (negated(test), "} else {", orelse)):
            scope.names = dict(before)
            if statements:
                with self.lines.block(head), self.knowledge.assuming(condition):
                    value = yield from self._block(statements, scope, file, after)
                    values.append(None if value is NOTHING else value)
                    if kind_of(values[-1]) is not None:
                        self.lines.add(f"{variable} = {value_text(values[-1])};")
        scope.names = before
        if all(value is None for value in values):
            self.lines.blocks[-1].discard(variable)
            return None
        return self._joined("what is returned", variable, values, at)

    def _for(self, statement: ast.For, scope: Scope, file: str, after: frozenset[str]) -> Steps:
        if statement.orelse or any(isinstance(each, ast.Break | ast.Continue) for each in ast.walk(statement)):
            raise EmitError("a loop with break, continue or else: there is no C++ for it here")
        call = statement.iter
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"):
            for value in self.eval(call, scope, file):  # a turn for each: there are as many as the text says
                self.unpack(statement.target, value, scope)
                yield from self._block(statement.body, scope, file, after | needed([statement], after))
            return NOTHING
        ends = [self.eval(each, scope, file) for each in call.args]
        first, past = (0, ends[0]) if len(ends) == 1 else ends[:2]
        if len(ends) > 2 or not isinstance(statement.target, ast.Name):
            raise EmitError("a range with a step, or a loop over several names: there is no C++ for it here")
        if statement.target.id in after:
            raise EmitError(f"{statement.target.id!r} is read after its loop: in C++ it has ended")
        changed = sorted(bound_names(statement.body) & needed(statement.body, after) - {statement.target.id})
        at, fresh = len(self.lines.written), {name: self.lines.fresh(name) for name in changed}
        for name, variable in fresh.items():
            value = scope.names.get(name, NOTHING)
            if kind_of(value) is None:
                raise EmitError(f"{name!r} changes in a loop, and is no number before it")
            scope.names[name] = self._declared(kind_of(value) or "", variable, at)
            self.lines.add(f"{variable} = {value_text(value)};")
        before = dict(scope.names)
        with self.counting(statement.target.id, first, past) as turn:
            scope.names[statement.target.id] = turn
            yield from self._block(statement.body, scope, file, after | frozenset(changed))
            self._carry(fresh, scope)
        scope.names = before
        return NOTHING

    @contextmanager
    def counting(self, name: str, first: Any, past: Any) -> Iterator[Number]:
        """A loop of `name` from `first` up to `past`; the number inside it is known to lie there."""
        self.lines.blocks.append(set())
        counter = self.lines.fresh("i" if name == "_" else name)
        self.lines.blocks.pop()
        index = self.knowledge.world.integer(f"turn {counter} {len(self.lines.written)}")
        number = Number(self.knowledge, counter, twin=index)
        inside = [condition.twin for condition in (number >= first, number < past)]
        head = f"for (Index {counter} = {bound(first, CHOICE)}; {counter} < {bound(past, 5)}; ++{counter}) {{"
        with self.lines.block(head), self.knowledge.assuming(*inside):
            self.lines.blocks[-1].add(counter)
            yield number
