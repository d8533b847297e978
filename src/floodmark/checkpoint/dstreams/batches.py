"""Lists the batches that a DStreams application remembers, and which are not finished.

A DStreams batch has no number: its time is its name.
"""

from __future__ import annotations

from typing import Any

from floodmark.checkpoint.dstreams.folder import FILE_STREAM, DStream, DStreamsCheckpoint
from floodmark.checkpoint.text import compact_json
from floodmark.checkpoint.timeline import Batch, Status
from floodmark.connectors.source import UNKNOWN, SourceOffset

_INPUT = "InputDStream"


def dstream_batches(found: DStreamsCheckpoint, last: int | None = None) -> tuple[Batch, ...]:
    """Return the batches, oldest first.

    A batch that is not pending was finished before the file was written.
    """
    pending = set(found.pending_times or ())
    told = found.checkpoint_time_ms
    times = pending | {
        time for stream in found.streams for time in (*stream.files, *stream.offsets, *stream.rdds)
    }
    times |= {time for time in found.checkpoint_times if told is not None and time <= told}
    chosen = sorted(times)[-last:] if last else sorted(times)
    return tuple(
        Batch(
            time,
            Status.IN_FLIGHT if time in pending else Status.COMMITTED,
            time,
            None,
            input_of(found, time),
        )
        for time in chosen
    )


def input_of(found: DStreamsCheckpoint, time_ms: int) -> tuple[SourceOffset, ...]:
    """Return what each input stream took for one batch."""
    inputs = ((at, one) for at, one in enumerate(found.streams) if one.kind.endswith(_INPUT))
    return tuple(_source(str(at), one, time_ms) for at, one in inputs)


def _source(at: str, stream: DStream, time_ms: int) -> SourceOffset:
    taken: Any = None
    kind = UNKNOWN
    if stream.kind == FILE_STREAM:
        kind, files = "file", stream.files.get(time_ms)
        taken = None if files is None else {"files": list(files)}
    elif time_ms in stream.offsets or "Kafka" in stream.kind:
        kind = "kafka"
        ends: dict[str, dict[str, int]] = {}
        for one in stream.offsets.get(time_ms, ()):
            ends.setdefault(one.topic, {})[str(one.partition)] = one.until
        taken = ends or None
    elif "Socket" in stream.kind:
        kind = "socket"
    return SourceOffset(at, kind, taken, None if taken is None else compact_json(taken))


def newest_state(found: DStreamsCheckpoint, stream: int) -> tuple[int, str] | None:
    """Return (batch time, folder) of a stream's newest complete saved state."""
    whole = [
        (rdd.batch_time_ms, rdd.path)
        for rdd in found.rdds
        if rdd.stream == stream
        and rdd.batch_time_ms is not None
        and rdd.missing is None
        and rdd.partitions > 0
    ]
    return max(whole, default=None)
