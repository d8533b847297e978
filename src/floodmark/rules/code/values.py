"""Evaluates expressions without running them: literals, names, f-strings, joined paths."""

from __future__ import annotations

import ast
import json
from dataclasses import replace

from floodmark.rules.code.facts import Value
from floodmark.rules.code.scopes import Scope

_DEEPEST = 12
_JOINING = frozenset({"os.path.join", "posixpath.join", "join"})
_SAME = frozenset({"str", "Path", "pathlib.Path", "PurePosixPath", "os.path.abspath", "os.fspath"})
_ENVIRONMENT = frozenset({"os.getenv", "os.environ.get", "getenv", "environ.get"})
_JSON = frozenset({"json.dumps", "dumps"})
_SAME_METHODS = frozenset(
    {"rstrip", "lstrip", "strip", "as_posix", "as_uri", "resolve", "absolute"}
)
UNKNOWN = Value("{}")


def dotted(node: ast.expr) -> str:
    """Return `a.b.c` for a name or attribute; a call in between appears as `()`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    if isinstance(node, ast.Call):
        return f"{dotted(node.func)}()"
    return "?"


def _text(node: ast.expr) -> str:
    try:
        return ast.unparse(node)
    except ValueError:  # an f-string may need quotes that Python before 3.12 cannot write
        return f"@{id(node)}"


def value_of(node: ast.expr, scope: Scope, depth: int = 0) -> Value:
    if depth > _DEEPEST:
        return UNKNOWN
    if isinstance(node, ast.Constant):
        return _constant(node.value)
    if isinstance(node, ast.Name):
        return _name(node, scope, depth)
    if isinstance(node, ast.JoinedStr):
        return _joined(node, scope, depth)
    if isinstance(node, ast.BinOp):
        return _operation(node, scope, depth)
    if isinstance(node, ast.Call):
        return _call(node, scope, depth)
    if isinstance(node, ast.Attribute):
        calls = value_of(node.value, scope, depth + 1).calls
        names = frozenset({dotted(node), node.attr})
        return Value("{}", names, calls, unknowns=(_text(node),))
    if isinstance(node, ast.Subscript):
        inner = value_of(node.value, scope, depth + 1)
        key = value_of(node.slice, scope, depth + 1)
        names = inner.names | key.names | ({key.pattern} if key.known else set())
        return Value("{}", names, unknowns=(_text(node),))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = value_of(node.operand, scope, depth + 1)
        return Value(f"-{inner.pattern}", known=inner.known, number=_negative(inner.number))
    return UNKNOWN


def _negative(number: float | None) -> float | None:
    return None if number is None else -number


def _constant(value: object) -> Value:
    if isinstance(value, bool):
        return Value(str(value).lower(), known=True)
    if isinstance(value, (int, float)):
        return Value(str(value), known=True, number=float(value))
    return Value(value, known=True) if isinstance(value, str) else Value(str(value), known=True)


def _name(node: ast.Name, scope: Scope, depth: int) -> Value:
    found = scope.value(node.id, node.lineno)
    if found is None:
        return Value("{}", frozenset({node.id}), unknowns=(f"{node.id}@{scope.binder(node.id)}",))
    inner = value_of(found[0], found[1], depth + 1)
    return replace(inner, names=inner.names | {node.id})


def _together(parts: list[Value], between: str = "") -> Value:
    return Value(
        between.join(part.pattern for part in parts),
        frozenset().union(*(part.names for part in parts)),
        frozenset().union(*(part.calls for part in parts)),
        all(part.known for part in parts),
        unknowns=tuple(unknown for part in parts for unknown in part.unknowns),
    )


def _joined(node: ast.JoinedStr, scope: Scope, depth: int) -> Value:
    parts = [
        value_of(part.value if isinstance(part, ast.FormattedValue) else part, scope, depth + 1)
        for part in node.values
    ]
    return _together(parts) if parts else Value("", known=True)


def _operation(node: ast.BinOp, scope: Scope, depth: int) -> Value:
    left, right = value_of(node.left, scope, depth + 1), value_of(node.right, scope, depth + 1)
    if isinstance(node.op, ast.Div) and left.number is None:
        return _together([left, right], "/")  # Path("a") / "b"
    if isinstance(node.op, ast.Mult) and left.number is not None and right.number is not None:
        return Value(str(left.number * right.number), known=True, number=left.number * right.number)
    joined = _together([left, right])
    if isinstance(node.op, ast.Add) and left.number is None:
        return joined
    return Value(left.pattern.replace("%s", "{}"), joined.names, joined.calls)


def _call(node: ast.Call, scope: Scope, depth: int) -> Value:
    name = dotted(node.func)
    arguments = [value_of(argument, scope, depth + 1) for argument in node.args]
    if name in _JOINING and arguments:
        return _together(
            [
                replace(part, pattern=part.pattern.strip("/") if at else part.pattern.rstrip("/"))
                for at, part in enumerate(arguments)
            ],
            "/",
        )
    if name in _ENVIRONMENT and len(arguments) == 2:
        unknowns = (f"{name}({arguments[0].pattern})",)
        return Value("{}", calls=frozenset({name}), unknowns=unknowns, default=arguments[1].literal)
    if name in _JSON and len(node.args) == 1:
        return _json(node.args[0], scope)
    if name in _SAME and arguments:
        return _together(arguments, "/")
    if isinstance(node.func, ast.Attribute):
        if node.func.attr in _SAME_METHODS:
            return value_of(node.func.value, scope, depth + 1)
        if node.func.attr == "format" and isinstance(node.func.value, ast.Constant):
            inner = _together([value_of(node.func.value, scope, depth + 1), *arguments])
            return Value(str(node.func.value.value), inner.names, inner.calls)
        before = value_of(node.func.value, scope, depth + 1)
        arguments.append(Value("", before.names, before.calls))
    inner = _together(arguments) if arguments else UNKNOWN
    # One call found through two variables is one value; a second call may return another.
    return Value("{}", inner.names, inner.calls | {name}, unknowns=(f"{name}()@{id(node)}",))


def _json(node: ast.expr, scope: Scope) -> Value:
    found = scope.value(node.id, node.lineno) if isinstance(node, ast.Name) else None
    try:
        written = json.dumps(ast.literal_eval(found[0] if found else node))
    except (ValueError, TypeError, RecursionError, MemoryError):
        return UNKNOWN
    return Value(written, known=True)
