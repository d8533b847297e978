"""Shows a DStreams folder on a page: saved applications, batches, streams and states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from floodmark.checkpoint.dstreams.batches import dstream_batches, newest_state
from floodmark.checkpoint.dstreams.folder import DStream, DStreamsCheckpoint, SavedRdd
from floodmark.checkpoint.layout import FileInfo
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.timeline import Batch, Status
from floodmark.fleet.card import bounded
from floodmark.fleet.protocol import ProtocolStep, StepState
from floodmark.secret_text import redacted

_MOST_ROWS = 200
_MOST_OFFSETS = 8


@dataclass(frozen=True)
class SavedApplication:
    """One `checkpoint-<time>` file."""

    file: str
    time_ms: int
    written_ms: int | None
    bytes: int
    role: str
    """`restart`: Spark uses it; `then`: if that fails; `unreadable`; or `older`."""


@dataclass(frozen=True)
class DStreamsBatch:
    time_ms: int
    """A batch of DStreams has no number: its time is its name."""
    pending: bool
    reads: str


@dataclass(frozen=True)
class DStreamsStream:
    number: int
    kind: str
    words: str
    state_ms: int | None
    """The newest batch whose state is whole; None: the stream has no state here."""


@dataclass(frozen=True)
class DStreamsState:
    """One saved RDD."""

    path: str
    stream: int | None
    batch_ms: int | None
    """The batch of the state; None: the application no longer names it."""
    written_ms: int | None
    partitions: int
    bytes: int
    missing: int | None
    newest: bool


@dataclass(frozen=True)
class DStreamsView:
    app_name: str | None
    language: str | None
    master: str | None
    directory: str | None
    restart_file: str | None
    fall_back_file: str | None
    checkpoint_time_ms: int | None
    batch_ms: int | None
    checkpoint_interval_ms: int | None
    state_interval_ms: int | None
    pending: int | None
    """The number of batches that were planned and not finished; None: no file can be read."""
    saved: tuple[SavedApplication, ...]
    batches: tuple[DStreamsBatch, ...]
    """The batches that the application remembers, oldest first."""
    streams: tuple[DStreamsStream, ...]
    states: tuple[DStreamsState, ...]
    states_left_out: int
    received_logs: int
    received_bytes: int
    left_over: int
    """Return the files of writes that never finished."""


def dstreams_view(checkpoint: Checkpoint) -> DStreamsView | None:
    found = checkpoint.dstreams
    if found is None:
        return None
    unreadable = {one.path for one in checkpoint.unreadable}
    newest = {
        path
        for at in range(len(found.streams))
        if (state := newest_state(found, at)) is not None
        for path in (state[1],)
    }
    ordered = sorted(found.rdds, key=lambda rdd: (rdd.batch_time_ms or 0, rdd.path), reverse=True)
    return DStreamsView(
        _text(found.app_name),
        found.language,
        _text(found.master),
        _text(found.directory),
        found.restart_file,
        found.fall_back_file,
        found.checkpoint_time_ms,
        found.batch_ms,
        found.checkpoint_interval_ms,
        found.state_interval_ms,
        None if found.pending_times is None else len(found.pending_times),
        _saved(found, checkpoint.files, unreadable),
        tuple(_batch(one) for one in dstream_batches(found, _MOST_ROWS)),
        tuple(_stream(found, at, one) for at, one in enumerate(found.streams[:_MOST_ROWS])),
        tuple(_state(rdd, rdd.path in newest) for rdd in ordered[:_MOST_ROWS]),
        max(len(ordered) - _MOST_ROWS, 0),
        len(found.received),
        sum(log.bytes for log in found.received),
        len(found.temporary),
    )


def dstreams_steps(found: DStreamsCheckpoint) -> tuple[ProtocolStep, ...]:
    """Return the steps by which DStreams store a batch: application, batch, state."""
    pending = found.pending_times
    waits = bool(pending) or pending is None
    states = [state for at in found.state_streams if (state := newest_state(found, at))]
    newest = max(states, default=None)
    return (
        ProtocolStep(
            "Save the application",
            found.restart_file or "no file can be read",
            StepState.DONE if found.restart_file else StepState.NOW,
            "The code, the pending batches and what each stream remembers."
            if found.restart_file
            else "A restart cannot go on from here.",
            found.checkpoint_time_ms,
        ),
        ProtocolStep(
            "Process",
            _pending_words(pending),
            StepState.NOW if waits else StepState.DONE,
            "They run now, or it died here: a restart runs them again."
            if pending
            else "Every batch that it knows is finished."
            if pending is not None
            else "Which batches are finished is not known.",
            pending[0] if pending else None,
        ),
        ProtocolStep(
            "Save the state",
            newest[1] if newest else "no state",
            StepState.DONE if newest or not found.state_streams else StepState.NOW,
            "The batches since are computed again from the input."
            if newest
            else "The state that the application names is not in this folder."
            if found.state_streams
            else "No stream of it keeps a state.",
            newest[0] if newest else None,
        ),
    )


def _pending_words(pending: Sequence[int] | None) -> str:
    if pending is None:
        return "not known"
    return "1 pending batch" if len(pending) == 1 else f"{len(pending):,} pending batches"


def _saved(
    found: DStreamsCheckpoint, files: Sequence[FileInfo], unreadable: set[str]
) -> tuple[SavedApplication, ...]:
    written = {file.path: file.mtime_ms for file in files}
    roles = {found.fall_back_file: "then", found.restart_file: "restart"}
    return tuple(
        SavedApplication(
            one.path,
            one.time_ms,
            written.get(one.path),
            max(one.bytes, 0),
            "unreadable" if one.path in unreadable else roles.get(one.path, "older"),
        )
        for one in found.graph_files[-_MOST_ROWS:]
    )


def _batch(batch: Batch) -> DStreamsBatch:
    return DStreamsBatch(
        batch.batch,
        batch.status is Status.IN_FLIGHT,
        ", ".join(
            words for one in batch.sources if (words := _taken(one.offset, one.text)) is not None
        ),
    )


def _taken(offset: object, text: str | None) -> str | None:
    files = offset.get("files") if isinstance(offset, dict) else None
    if isinstance(files, list):
        return "1 file" if len(files) == 1 else f"{len(files):,} files"
    return None if text is None else bounded(redacted(text))


def _stream(found: DStreamsCheckpoint, at: int, stream: DStream) -> DStreamsStream:
    state = newest_state(found, at)
    return DStreamsStream(at, bounded(stream.kind), _said(stream), state[0] if state else None)


def _said(stream: DStream) -> str:
    if stream.directory or stream.files:
        taken = sum(len(files) for files in stream.files.values())
        files = "1 file" if taken == 1 else f"{taken:,} files"
        return bounded(redacted(f"{stream.directory}: {files} remembered"))
    if stream.offsets:
        ends = stream.offsets[max(stream.offsets)][:_MOST_OFFSETS]
        return bounded(", ".join(f"{one.topic}/{one.partition} → {one.until:,}" for one in ends))
    return bounded(redacted(stream.name or ""))


def _state(rdd: SavedRdd, newest: bool) -> DStreamsState:
    return DStreamsState(
        bounded(rdd.path),
        rdd.stream,
        rdd.batch_time_ms,
        rdd.written_ms,
        rdd.partitions,
        rdd.bytes,
        rdd.missing,
        newest,
    )


def _text(text: str | None) -> str | None:
    return None if text is None else bounded(redacted(text))
