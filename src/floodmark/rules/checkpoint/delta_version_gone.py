"""A Delta table that no longer holds what the next batch reads."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.outside import TableLog
from floodmark.checkpoint.sources import DeltaOffset, SourceKind, parse_delta_offset
from floodmark.errors import MalformedFile
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM147",
    "delta-version-gone",
    Severity.ERROR,
    finds="With --sources: a version that the table's log no longer has or does not have yet, "
    "data files that were vacuumed, or another table at that place.",
    matters="The log's retention, VACUUM, a restore or a table made anew overtook the stream.",
    restart="The query fails at its first batch (DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE, "
    "a missing version or a missing file); with failOnDataLoss=false it skips what is gone.",
    instead="Point the source at the table that the checkpoint knows, restore its files, or read "
    "the table anew with a new checkpoint.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    batch = evidence.begins_after
    if evidence.outside is None or batch is None:
        return
    for source in evidence.positions.get(batch, ()):
        table = evidence.outside.tables.get(source.id)
        if table is None or source.kind is not SourceKind.DELTA or source.offset is None:
            continue
        try:
            offset = parse_delta_offset(source.offset)
        except MalformedFile:
            continue
        what = _wrong(offset, table)
        if what:
            yield RULE.finding(f"offsets/{batch}", f"Source {source.id}: {what}.")


def _wrong(offset: DeltaOffset, table: TableLog) -> str | None:
    needed = offset.reservoir_version
    if table.last < 0:
        return f"{table.place} has no log of Delta"
    if table.id is not None and table.id != offset.reservoir_id:
        return f"{table.place} is another table ({table.id}) than was read ({offset.reservoir_id})"
    if needed < table.first:
        return (
            f"it goes on in version {needed}, and the log of {table.place} begins at {table.first}"
        )
    if needed > table.last + 1:
        return f"it goes on in version {needed}, and {table.place} ends at {table.last}"
    if table.gone:
        return f"{len(table.gone)} files that come next were vacuumed, the first {table.gone[0]}"
    return None
