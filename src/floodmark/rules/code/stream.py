"""Builds streams from chains: what is read, the operations on it, where it is written."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from floodmark.rules.code.batches import batch_function
from floodmark.rules.code.chains import CallChain, Link, chain_of
from floodmark.rules.code.facts import Operation, Option, Read, Stream, Value
from floodmark.rules.code.scopes import Place, Scope, Walk
from floodmark.rules.code.values import value_of

_TABLES = frozenset({"toTable", "table"})
"""`table()` is Databricks' name for toTable()."""
_STARTS = _TABLES | {"start"}
_WRITER_ONLY = frozenset({"outputMode", "trigger", "queryName", "foreachBatch"})
_BUILDS = _WRITER_ONLY | {"format", "option", "options", "partitionBy", "clusterBy", "foreach"}
_FILE_FORMATS = frozenset({"csv", "json", "orc", "parquet", "text", "xml", "table", "load"})
_NOT_OPTIONS = frozenset({"path", "format", "outputMode", "partitionBy", "queryName", "tableName"})


def streams_of(walk: Walk, places: Sequence[tuple[Place, CallChain]]) -> tuple[Stream, ...]:
    found: dict[int, list[tuple[Place, CallChain]]] = {}
    for place, chain in places:
        at = _writer_at(chain)
        if at is not None:
            found.setdefault(chain.links[at].node if at >= 0 else id(place.node), []).append(
                (place, chain)
            )
    streams = []
    for group in found.values():
        started = [item for item in group if _start(item[1])]
        # A writer in a variable is found twice: its last call counts.
        for place, chain in started or group[-1:]:
            streams.append(_stream(walk, place, chain))
    return tuple(streams)


def _writer_at(chain: CallChain) -> int | None:
    """Return where writing begins; -1 if the chain begins with a writer that is not visible."""
    at = chain.index("writeStream")
    if at is not None:
        return at
    names = {link.name for link in chain.links}
    if names & _WRITER_ONLY and names & (_STARTS | {"option", "options"}):
        return -1
    return None


def _start(chain: CallChain) -> Link | None:
    """Return the call that starts the query. A reader's table() does not."""
    at = _writer_at(chain)
    links = chain.links[at + 1 :] if at is not None else ()
    return next((link for link in links if link.name in _STARTS and link.call), None)


def _stream(walk: Walk, place: Place, chain: CallChain) -> Stream:
    at = _writer_at(chain)
    assert at is not None
    links = chain.links[at + 1 :]
    by_name = {link.name: link for link in links}
    options, options_known = options_of(links)
    start = _start(chain)
    if start is not None:
        options += _keyword_options(start)
    each = by_name.get("foreachBatch")
    operations, reads = way_of(chain.links[: max(at, 0)])
    writer_line = chain.links[at].line if at >= 0 else links[0].line
    return Stream(
        writer_line,
        _argument(by_name.get("format"), 0) or _argument(start, 1, "format", only_keyword=True),
        options,
        options_known and at >= 0 and _only_built(_before(links, start)),
        start.line if start else None,
        start is not None and start.name in _TABLES,
        _argument(start, 0, "tableName") if start and start.name in _TABLES else None,
        _argument(start, 0, "path") if start and start.name == "start" else None,
        _mode(by_name.get("outputMode"), start, at >= 0),
        _argument(by_name.get("queryName"), 0) or _argument(start, 9, "queryName"),
        batch_function(walk, each.call) if each and each.call else None,
        "foreachBatch" in by_name or "foreach" in by_name,
        operations,
        reads,
        start is None and bool(links) and _only_built(links) and _abandoned(walk, place),
        place.loop,
        place.branches,
        _once(by_name.get("trigger")),
    )


def _before(links: Sequence[Link], start: Link | None) -> Sequence[Link]:
    return links[: links.index(start)] if start in links else links


def _only_built(links: Sequence[Link]) -> bool:
    """Whether every step is a call of the writer's own; a mock's `format.return_value` is not."""
    return all(link.call and link.name in _BUILDS for link in links)


def _abandoned(walk: Walk, place: Place) -> bool:
    statement = place.statement
    if isinstance(statement, ast.Expr):
        return statement.value is place.node
    if isinstance(statement, ast.Assign) and statement.value is place.node:
        targets = [target for target in statement.targets if isinstance(target, ast.Name)]
        last = statement.end_lineno or statement.lineno
        return len(targets) == len(statement.targets) and not any(
            line > last for target in targets for line in walk.loads.get(target.id, ())
        )
    return False


def _mode(link: Link | None, start: Link | None, whole: bool) -> str | None:
    value = _argument(link, 0) or _argument(start, 2, "outputMode", only_keyword=True)
    if value is None:
        return "append" if whole else None
    return value.literal.lower() if value.literal else None


def _once(link: Link | None) -> int | None:
    once = _argument(link, 0, "once", only_keyword=True)
    return link.line if link and once and once.literal == "true" else None


def _argument(
    link: Link | None, at: int, keyword: str = "", only_keyword: bool = False
) -> Value | None:
    if link is None or link.call is None:
        return None
    for item in link.call.keywords:
        if item.arg == keyword and keyword:
            return value_of(item.value, link.scope)
    if not only_keyword and at < len(link.call.args):
        return value_of(link.call.args[at], link.scope)
    return None


def _keyword_options(link: Link) -> tuple[Option, ...]:
    assert link.call is not None
    return tuple(
        Option(item.arg, value_of(item.value, link.scope), item.value.lineno)
        for item in link.call.keywords
        if item.arg is not None and item.arg not in _NOT_OPTIONS
    )


def options_of(links: Sequence[Link]) -> tuple[tuple[Option, ...], bool]:
    """Return the options of a reader or a writer, and whether all of them are visible."""
    options: list[Option] = []
    complete = True
    for link in links:
        if link.call is None:
            continue
        if link.name == "option" and link.call.args:
            key = value_of(link.call.args[0], link.scope)
            value = _argument(link, 1, "value") or Value("{}")
            if key.literal is None:
                complete = False
            else:
                options.append(Option(key.literal, value, link.call.args[0].lineno))
        elif link.name == "options":
            found, whole = _spread(link)
            options += found
            complete = complete and whole
        elif link.name in _STARTS or link.name in _FILE_FORMATS:
            complete = complete and all(item.arg is not None for item in link.call.keywords)
    return tuple(options), complete


def _spread(link: Link) -> tuple[list[Option], bool]:
    """Return the options in `options(a=1, **{"b": 2}, **settings)`."""
    assert link.call is not None
    options: list[Option] = []
    complete = not link.call.args
    for item in link.call.keywords:
        if item.arg is not None:
            options.append(Option(item.arg, value_of(item.value, link.scope), item.value.lineno))
            continue
        table, scope = _dictionary(item.value, link.scope)
        if table is None:
            complete = False
            continue
        for key, value in zip(table.keys, table.values, strict=True):
            name = value_of(key, scope).literal if key is not None else None
            if key is None or name is None:
                complete = False
            else:
                options.append(Option(name, value_of(value, scope), key.lineno))
    return options, complete


def _dictionary(node: ast.expr, scope: Scope) -> tuple[ast.Dict | None, Scope]:
    if isinstance(node, ast.Name):
        found = scope.value(node.id, node.lineno)
        if found is not None:
            node, scope = found
    return (node if isinstance(node, ast.Dict) else None), scope


def way_of(links: Sequence[Link]) -> tuple[tuple[Operation, ...], tuple[Read, ...]]:
    """Return what happens between readStream and writeStream, also in joined streams."""
    operations: list[Operation] = []
    reads: list[Read] = []
    begin = next((at for at, link in enumerate(links) if link.name == "readStream"), None)
    if begin is None:
        return tuple(_operations(links)), ()
    loaded = _loaded(links, begin)
    reads.append(read_of(links[begin : loaded + 1]))
    for operation in _operations(links[loaded + 1 :]):
        operations.append(operation)
    for link in links[loaded + 1 :]:
        if link.name in ("join", "union", "unionByName", "unionAll") and link.call:
            for argument in link.call.args[:1]:
                more, others = way_of(chain_of(argument, link.scope).links)
                if others:  # operations on a table beside the stream keep no state
                    operations += more
                    reads += others
    return tuple(operations), tuple(reads)


def _operations(links: Sequence[Link]) -> list[Operation]:
    return [
        Operation(
            link.name,
            link.line,
            tuple(value_of(argument, link.scope) for argument in link.call.args),
            link.name == "join" and bool(link.call.args) and _is_stream(link),
        )
        for link in links
        if link.call is not None
    ]


def _is_stream(link: Link) -> bool:
    assert link.call is not None
    other = chain_of(link.call.args[0], link.scope)
    return any(item.name == "readStream" for item in other.links)


def read_of(links: Sequence[Link]) -> Read:
    by_name = {link.name: link for link in links}
    options, complete = options_of(links)
    last = links[-1].name
    kind = _argument(by_name.get("format"), 0)
    named = kind.literal if kind else (last if last in _FILE_FORMATS - {"load"} else None)
    complete = complete and last in _FILE_FORMATS
    return Read(links[0].line, named.lower() if named else None, options, complete)


def reads_of(places: Sequence[tuple[Place, CallChain]]) -> tuple[Read, ...]:
    """Return each readStream of the file once, with its longest chain."""
    longest: dict[int, Sequence[Link]] = {}
    for _, chain in places:
        begin = next((at for at, link in enumerate(chain.links) if link.name == "readStream"), None)
        if begin is None:
            continue
        links = chain.links[begin : _loaded(chain.links, begin) + 1]
        if len(links) > len(longest.get(links[0].node, ())):
            longest[links[0].node] = links
    return tuple(read_of(links) for links in longest.values())


def _loaded(links: Sequence[Link], begin: int) -> int:
    """Return where reading ends: at load() or at a format's own method."""
    return next(
        (at for at in range(begin, len(links)) if links[at].name in _FILE_FORMATS), len(links)
    )
