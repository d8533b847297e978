"""Finds which Spark planned a checkpoint's newest batch, and its ANSI mode. Pure. Pure.

No checkpoint pins these settings. ANSI mode is off by default in Spark 3 and on in Spark 4.
"""

from __future__ import annotations

from collections.abc import Mapping

from floodmark.checkpoint.conf_keys import STATE_ENCODING
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.outline import ANSI
from floodmark.checkpoint.start_note import LastStart

Version = tuple[int, int]
_FIRST_OF_4: Version = (4, 0)
_LAST_OF_3: Version = (3, 5)


def version_of(text: str) -> Version:
    parts = [part for part in text.split(".")[:2] if part.isdecimal()]
    return (int(parts[0]), int(parts[1])) if len(parts) == 2 else (0, 0)


def is_of_4(checkpoint: Checkpoint) -> bool | None:
    """Whether Spark 4 or a later one planned the newest batch; None where no entry tells."""
    entry = checkpoint.latest_entry
    if entry is None or entry.metadata is None:
        return None
    # Spark 4.0 and later write this key into every entry, of queries without state as well.
    return STATE_ENCODING in entry.metadata.conf


def planned_by(checkpoint: Checkpoint, last: LastStart | None) -> Version | None:
    """Return the Spark version; None if neither a note nor the newest offset entry shows it."""
    noted = None if last is None or last.is_drawn else version_of(last.spark_version)
    of_4 = is_of_4(checkpoint)
    if of_4 is None:
        return noted or None
    if noted is None:
        return None if of_4 else _LAST_OF_3
    return max(noted, _FIRST_OF_4) if of_4 else noted


def ansi_mode(conf: Mapping[str, str], spark: Version | None) -> str | None:
    """Return `true` or `false`; None if the Spark version is not known."""
    if ANSI in conf or spark is None:
        return conf.get(ANSI)
    return "true" if spark >= _FIRST_OF_4 else "false"


def version_words(version: Version) -> str:
    return f"{version[0]}.{version[1]}" if version > _LAST_OF_3 else "before 4.0"
