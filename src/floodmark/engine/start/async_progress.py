"""Spark's async progress tracking: the logs are written beside the batches, not between them.

Spark takes it from few queries, and tells some of the others only with their first batch: so it is
asked here, before the start.
"""

from __future__ import annotations

from typing import Any

from floodmark.engine.code.query import Query, read_query
from floodmark.errors import WrongUse

ENABLED = "asyncProgressTrackingEnabled"
_INTERVAL = "asyncProgressTrackingCheckpointIntervalMs"
# The names that Spark's own list has, as the writer's format says them.
_SINKS = ("console", "foreach", "kafka", "memory", "noop")
GIVES_UP = (
    "the logs are written every {} ms beside the batches. This gives up exactly-once: after a "
    "crash all records since the last entry that was written are read and put out again, in "
    "batches of other borders. Most batches leave no entry, so upgrade, rewind and replay know "
    "only those that did; without --async-progress the query does not start here again"
)


def refusal(query: Query) -> str | None:
    """Why Spark would not run the query so; None where it would."""
    if query.tree.stateful:
        kinds = sorted({step.kind for step in query.tree.stateful})
        return f"The query keeps state ({', '.join(kinds)}), and its versions are the batches'."
    if query.sink not in _SINKS:
        return f"Its sink is {query.sink or 'unknown'}; Spark takes {', '.join(_SINKS)}."
    if not query.trigger.startswith("ProcessingTime"):
        return (
            "Its trigger is not one of processing time: it would end before the logs are written."
        )
    return None


def with_async_progress(writer: Any, interval_ms: int) -> Any:
    why = refusal(read_query(writer))
    if why is not None:
        raise WrongUse(
            "--async-progress: this query cannot have it", why, "Leave --async-progress out."
        )
    return writer.option(ENABLED, "true").option(_INTERVAL, str(interval_ms))
