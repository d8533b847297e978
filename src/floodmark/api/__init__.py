"""One typed function per verb. The command line and the web only translate.

`storage` are the options that fsspec takes for the checkpoint's place.
"""

from __future__ import annotations

from floodmark.api.asked import Storage, missing_for_state
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
    scan,
    schemas,
    state,
    state_changes,
)
from floodmark.api.restating import convert, repartition

__all__ = [
    "OpenCheckpoint",
    "Storage",
    "accepted_rules",
    "apply",
    "backup",
    "batches",
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
    "repair",
    "repartition",
    "restore",
    "resume",
    "rewind",
    "scan",
    "schemas",
    "skeleton",
    "snapshots",
    "state",
    "state_changes",
    "undo",
    "upgrade",
]
