"""Reads how a file uses DStreams."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from floodmark.rules.code.chains import CallChain, chain_of
from floodmark.rules.code.facts import DStreams, Option, Recovery
from floodmark.rules.code.scopes import Function, Place, Scope, Walk
from floodmark.rules.code.values import dotted, value_of

_STATEFUL = frozenset(
    {"updateStateByKey", "mapWithState", "countByWindow", "countByValueAndWindow"}
)
_INVERSE = {"reduceByKeyAndWindow": 2, "reduceByWindow": 2}
_SETUP = frozenset(
    {
        "checkpoint",
        "socketTextStream",
        "textFileStream",
        "queueStream",
        "binaryRecordsStream",
        "receiverStream",
        "rawSocketTextStream",
        "fileStream",
        "remember",
        "union",
    }
)
_MADE_BY = ("SparkContext", "StreamingContext", "SparkSession", "SQLContext")


def dstreams_of(walk: Walk, places: Sequence[tuple[Place, CallChain]]) -> DStreams:
    seconds: list[float | None] = []
    directories: list[Option] = []
    intervals: list[tuple[float, int]] = []
    stateful: list[tuple[str, int]] = []
    sockets: list[int] = []
    recoveries: list[Recovery] = []
    for place, chain in places:
        call = chain.root_call
        if call is not None and chain.root.endswith("StreamingContext") and not chain.links:
            seconds.append(_interval(call, place.scope))
        for link in chain.links:
            if link.call is None:
                continue
            if link.name in _STATEFUL or _has_inverse(link.name, link.call):
                stateful.append((link.name, link.line))
            elif link.name == "socketTextStream":
                sockets.append(link.line)
            elif link.name == "checkpoint" and link.call.args:
                value = value_of(link.call.args[0], link.scope)
                if value.number is not None:
                    intervals.append((value.number, link.line))
                else:
                    directories.append(Option("checkpoint", value, link.line))
            elif link.name == "getOrCreate" and len(link.call.args) == 2:
                recoveries.append(_recovery(walk, places, link.call, link.scope, link.line))
    known = [found for found in seconds if found is not None]
    return DStreams(
        known[0] if len(set(known)) == 1 else None,
        tuple(dict.fromkeys(directories)),
        tuple(dict.fromkeys(intervals)),
        tuple(dict.fromkeys(stateful)),
        tuple(dict.fromkeys(sockets)),
        tuple(dict.fromkeys(recoveries)),
    )


def _interval(call: ast.Call, scope: Scope) -> float | None:
    if len(call.args) > 1:
        return value_of(call.args[1], scope).number
    named = [item.value for item in call.keywords if item.arg == "batchDuration"]
    return value_of(named[0], scope).number if named else None


def _has_inverse(name: str, call: ast.Call) -> bool:
    """Whether a window has an inverse function: only then it keeps the window before it."""
    if name not in _INVERSE:
        return False
    given = call.args[1] if len(call.args) > 1 else None
    named = [item.value for item in call.keywords if item.arg in ("invFunc", "invReduceFunc")]
    given = named[0] if named else given
    return given is not None and not (isinstance(given, ast.Constant) and given.value is None)


def _recovery(
    walk: Walk,
    places: Sequence[tuple[Place, CallChain]],
    call: ast.Call,
    scope: Scope,
    line: int,
) -> Recovery:
    function = _creating(walk, call.args[1])
    outside = _from_outside(walk, function) if function is not None else ()
    setup = {
        (chain.links[-1].name, chain.links[-1].line)
        for place, chain in places
        if len(chain.links) > 1
        and _is(call, chain)
        and (function is None or not _within(place.node, function))
    }
    directory = value_of(call.args[0], scope)
    return Recovery(line, directory, outside, tuple(sorted(setup, key=lambda item: item[1])))


def _is(call: ast.Call, chain: CallChain) -> bool:
    """Whether a chain calls a set-up method on the result of this getOrCreate."""
    at = next((i for i, link in enumerate(chain.links) if link.call is call), None)
    return at is not None and at + 1 < len(chain.links) and chain.links[at + 1].name in _SETUP


def _within(node: ast.AST, function: Function) -> bool:
    line = getattr(node, "lineno", 0)
    return function.lineno <= line <= (function.end_lineno or function.lineno)


def _creating(walk: Walk, given: ast.expr) -> Function | None:
    if isinstance(given, ast.Lambda):
        return given
    found = walk.functions.get(given.id, ()) if isinstance(given, ast.Name) else ()
    return found[0][0] if len(found) == 1 else None


def _from_outside(walk: Walk, function: Function) -> tuple[tuple[str, int], ...]:
    """Return contexts and streams that were made outside the function and are used in it."""
    scope = walk.scopes[id(function)]
    body = function.body if isinstance(function.body, list) else [function.body]
    found: dict[str, int] = {}
    for part in body:
        for node in ast.walk(part):
            if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
                continue
            name = node.id
            if name in scope.assigned or name in scope.parameters or scope.parent is None:
                continue
            value = scope.parent.value(name, 1 << 30)
            if value is not None and _is_streaming(*value):
                found.setdefault(name, node.lineno)
    return tuple(sorted(found.items(), key=lambda item: item[1]))


def _is_streaming(node: ast.expr, scope: Scope) -> bool:
    chain = chain_of(node, scope)
    names = [chain.root, *(link.name for link in chain.links)]
    made = chain.root_call is not None or any(link.call for link in chain.links)
    return (
        made
        and any(name.rsplit(".", 1)[-1] in _MADE_BY for name in names if name)
        and (dotted(node) != "?")
    )
