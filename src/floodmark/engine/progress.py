"""What a running query reports: one entry a finished batch, kept as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from floodmark.wire import dumps

_ROTATED_AT = 32 * 1024 * 1024


@dataclass(frozen=True)
class SourceProgress:
    description: str
    start: Any
    end: Any
    """Offsets as JSON data."""
    rows: int


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


def parse_progress(pipeline: str, text: str) -> BatchProgress | None:
    """None for a report of waiting: no batch was run."""
    value = json.loads(text)
    durations = {key: int(ms) for key, ms in value.get("durationMs", {}).items()}
    if "addBatch" not in durations:
        return None
    operators = value.get("stateOperators") or []
    rows = [source.get("numInputRows", 0) for source in value.get("sources", [])]
    duration = durations.get("triggerExecution", 0)
    total = int(value.get("numInputRows", sum(rows)))
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
        tuple(_source(source) for source in value.get("sources", [])),
        sum(int(one["numRowsTotal"]) for one in operators) if operators else None,
        sum(int(one.get("memoryUsedBytes", 0)) for one in operators) if operators else None,
        value.get("eventTime", {}).get("watermark"),
    )


def _source(value: Mapping[str, Any]) -> SourceProgress:
    return SourceProgress(
        str(value.get("description", "")),
        _offset(value.get("startOffset")),
        _offset(value.get("endOffset")),
        int(value.get("numInputRows", 0)),
    )


def _offset(value: Any) -> Any:
    """Some releases give the offset as JSON in a string."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


class ProgressReader:
    """The batches of one query that were not read yet.

    Spark keeps the last hundred reports; asking for them now and then costs the query
    nothing, where a listener in Python would be called back on every event.
    """

    def __init__(self, pipeline: str, query: Any) -> None:
        self._pipeline = pipeline
        self._query = query._jsq
        self._last = -1

    def new(self) -> list[BatchProgress]:
        reports = self._query.recentProgress()
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


class ProgressFile:
    """One JSON line a batch. The file before it is kept as FILE.1 once it grows large."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8", buffering=1)
        self._mend()

    def _mend(self) -> None:
        """A killed run may have left half a line: the next one begins on its own."""
        if self.path.stat().st_size:
            with self.path.open("rb") as file:
                file.seek(-1, 2)
                if file.read(1) != b"\n":
                    self._file.write("\n")

    def add(self, batch: BatchProgress) -> None:
        self._file.write(dumps(batch, indent=None) + "\n")
        if self._file.tell() > _ROTATED_AT:
            self._file.close()
            self.path.replace(self.path.with_name(self.path.name + ".1"))
            self._file = self.path.open("a", encoding="utf-8", buffering=1)

    def close(self) -> None:
        self._file.close()
