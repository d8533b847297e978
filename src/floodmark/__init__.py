"""Floodmark keeps Apache Spark streams going.

The public names are here; each is imported when it is first used, so that
`import floodmark` costs nothing and never loads pyspark.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

# pip refuses an older Python; a folder on PYTHONPATH, or --py-files, goes past pip.
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
    from floodmark.checkpoint.views.inspection import Inspection
    from floodmark.connectors.behind import Lag
    from floodmark.engine.dstreams.declaration import dstream
    from floodmark.engine.pipelines.pipeline import pipeline
    from floodmark.engine.sinks.exactly_once import once
    from floodmark.engine.spark.lineage import truncate_lineage
    from floodmark.engine.start.launch import start
    from floodmark.errors import FloodmarkError
    from floodmark.rules.finding import Finding, Rule, Severity
    from floodmark.rules.restarts.reason import Judgement, Reason, Verdict
    from floodmark.statestore.view import StateView

_ELSEWHERE = {
    "Batch": "floodmark.checkpoint.timeline",
    "Change": "floodmark.changes.apply",
    "Checkpoint": "floodmark.checkpoint.model",
    "Finding": "floodmark.rules.finding",
    "FloodmarkError": "floodmark.errors",
    "Inspection": "floodmark.checkpoint.views.inspection",
    "Judgement": "floodmark.rules.restarts.reason",
    "Lag": "floodmark.connectors.behind",
    "Plan": "floodmark.changes.plan",
    "Reason": "floodmark.rules.restarts.reason",
    "Rule": "floodmark.rules.finding",
    "Severity": "floodmark.rules.finding",
    "StateView": "floodmark.statestore.view",
    "Verdict": "floodmark.rules.restarts.reason",
    "dstream": "floodmark.engine.dstreams.declaration",
    "once": "floodmark.engine.sinks.exactly_once",
    "pipeline": "floodmark.engine.pipelines.pipeline",
    "start": "floodmark.engine.start.launch",
    "truncate_lineage": "floodmark.engine.spark.lineage",
}
"""The homes of the names that `floodmark.api` does not have."""

__all__ = [
    "Batch",
    "Change",
    "Checkpoint",
    "Finding",
    "FloodmarkError",
    "Inspection",
    "Judgement",
    "Lag",
    "Plan",
    "Reason",
    "Rule",
    "Severity",
    "StateView",
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
    if name in __all__:
        import importlib

        return getattr(importlib.import_module(_ELSEWHERE.get(name, "floodmark.api")), name)
    raise AttributeError(f"module 'floodmark' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
