"""Sets Spark's async progress tracking, which writes the logs beside the batches.

Spark supports it for few queries, and reports some of the others only with their first batch.
This module checks the query before the start.
"""

from __future__ import annotations

from typing import Any

from floodmark.engine.code.query import Query, read_query
from floodmark.errors import WrongUse

ENABLED = "asyncProgressTrackingEnabled"
_INTERVAL = "asyncProgressTrackingCheckpointIntervalMs"
# The names in Spark's own list, as the writer's format has them.
_SINKS = ("console", "foreach", "kafka", "memory", "noop")
GIVES_UP = (
    "the logs are written every {} ms beside the batches. This gives up exactly-once: after a "
    "crash, Spark reads and writes all records since the last written entry again, in other "
    "batches. Most batches leave no entry, so upgrade, rewind and replay know only the batches "
    "that did. Without --async-progress the query will not start here again"
)


def refusal(query: Query) -> str | None:
    """Return why Spark refuses async progress for the query; None where it accepts."""
    if query.tree.stateful:
        kinds = sorted({step.kind for step in query.tree.stateful})
        return f"The query keeps state ({', '.join(kinds)}), and its versions are the batches'."
    if query.sink not in _SINKS:
        return f"Its sink is {query.sink or 'unknown'}; Spark supports {', '.join(_SINKS)}."
    if not query.trigger.startswith("ProcessingTime"):
        return (
            "Its trigger is not a processing time: the query would end before the logs are written."
        )
    return None


def with_async_progress(writer: Any, interval_ms: int) -> Any:
    why = refusal(read_query(writer))
    if why is not None:
        raise WrongUse(
            "--async-progress: this query does not support it", why, "Leave --async-progress out."
        )
    return writer.option(ENABLED, "true").option(_INTERVAL, str(interval_ms))
