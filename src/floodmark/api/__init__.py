"""One typed function per verb. The command line and the web only translate.

`storage` are the options that fsspec takes for the checkpoint's place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # each verb's module is loaded when the verb is used
    from floodmark.api.arguments import Storage, missing_for_state
    from floodmark.api.changing import (
        apply,
        backup,
        check_backups,
        copy,
        forget,
        restore,
        resume,
        rewind,
        snapshots,
        undo,
        upgrade,
    )
    from floodmark.api.deploying import deploy
    from floodmark.api.judging import accepted_rules, check, doctor, explain, lint
    from floodmark.api.mending import compact, repair
    from floodmark.api.migrating import bootstrap, migrate, skeleton
    from floodmark.api.reading import (
        OpenCheckpoint,
        batches,
        diff,
        diff_state,
        files,
        inspect,
        look,
        missing_state,
        offsets,
        open,
        read_state,
        scan,
        schemas,
        state,
        state_changes,
    )
    from floodmark.api.restating import convert, repartition
    from floodmark.api.running import bisect, run

_WHERE = {
    "OpenCheckpoint": "floodmark.api.reading",
    "Storage": "floodmark.api.arguments",
    "accepted_rules": "floodmark.api.judging",
    "apply": "floodmark.api.changing",
    "backup": "floodmark.api.changing",
    "batches": "floodmark.api.reading",
    "bisect": "floodmark.api.running",
    "bootstrap": "floodmark.api.migrating",
    "check": "floodmark.api.judging",
    "check_backups": "floodmark.api.changing",
    "compact": "floodmark.api.mending",
    "convert": "floodmark.api.restating",
    "copy": "floodmark.api.changing",
    "deploy": "floodmark.api.deploying",
    "diff": "floodmark.api.reading",
    "diff_state": "floodmark.api.reading",
    "doctor": "floodmark.api.judging",
    "explain": "floodmark.api.judging",
    "files": "floodmark.api.reading",
    "forget": "floodmark.api.changing",
    "inspect": "floodmark.api.reading",
    "lint": "floodmark.api.judging",
    "look": "floodmark.api.reading",
    "migrate": "floodmark.api.migrating",
    "missing_for_state": "floodmark.api.arguments",
    "missing_state": "floodmark.api.reading",
    "offsets": "floodmark.api.reading",
    "open": "floodmark.api.reading",
    "read_state": "floodmark.api.reading",
    "repair": "floodmark.api.mending",
    "repartition": "floodmark.api.restating",
    "restore": "floodmark.api.changing",
    "resume": "floodmark.api.changing",
    "rewind": "floodmark.api.changing",
    "run": "floodmark.api.running",
    "scan": "floodmark.api.reading",
    "schemas": "floodmark.api.reading",
    "skeleton": "floodmark.api.migrating",
    "snapshots": "floodmark.api.changing",
    "state": "floodmark.api.reading",
    "state_changes": "floodmark.api.reading",
    "undo": "floodmark.api.changing",
    "upgrade": "floodmark.api.changing",
}

__all__ = [
    "OpenCheckpoint",
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
    "convert",
    "copy",
    "deploy",
    "diff",
    "diff_state",
    "doctor",
    "explain",
    "files",
    "forget",
    "inspect",
    "lint",
    "look",
    "migrate",
    "missing_for_state",
    "missing_state",
    "offsets",
    "open",
    "read_state",
    "repair",
    "repartition",
    "restore",
    "resume",
    "rewind",
    "run",
    "scan",
    "schemas",
    "skeleton",
    "snapshots",
    "state",
    "state_changes",
    "undo",
    "upgrade",
]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        import importlib

        return getattr(importlib.import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'floodmark.api' has no attribute {name!r}")
