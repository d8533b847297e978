"""Builds streams from the flows of declarative pipelines: `@dp.table` and similar decorators.
`@dp.table` and its kin.

A flow is a function that returns a DataFrame. The pipeline's runner writes it in append mode, and
keeps its checkpoint.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from floodmark.rules.code.chains import CallChain, chain_of
from floodmark.rules.code.facts import DefinedFlow, Operation, Read, Stream, Value
from floodmark.rules.code.scopes import Scope, Walk
from floodmark.rules.code.stream import way_of
from floodmark.rules.code.values import dotted, value_of

_LEGACY = "dlt"
"""The first name of the module, at Databricks."""
_MODULES = ("pyspark.pipelines", _LEGACY)
STREAMING = frozenset({"table", "append_flow"})
"""The kinds of flows with a checkpoint: a streaming table's own flow, and added flows."""
VIEWS = frozenset({"temporary_view", "view"})
MATERIALIZED = "materialized_view"
_SESSIONS = frozenset({"active", "getActiveSession", "builder", "getOrCreate"})
_KNOWN = STREAMING | VIEWS | {MATERIALIZED}


@dataclass(frozen=True)
class _Definition:
    kind: str
    name: str | None
    node: ast.FunctionDef | ast.AsyncFunctionDef
    chains: tuple[CallChain, ...]
    legacy: bool


def flows_of(tree: ast.Module, walk: Walk) -> tuple[tuple[Stream, ...], tuple[DefinedFlow, ...]]:
    """Return the flows as streams, for rules about streams, and as definitions."""
    decorators = _decorators(tree)
    if not decorators:
        return (), ()
    found = list(_definitions(walk, decorators))
    views = {one.name: one for one in found if one.kind in VIEWS and one.name is not None}
    streams = tuple(
        _stream(one, chain, views)
        for one in found
        if one.kind in STREAMING
        for chain in one.chains
        if _reads_stream(chain)
    )
    return streams, tuple(_defined(one) for one in found)


def _decorators(tree: ast.Module) -> dict[str, tuple[str, str]]:
    """Return the name in this file → (the module, the decorator)."""
    found: dict[str, tuple[str, str]] = {}

    def add_module(name: str, module: str) -> None:
        found.update({f"{name}.{known}": (module, known) for known in _KNOWN})

    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                if one.name in _MODULES:
                    add_module(one.asname or one.name, one.name)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for one in node.names:
                whole, name = f"{node.module}.{one.name}", one.asname or one.name
                if whole in _MODULES:
                    add_module(name, whole)
                elif node.module in _MODULES and one.name in _KNOWN:
                    found[name] = (node.module, one.name)
    return found


def _definitions(walk: Walk, decorators: dict[str, tuple[str, str]]) -> Iterator[_Definition]:
    functions = [one for found in walk.functions.values() for one in found]
    for node, around in functions:
        if isinstance(node, ast.Lambda):
            continue
        for decorator in node.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            module, kind = decorators.get(dotted(called), ("", ""))
            if kind:
                name = _name(decorator, node, around)
                chains = tuple(_returned(node, walk.scopes[id(node)]))
                yield _Definition(kind, name, node, chains, module == _LEGACY)


def _name(
    decorator: ast.expr, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope
) -> str | None:
    for item in decorator.keywords if isinstance(decorator, ast.Call) else ():
        if item.arg == "name":
            return value_of(item.value, scope).literal
    return node.name


def _returned(node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> Iterator[CallChain]:
    waiting: list[ast.stmt] = list(node.body)
    while waiting:
        statement = waiting.pop(0)
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        if isinstance(statement, ast.Return) and statement.value is not None:
            yield chain_of(statement.value, scope)
        waiting += [one for one in ast.iter_child_nodes(statement) if isinstance(one, ast.stmt)]


def _reads_stream(chain: CallChain) -> bool:
    return any(link.name in ("readStream", "read_stream") for link in chain.links)


def _stream(one: _Definition, chain: CallChain, views: dict[str, _Definition]) -> Stream:
    operations, reads = _way(chain, views, 0)
    name = Value(one.name, known=True) if one.kind == "table" and one.name else None
    return Stream(
        one.node.lineno,
        None,
        (),
        False,  # the pipeline's specification names the checkpoint
        one.node.lineno,
        True,
        name,
        None,
        "append",
        None,
        None,
        False,
        operations,
        reads,
        False,
        None,
        flow=one.node.name,
    )


def _way(
    chain: CallChain, views: dict[str, _Definition], depth: int
) -> tuple[tuple[Operation, ...], tuple[Read, ...]]:
    """Return the operations on a stream from its source on; a view of this file is part of them."""
    operations, reads = way_of(chain.links)
    table = _table(chain)
    if table is None:
        return operations, reads
    view = views.get(table)
    if view is None or depth > len(views) or len(view.chains) != 1:
        return operations, ()  # a watermark may have been set where the stream was made
    before, sources = _way(view.chains[0], views, depth + 1)
    return (*before, *operations), sources


def _table(chain: CallChain) -> str | None:
    """Return the table or view that is read; "" if its name is not known."""
    for link in chain.links:
        if link.name in ("table", "read_stream") and link.call is not None:
            arguments = link.call.args
            return (value_of(arguments[0], link.scope).literal or "") if arguments else ""
    return None


def _defined(one: _Definition) -> DefinedFlow:
    reads = {
        "stream" if _reads_stream(chain) else "batch" if _reads_batch(chain) else "unknown"
        for chain in one.chains
    }
    return DefinedFlow(one.kind, one.node.name, one.node.lineno, frozenset(reads), one.legacy)


def _reads_batch(chain: CallChain) -> bool:
    """Whether the chain begins at the session with a batch reader or a new table."""
    names = [link.name for link in chain.links if link.name not in _SESSIONS]
    return not _reads_stream(chain) and names[:1] in (["read"], ["range"], ["createDataFrame"])
