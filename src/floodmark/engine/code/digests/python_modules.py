"""Reads the code of modules that functions import: compiles their files, never runs them.

A worker imports a module from its file again, so the file counts, and not the module that this
process has loaded.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import sys
import types
from importlib.machinery import ModuleSpec, PathFinder

_INSTALLED = ("site-packages", "dist-packages")
_PACKAGES = frozenset(
    ["pyspark", "py4j", "pandas", "numpy", "pyarrow", "floodmark", "cloudpickle", "builtins"]
)


def is_users(module: str | None) -> bool:
    """Whether a module is the user's: neither Python's own nor one that comes with Spark."""
    top = (module or "").partition(".")[0]
    return (top not in sys.stdlib_module_names and top not in _PACKAGES) or top == "__main__"


def module_code(name: str) -> types.CodeType | str | None:
    """Return a module's code, or an installed package's version; None: no such module."""
    spec = _spec(name)
    if spec is None:
        return None
    if _lies_installed(spec):
        return _version(name.partition(".")[0])
    source = getattr(spec.loader, "get_source", None)
    try:
        text = source(name) if source is not None else None
        if text is None:  # a folder without __init__.py has no code of its own
            return "" if spec.submodule_search_locations is not None else None
        return compile(_without_docstrings(ast.parse(text)), name, "exec", dont_inherit=True)
    except (ImportError, OSError, SyntaxError, ValueError):
        return None


def is_installed(name: str) -> bool:
    """Whether a module is part of an installed package."""
    spec = _spec(name)
    return spec is not None and _lies_installed(spec)


def _lies_installed(spec: ModuleSpec) -> bool:
    return any(part in (spec.origin or "") for part in _INSTALLED)


def is_package(name: str) -> bool:
    spec = _spec(name)
    return spec is not None and spec.submodule_search_locations is not None


def imported_name(name: str, level: int, package: str | None) -> str:
    """Resolve a relative import such as `from .units import size` against its package."""
    if not level:
        return name
    try:
        return importlib.util.resolve_name("." * level + name, package)
    except ImportError:
        return name


def _spec(name: str) -> ModuleSpec | None:
    loaded = getattr(sys.modules.get(name), "__spec__", None)
    if isinstance(loaded, ModuleSpec) and loaded.loader is not None:
        return loaded
    spec, folders = None, None
    parts = name.split(".")
    for at in range(len(parts)):
        spec = PathFinder.find_spec(".".join(parts[: at + 1]), folders)
        if spec is None:
            return None
        folders = list(spec.submodule_search_locations or ())
    return spec


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        names = importlib.metadata.packages_distributions().get(package, [])
        return ", ".join(importlib.metadata.version(one) for one in sorted(set(names)))


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                rest = node.body[1:]
                node.body[:] = rest or [ast.copy_location(ast.Pass(), first)]
    return tree
