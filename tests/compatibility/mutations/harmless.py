"""Changes of code that cannot change a result: names, comments, order, other ways to write it."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator

from compatibility.mutations.edits import Edit, _after, _each, _is_rows, _is_step


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: set[str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id in self._names:
            return ast.Name(f"{node.id}_again", node.ctx)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(f"{node.arg}_again") if node.arg in self._names else node


def _names(tree: ast.Module) -> Iterator[Edit]:
    """Python's own names: variables and parameters without defaults."""
    if any(isinstance(node, ast.ClassDef) for node in ast.walk(tree)):
        return
    stored = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    taken = {
        one.arg
        for node in ast.walk(tree)
        if isinstance(node, ast.arguments)
        for one in node.args[: len(node.args) - len(node.defaults)]
    }
    names = (stored | taken) - {"out"}
    if names:
        renamed = ast.unparse(ast.fix_missing_locations(_Renamed(names).visit(tree)))
        yield "names", f"{', '.join(sorted(names))} renamed", renamed


def _comment(tree: ast.Module) -> Iterator[Edit]:
    text = ast.unparse(tree)
    yield "comment", "comments", f"# What follows is explained here.\n\n{text}\n# The end.\n"


def _function(tree: ast.Module) -> Iterator[Edit]:
    """All of it in a function of its own."""
    if not any(isinstance(node, ast.Name) and node.id == "out" for node in ast.walk(tree)):
        return
    body = "\n".join(f"    {line}" for line in ast.unparse(tree).splitlines())
    yield "refactored", "into a function", f"def made():\n{body}\n    return out\nout = made()"


def _split(node: ast.AST) -> Iterator[tuple[str, str, ast.AST]]:
    if _is_rows(node):
        yield "select-all", 'select("*") added', _after(node, 'select("*")')
        yield "true-filter", "a filter that is always true", _after(node, 'where("true")')
        yield "named", "an alias for the DataFrame", _after(node, 'alias("again")')
    if _is_step(node):
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Attribute)
        argument = node.args[0] if node.args else None
        if (
            node.func.attr == "where"
            and isinstance(argument, ast.Constant)
            and isinstance(argument.value, str)
        ):
            yield from _conditions(node, argument.value)


def _conditions(node: ast.Call, text: str) -> Iterator[tuple[str, str, ast.AST]]:
    parts = text.split(" AND ")
    if len(parts) == 2:
        turned = copy.deepcopy(node)
        turned.args = [ast.Constant(f"{parts[1]} AND {parts[0]}")]
        yield "and-turned", "A AND B → B AND A", turned
        apart = copy.deepcopy(node)
        apart.args = [ast.Constant(parts[0])]
        step = f"where({parts[1]!r})"
        yield "and-split", "one filter → two", _after(apart, step)
    else:
        columns = copy.deepcopy(node)
        columns.args = [ast.parse(f"F.expr({text!r})", mode="eval").body]
        yield "spelling", "a text → F.expr", columns
        twice = copy.deepcopy(node)
        twice.args = [ast.Constant(f"({text}) AND ({text})")]
        yield "and-twice", "A → A AND A", twice


def _each_split(tree: ast.Module) -> Iterator[Edit]:
    return _each(tree, _split)


def _columns_named(node: ast.AST) -> Iterator[tuple[str, str, ast.AST]]:
    """groupBy("k") and groupBy(F.col("k")) are one."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("groupBy", "select", "rollup", "cube", "sum", "max", "min", "count")
    ):
        for at, one in enumerate(node.args):
            if (
                isinstance(one, ast.Constant)
                and isinstance(one.value, str)
                and "*" not in one.value
            ):
                spelt = copy.deepcopy(node)
                spelt.args[at] = ast.parse(f"F.col({one.value!r})", mode="eval").body
                yield "spelling", f"{one.value!r} → F.col", spelt
                return


def _each_column(tree: ast.Module) -> Iterator[Edit]:
    return _each(tree, _columns_named)


def _output(tree: ast.Module) -> Iterator[Edit]:
    """Columns of the output alone: behind the state there is nothing to carry."""
    text = ast.unparse(tree)
    if "out = " not in text:
        return
    yield (
        "column-after",
        "a column added at the end",
        f'{text}\nout = out.withColumn("more", F.lit(1))',
    )
    yield (
        "filter-after",
        "a filter on the output",
        f'{text}\nout = out.where("true")',
    )
    yield (
        "renamed-after",
        "the last column renamed at the end",
        f'{text}\nout = out.withColumnRenamed(out.columns[-1], "other")',
    )


HARMLESS: tuple[Callable[[ast.Module], Iterator[Edit]], ...] = (
    _names,
    _comment,
    _function,
    _each_split,
    _each_column,
    _output,
)
