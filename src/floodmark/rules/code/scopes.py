"""Walks a syntax tree once: assignments, calls, nesting."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass
class Scope:
    """A module or a function, with the names that are assigned in it."""

    node: ast.AST
    parent: Scope | None
    assigned: dict[str, list[tuple[int, int, ast.expr]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """Name → (first line, last line, value) of each assignment, in order."""
    parameters: frozenset[str] = frozenset()

    def value(self, name: str, line: int) -> tuple[ast.expr, Scope] | None:
        """Return what a name stands for at a line, if one assignment shows it."""
        if name in self.parameters and not self.assigned.get(name):
            return None
        here = [value for _, last, value in self.assigned.get(name, ()) if last < line]
        if here:
            return here[-1], self
        if self.parent is None:
            return None
        return self.parent.value(name, _END)

    def binder(self, name: str) -> int:
        """Return the id of the function that has the name as a parameter; 0 if none has."""
        if name in self.parameters:
            return id(self.node)
        return self.parent.binder(name) if self.parent is not None else 0


_END = 1 << 30


@dataclass(frozen=True)
class Place:
    """A call or a bare attribute at the end of its chain, and its position."""

    node: ast.expr
    scope: Scope
    branches: tuple[tuple[int, int], ...]
    loop: frozenset[str] | None
    statement: ast.stmt


@dataclass
class Walk:
    module: Scope
    places: list[Place] = field(default_factory=list)
    functions: dict[str, list[tuple[Function, Scope]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    loads: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Name → the lines that use it."""
    scopes: dict[int, Scope] = field(default_factory=dict)
    """id of a function's node → its scope"""


@dataclass(frozen=True)
class _Around:
    scope: Scope
    branches: tuple[tuple[int, int], ...]
    loop: frozenset[str] | None
    statement: ast.stmt


def walk(tree: ast.Module) -> Walk:
    found = Walk(Scope(tree, None))
    _Walker(found).body(tree.body, _Around(found.module, (), None, ast.Pass()))
    return found


class _Walker:
    def __init__(self, found: Walk) -> None:
        self.found = found

    def body(self, statements: list[ast.stmt], around: _Around) -> None:
        for statement in statements:
            self.statement(statement, around)

    def statement(self, node: ast.stmt, around: _Around) -> None:
        here = _Around(around.scope, around.branches, around.loop, node)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.function(node, here)
        elif isinstance(node, ast.ClassDef):
            self.body(node.body, here)
        elif isinstance(node, ast.If):
            self.expression(node.test, here)
            for arm, body in enumerate((node.body, node.orelse)):
                branches = (*here.branches, (id(node), arm))
                self.body(body, _Around(here.scope, branches, here.loop, node))
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self.expression(node.iter, here)
            names = frozenset(
                item.id for item in ast.walk(node.target) if isinstance(item, ast.Name)
            )
            loop = None if _waits(node) else (here.loop or frozenset()) | names
            self.body(node.body, _Around(here.scope, here.branches, loop, node))
            self.body(node.orelse, here)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self.assign(target, node.value, node, here)
            self.expression(node.value, here)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            if node.value is not None:
                if isinstance(node, ast.AnnAssign):
                    self.assign(node.target, node.value, node, here)
                self.expression(node.value, here)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                if item.optional_vars is not None:
                    self.assign(item.optional_vars, item.context_expr, node, here)
                self.expression(item.context_expr, here)
            self.body(node.body, here)
        else:
            self.other(node, here)

    def other(self, node: ast.AST, around: _Around) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                self.statement(child, around)
            elif isinstance(child, ast.expr):
                self.expression(child, around)
            else:
                self.other(child, around)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, around: _Around) -> None:
        self.found.functions[node.name].append((node, around.scope))
        for decorator in node.decorator_list:
            self.expression(decorator, around)
        scope = self.scope_of(node, around.scope)
        self.body(node.body, _Around(scope, (), None, node))

    def scope_of(self, node: Function, parent: Scope) -> Scope:
        arguments = node.args
        names = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        names += [item for item in (arguments.vararg, arguments.kwarg) if item is not None]
        scope = Scope(node, parent, parameters=frozenset(item.arg for item in names))
        self.found.scopes[id(node)] = scope
        return scope

    def assign(
        self, target: ast.expr, value: ast.expr, statement: ast.stmt, around: _Around
    ) -> None:
        if isinstance(target, ast.Name):
            last = value.end_lineno or statement.lineno
            around.scope.assigned[target.id].append((statement.lineno, last, value))

    def expression(self, node: ast.expr, around: _Around, inner: bool = False) -> None:
        """`inner`: the node is the object of a longer chain, which is looked at as a whole."""
        if isinstance(node, ast.Lambda):
            scope = self.scope_of(node, around.scope)
            self.expression(
                node.body, _Around(scope, around.branches, around.loop, around.statement)
            )
            return
        if isinstance(node, ast.Name):
            self.found.loads[node.id].append(node.lineno)
            return
        if isinstance(node, (ast.Call, ast.Attribute)) and not inner:
            self.found.places.append(
                Place(node, around.scope, around.branches, around.loop, around.statement)
            )
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                self.expression(node.func.value, around, inner=True)
            else:
                self.expression(node.func, around, inner=True)
            for argument in node.args:
                self.expression(argument, around)
            for keyword in node.keywords:
                self.expression(keyword.value, around)
        elif isinstance(node, ast.Attribute):
            self.expression(node.value, around, inner=True)
        elif isinstance(node, ast.NamedExpr):
            self.assign(node.target, node.value, around.statement, around)
            self.expression(node.value, around)
        else:
            self.other(node, around)


def _waits(loop: ast.For | ast.AsyncFor) -> bool:
    """Whether a loop waits for its query: then it starts one query after the other."""
    return any(isinstance(node, ast.Attribute) and node.attr in WAITING for node in ast.walk(loop))


WAITING = frozenset({"awaitTermination", "processAllAvailable", "stop", "awaitAnyTermination"})
