"""A digest of a Python function: of what it does, and not of where it stands.

A plan holds a function as pickled bytes, in which line numbers and file names count. Here
comments, docstrings, empty lines and the names of variables do not; closures, defaults and the
globals that a function uses do, and so do the methods and values of objects that it holds.
"""

from __future__ import annotations

import dis
import hashlib
import json
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_DEEPEST = 12
_TAKES_ANY = 0x04 | 0x08  # *args and **kwargs


def function_digest(function: Any) -> str:
    """`3.11:5f3a…`: byte code differs with the minor release of Python."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    text = json.dumps(list(_said(function, {}, 0)))
    return f"{version}:{hashlib.sha256(text.encode()).hexdigest()}"


def _said(value: Any, seen: dict[int, int], depth: int) -> Iterator[str]:
    if isinstance(value, _PLAIN):
        yield repr(value)
        return
    if id(value) in seen or depth > _DEEPEST:
        yield f"again {type(value).__qualname__} {seen.get(id(value))}"
        return
    seen[id(value)] = len(seen)
    yield type(value).__qualname__
    if isinstance(value, types.MethodType):
        yield from _said(value.__func__, seen, depth + 1)
        yield from _said(value.__self__, seen, depth + 1)
    elif isinstance(value, types.FunctionType):
        yield from _function(value, seen, depth)
    elif isinstance(value, Mapping):
        for key in sorted(value, key=repr):
            yield from _said(key, seen, depth + 1)
            yield from _said(value[key], seen, depth + 1)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _said(one, seen, depth + 1)
    elif isinstance(value, (set, frozenset)):
        yield from sorted(repr(one) for one in value)
    elif isinstance(value, type):
        yield from _class(value, seen, depth)
    elif isinstance(value, types.ModuleType):
        yield value.__name__
    else:
        yield from _object(value, seen, depth)


def _function(function: types.FunctionType, seen: dict[int, int], depth: int) -> Iterator[str]:
    if not _is_users(function.__module__):
        yield f"{function.__module__}.{function.__qualname__}"
        # A wrapper of Spark's own holds what the user wrote in its closure.
        for cell in function.__closure__ or ():
            yield from _cell(cell, seen, depth)
        return
    yield from _code(function.__code__, function.__globals__, seen, depth)
    yield from _said(function.__defaults__, seen, depth + 1)
    yield from _said(function.__kwdefaults__, seen, depth + 1)
    for cell in function.__closure__ or ():
        yield from _cell(cell, seen, depth)


def _cell(cell: Any, seen: dict[int, int], depth: int) -> Iterator[str]:
    try:
        yield from _said(cell.cell_contents, seen, depth + 1)
    except ValueError:
        yield "empty"


def _code(
    code: types.CodeType, names: Mapping[str, Any], seen: dict[int, int], depth: int
) -> Iterator[str]:
    """Step by step: variables by their number, globals and constants by what they are."""
    yield f"{code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount}"
    yield f"{code.co_flags & _TAKES_ANY} {getattr(code, 'co_exceptiontable', b'').hex()}"
    for step in dis.get_instructions(code):
        yield step.opname
        if isinstance(step.argval, types.CodeType):
            yield from _code(step.argval, names, seen, depth + 1)
        elif step.opcode in dis.hasconst:
            yield from _said(step.argval, seen, depth + 1)
        elif step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and step.argval in names:
            yield from _said(names[step.argval], seen, depth + 1)
        elif step.opcode in dis.hasname:
            yield str(step.argval)
        else:
            yield str(step.arg)


def _class(kind: type, seen: dict[int, int], depth: int) -> Iterator[str]:
    yield f"{kind.__qualname__}"
    if not _is_users(kind.__module__):
        yield str(kind.__module__)
        return
    for base in kind.__bases__:
        yield from _said(base, seen, depth + 1)
    for name, member in sorted(vars(kind).items()):
        if name.startswith("__") and name.endswith("__") and not callable(member):
            continue
        yield name
        inner = getattr(member, "__func__", member)
        yield from _said(inner, seen, depth + 1)


def _object(value: Any, seen: dict[int, int], depth: int) -> Iterator[str]:
    kind = type(value)
    yield from _said(kind, seen, depth + 1)
    if _is_users(kind.__module__) or kind.__module__ in ("functools", "datetime", "decimal"):
        inside = getattr(value, "__dict__", None)
        if inside:
            yield from _said(inside, seen, depth + 1)
        if kind.__module__ == "functools":
            for name in ("func", "args", "keywords"):
                yield from _said(getattr(value, name, None), seen, depth + 1)
        elif kind.__module__ in ("datetime", "decimal"):
            yield repr(value)


def _is_users(module: str | None) -> bool:
    top = (module or "").partition(".")[0]
    return (
        top not in sys.stdlib_module_names
        and top
        not in (
            "pyspark",
            "py4j",
            "pandas",
            "numpy",
            "pyarrow",
            "floodmark",
            "cloudpickle",
            "builtins",
        )
    ) or top == "__main__"
