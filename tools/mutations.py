"""Small changes of a program, each of which a test should notice.

What is changed: comparisons at their boundary, `and` and `or` and their operands, conditions, signs and operators, numbers,
booleans and one-word strings, members of enums, `min` and `max`, arguments given by name, returned values, statements left out.
What is not: what people read (f-strings, strings of several words, digits of a rounded number), annotations, decorators; and the
defaults of a `Struct`. Structs are C: their defaults cannot be exchanged in a running process, and values with the old ones are in
constants of tests and modules by then. Those of policies need no mutants: `tests/config/test_pages.py` compares every one of them
with the page of the configuration.
"""

from __future__ import annotations

import ast
import enum
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

SHOWN_MAX = 90
"""The longest expression that shows a change: the smallest meaningful one around it."""

BOUNDARY: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATOR: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.LShift: ast.RShift,
}
FUNCTION: Mapping[str, str] = {"min": "max", "max": "min", "any": "all", "all": "any"}

REMOVED = (
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
    ast.Expr,
    ast.Delete,
    ast.Raise,
    ast.Continue,
    ast.Break,
    ast.Return,
)
"""Statements that are removed, if they do something."""

SHOWN = (ast.expr, ast.keyword, ast.comprehension, *REMOVED)
"""Nodes that may show a change."""

UNTOUCHED = frozenset({"annotation", "returns", "decorator_list", "type_params", "bases"})

Enums = Mapping[str, type[enum.Enum]]


@dataclass(frozen=True)
class Mutation:
    """One change of a syntax tree: `new` instead of the old node, or nothing."""

    where: str
    """The function or class around it."""
    statement: int | None
    """The first line of its statement in a function; None outside of functions."""
    line: int
    change: str
    """Before and after; numbered among equal ones in a function."""
    parent: ast.AST
    field: str
    index: int | None
    new: ast.AST | None

    def apply(self) -> None:
        """Change its own tree, for good."""
        _put(self.parent, self.field, self.index, self.new)


def mutations(tree: ast.Module, enums: Enums) -> list[Mutation]:
    """All changes of this tree, in the order of the source. Leaves the tree unchanged."""
    found, times = [], Counter[tuple[str, str]]()
    for mutation in _Finder(enums).find(tree):
        times[mutation.where, mutation.change] += 1
        again = times[mutation.where, mutation.change]
        found.append(mutation if again == 1 else replace(mutation, change=f"{mutation.change} ({again})"))
    return found


class _Finder:
    def __init__(self, enums: Enums) -> None:
        self._enums = enums
        self._names: list[str] = []
        self._above: list[ast.AST] = []
        self._statement: ast.stmt | None = None
        self._in_function = False

    def find(self, node: ast.AST) -> Iterator[Mutation]:
        named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        outside = self._statement, self._in_function
        if isinstance(node, ast.stmt):
            self._statement = node
        if named:
            self._names.append(node.name)  # type: ignore[attr-defined]
        self._above.append(node)
        for field, index, child in _children(node):
            if _is_struct(node) and (field == "keywords" or isinstance(child, ast.AnnAssign)):
                continue
            if field == "body" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self._in_function = True
            for new in () if _is_digits(node, index) else self._changes(node, field, child):
                yield self._mutation(node, field, index, child, new)
            if not _is_text(child) and not _is_digits(node, index):
                yield from self.find(child)
        self._above.pop()
        if named:
            self._names.pop()
        self._statement, self._in_function = outside

    def _mutation(
        self, parent: ast.AST, field: str, index: int | None, old: ast.AST, new: ast.AST | None
    ) -> Mutation:
        statement = old if isinstance(old, ast.stmt) else self._statement
        assert statement is not None
        shown = self._shown(old)
        before = _said(shown)
        _put(parent, field, index, new)
        after = _said(new if shown is old else shown)
        _put(parent, field, index, old, back=new is None and index is not None)
        return Mutation(
            ".".join(self._names),
            statement.lineno if self._in_function else None,
            getattr(old, "lineno", statement.lineno),
            f"{before} -> {after}",
            parent,
            field,
            index,
            new,
        )

    def _shown(self, node: ast.AST) -> ast.AST:
        """The node, or the largest expression around it that is still short."""
        if isinstance(node, ast.stmt):
            return node
        shown = node
        for above in reversed(self._above):
            if not isinstance(above, SHOWN) or len(_said(above)) > SHOWN_MAX:
                break
            shown = above
        return shown

    # --- replacements -----------------------------------------------------------------------------

    def _changes(self, parent: ast.AST, field: str, node: ast.AST) -> Iterator[ast.AST | None]:
        if isinstance(node, ast.stmt):
            yield from self._instead_of_statement(node)
        elif isinstance(node, ast.keyword) and isinstance(parent, ast.Call):
            yield None
        elif isinstance(node, ast.expr):
            if field == "test" and not isinstance(node, ast.Constant):
                if not isinstance(parent, ast.While):
                    yield ast.Constant(value=True)
                yield ast.Constant(value=False)
            if field == "ifs":
                yield ast.Constant(value=True)
            if field == "value" and isinstance(parent, ast.Return) and not isinstance(node, ast.Constant):
                yield ast.Constant(value=None)
            yield from self._instead_of(node)

    def _instead_of_statement(self, node: ast.stmt) -> Iterator[ast.AST]:
        if self._in_function and isinstance(node, REMOVED):
            constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            returns = isinstance(node, ast.Return) and node.value is not None
            declares = isinstance(node, ast.AnnAssign) and node.value is None
            if not constant and not returns and not declares:
                yield ast.Pass()
        if isinstance(node, ast.AugAssign) and (other := OPERATOR.get(type(node.op))):
            yield ast.AugAssign(target=node.target, op=other(), value=node.value)

    def _instead_of(self, node: ast.expr) -> Iterator[ast.expr]:
        match node:
            case ast.Compare(left=left, ops=ops, comparators=right):
                for i, op in enumerate(ops):
                    yield ast.Compare(left, [*ops[:i], BOUNDARY[type(op)](), *ops[i + 1 :]], right)
            case ast.BoolOp(op=op, values=values):
                yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
                for i in range(len(values)):
                    rest = [*values[:i], *values[i + 1 :]]
                    yield rest[0] if len(rest) == 1 else ast.BoolOp(op, rest)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATOR:
                yield ast.BinOp(left, OPERATOR[type(op)](), right)
            case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
                yield operand
            case ast.Constant(value=value):
                yield from (ast.Constant(other) for other in _other_values(value))
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in self._enums:
                yield from self._other_member(node, self._enums[name], attr)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in FUNCTION:
                yield ast.Call(ast.Name(FUNCTION[name], ast.Load()), args, keywords)

    def _other_member(self, node: ast.Attribute, kind: type[enum.Enum], name: str) -> Iterator[ast.expr]:
        names = list(kind.__members__)
        if name in names and len(names) > 1:
            other = names[(names.index(name) + 1) % len(names)]
            yield ast.Attribute(node.value, other, ast.Load())


def _other_values(value: object) -> Iterator[bool | int | float | str]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield value + 1
        if value:
            yield type(value)(0)
    elif isinstance(value, str) and value and len(value.split()) <= 1:
        yield value + "_"


def _children(node: ast.AST) -> Iterator[tuple[str, int | None, ast.AST]]:
    for field, value in ast.iter_fields(node):
        if field in UNTOUCHED:
            continue
        if isinstance(value, list):
            yield from ((field, i, child) for i, child in enumerate(value) if isinstance(child, ast.AST))
        elif isinstance(value, ast.AST):
            yield field, None, value


def _is_struct(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and any(
        isinstance(base, ast.Name) and base.id == "Struct" for base in node.bases
    )


def _is_text(node: ast.AST) -> bool:
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return docstring or isinstance(node, ast.JoinedStr)


def _is_digits(parent: ast.AST, index: int | None) -> bool:
    """The number of digits of a rounding is for people, too."""
    return (
        isinstance(parent, ast.Call)
        and isinstance(parent.func, ast.Name)
        and parent.func.id == "round"
        and index == 1
    )


def _put(parent: ast.AST, field: str, index: int | None, node: ast.AST | None, *, back: bool = False) -> None:
    if index is None:
        setattr(parent, field, node)
        return
    nodes: list[ast.AST] = getattr(parent, field)
    if back:
        nodes.insert(index, node)  # type: ignore[arg-type]
    elif node is None:
        del nodes[index]
    else:
        nodes[index] = node


def _said(node: ast.AST | None) -> str:
    if node is None:
        return "nothing"
    return " ".join(ast.unparse(ast.fix_missing_locations(node)).split())
