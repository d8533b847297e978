"""Reads the reports of running DStreams: each batch that finished without failure, once."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from floodmark.engine.run.progress import BatchProgress, SourceProgress
from floodmark.engine.spark.scala import sequence


class DStreamReader:
    """Reads the batches that were not read yet; Spark keeps the last thousand reports."""

    def __init__(self, pipeline: str, ssc: Any) -> None:
        self._pipeline = pipeline
        self._listener = ssc._jssc.ssc().progressListener()
        self._run = str(ssc.sparkContext.applicationId)
        self._last = -1

    def new(self) -> list[BatchProgress]:
        found = [
            self._batch(one, time)
            for one in sequence(self._listener.retainedCompletedBatches())
            if (time := int(one.batchTime().milliseconds())) > self._last and not one.isFailed()
        ]
        found.sort(key=lambda batch: batch.batch)
        if found:
            self._last = found[-1].batch
        return found

    def _batch(self, one: Any, time: int) -> BatchProgress:
        took = one.processingDelay()
        waited = one.schedulingDelay()
        duration = int(took.get()) if took.isDefined() else 0
        delay = int(waited.get()) if waited.isDefined() else 0
        rows = int(one.numRecords())
        return BatchProgress(
            self._pipeline,
            "",
            self._run,
            time,
            datetime.fromtimestamp(time / 1000, timezone.utc).isoformat(),
            rows,
            round(rows * 1000 / duration, 1) if duration else 0.0,
            duration,
            {"processing": duration, "waiting": delay},
            tuple(self._sources(one)),
            None,
            None,
            None,
        )

    def _sources(self, one: Any) -> list[SourceProgress]:
        """Return the sources; a file stream counts no records, only the files that it took."""
        found = []
        for info in sequence(one.streamIdToInputInfo().values().toSeq()):
            taken = info.metadata().get("files")
            count = int(taken.get().size()) if taken.isDefined() else None
            words = None if count is None else "1 file" if count == 1 else f"{count} files"
            if words or info.numRecords():
                name = f"stream {info.inputStreamId()}"
                found.append(SourceProgress(name, None, words, int(info.numRecords())))
        return found
