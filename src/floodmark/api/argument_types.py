"""Checks what Python callers give to the verbs, by the annotations of the verbs themselves.

A value of a wrong type would fail somewhere below, with words about floodmark's own code. The
command line does not come here: its options have types of their own.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from floodmark.errors import WrongUse

_Test = Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, (str, bytes))


# By what a value can do: numpy's numbers and pandas' times fit as well as Python's own.
_TESTS: dict[str, _Test] = {
    "None": lambda value: value is None,
    "str": lambda value: isinstance(value, str) or hasattr(value, "__fspath__"),
    "Path": lambda value: hasattr(value, "__fspath__"),
    "PathLike": lambda value: hasattr(value, "__fspath__"),
    "bool": lambda value: hasattr(value, "__bool__"),
    "int": lambda value: hasattr(value, "__index__"),
    "float": lambda value: hasattr(value, "__float__"),
    "datetime": lambda value: hasattr(value, "timestamp"),
    "Mapping": lambda value: hasattr(value, "keys") and hasattr(value, "__getitem__"),
    "Storage": lambda value: hasattr(value, "keys") and hasattr(value, "__getitem__"),
    "Iterable": lambda value: hasattr(value, "__iter__") and not _is_text(value),
    "Callable": callable,
}
_WORDS = {
    "None": "None",
    "str": "a text",
    "Path": "a path",
    "PathLike": "a path",
    "bool": "True or False",
    "int": "a whole number",
    "float": "a number",
    "datetime": "a datetime",
    "Mapping": "a dict",
    "Storage": "a dict",
    "Iterable": "a list of texts",
    "Callable": "a function",
}


@cache
def checked(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Return the verb, with arguments of a wrong type refused before it begins."""
    signature = inspect.signature(verb)
    forms = {name: _form(one.annotation) for name, one in signature.parameters.items()}

    @wraps(verb)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            given = signature.bind(*arguments, **options).arguments
        except TypeError:
            return verb(*arguments, **options)  # Python says which name is missing or unknown
        for name, value in given.items():
            if forms[name] is not None and not forms[name][0](value):
                raise WrongUse(
                    f"{verb.__name__}: {name} is {value!r:.60}, of the type {type(value).__name__}",
                    do=f"Give {forms[name][1]}.",
                )
        return verb(*arguments, **options)

    return call


def _form(annotation: Any) -> Any:
    """Return a test and its words; None where anything is taken."""
    if not isinstance(annotation, str):
        return None
    parts = [_one(part) for part in _alternatives(ast.parse(annotation, mode="eval").body)]
    if not all(parts):
        return None
    tests = [test for test, _ in parts]
    words = dict.fromkeys(word for _, word in parts)
    return lambda value: any(test(value) for test in tests), " or ".join(words)


def _alternatives(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [*_alternatives(node.left), *_alternatives(node.right)]
    return [node]


def _one(node: ast.expr) -> Any:
    if isinstance(node, ast.Subscript):
        if ast.unparse(node.value) == "tuple" and isinstance(node.slice, ast.Tuple):
            return _tuple([_one(part) for part in node.slice.elts])
        node = node.value
    name = ast.unparse(node)
    return (_TESTS[name], _WORDS[name]) if name in _TESTS else None


def _tuple(parts: list[Any]) -> Any:
    if not all(parts):
        return None

    def fits(value: Any) -> bool:
        return (
            isinstance(value, (tuple, list))
            and len(value) == len(parts)
            and all(test(one) for (test, _), one in zip(parts, value, strict=True))
        )

    return fits, f"a tuple ({', '.join(word for _, word in parts)})"
