"""What is changed to make a mutant: one small thing, such as `<` into `<=`.

Left out: texts, f-strings and what an exception is given, for they are written for people; docstrings, annotations,
decorators and base classes, which say what a thing is and not what it does.
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

# the opposite of each; of an order also the one with the boundary moved
_OTHER_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_OTHER_OPERATOR: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}
_OTHER_FUNCTION = {"min": "max", "max": "min", "any": "all", "all": "any"}
_DECLARED = {"frozen", "description"}  # keyword arguments that say what a thing is


Placed = ast.expr | ast.stmt | ast.pattern  # what has a place in the source


@dataclass(frozen=True, slots=True)
class Change:
    """`node` of the source becomes `text`; shown as `before -> after`."""

    node: Placed
    text: str
    before: str
    after: str


def changes_of(node: ast.AST) -> Iterator[Change]:
    """Every change of this node alone, its children not included."""
    changes = _CHANGES.get(type(node))
    return iter(()) if changes is None else changes(node)


def children_of(node: ast.AST) -> Iterator[ast.AST]:
    """The children that are worth a change."""
    if isinstance(node, ast.JoinedStr | ast.Raise | ast.MatchValue) or getattr(node, "arg", None) in _DECLARED:
        return
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        node = ast.Tuple([node.value, *node.slice.elts])
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "decorator_list", "bases", "keywords"} and not isinstance(node, ast.Call):
            continue
        yield from (child for child in (value if isinstance(value, list) else [value]) if isinstance(child, ast.AST))


def _becomes(node: Placed, other: ast.AST) -> Change:
    return Change(node, _text(node, other), ast.unparse(node), ast.unparse(other))


def _loses(node: Placed, part: ast.AST, other: ast.AST) -> Change:
    return Change(node, _text(node, other), ast.unparse(part), "nothing")


def _text(node: ast.AST, other: ast.AST) -> str:
    """In parentheses where it may bind less tightly than what it stands for."""
    binds_less = isinstance(other, ast.BoolOp | ast.IfExp | ast.Compare | ast.BinOp) and type(other) is not type(node)
    return f"({ast.unparse(other)})" if binds_less else ast.unparse(other)


def _but(parts: Sequence[Any], at: int) -> list[Any]:
    return [*parts[:at], *parts[at + 1 :]]


def _compare(node: ast.Compare) -> Iterator[Change]:
    for at, operator in enumerate(node.ops):
        for other in _OTHER_COMPARISONS[type(operator)]:
            ops = [*node.ops[:at], other(), *node.ops[at + 1 :]]
            yield _becomes(node, ast.Compare(node.left, ops, node.comparators))


def _and_or(node: ast.BoolOp) -> Iterator[Change]:
    yield _becomes(node, ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values))
    for at, value in enumerate(node.values):
        rest = _but(node.values, at)
        yield _loses(node, value, rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest))


def _unary(node: ast.UnaryOp) -> Iterator[Change]:
    yield _becomes(node, node.operand)


def _arithmetic(node: ast.BinOp) -> Iterator[Change]:
    if other := _OTHER_OPERATOR.get(type(node.op)):
        yield _becomes(node, ast.BinOp(node.left, other(), node.right))


def _constant(node: ast.Constant) -> Iterator[Change]:
    match node.value:
        case bool(value):
            yield _becomes(node, ast.Constant(not value))
        case int(value) | float(value):
            yield _becomes(node, ast.Constant(value + 1))
            yield _becomes(node, ast.Constant(value - 1))


def _call(node: ast.Call) -> Iterator[Change]:
    if isinstance(node.func, ast.Name) and (other := _OTHER_FUNCTION.get(node.func.id)):
        yield _becomes(node, ast.Call(ast.Name(other), node.args, node.keywords))
    for at, keyword in enumerate(node.keywords):
        if keyword.arg not in {None, *_DECLARED} and not isinstance(keyword.value, ast.JoinedStr):
            yield _loses(node, keyword, ast.Call(node.func, node.args, _but(node.keywords, at)))


def _either(node: ast.IfExp) -> Iterator[Change]:
    yield _becomes(node, ast.IfExp(node.test, node.orelse, node.body))


def _if(node: ast.If) -> Iterator[Change]:
    said = f"if {ast.unparse(node.test)}"
    if not node.orelse:
        yield Change(node.test, "False", said, "nothing")
    if not isinstance(node.test, ast.Compare | ast.BoolOp | ast.UnaryOp):
        yield Change(node.test, f"not ({ast.unparse(node.test)})", said, "if not")


def _filter(node: ast.comprehension) -> Iterator[Change]:
    for test in node.ifs:
        yield Change(test, "True", f"if {ast.unparse(test)}", "nothing")


def _match(node: ast.Match) -> Iterator[Change]:
    for case in node.cases:
        said = f"case {ast.unparse(case.pattern)}"
        if case.guard is None:
            yield Change(case.pattern, f"{ast.unparse(case.pattern)} if False", said, "nothing")
        else:
            yield Change(case.guard, "False", said, "nothing")
            yield Change(case.guard, "True", f"if {ast.unparse(case.guard)}", "nothing")


def _alternatives(node: ast.MatchOr) -> Iterator[Change]:
    for at, pattern in enumerate(node.patterns):
        rest = _but(node.patterns, at)
        yield _loses(node, pattern, rest[0] if len(rest) == 1 else ast.MatchOr(rest))


def _return(node: ast.Return) -> Iterator[Change]:
    if node.value is not None and not (isinstance(node.value, ast.Constant) and not node.value.value):
        yield Change(node, "return None", ast.unparse(node), "return None")


def _statement(node: ast.Expr | ast.AugAssign | ast.Raise | ast.Assign | ast.Continue) -> Iterator[Change]:
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    is_needed = isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Attribute | ast.Subscript)
    if not is_docstring and not is_needed:
        yield Change(node, "pass", ast.unparse(node), "nothing")


def _elements(node: ast.Tuple | ast.List | ast.Set) -> Iterator[Change]:
    stored = not isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
    for at, element in enumerate(node.elts):
        if len(node.elts) > 1 and not stored:
            yield _loses(node, element, type(node)(_but(node.elts, at)))


def _entries(node: ast.Dict) -> Iterator[Change]:
    for at, key in enumerate(node.keys):
        yield _loses(node, key or node.values[at], ast.Dict(_but(node.keys, at), _but(node.values, at)))


_CHANGES: dict[type[ast.AST], Callable[[Any], Iterator[Change]]] = {
    ast.Compare: _compare,
    ast.BoolOp: _and_or,
    ast.UnaryOp: _unary,
    ast.BinOp: _arithmetic,
    ast.Constant: _constant,
    ast.Call: _call,
    ast.IfExp: _either,
    ast.If: _if,
    ast.comprehension: _filter,
    ast.Match: _match,
    ast.MatchOr: _alternatives,
    ast.Return: _return,
    ast.Dict: _entries,
    **dict.fromkeys((ast.Tuple, ast.List, ast.Set), _elements),
    **dict.fromkeys((ast.Expr, ast.AugAssign, ast.Assign, ast.Raise, ast.Continue), _statement),
}
