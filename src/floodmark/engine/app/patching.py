"""Replaces functions and attributes temporarily."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import CodeType, FunctionType, ModuleType
from typing import Any

_ABSENT = object()
WRAPPERS: set[CodeType] = set()
"""The code of functions that replace others, which do not count as callers."""


class Patches(contextlib.ExitStack):
    """Restores everything when it closes, in reverse order."""

    def set(self, owner: Any, name: str, value: Any) -> None:
        if isinstance(value, FunctionType):
            WRAPPERS.add(value.__code__)
        before = vars(owner).get(name, _ABSENT)
        setattr(owner, name, value)
        self.callback(_restore, owner, name, before)

    def wrap(self, owner: Any, name: str, wrapper: Callable[[Any], Any]) -> None:
        """Replace a function by `wrapper(original)`; skip a name that this release lacks."""
        before = getattr(owner, name, None)
        if before is not None:
            self.set(owner, name, wrapper(before))

    def when_imported(self, name: str, patch: Callable[[ModuleType], None]) -> None:
        """Call `patch` with the module as soon as it is imported; most scripts never import it."""
        if name in sys.modules:
            patch(sys.modules[name])
            return
        finder = _PatchedImport(name, patch)
        sys.meta_path.insert(0, finder)
        self.callback(_forget, finder)


class _PatchedImport:
    """Finds one module as Python does, and patches it after its code has run."""

    def __init__(self, name: str, patch: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._patch = patch

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == self._name else None
        if spec is None or spec.loader is None:
            return None
        loader = spec.loader
        load = loader.exec_module

        def load_and_patch(module: ModuleType) -> None:
            loader.exec_module = load  # type: ignore[method-assign]
            load(module)
            self._patch(module)

        loader.exec_module = load_and_patch  # type: ignore[method-assign]
        return spec


def _forget(finder: _PatchedImport) -> None:
    # The script may have replaced the list.
    if finder in sys.meta_path:
        sys.meta_path.remove(finder)


def _restore(owner: Any, name: str, before: Any) -> None:
    if before is _ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, before)
