"""Provides one typed function per verb; the command line and the web only translate.

`storage` holds fsspec's options for the checkpoint's location.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # each verb's module is loaded when the verb is used
    from floodmark.api.applying import apply, forget, resume, undo
    from floodmark.api.arguments import Storage, missing_for_state
    from floodmark.api.deploying import deploy
    from floodmark.api.drilling import drill
    from floodmark.api.judging import accepted_rules, check, doctor, explain, lint, outline
    from floodmark.api.lagging import lag
    from floodmark.api.leaving import leave_dstreams
    from floodmark.api.looking import flow, inspect, look, missing_state
    from floodmark.api.migrating import bootstrap, migrate, skeleton
    from floodmark.api.pipelines import PipelineFlows, flows, has_flows, next_checkpoint
    from floodmark.api.proving import compare, replay
    from floodmark.api.reading import batches, diff, diff_state, files, offsets, scan
    from floodmark.api.reading_state import (
        OpenCheckpoint,
        open,
        read_state,
        schemas,
        state,
        state_changes,
    )
    from floodmark.api.repairing import compact, repair
    from floodmark.api.repository import backup, check_backups, restore, snapshots
    from floodmark.api.rewinding import rewind
    from floodmark.api.rewriting_state import convert, repartition
    from floodmark.api.running import bisect, demo, run
    from floodmark.api.serving import Served, serve
    from floodmark.api.upgrading import copy, upgrade
    from floodmark.api.watching import watch

_WHERE = {
    "OpenCheckpoint": "floodmark.api.reading_state",
    "PipelineFlows": "floodmark.api.pipelines",
    "Served": "floodmark.api.serving",
    "Storage": "floodmark.api.arguments",
    "accepted_rules": "floodmark.api.judging",
    "apply": "floodmark.api.applying",
    "backup": "floodmark.api.repository",
    "batches": "floodmark.api.reading",
    "bisect": "floodmark.api.running",
    "bootstrap": "floodmark.api.migrating",
    "check": "floodmark.api.judging",
    "check_backups": "floodmark.api.repository",
    "compact": "floodmark.api.repairing",
    "compare": "floodmark.api.proving",
    "convert": "floodmark.api.rewriting_state",
    "copy": "floodmark.api.upgrading",
    "demo": "floodmark.api.running",
    "deploy": "floodmark.api.deploying",
    "diff": "floodmark.api.reading",
    "diff_state": "floodmark.api.reading",
    "doctor": "floodmark.api.judging",
    "drill": "floodmark.api.drilling",
    "explain": "floodmark.api.judging",
    "files": "floodmark.api.reading",
    "flow": "floodmark.api.looking",
    "flows": "floodmark.api.pipelines",
    "forget": "floodmark.api.applying",
    "has_flows": "floodmark.api.pipelines",
    "inspect": "floodmark.api.looking",
    "lag": "floodmark.api.lagging",
    "leave_dstreams": "floodmark.api.leaving",
    "lint": "floodmark.api.judging",
    "look": "floodmark.api.looking",
    "migrate": "floodmark.api.migrating",
    "missing_for_state": "floodmark.api.arguments",
    "missing_state": "floodmark.api.looking",
    "next_checkpoint": "floodmark.api.pipelines",
    "offsets": "floodmark.api.reading",
    "open": "floodmark.api.reading_state",
    "outline": "floodmark.api.judging",
    "read_state": "floodmark.api.reading_state",
    "repair": "floodmark.api.repairing",
    "repartition": "floodmark.api.rewriting_state",
    "replay": "floodmark.api.proving",
    "restore": "floodmark.api.repository",
    "resume": "floodmark.api.applying",
    "rewind": "floodmark.api.rewinding",
    "run": "floodmark.api.running",
    "scan": "floodmark.api.reading",
    "schemas": "floodmark.api.reading_state",
    "serve": "floodmark.api.serving",
    "skeleton": "floodmark.api.migrating",
    "snapshots": "floodmark.api.repository",
    "state": "floodmark.api.reading_state",
    "state_changes": "floodmark.api.reading_state",
    "undo": "floodmark.api.applying",
    "upgrade": "floodmark.api.upgrading",
    "watch": "floodmark.api.watching",
}

__all__ = [
    "OpenCheckpoint",
    "PipelineFlows",
    "Served",
    "Storage",
    "accepted_rules",
    "apply",
    "backup",
    "batches",
    "bisect",
    "bootstrap",
    "check",
    "check_backups",
    "compact",
    "compare",
    "convert",
    "copy",
    "demo",
    "deploy",
    "diff",
    "diff_state",
    "doctor",
    "drill",
    "explain",
    "files",
    "flow",
    "flows",
    "forget",
    "has_flows",
    "inspect",
    "lag",
    "leave_dstreams",
    "lint",
    "look",
    "migrate",
    "missing_for_state",
    "missing_state",
    "next_checkpoint",
    "offsets",
    "open",
    "outline",
    "read_state",
    "repair",
    "repartition",
    "replay",
    "restore",
    "resume",
    "rewind",
    "run",
    "scan",
    "schemas",
    "serve",
    "skeleton",
    "snapshots",
    "state",
    "state_changes",
    "undo",
    "upgrade",
    "watch",
]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        import importlib

        return getattr(importlib.import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'floodmark.api' has no attribute {name!r}")
