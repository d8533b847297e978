"""Joins fluent chains across variables: `writer.start()` with the earlier calls on `writer`."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from floodmark.rules.code.scopes import Scope
from floodmark.rules.code.values import dotted

_LONGEST = 400
_DEEPEST = 20


@dataclass(frozen=True)
class Link:
    """One attribute or method call of a chain."""

    name: str
    line: int
    call: ast.Call | None
    scope: Scope
    node: int
    """The id of the attribute's node: the same one can be reached through several variables."""


@dataclass(frozen=True)
class CallChain:
    links: tuple[Link, ...]
    root: str
    """The dotted name at its beginning; `?` if it does not begin with a name."""
    root_call: ast.Call | None

    def index(self, name: str) -> int | None:
        """Return the last position of a name in the chain."""
        return next(
            (at for at in range(len(self.links) - 1, -1, -1) if self.links[at].name == name), None
        )


def chain_of(node: ast.expr, scope: Scope, depth: int = 0) -> CallChain:
    links: list[Link] = []
    call: ast.Call | None = None
    while len(links) < _LONGEST:
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Attribute):
                return CallChain(tuple(reversed(links)), dotted(node.func), node)
            call, node = node, node.func
        elif isinstance(node, ast.Attribute):
            line = node.end_lineno or node.lineno
            links.append(Link(node.attr, line, call, scope, id(node)))
            call, node = None, node.value
        elif isinstance(node, ast.Name):
            found = scope.value(node.id, node.lineno) if depth < _DEEPEST else None
            if found is None:
                return CallChain(tuple(reversed(links)), node.id, None)
            before = chain_of(found[0], found[1], depth + 1)
            return CallChain(
                (*before.links, *reversed(links)), before.root or node.id, before.root_call
            )
        else:
            break
    return CallChain(tuple(reversed(links)), "?", None)
