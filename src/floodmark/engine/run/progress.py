"""Reads what a running query reports: one entry for each finished batch, kept as JSON lines."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from floodmark.checkpoint.layout import NOTES, PROGRESS
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.connectors.kafka.offset import is_kafka_form
from floodmark.errors import FloodmarkError
from floodmark.secret_text import redacted
from floodmark.storage.local import LocalFiles
from floodmark.storage.modes import open_private
from floodmark.wire import dumps

_ROTATED_AT = 32 * 1024 * 1024


@dataclass(frozen=True)
class SourceProgress:
    description: str
    start: Any
    end: Any
    """The offsets as JSON data."""
    rows: int
    latest: Any = None
    """The newest offset that Spark saw when it planned the batch; None where it reports none."""


@dataclass(frozen=True)
class BatchProgress:
    pipeline: str
    query_id: str
    run_id: str
    batch: int
    time: str
    rows: int
    rows_per_second: float
    duration_ms: int
    durations_ms: Mapping[str, int]
    sources: tuple[SourceProgress, ...]
    state_rows: int | None
    state_bytes: int | None
    watermark: str | None
    rows_out: int | None = None
    """The sink's own count; None where the sink does not count."""
    late_rows: int | None = None
    """Rows that were dropped because they were older than the watermark."""
    event_time: Mapping[str, str] = field(default_factory=dict)
    """`min`, `max` and `avg` of the batch's rows, where the stream has a watermark."""
    checkpoint_ms: int | None = None
    """The least time that the checkpoint's writes took: both logs, and the mean of the state's
    commits over its partitions."""


def parse_progress(pipeline: str, text: str) -> BatchProgress | None:
    """Return the batch of a report; None for a report of waiting, as no batch was run."""
    value = json.loads(text)
    durations = {key: int(ms) for key, ms in value.get("durationMs", {}).items()}
    if "addBatch" not in durations:
        return None
    operators = value.get("stateOperators") or []
    rows = [source.get("numInputRows", 0) for source in value.get("sources", [])]
    duration = durations.get("triggerExecution", 0)
    sources = tuple(_source(source) for source in value.get("sources", []))
    total = int(value.get("numInputRows", sum(rows)))
    total = min([total, *([sum(_most_rows(one) for one in sources)] if sources else [])])
    return BatchProgress(
        pipeline,
        value["id"],
        value["runId"],
        int(value["batchId"]),
        value["timestamp"],
        total,
        round(total * 1000 / duration, 1) if duration else 0.0,
        duration,
        durations,
        sources,
        sum(int(one["numRowsTotal"]) for one in operators) if operators else None,
        sum(int(one.get("memoryUsedBytes", 0)) for one in operators) if operators else None,
        value.get("eventTime", {}).get("watermark"),
        _rows_out(value.get("sink")),
        sum(int(one.get("numRowsDroppedByWatermark", 0)) for one in operators)
        if operators
        else None,
        {
            name: str(value["eventTime"][name])
            for name in ("min", "max", "avg")
            if name in value.get("eventTime", {})
        },
        _checkpoint_ms(durations, operators),
    )


def _checkpoint_ms(durations: Mapping[str, int], operators: list[Mapping[str, Any]]) -> int:
    """Sum the checkpoint's times; partitions may commit in parallel, so their mean is the least."""
    logs = sum(durations.get(phase, 0) for phase in ("walCommit", "commitOffsets"))
    state = (
        int(one.get("commitTimeMs", 0)) // max(1, int(one.get("numShufflePartitions", 1)))
        for one in operators
    )
    return logs + sum(state)


def _rows_out(sink: Any) -> int | None:
    """Return the sink's rows; Spark's -1 means that the sink does not count."""
    rows = sink.get("numOutputRows", -1) if isinstance(sink, dict) else -1
    return int(rows) if int(rows) >= 0 else None


def _source(value: Mapping[str, Any]) -> SourceProgress:
    return SourceProgress(
        redacted(str(value.get("description", ""))),
        _offset(value.get("startOffset")),
        _offset(value.get("endOffset")),
        int(value.get("numInputRows", 0)),
        _offset(value.get("latestOffset")),
    )


def _most_rows(source: SourceProgress) -> int:
    """Return a source's rows: Spark counts each read by foreachBatch, Kafka's offsets do not."""
    if not is_kafka_form(source.start) or not is_kafka_form(source.end):
        return source.rows
    ranges: int = sum(
        end - source.start.get(topic, {}).get(partition, 0)
        for topic, partitions in source.end.items()
        for partition, end in partitions.items()
    )
    return min(source.rows, ranges)


def _offset(value: Any) -> Any:
    """Return an offset as JSON data; some releases give it as JSON in a string."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


class ProgressReader:
    """Reads the batches of one query that were not read yet.

    Spark keeps the last hundred reports. Reading them regularly costs the query nothing, but Spark
    would call a listener in Python on every event.
    """

    def __init__(self, pipeline: str, query: Any) -> None:
        self._pipeline = pipeline
        self._query = query
        self._last = -1

    def new(self) -> list[BatchProgress]:
        if not hasattr(self._query, "_jsq"):
            return self._new_of_remote()
        reports = self._query._jsq.recentProgress()
        found: list[BatchProgress] = []
        for index in range(len(reports) - 1, -1, -1):
            report = reports[index]
            if report.batchId() <= self._last:
                break
            batch = parse_progress(self._pipeline, str(report.json()))
            if batch is not None:
                found.append(batch)
        if found:
            self._last = found[0].batch
        return found[::-1]

    def _new_of_remote(self) -> list[BatchProgress]:
        """Read the reports of Spark Connect, which are Python objects."""
        told = (parse_progress(self._pipeline, one.json) for one in self._query.recentProgress)
        found = [one for one in told if one is not None and one.batch > self._last]
        self._last = max((one.batch for one in found), default=self._last)
        return found


def progress_file(
    chosen: Path | None, location: str, warn: Callable[[str], None]
) -> ProgressFile | None:
    """Return the file that the user chose, else one in the checkpoint if that is a local folder."""
    if chosen is not None:
        return ProgressFile(chosen, warn)
    if location.startswith("file:"):
        place = LocalFiles(location, "/" + location[len("file:") :].lstrip("/"))
        return ProgressFile(Path(NOTES, PROGRESS), warn, place)
    return None


class ProgressFile:
    """Writes one JSON line for each batch; a large file is renamed to FILE.1.

    It never stops a stream: a failed write is reported once, and the next batch tries again.
    next batch.
    """

    def __init__(
        self,
        path: Path,
        warn: Callable[[str], None] = lambda _: None,
        checkpoint: LocalFiles | None = None,
    ) -> None:
        """Open the file; in a checkpoint, `path` is below it, and no link is followed there.

        A path that the user named is opened as it is.
        """
        self.path = Path(checkpoint.path_of(str(path))) if checkpoint else path
        self._below, self._checkpoint = str(path), checkpoint
        self._warn = warn
        self._warned = False
        self._descriptor: int | None = None
        self._half = False
        with self._warned_once():
            self._descriptor = self._open()

    def add(self, batch: BatchProgress) -> None:
        line = (dumps(batch, indent=None) + "\n").encode()
        with self._warned_once():
            if self._descriptor is None:
                self._descriptor = self._open()
            # A killed run or a full disk may have left half a line: begin a new line.
            line = b"\n" + line if self._half else line
            self._half = os.write(self._descriptor, line) != len(line)
            if self._half:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._rotate(self._descriptor)

    @contextlib.contextmanager
    def _warned_once(self) -> Iterator[None]:
        try:
            yield
        except (OSError, FloodmarkError) as error:
            if not self._warned:
                words = error.what if isinstance(error, FloodmarkError) else error.strerror or error
                self._warn(f"no progress is kept in {self.path}: {words}. The stream goes on.")
                self._warned = True

    def _open(self) -> int:
        descriptor = self._opened()
        if self.path.is_file() and self.path.stat().st_size:
            with self.path.open("rb") as file:
                file.seek(-1, 2)
                self._half = file.read(1) != b"\n"
        return descriptor

    def _opened(self) -> int:
        if self._checkpoint is not None:
            return self._checkpoint.append_to(RelativePath(self._below))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Do not block: a pipe that nobody reads must not hold the stream.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK
        return open_private(str(self.path), flags)

    def _rotate(self, descriptor: int) -> None:
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode) and found.st_size > _ROTATED_AT:
            self.close()
            self.path.replace(self.path.with_name(self.path.name + ".1"))

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
