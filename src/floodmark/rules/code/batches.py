"""Reads what the function given to foreachBatch does."""

from __future__ import annotations

import ast

from floodmark.rules.code.facts import BatchFunction
from floodmark.rules.code.scopes import Function, Walk

_WRITES = frozenset({"save", "saveAsTable", "insertInto", "jdbc", "parquet", "csv", "json", "orc"})
_APPENDS = frozenset({"append", "writeTo", "executemany", "to_sql", "insert_many", "bulk_write"})


def batch_function(walk: Walk, call: ast.Call) -> BatchFunction | None:
    """Return what the function for foreachBatch does; None if it is not in this file."""
    given = call.args[0] if call.args else None
    if given is None and call.keywords:
        given = call.keywords[0].value
    node = _function(walk, given)
    if node is None:
        return None
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    if names and names[0] in ("self", "cls"):
        names = names[1:]
    if len(names) < 2 or node.args.vararg is not None:
        return None
    body = node.body if isinstance(node.body, list) else [node.body]
    inside = [item for part in body for item in ast.walk(part)]
    used = any(
        isinstance(item, ast.Name) and item.id == names[1] and isinstance(item.ctx, ast.Load)
        for item in inside
    )
    return BatchFunction(node.lineno, used, _write(inside), _only_shows(inside))


def _function(walk: Walk, given: ast.expr | None) -> Function | None:
    if isinstance(given, ast.Lambda):
        return given
    name = given.id if isinstance(given, ast.Name) else getattr(given, "attr", None)
    found = walk.functions.get(name or "", ())
    return found[-1][0] if len(found) == 1 else None


def _write(inside: list[ast.AST]) -> str | None:
    """Return the name of a write that a second run would repeat."""
    names = {item.attr for item in inside if isinstance(item, ast.Attribute)}
    texts = {
        item.value.lower()
        for item in inside
        if isinstance(item, ast.Constant) and isinstance(item.value, str)
    }
    if "overwrite" in texts or names & {"merge", "overwritePartitions", "createOrReplace"}:
        return None  # a second run leaves the same result
    if any("merge into" in text or "on conflict" in text for text in texts):
        return None
    if any("cassandra" in text for text in texts) or "es.mapping.id" in texts:
        return None  # rows with the same key replace each other
    if "write" in names:
        return next(iter(sorted(names & _WRITES)), None)
    return next(iter(sorted(names & _APPENDS - {"append"})), None)


def _only_shows(inside: list[ast.AST]) -> bool:
    names = {item.attr for item in inside if isinstance(item, ast.Attribute)}
    called = {
        item.func.id
        for item in inside
        if isinstance(item, ast.Call) and isinstance(item.func, ast.Name)
    }
    shows = "show" in names or "print" in called or "display" in called
    acts = any(name.lower().startswith(_ACTS) for name in names)
    return shows and not acts and called <= _HARMLESS


# fmt: off
_ACTS = (
    "write", "save", "insert", "jdbc", "append", "merge", "execute", "put", "post", "send",
    "publish", "produce", "upload", "upsert", "index", "bulk", "commit", "to_sql", "to_csv",
    "to_parquet", "add", "update", "set", "request", "foreach",
)
_HARMLESS = frozenset((
    "print", "display", "len", "str", "int", "float", "list", "dict", "range", "sorted",
    "enumerate", "zip", "sum", "min", "max", "round", "format", "repr", "col", "lit", "expr",
    "desc", "asc", "avg", "count", "when",
))
# fmt: on
