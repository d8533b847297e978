"""Floodmark keeps Apache Spark streams going.

The public names are here; each is imported when it is first used, so that
`import floodmark` costs nothing and never loads pyspark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from floodmark.api import (
        Checkpoint,
        batches,
        diff,
        files,
        inspect,
        offsets,
        open,
        scan,
    )
    from floodmark.errors import FloodmarkError

_WHERE = {
    "Checkpoint": "floodmark.api",
    "FloodmarkError": "floodmark.errors",
    "batches": "floodmark.api",
    "diff": "floodmark.api",
    "files": "floodmark.api",
    "inspect": "floodmark.api",
    "offsets": "floodmark.api",
    "open": "floodmark.api",
    "scan": "floodmark.api",
}

__all__ = [
    "Checkpoint",
    "FloodmarkError",
    "batches",
    "diff",
    "files",
    "inspect",
    "offsets",
    "open",
    "scan",
]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        import importlib

        return getattr(importlib.import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'floodmark' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
