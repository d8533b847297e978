"""Which Spark planned a checkpoint's newest batch, and which ANSI mode it took. Pure.

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


def planned_by(checkpoint: Checkpoint, last: LastStart | None) -> Version | None:
    """None where neither a note nor the newest entry of the offset log tells."""
    noted = None if last is None or last.is_drawn else version_of(last.spark_version)
    entry = checkpoint.latest_entry
    if entry is None or entry.metadata is None:
        return noted or None
    # Spark 4.0 and later write this key into every entry, of queries without state as well.
    of_4 = STATE_ENCODING in entry.metadata.conf
    if noted is None:
        return None if of_4 else _LAST_OF_3
    return max(noted, _FIRST_OF_4) if of_4 else noted


def ansi_mode(conf: Mapping[str, str], spark: Version | None) -> str | None:
    """`true` or `false`; None where nobody knows the Spark."""
    if ANSI in conf or spark is None:
        return conf.get(ANSI)
    return "true" if spark >= _FIRST_OF_4 else "false"


def version_words(version: Version) -> str:
    return f"{version[0]}.{version[1]}" if version > _LAST_OF_3 else "before 4.0"
