"""Why a query ended: the batch, its offsets and the innermost cause, out of Spark's exception."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from floodmark.checkpoint.text import shorten
from floodmark.engine.saved import read_saved
from floodmark.errors import FloodmarkError
from floodmark.storage.files import Files

_TRACEBACK = "Traceback (most recent call last)"
_CONDITION = re.compile(r"\s*\[([A-Z][A-Z0-9_.]+)\]")
_CHANGING = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+")


@dataclass(frozen=True)
class Failure:
    batch: int | None
    """The batch that was in flight; None where the failure came before any was planned."""
    offsets: tuple[str, ...]
    """One a source: what the batch reads."""
    cause: str

    @property
    def signature(self) -> tuple[int | None, str]:
        """Equal for a failure that is the same again: task ids and times are left out."""
        return self.batch, _CHANGING.sub("#", self.cause)[:300]


def failure_of(query: Any, files: Files) -> Failure | None:
    """None for a query that ended without an exception."""
    exception = query._jsq.exception()
    if exception.isEmpty():
        return None
    batch, offsets = _in_flight(files)
    # The outermost only repeats the cause, between the query's plan and its offsets.
    outermost = exception.get()
    return Failure(batch, offsets, cause_of(outermost.getCause() or outermost))


def condition_of(exception: Any) -> str | None:
    """Spark's name of the innermost error that has one: STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE."""
    found = None
    while exception is not None:
        named = _CONDITION.match(str(exception.getMessage() or ""))
        found = named[1] if named else found
        exception = exception.getCause()
    return found


def cause_of(exception: Any) -> str:
    kind, message = "", ""
    while exception is not None:
        words = str(exception.getMessage() or "")
        if words or not kind:
            kind, message = str(exception.getClass().getSimpleName()), words
        if _TRACEBACK in words:  # what is below is how Spark carried it
            break
        exception = exception.getCause()
    return python_cause(message) or shorten(f"{kind}: {_first_line(message)}", 400).rstrip(": ")


def python_cause(message: str) -> str | None:
    """`ValueError: no such region` out of a traceback that stands in a Java exception."""
    if _TRACEBACK not in message:
        return None
    # The last of chained tracebacks is what came out; its frames are indented, its error is not.
    _, _, trace = message.rpartition(_TRACEBACK)
    lines = (line for line in trace.splitlines()[1:] if line.strip())
    error = next((line for line in lines if not line[0].isspace()), None)
    return None if error is None else shorten(error.strip(), 400)


def _first_line(message: str) -> str:
    return next((line.strip() for line in message.splitlines() if line.strip()), "")


def _in_flight(files: Files) -> tuple[int | None, tuple[str, ...]]:
    try:
        checkpoint = read_saved(files).checkpoint
    except FloodmarkError:
        return None, ()
    batch = checkpoint.in_flight_batch if checkpoint else None
    if checkpoint is None or batch is None:
        return None, ()
    before = {source.id: source.text for source in checkpoint.sources_of(batch - 1)}
    return batch, tuple(
        f"source {source.id} ({source.kind.value}): "
        f"{before.get(source.id) or 'its start'} → {source.text}"
        for source in checkpoint.sources_of(batch)
    )
