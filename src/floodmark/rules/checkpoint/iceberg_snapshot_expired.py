"""Finds an Iceberg table that has expired snapshots which the stream has not read."""

from __future__ import annotations

from floodmark.connectors.iceberg.reach import IcebergTrouble
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.start_inputs.snapshot import by_trouble

RULE = Rule(
    "FM157",
    "iceberg-snapshot-expired",
    Severity.ERROR,
    finds="With --sources: an Iceberg table that no longer has the snapshot in which the stream "
    "stands, or one after it.",
    matters="expire_snapshots overtook the stream. An Iceberg stream goes from snapshot to "
    "snapshot, and needs the one in which it stands.",
    restart="The query fails (Cannot load current offset at snapshot …, the snapshot was expired "
    "or removed). If the stream has read nothing yet, it silently begins with the oldest "
    "snapshot that is left, and never reads what the older ones added.",
    instead="Read the table again with a new checkpoint; with the state of this one, start at the "
    "oldest snapshot left (`floodmark rewind CP --to-offsets FILE`) and fill the gap from the "
    "table. Keep snapshots for longer than the stream may stand: "
    "history.expire.max-snapshot-age-ms.",
)

check = by_trouble(RULE, IcebergTrouble.EXPIRED)
