"""Converts state files to Arrow and back. Nothing in this package opens a file.

The package has the name of a verb, and every verb is a function of `floodmark`. So the package
can be called: `floodmark.state(CP)` is `floodmark.read_state(CP)`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Verb(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return sys.modules["floodmark"].read_state(*arguments, **options)


sys.modules[__name__].__class__ = _Verb
