"""Floodmark keeps Apache Spark streams going.

The public names are here; each is imported when it is first used, so that
`import floodmark` costs nothing and never loads pyspark.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

# pip refuses an older Python; a folder on PYTHONPATH, or --py-files, bypasses pip.
if sys.version_info < (3, 10):  # noqa: UP036
    raise SystemExit(
        "floodmark needs Python 3.10 or later, and this is "
        + ".".join(map(str, sys.version_info[:3]))
        + ". Run it with a newer one: python3.12 -m pip install floodmark"
    )

__version__ = "0.1.0"

if TYPE_CHECKING:
    from floodmark.api import (
        apply,
        backup,
        batches,
        bisect,
        bootstrap,
        check,
        check_backups,
        compact,
        compare,
        convert,
        copy,
        demo,
        deploy,
        diff,
        diff_state,
        doctor,
        drill,
        explain,
        files,
        forget,
        inspect,
        lag,
        leave_dstreams,
        lint,
        migrate,
        offsets,
        open,
        outline,
        read_state,
        repair,
        repartition,
        replay,
        restore,
        resume,
        rewind,
        run,
        scan,
        schemas,
        serve,
        skeleton,
        snapshots,
        state_changes,
        undo,
        upgrade,
        watch,
    )
    from floodmark.changes.apply import Change
    from floodmark.changes.plan import Plan
    from floodmark.checkpoint.model import Checkpoint
    from floodmark.checkpoint.timeline import Batch
    from floodmark.checkpoint.views.differences import Difference
    from floodmark.checkpoint.views.inspection import Inspection, ScanEntry
    from floodmark.checkpoint.views.position import Position
    from floodmark.connectors.behind import Lag
    from floodmark.connectors.files.input_files import InputFile
    from floodmark.engine.bisect.bisect import BisectReport
    from floodmark.engine.demo.story import Story
    from floodmark.engine.drill.drill import Drill
    from floodmark.engine.dstreams.declaration import dstream
    from floodmark.engine.pipelines.decorator import pipeline
    from floodmark.engine.proof.compare import CodeComparison
    from floodmark.engine.proof.replay import Replay
    from floodmark.engine.run.stream import RunReport
    from floodmark.engine.sinks.exactly_once import once
    from floodmark.engine.spark.lineage import truncate_lineage
    from floodmark.engine.start.launch import start
    from floodmark.errors import FloodmarkError
    from floodmark.fleet.sighting import Sighting
    from floodmark.rules.finding import Finding, Rule, Severity
    from floodmark.rules.restarts.reason import Judgement, Reason, Verdict
    from floodmark.statestore.compare import StateDifference
    from floodmark.statestore.diff import StateDiff
    from floodmark.statestore.dstreams import DStreamState
    from floodmark.statestore.schema import StoreSchema
    from floodmark.statestore.view import StateView
    from floodmark.storage.repository import Snapshot

_ELSEWHERE = {
    "Batch": "floodmark.checkpoint.timeline",
    "BisectReport": "floodmark.engine.bisect.bisect",
    "Change": "floodmark.changes.apply",
    "Checkpoint": "floodmark.checkpoint.model",
    "CodeComparison": "floodmark.engine.proof.compare",
    "DStreamState": "floodmark.statestore.dstreams",
    "Difference": "floodmark.checkpoint.views.differences",
    "Drill": "floodmark.engine.drill.drill",
    "Finding": "floodmark.rules.finding",
    "FloodmarkError": "floodmark.errors",
    "InputFile": "floodmark.connectors.files.input_files",
    "Inspection": "floodmark.checkpoint.views.inspection",
    "Judgement": "floodmark.rules.restarts.reason",
    "Lag": "floodmark.connectors.behind",
    "Plan": "floodmark.changes.plan",
    "Position": "floodmark.checkpoint.views.position",
    "Reason": "floodmark.rules.restarts.reason",
    "Replay": "floodmark.engine.proof.replay",
    "Rule": "floodmark.rules.finding",
    "RunReport": "floodmark.engine.run.stream",
    "ScanEntry": "floodmark.checkpoint.views.inspection",
    "Severity": "floodmark.rules.finding",
    "Sighting": "floodmark.fleet.sighting",
    "Snapshot": "floodmark.storage.repository",
    "StateDiff": "floodmark.statestore.diff",
    "StateDifference": "floodmark.statestore.compare",
    "StateView": "floodmark.statestore.view",
    "StoreSchema": "floodmark.statestore.schema",
    "Story": "floodmark.engine.demo.story",
    "Verdict": "floodmark.rules.restarts.reason",
    "dstream": "floodmark.engine.dstreams.declaration",
    "once": "floodmark.engine.sinks.exactly_once",
    "pipeline": "floodmark.engine.pipelines.decorator",
    "start": "floodmark.engine.start.launch",
    "truncate_lineage": "floodmark.engine.spark.lineage",
}
"""The modules of the names that `floodmark.api` does not have."""

__all__ = [
    "Batch",
    "BisectReport",
    "Change",
    "Checkpoint",
    "CodeComparison",
    "DStreamState",
    "Difference",
    "Drill",
    "Finding",
    "FloodmarkError",
    "InputFile",
    "Inspection",
    "Judgement",
    "Lag",
    "Plan",
    "Position",
    "Reason",
    "Replay",
    "Rule",
    "RunReport",
    "ScanEntry",
    "Severity",
    "Sighting",
    "Snapshot",
    "StateDiff",
    "StateDifference",
    "StateView",
    "StoreSchema",
    "Story",
    "Verdict",
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
    "dstream",
    "explain",
    "files",
    "forget",
    "inspect",
    "lag",
    "leave_dstreams",
    "lint",
    "migrate",
    "offsets",
    "once",
    "open",
    "outline",
    "pipeline",
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
    "start",
    "state_changes",
    "truncate_lineage",
    "undo",
    "upgrade",
    "watch",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name == "state":  # a package that can be called, and is no name of a star import
        return importlib.import_module("floodmark.state")
    if name in __all__:
        found = getattr(importlib.import_module(_ELSEWHERE.get(name, "floodmark.api")), name)
        if name in _ELSEWHERE:
            return found
        return importlib.import_module("floodmark.api.argument_types").checked(found)
    raise AttributeError(f"module 'floodmark' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
