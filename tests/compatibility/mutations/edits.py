"""Changes of meaning in code: one literal, name, function, argument or step at a time."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator

Edit = tuple[str, str, str]
"""Kind, what is changed, and the code after it."""

_COLUMNS = {
    "v": "w",
    "w": "v",
    "k": "g",
    "g": "k",
    "xs": "ys",
    "ys": "xs",
    "at": "seen",
    "k2": "w2",
    "w2": "v",
    "a": "b",
    "b": "a",
    "js": "cs",
    "cs": "js",
    "$.a": "$.b",
    "events": "others",
    "others": "events",
    "c": "d",
    "s": "n",
    "n": "s",
    "p": "q",
    "q": "p",
    "x": "w",
    "item": "g",
    "x#1": "w",
    "`x#1`": "`2023_v`",
    "`2023_v`": "`x#1`",
    "day": "clock",
    "d": "a",
    "h": "d",
    "name": "k",
    "window.start": "window.end",
}
_FUNCTIONS = {
    "sum": "max",
    "max": "min",
    "min": "max",
    "avg": "sum",
    "count": "max",
    "first": "last",
    "last": "first",
    "stddev_pop": "stddev_samp",
    "corr": "covar_pop",
    "collect_set": "collect_list",
    "rollup": "cube",
    "cube": "rollup",
    "upper": "lower",
    "lower": "upper",
    "explode": "explode_outer",
    "posexplode": "posexplode_outer",
    "to_date": "to_timestamp",
    "hour": "minute",
    "month": "dayofmonth",
    "sort_array": "reverse",
    "union": "unionByName",
    "unionByName": "union",
    "window": "session_window",
    "session_window": "window",
    "get_json_object": "coalesce",
    "dropDuplicates": "dropDuplicatesWithinWatermark",
    "dropDuplicatesWithinWatermark": "dropDuplicates",
    "size": "cardinality",
}
_WORDS = {
    "inner": "left_outer",
    "left_outer": "right_outer",
    "left": "inner",
    "left_semi": "inner",
    "full_outer": "left_outer",
    "dd/MM/yyyy": "MM/dd/yyyy",
    "yyyy-MM-dd HH:mm:ss": "yyyy-dd-MM HH:mm:ss",
    "E": "EEEE",
    "hour": "day",
    "int": "string",
    "NoTimeout": "ProcessingTimeTimeout",
    "string": "binary",
    "small": "tiny",
    "!": "?",
}
_DURATION = re.compile(r"(\d+) (minutes|seconds|hours)")
_STEPS = {
    "where",
    "select",
    "selectExpr",
    "withColumn",
    "withWatermark",
    "dropDuplicates",
    "dropDuplicatesWithinWatermark",
    "join",
    "union",
    "unionByName",
    "agg",
    "limit",
    "unpivot",
    "count",
    "orderBy",
}
_SQL = (
    (r"\bv\b", "w"),
    (r"\bw\b", "v"),
    (r"\bk\b", "g"),
    (r"\bat\b", "at2"),
    (r">(?!=)", ">="),
    (r">=", ">"),
    (r"<(?!=)", "<="),
    (r"<=", "<"),
    (r" = ", " <=> "),
    (r"\bAND\b", "OR"),
    (r"\bsum\b", "max"),
    (r"\bmax_by\b", "min_by"),
    (r"\bregr_count\b", "regr_sxy"),
    (r"\b7L", "8L"),
    (r"'v', v, 'w', w", "'v', w, 'w', v"),
    (r"\bIS NOT NULL\b", "IS NULL"),
    (r"interval (\d+)", "interval 1\\1"),
    (r"(?<=[<>] )(\d+)", "1\\1"),
)
_SCHEMA = re.compile(r"^\w+ (STRING|LONG|DATE|long|string)(, \w+ \w+)*$")


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _each(
    tree: ast.Module, changed: Callable[[ast.AST], Iterator[tuple[str, str, ast.AST]]]
) -> Iterator[Edit]:
    """Every node in turn in place of itself, as `changed` gives it."""
    for at, node in enumerate(ast.walk(tree)):
        for kind, what, replacement in changed(copy.deepcopy(node)):
            whole = copy.deepcopy(tree)
            target = list(ast.walk(whole))[at]
            line = getattr(node, "lineno", 0)
            yield kind, f"line {line}: {what}", ast.unparse(_put(whole, target, replacement))


class _Put(ast.NodeTransformer):
    def __init__(self, target: ast.AST, replacement: ast.AST) -> None:
        self._target, self._replacement = target, replacement

    def visit(self, node: ast.AST) -> ast.AST:
        return self._replacement if node is self._target else self.generic_visit(node)


def _put(whole: ast.AST, target: ast.AST, replacement: ast.AST) -> ast.AST:
    return ast.fix_missing_locations(_Put(target, replacement).visit(whole))


def _literals(node: ast.AST) -> Iterator[tuple[str, str, ast.AST]]:
    if not isinstance(node, ast.Constant):
        return
    value = node.value
    if isinstance(value, bool):
        yield "flag", f"{value} → {not value}", ast.Constant(not value)
    elif isinstance(value, int):
        yield "number", f"{value} → {value + 1}", ast.Constant(value + 1)
    elif isinstance(value, float):
        yield "number", f"{value} → {value * 2}", ast.Constant(value * 2)
    elif isinstance(value, str):
        for kind, new in _texts(value):
            yield kind, f"{value!r} → {new!r}", ast.Constant(new)


def _texts(value: str) -> Iterator[tuple[str, str]]:
    if value in _COLUMNS:
        yield "column", _COLUMNS[value]
    if value in _WORDS:
        yield "word", _WORDS[value]
    found = _DURATION.fullmatch(value)
    if found:
        yield "duration", f"{int(found[1]) * 2} {found[2]}"
        yield "duration", f"{int(found[1]) + 1} {found[2]}"
    elif _SCHEMA.match(value):
        yield from _schemas(value)
    elif " " in value or "(" in value:
        for pattern, new in _SQL:
            for match in re.finditer(pattern, value):
                yield "sql", value[: match.start()] + match.expand(new) + value[match.end() :]


def _schemas(value: str) -> Iterator[tuple[str, str]]:
    columns = value.split(", ")
    for at in range(len(columns) - 1):
        swapped = [*columns[:at], columns[at + 1], columns[at], *columns[at + 2 :]]
        yield "schema", ", ".join(swapped)
    for at, column in enumerate(columns):
        name, kind = column.split()
        wider = {"LONG": "DOUBLE", "DATE": "STRING", "long": "double"}.get(kind)
        if wider:
            yield "schema", ", ".join([*columns[:at], f"{name} {wider}", *columns[at + 1 :]])


def _functions(node: ast.AST) -> Iterator[tuple[str, str, ast.AST]]:
    if isinstance(node, ast.Attribute) and node.attr in _FUNCTIONS:
        new = _FUNCTIONS[node.attr]
        yield "function", f"{node.attr} → {new}", ast.Attribute(node.value, new, ast.Load())
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        for pair in (("left", "right"), ("rows", "places")):
            if node.value.id in pair and node.attr in ("v", "k", "g"):
                other = pair[1 - pair.index(node.value.id)]
                moved = ast.Attribute(ast.Name(other, ast.Load()), node.attr, ast.Load())
                yield "side", f"{node.value.id} → {other}", moved


_OPERATORS: dict[type, type] = {
    ast.Gt: ast.GtE,
    ast.Lt: ast.LtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.GtE,
    ast.BitAnd: ast.BitOr,
    ast.Mult: ast.Add,
    ast.Add: ast.Sub,
    ast.Mod: ast.FloorDiv,
}


def _operators(node: ast.AST) -> Iterator[tuple[str, str, ast.AST]]:
    new = _OPERATORS.get(type(node))
    if new is not None:
        yield "operator", f"{type(node).__name__} → {new.__name__}", new()


def _arguments(node: ast.AST) -> Iterator[tuple[str, str, ast.AST]]:
    listed = node.elts if isinstance(node, ast.List) else getattr(node, "args", None)
    if not isinstance(listed, list) or not isinstance(node, (ast.List, ast.Call)):
        return
    for at in range(len(listed) - 1):
        swapped = copy.deepcopy(node)
        items = swapped.elts if isinstance(swapped, ast.List) else swapped.args
        items[at], items[at + 1] = items[at + 1], items[at]
        yield "order", f"arguments {at + 1} and {at + 2} swapped", swapped
    if len(listed) > 1:
        for at in range(len(listed)):
            fewer = copy.deepcopy(node)
            items = fewer.elts if isinstance(fewer, ast.List) else fewer.args
            what = ast.unparse(items.pop(at))
            yield "dropped", f"{what} left out", fewer


def _is_step(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _STEPS
        and not (isinstance(node.func.value, ast.Name) and node.func.value.id == "F")
    )


def _is_rows(node: ast.AST) -> bool:
    """A call that gives a DataFrame: a step, or the source itself."""
    read = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "read"
    return read or _is_step(node)


def _steps(node: ast.AST) -> Iterator[tuple[str, str, ast.AST]]:
    if _is_step(node):
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Attribute)
        yield "step-removed", f"{node.func.attr} left out", node.func.value
        inner = node.func.value
        if _is_step(inner):
            assert isinstance(inner, ast.Call)
            assert isinstance(inner.func, ast.Attribute)
            names = f"{inner.func.attr} and {node.func.attr} swapped"
            moved = copy.deepcopy(node)
            below = copy.deepcopy(inner)
            assert isinstance(moved.func, ast.Attribute)
            assert isinstance(below.func, ast.Attribute)
            moved.func.value = below.func.value
            below.func.value = moved
            yield "step-moved", names, below
        if node.func.attr in ("union", "unionByName", "join"):
            turned = copy.deepcopy(node)
            assert isinstance(turned.func, ast.Attribute)
            turned.func.value, turned.args[0] = turned.args[0], turned.func.value
            yield "sides", f"{node.func.attr}: sides swapped", turned
    if _is_rows(node):
        for step in ('where("v > 1")', 'where("w % 20 = 0")', 'withColumn("v", F.col("w"))'):
            kind = "filter-added" if step.startswith("where") else "redefined"
            yield kind, f"{step} added", _after(node, step)
        yield "redefined", "k is g from here", _after(node, 'withColumn("k", F.col("g"))')
        yield "unique-added", "dropDuplicates added", _after(node, 'dropDuplicates(["k"])')


def _after(node: ast.AST, step: str) -> ast.AST:
    call = ast.parse(f"x.{step}", mode="eval").body
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Attribute)
    call.func.value = node  # type: ignore[assignment]
    return call


def _each_literal(tree: ast.Module) -> Iterator[Edit]:
    return _each(tree, _literals)


def _each_function(tree: ast.Module) -> Iterator[Edit]:
    return _each(tree, _functions)


def _each_operator(tree: ast.Module) -> Iterator[Edit]:
    return _each(tree, _operators)


def _each_argument(tree: ast.Module) -> Iterator[Edit]:
    return _each(tree, _arguments)


def _each_step(tree: ast.Module) -> Iterator[Edit]:
    return _each(tree, _steps)


def _options(node: ast.AST) -> Iterator[tuple[str, str, ast.AST]]:
    """Options of one source."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return
    if node.func.id != "read":
        return
    for name, value in (
        ("latestFirst", True),
        ("pathGlobFilter", "[13].*"),
        ("mode", "DROPMALFORMED"),
        ("timestampFormat", "yyyy-MM-dd'T'HH:mm:ss'Z'"),
        ("maxFileAge", "1 minute"),
    ):
        more = copy.deepcopy(node)
        more.keywords.append(ast.keyword(name, ast.Constant(value)))
        yield "source-option", f"{name}={value}", more

    for at, one in enumerate(node.keywords):
        fewer = copy.deepcopy(node)
        fewer.keywords.pop(at)
        yield "source-option", f"{one.arg} left out", fewer


def _each_option(tree: ast.Module) -> Iterator[Edit]:
    return _each(tree, _options)


def _filters_swapped(tree: ast.Module) -> Iterator[Edit]:
    """The conditions of two filters change places."""
    found = [
        at
        for at, node in enumerate(ast.walk(tree))
        if _is_step(node) and node.func.attr == "where"  # type: ignore[attr-defined]
    ]
    for one in range(len(found)):
        for two in range(one + 1, len(found)):
            whole = copy.deepcopy(tree)
            nodes = list(ast.walk(whole))
            first, second = nodes[found[one]], nodes[found[two]]
            assert isinstance(first, ast.Call)
            assert isinstance(second, ast.Call)
            first.args, second.args = second.args, first.args
            yield "filters-swapped", "two filters swapped", ast.unparse(whole)


def _everywhere(tree: ast.Module) -> Iterator[Edit]:
    """A column that means something else at every source at once."""
    for name, value in (("k", 'F.upper("k")'), ("v", 'F.col("w")')):
        whole: ast.AST = copy.deepcopy(tree)
        reads = [node for node in ast.walk(whole) if _is_rows(node) and not _is_step(node)]
        if len(reads) > 1:
            for node in reads:
                whole = _put(whole, node, _after(node, f'withColumn("{name}", {value})'))
            yield "everywhere", f"{name} is {value} at every source", ast.unparse(whole)


EDITS: tuple[Callable[[ast.Module], Iterator[Edit]], ...] = (
    _each_literal,
    _each_function,
    _each_operator,
    _each_argument,
    _each_step,
    _each_option,
    _filters_swapped,
    _everywhere,
)
