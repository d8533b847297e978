"""Floodmark keeps Apache Spark streams going.

The public names are here; each is imported when it is first used, so that
`import floodmark` costs nothing and never loads pyspark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from floodmark.api import (
        batches,
        diff,
        diff_state,
        files,
        inspect,
        offsets,
        open,
        scan,
        state,
        state_changes,
    )
    from floodmark.checkpoint.model import Checkpoint
    from floodmark.engine.exactly_once import once
    from floodmark.engine.launch import start
    from floodmark.engine.pipeline import pipeline
    from floodmark.errors import FloodmarkError

_WHERE = {
    "Checkpoint": "floodmark.checkpoint.model",
    "FloodmarkError": "floodmark.errors",
    "batches": "floodmark.api",
    "diff": "floodmark.api",
    "diff_state": "floodmark.api",
    "files": "floodmark.api",
    "inspect": "floodmark.api",
    "offsets": "floodmark.api",
    "once": "floodmark.engine.exactly_once",
    "open": "floodmark.api",
    "pipeline": "floodmark.engine.pipeline",
    "scan": "floodmark.api",
    "start": "floodmark.engine.launch",
    "state": "floodmark.api",
    "state_changes": "floodmark.api",
}

__all__ = [
    "Checkpoint",
    "FloodmarkError",
    "batches",
    "diff",
    "diff_state",
    "files",
    "inspect",
    "offsets",
    "once",
    "open",
    "pipeline",
    "scan",
    "start",
    "state",
    "state_changes",
]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        import importlib

        return getattr(importlib.import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'floodmark' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
