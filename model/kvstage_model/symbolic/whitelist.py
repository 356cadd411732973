"""What the text of a step may be made of: a list of what has a meaning in the model, and nothing else.

Reading a function gives the names that it takes from elsewhere, and the attributes that it asks for: `purity` looks at what
they stand for. Names that it binds itself need no look: what it makes of allowed values by allowed means is one.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

from .source import Definition


class NotAllowedError(Exception):
    """Something in the text that has no meaning in the model, with its line."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


VALUE, RECORD_KIND, MEMBER, TEXT = "value", "kind of record", "member of an enum", "text"
"""What a name is used as: any allowed value; in `isinstance`; beside `is`; in text."""


@dataclass(frozen=True)
class Use:
    """A name from elsewhere, with the attributes asked of it one after the other, as `Memory.PINNED`."""

    path: tuple[str, ...]
    line: int
    used_as: str = VALUE


@dataclass
class Uses:
    """What a text uses that it does not make itself."""

    names: list[Use] = field(default_factory=list)
    attributes: list[tuple[str, int]] = field(default_factory=list)
    makes_text: bool = False


COUNT = "which counts or remembers: a step must depend on its index and its parameters alone"
REFUSED: dict[type[ast.AST], str] = {
    ast.Try: "a `try`, which tells a number from a symbol by its error: ask with `if`",
    ast.TryStar: "a `try`, which tells a number from a symbol by its error: ask with `if`",
    ast.With: "a `with`: make what it needs before, and hand it in as a parameter",
    ast.AsyncFunctionDef: "an `async` function: a step is a plain generator",
    ast.Await: "an `await`: a step is a plain generator",
    ast.Delete: f"a `del`, {COUNT}",
    ast.Global: f"a `global`, {COUNT}",
    ast.Nonlocal: f"a `nonlocal`, {COUNT}",
    ast.Import: "an import, and with it a module's state: import at the top of the file what has a meaning in the model",
    ast.ImportFrom: "an import, and with it a module's state: import at the top of the file what has a meaning in the model",
    ast.ClassDef: "a class made anew in each call: write it at the top of the file, as a frozen dataclass",
    ast.NamedExpr: "a `:=`: give the value a line of its own",
    ast.While: "a `while`: write a `for` over a range of constants, and let the scheme's own steps be the loop",
    ast.Set: "a set, whose order differs from run to run: write a tuple",
    ast.SetComp: "a set, whose order differs from run to run: write a tuple",
    ast.Invert: "a `~`, which means one thing for the truth of a comparison of symbols and another for True: write `not`",
    ast.MatMult: "a `@`: an index is an integer",
}
ALLOWED: tuple[type[ast.AST], ...] = (
    *(ast.Return, ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.If, ast.For, ast.Pass, ast.Break, ast.Continue),
    *(
        ast.Raise,
        ast.Assert,
        ast.Match,
        ast.match_case,
        ast.MatchValue,
        ast.MatchOr,
        ast.MatchAs,
        ast.MatchSingleton,
        ast.FunctionDef,
    ),
    *(ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Lambda, ast.IfExp, ast.Dict, ast.ListComp, ast.DictComp, ast.GeneratorExp),
    *(ast.Yield, ast.YieldFrom, ast.Compare, ast.Call, ast.JoinedStr, ast.FormattedValue, ast.Constant, ast.Attribute),
    *(ast.Subscript, ast.Starred, ast.Name, ast.List, ast.Tuple, ast.Slice, ast.keyword, ast.comprehension, ast.arguments),
    *(ast.arg, ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop),
)
NAMING = (
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Constant,
    ast.BinOp,
    ast.BitOr,
    ast.Tuple,
    ast.List,
    ast.expr_context,
    ast.keyword,
)
"""What a type is named with."""
IDENTITY = "`is`, which compares objects, and a symbol is another object than a number: compare with =="


def uses_of(definition: Definition, *, own: bool = False) -> Uses:
    """What a function uses. Raises NotAllowedError for the first thing that has no meaning in the model.

    `own` is for the model's own text, in which `isinstance` asks for kinds of operations that its arguments name.
    """
    reader = _Reader(own)
    reader.function(definition, ())
    return reader.uses


class _Reader:
    def __init__(self, own: bool) -> None:
        self.uses = Uses()
        self._own = own

    def function(self, node: Definition, around: tuple[frozenset[str], ...]) -> None:
        """A function: its defaults belong to what is around it."""
        self._demand(node)
        inside = (*around, _bound(node))
        if around:  # those of a function inside are computed in each call
            for annotated in (*node.args.args, *node.args.posonlyargs, *node.args.kwonlyargs):
                self._annotation(annotated.annotation, around)
            self._annotation(None if isinstance(node, ast.Lambda) else node.returns, around)
        if isinstance(node, ast.Lambda):
            self._visit(node.body, inside)
            return
        for statement in node.body:
            self._visit(statement, inside)

    def _nested(self, node: Definition, around: tuple[frozenset[str], ...]) -> None:
        decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
        if decorators:
            self._refuse(decorators[0], "a decorator inside a function: write what it does into the function")
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self._visit(default, around)
        self.function(node, around)

    def _visit(self, node: ast.AST, around: tuple[frozenset[str], ...]) -> None:
        self._demand(node)
        match node:
            case ast.FunctionDef() | ast.Lambda():
                self._nested(node, around)
                return
            case ast.ListComp() | ast.GeneratorExp() | ast.DictComp():
                inside = (*around, frozenset(_targets(*(each.target for each in node.generators))))
                self._children(node, inside)
                return
            case ast.AnnAssign():
                self._annotation(node.annotation, around)
                self._children(ast.Expr(node.value or ast.Constant(None)), around)
                self._target(node.target)
                return
            case ast.Assign(targets=targets):
                for target in targets:
                    self._target(target)
            case ast.AugAssign(target=target) | ast.For(target=target) | ast.comprehension(target=target):
                self._target(target)
            case ast.Name(ctx=ast.Load()):
                self._name(node, around)
            case ast.Attribute():
                if self._path(node, around):
                    return
                self._attribute(node)
            case ast.Compare():
                self._compare(node, around)
            case ast.Call(func=ast.Name(id="isinstance"), args=[value, kinds]) if not self._own:
                self._visit(value, around)
                self._kinds(kinds, around)
                return
            case ast.FormattedValue(value=value) | ast.Call(func=ast.Name(id="str"), args=[value]):
                if isinstance(node, ast.FormattedValue) and node.conversion != -1 and not self._own:
                    self._refuse(node, "text that an object has of its own (`!r`): write out what it says")
                self.uses.makes_text = True
                self._text(value, around)
            case ast.Expr(value=ast.Yield() | ast.YieldFrom()):
                self._children(node.value, around)
                return
            case ast.Yield() | ast.YieldFrom():
                self._refuse(node, "what comes back from a `yield`: nothing does; yield in a statement of its own")
            case ast.MatchSingleton(value=bool()):
                self._refuse(node, f"a case that is {node.value}, and so {IDENTITY}")
        self._children(node, around)

    def _children(self, node: ast.AST, around: tuple[frozenset[str], ...]) -> None:
        for child in ast.iter_child_nodes(node):
            self._visit(child, around)

    def _demand(self, node: ast.AST) -> None:
        if type(node) in REFUSED:
            self._refuse(node, REFUSED[type(node)])
        if not isinstance(node, ALLOWED):
            self._refuse(node, f"`{type(node).__name__}`, which has no meaning in the model")

    def _refuse(self, node: ast.AST, what: str) -> NoReturn:
        raise NotAllowedError(getattr(node, "lineno", 0), what)

    def _target(self, target: ast.expr) -> None:
        match target:
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                for each in elements:
                    self._target(each)
            case ast.Starred(value=value):
                self._target(value)
            case ast.Attribute(attr=name):
                self._refuse(target, f"an assignment to the attribute {name!r}, {COUNT}")
            case ast.Subscript():
                self._refuse(target, f"an assignment to a part of something, {COUNT}")

    def _annotation(self, annotation: ast.expr | None, around: tuple[frozenset[str], ...]) -> None:
        """What an annotation calls, as in `Annotated[int, AtLeast(1)]`: the types that it names say nothing to a step."""
        for node in ast.walk(annotation) if annotation is not None else ():
            if not isinstance(node, (*NAMING, ast.Call)):
                self._refuse(node, "an annotation that is computed: name the type")
            if isinstance(node, ast.Call):
                self._visit(node, around)

    def _name(self, node: ast.Name, around: tuple[frozenset[str], ...], used_as: str = VALUE) -> None:
        if not any(node.id in names for names in around):
            self.uses.names.append(Use((node.id,), node.lineno, used_as))

    def _path(self, node: ast.Attribute, around: tuple[frozenset[str], ...], used_as: str = VALUE) -> bool:
        """Whether it is an attribute of a name from elsewhere, or one of such a one, which can be looked up."""
        names: list[str] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            names.insert(0, inner.attr)
            inner = inner.value
        if not isinstance(inner, ast.Name) or any(inner.id in bound for bound in around):
            return False
        self.uses.names.append(Use((inner.id, *names), node.lineno, used_as))
        return True

    def _attribute(self, node: ast.Attribute) -> None:
        if node.attr.startswith("__") and node.attr != "__name__":
            self._refuse(node, f"the attribute {node.attr!r}, which belongs to Python")
        self.uses.attributes.append((node.attr, node.lineno))

    def _compare(self, node: ast.Compare, around: tuple[frozenset[str], ...]) -> None:
        operands = (node.left, *node.comparators)
        for operator, first, second in zip(node.ops, operands, operands[1:], strict=False):
            if not isinstance(operator, ast.Is | ast.IsNot) or any(_is_none(each) for each in (first, second)):
                continue
            if not any(isinstance(each, ast.Attribute) and self._path(each, around, MEMBER) for each in (second, first)):
                self._refuse(node, IDENTITY)

    def _kinds(self, kinds: ast.expr, around: tuple[frozenset[str], ...]) -> None:
        """The second argument of `isinstance`: kinds of records, whose names are looked up."""
        match kinds:
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                self._kinds(left, around)
                self._kinds(right, around)
            case ast.Tuple(elts=elements):
                for each in elements:
                    self._kinds(each, around)
            case ast.Name() if not any(kinds.id in names for names in around):
                self._name(kinds, around, RECORD_KIND)
            case ast.Attribute() if self._path(kinds, around, RECORD_KIND):
                return
            case _:
                self._refuse(kinds, "`isinstance` with kinds that are not named: a symbol is no int, and only records have kinds")

    def _text(self, value: ast.expr, around: tuple[frozenset[str], ...]) -> None:
        if isinstance(value, ast.Lambda | ast.GeneratorExp | ast.ListComp | ast.Dict):
            self._refuse(value, "text of an object: write out what it says")
        if isinstance(value, ast.Name):
            self._name(value, around, TEXT)
        elif isinstance(value, ast.Attribute):
            self._path(value, around, TEXT)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _bound(node: Definition) -> frozenset[str]:
    """The names that a function binds itself; those of comprehensions and of functions inside are their own."""
    arguments = node.args
    own = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    own += [each.arg for each in (arguments.vararg, arguments.kwarg) if each is not None]
    body = [] if isinstance(node, ast.Lambda) else node.body
    return frozenset([*own, *(name for statement in body for name in _bound_in(statement))])


def _bound_in(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name):
            yield name
            return
        case ast.Lambda() | ast.ListComp() | ast.GeneratorExp() | ast.DictComp() | ast.SetComp() | ast.ClassDef():
            return
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.MatchAs(name=str(name)):
            yield name
    for child in ast.iter_child_nodes(node):
        yield from _bound_in(child)


def _targets(*targets: ast.expr) -> Iterator[str]:
    return (node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))
