"""Counts the rows that batches which run again write to their sink again.

A query with state emits rows that a batch did not read: windows that the watermark closed,
timeouts, the totals of update and complete mode. So the records that are read again say nothing
about the output. Only a sink that logs its batches knows the number.
"""

from __future__ import annotations

from collections.abc import Sequence

from floodmark.changes.repair.spans import in_words, repeats_of
from floodmark.changes.repair.working_copy import REPEATS, Emitted, WorkingCopy
from floodmark.connectors.delta.sink import rows_of_batches as delta_rows
from floodmark.connectors.iceberg.sink import rows_of_batches as iceberg_rows
from floodmark.connectors.sink_memory import ICEBERG_SINK
from floodmark.errors import FloodmarkError


def risk_repeats(
    work: WorkingCopy, what: str, sinks: str, after: int, spent: Sequence[int]
) -> None:
    """Add the risk that the batches `spent`, the last ones after `after`, run again.

    `what` says what happens to them, and `sinks` which sinks then get their rows a second time.
    """
    repeats = repeats_of(work, after, spent)
    emitted = emitted_again(work, spent)
    words = f"{what}{in_words(repeats)}: {sinks}"
    if emitted is not None:
        words = f"{words} {emitted.words}"
    work.risk(REPEATS, words, repeats, emitted)


def emitted_again(work: WorkingCopy, batches: Sequence[int]) -> Emitted | None:
    """Return the emitted rows; None for a query without state, which emits only what it reads."""
    rows = _logged_rows(work, batches)
    if rows is None and not work.keeps_state:
        return None
    return Emitted(tuple(batches), rows)


def _logged_rows(work: WorkingCopy, batches: Sequence[int]) -> int | None:
    sink, query_id = work.sink, work.checkpoint.query_id
    if not sink.by_query or not sink.log_is_read or query_id is None:
        return None
    assert sink.files is not None
    count = iceberg_rows if sink.kind == ICEBERG_SINK else delta_rows
    try:
        return count(sink.files, query_id, batches)
    except FloodmarkError:
        return None
