"""Finds a checkpoint in a temporary folder."""

from __future__ import annotations

import re
from collections.abc import Iterator

from floodmark.checkpoint.conf_keys import DEFAULT_CHECKPOINT_LOCATION
from floodmark.rules.code.changing_paths import temporary_calls
from floodmark.rules.code.facts import Code, Option
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM202",
    "checkpoint-in-temporary-folder",
    Severity.WARNING,
    finds="A checkpoint under /tmp, /var/tmp, /dev/shm, /dbfs/tmp or %TEMP%, or in a folder that "
    "tempfile created.",
    matters="A reboot or a clean-up job empties such folders, and most are on one machine only.",
    restart="With the folder gone the query starts over: without its state, and at its source's "
    "starting offsets.",
    instead="A folder on storage that outlives the machine: S3, HDFS, ABFS, a volume.",
)
_TEMPORARY = re.compile(
    r"(dbfs:|file:)?/*(dbfs/)?(local_disk0/)?(private/)?(var/)?tmp(/|$)|(file:)?/*dev/shm/|.*%temp%",
    re.IGNORECASE,
)


def check(code: Code) -> Iterator[Finding]:
    for option in _checkpoints(code):
        value = option.value
        made = temporary_calls(value)
        if value.default and _is_temporary(value.default):
            yield RULE.finding(
                code.path,
                f"The checkpoint's default is a temporary folder: {value.default}.",
                line=option.line,
                severity=Severity.ADVICE,
            )
        elif made or _is_temporary(value.pattern):
            where = f"made by {made[0]}()" if made else value.pattern.replace("{}", "…")
            yield RULE.finding(
                code.path, f"The checkpoint is in a temporary folder: {where}.", line=option.line
            )


def _is_temporary(path: str) -> bool:
    absolute = path.startswith(("/", "file:", "dbfs:", "%"))
    return absolute and _TEMPORARY.match(path) is not None


def _checkpoints(code: Code) -> list[Option]:
    return [
        *(stream.checkpoint for stream in code.streams if stream.checkpoint),
        *code.dstreams.directories,
        *(conf for conf in code.confs if conf.key == DEFAULT_CHECKPOINT_LOCATION),
    ]
