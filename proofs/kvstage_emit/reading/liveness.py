"""Which names a piece of Python binds, and which it still needs: what an `if` or a loop must carry to what comes after it."""

import ast
from collections.abc import Sequence

FUNCTIONS = ast.FunctionDef | ast.Lambda


def bound_names(statements: Sequence[ast.stmt]) -> set[str]:
    """The names that are bound in them; not those of functions in them."""
    found: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.FunctionDef):
            found.add(statement.name)
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
    return found


def needed(statements: Sequence[ast.stmt], after: frozenset[str]) -> frozenset[str]:
    """The names whose values are read in the statements, or after them, before they are bound anew."""
    live = after
    for statement in reversed(statements):
        live = _before(statement, live)
    return live


def _before(statement: ast.stmt, live: frozenset[str]) -> frozenset[str]:
    match statement:
        case ast.If(test=test, body=body, orelse=orelse):
            return needed(body, live) | needed(orelse, live) | _read(test)
        case ast.For(target=target, iter=source, body=body):
            return (needed(body, live) | live) - _stored(target) | _read(source) | (needed(body, live) - _stored(target))
        case ast.Assign(targets=targets, value=value):
            return live - frozenset().union(*map(_stored, targets)) | _read(value) | frozenset().union(*map(_read, targets))
        case ast.AnnAssign(target=target, value=value):
            return live - _stored(target) | (_read(value) if value else frozenset())
        case ast.Return(value=value):
            return _read(value) if value else frozenset()
    return live | _read(statement)


def _read(node: ast.AST) -> frozenset[str]:
    """All names that are read, those in functions too: a function may be called at any later time."""
    nodes = list(ast.walk(node))
    changed = frozenset(each.target.id for each in nodes if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name))
    return changed | frozenset(each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load))


def _stored(target: ast.AST) -> frozenset[str]:
    return frozenset(each.id for each in ast.walk(target) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))


def returns(statements: Sequence[ast.stmt]) -> bool:
    """Whether the statements end the function on every way through them."""
    if not statements:
        return False
    last = statements[-1]
    return isinstance(last, ast.Return) or (isinstance(last, ast.If) and returns(last.body) and returns(last.orelse))


def has_return(statements: Sequence[ast.stmt]) -> bool:
    """Whether a statement in them may end the function: not those of functions in them."""
    open_ = list(statements)
    while open_:
        node = open_.pop()
        if isinstance(node, ast.Return):
            return True
        inside = (each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt))
        open_ += [each for each in inside if not isinstance(each, ast.FunctionDef)]
    return False


def yields(node: FUNCTIONS) -> bool:
    """Whether a function is a generator: a yield stands in it, and in no function in it."""
    open_: list[ast.AST] = list(node.body) if isinstance(node, ast.FunctionDef) else [node.body]
    while open_:
        each = open_.pop()
        if isinstance(each, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(each, FUNCTIONS):
            open_ += ast.iter_child_nodes(each)
    return False
