"""Compiles the user's modules from their source while code is judged.

Python takes bytecode for current by the second and the size of the source. A module that was
edited within one second, `v > 1` to `v > 2`, would be judged as it was before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import Any

from floodmark.engine.app.patching import Patches


def leave_out_bytecode(patches: Patches, is_users: Callable[[str], bool]) -> None:
    """Neither write bytecode nor read it for the user's modules; installed packages keep theirs."""
    read = SourceFileLoader.get_code

    def get_code(self: Any, name: str) -> CodeType | None:
        path = self.get_filename(name)
        if not is_users(path):
            return read(self, name)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code

    patches.set(sys, "dont_write_bytecode", True)
    patches.set(SourceFileLoader, "get_code", get_code)
