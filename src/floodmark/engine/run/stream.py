"""Follows one pipeline of a run through all its starts: position, counts and failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from floodmark.addresses import public_url
from floodmark.engine.pipelines.application import Application
from floodmark.engine.pipelines.decorator import Pipeline
from floodmark.engine.run.failure import Failure
from floodmark.engine.run.new_process import CarriedStream
from floodmark.engine.run.progress import BatchProgress, ProgressFile, ProgressReader
from floodmark.engine.start.launch import CodeOrigin, Launched
from floodmark.engine.start.lease import leave_behind
from floodmark.engine.start.saved import read_saved
from floodmark.errors import FloodmarkError
from floodmark.screen import ShownByFields, ShownInALine
from floodmark.storage.files import Files

_FAILURES_CARRIED = 100


@dataclass(frozen=True, repr=False)
class PipelineReport(ShownInALine):
    pipeline: str
    """The name of the pipeline or of the query."""
    checkpoint: str
    """The location of its checkpoint."""
    query_id: str | None
    """The query's id; null where it never started."""
    ended: str
    """finished, stopped or failed"""
    batches: int
    """The number of batches that this run committed."""
    rows: int
    """The number of rows that these batches read."""
    last_batch: int | None
    """The last batch that this run committed."""
    restarts: int
    """The number of restarts after a failure."""
    cause: str | None
    """The error of the query; null where it did not fail."""
    unreported_batches: int = 0
    """Committed batches whose rows are not counted: the run ended before Spark reported them."""


@dataclass(frozen=True, repr=False)
class RunReport(ShownByFields):
    """The end of a run, for each of its pipelines."""

    pipelines: tuple[PipelineReport, ...]
    """The report of each query."""


class PipelineRun:
    def __init__(
        self,
        pipeline: Pipeline,
        application: Application,
        values: Mapping[str, Any],
        checkpoint: str,
    ) -> None:
        self.pipeline = pipeline
        self.checkpoint = checkpoint
        self.values = values
        self.origin = CodeOrigin(
            pipeline.name, str(application.path), application.fingerprint, values
        )
        self.launched: Launched | None = None
        self.reader: ProgressReader | None = None
        self.lines: ProgressFile | None = None
        self.due = 0.0
        self.ended: str | None = None
        self.failures: list[Failure] = []
        self.restarts = 0
        self.batches = 0
        self.unreported = 0
        self.rows = 0
        self.first_batch: int | None = None
        """The first batch of this run."""
        self.last_batch: int | None = None
        self.query_id: str | None = None
        self.lease: str | None = None

    @staticmethod
    def of(
        pipeline: Pipeline, application: Application, settings: Mapping[str, str]
    ) -> PipelineRun:
        own = {one.name for one in pipeline.parameters}
        values = pipeline.settle({k: v for k, v in settings.items() if k in own})
        return PipelineRun(pipeline, application, values, pipeline.checkpoint_for(values))

    @property
    def name(self) -> str:
        return self.pipeline.name

    def count(self, batch: BatchProgress) -> None:
        self.batches += 1
        self.rows += batch.rows
        self.last_batch = batch.batch
        self.failures.clear()

    def count_unreported(self, files: Files) -> None:
        """Count batches that the checkpoint has as committed, but that Spark could not report."""
        if self.first_batch is None:
            return
        try:
            checkpoint = read_saved(files).checkpoint
        except FloodmarkError:
            return
        committed = checkpoint.committed_batch if checkpoint else None
        known = self.first_batch - 1 if self.last_batch is None else self.last_batch
        if committed is not None and committed > known:
            self.batches += committed - known
            self.unreported += committed - known
            self.last_batch = committed

    def go_on_from(self, carried: CarriedStream) -> None:
        """Take over what this run did in an earlier JVM."""
        self.failures = list(carried.failures)
        self.restarts = carried.restarts
        self.batches = carried.batches
        self.unreported = carried.unreported
        self.rows = carried.rows
        self.first_batch = carried.first_batch
        self.last_batch = carried.last_batch
        if carried.lease is not None:
            leave_behind(carried.lease)

    def carried(self) -> CarriedStream:
        return CarriedStream(
            # Without offsets: a process's environment is small, and the next failure has its own.
            tuple(replace(one, offsets=()) for one in self.failures[-_FAILURES_CARRIED:]),
            self.restarts,
            self.batches,
            self.unreported,
            self.rows,
            self.first_batch,
            self.last_batch,
            self.lease,
        )

    def report(self) -> PipelineReport:
        return PipelineReport(
            self.name,
            public_url(self.checkpoint),
            self.query_id,
            self.ended or "stopped",
            self.batches,
            self.rows,
            self.last_batch,
            self.restarts,
            self.failures[-1].cause if self.ended == "failed" and self.failures else None,
            self.unreported,
        )
