"""Finds code that deletes folders."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from floodmark.rules.code.chains import CallChain
from floodmark.rules.code.facts import Deletion, Value
from floodmark.rules.code.scopes import Place
from floodmark.rules.code.values import dotted, value_of

_METHODS = frozenset({"rmtree", "rm", "delete", "remove_tree", "deleteRecursive", "rm_rf"})
_COMMANDS = frozenset({"system", "run", "call", "check_call", "check_output", "Popen", "popen"})
_RESETS = re.compile(r"\b(DROP|TRUNCATE)\s+TABLE\b", re.IGNORECASE)
_REMOVES = re.compile(r"\b(rm|rmdir|-rmr?|rmr|delete)\b")


def deletions_of(places: Sequence[tuple[Place, CallChain]]) -> tuple[Deletion, ...]:
    resets = [place for place, _ in places if _resets_a_table(place)]
    return tuple(
        found
        for place, _ in places
        for found in _deletion(place)
        if not any(_belong_together(place, other) for other in resets)
    )


def _resets_a_table(place: Place) -> bool:
    node = place.node
    return isinstance(node, ast.Call) and any(
        isinstance(item, ast.Constant)
        and isinstance(item.value, str)
        and _RESETS.search(item.value)
        for argument in node.args
        for item in ast.walk(argument)
    )


def _belong_together(deletion: Place, reset: Place) -> bool:
    """Whether one function or one arm of an `if` deletes both, so that the output starts over
    too.
    """
    if deletion.scope is not reset.scope:
        return False
    return deletion.scope.parent is not None or (
        bool(deletion.branches) and deletion.branches == reset.branches
    )


def _deletion(place: Place) -> Iterator[Deletion]:
    node = place.node
    if not isinstance(node, ast.Call) or not (node.args or node.keywords):
        return
    name = dotted(node.func)
    last = name.rsplit(".", 1)[-1]
    if last in _METHODS and node.args:
        yield Deletion(node.lineno, name, value_of(node.args[0], place.scope))
    elif last in _COMMANDS and node.args:
        command = _command(node.args[0], place)
        if _REMOVES.search(command.pattern):
            yield Deletion(node.lineno, name, command)
    elif last == "run_line_magic" and len(node.args) == 2:
        command = value_of(node.args[1], place.scope)
        if _REMOVES.search(command.pattern):
            yield Deletion(node.lineno, "a magic command", command)


def _command(node: ast.expr, place: Place) -> Value:
    if not isinstance(node, (ast.List, ast.Tuple)):
        return value_of(node, place.scope)
    parts = [value_of(item, place.scope) for item in node.elts]
    return Value(
        " ".join(part.pattern for part in parts),
        frozenset().union(*(part.names for part in parts)),
        frozenset().union(*(part.calls for part in parts)),
    )
