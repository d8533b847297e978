"""Runs batches of a checkpoint again, with the state before them and with their own offsets.

The replay shows what a batch reads, what it writes and how it changes the state. It also compares
the new state with the one that the checkpoint has. Deterministic code computes the same from the
same input; a replay finds code that does not.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from floodmark.addresses import public_url
from floodmark.checkpoint.model import Checkpoint
from floodmark.engine.code.query import source_folders
from floodmark.engine.code.rehearse import capped, require_one_machine
from floodmark.engine.pipelines.building import built
from floodmark.engine.proof.kept_rows import (
    BatchRows,
    RowKeeper,
    remembered_function,
    remembered_functions,
)
from floodmark.engine.proof.noted_application import noted_application
from floodmark.engine.proof.planned_batches import (
    SOURCE_OPTIONS,
    PlannedBatches,
    require_range,
)
from floodmark.engine.proof.proof_run import ProofRun
from floodmark.engine.proof.replayed_state import (
    StateMatch,
    StoreChanges,
    narrowed,
    state_match,
    store_changes,
)
from floodmark.engine.proof.scratch import empty_folder, scratch_place
from floodmark.engine.spark.jvm import few_batches_jvm
from floodmark.errors import WrongUse
from floodmark.progress import counted
from floodmark.rules.restarts.rehearsal import Rehearsal
from floodmark.screen import ShownByFields
from floodmark.statestore.compare import StateDifference
from floodmark.storage.files import Files


@dataclass(frozen=True)
class ReplayOptions:
    first: int
    last: int
    key: Mapping[str, Any] | None = None
    """Limits what is shown to one key, or to the keys with these fields."""
    limit: int = 100
    """The most rows and keys that are shown for a batch."""
    export: str | None = None
    call_foreach_batch: bool = False
    run: ProofRun = field(default_factory=ProofRun)


@dataclass(frozen=True)
class SourceRows:
    source: str
    """The id of the source."""
    kind: str
    """kafka, delta, file, and so on."""
    rows: int | None
    """None where Spark did not report a number."""


@dataclass(frozen=True)
class StateCounts:
    added: int
    """Keys that are new."""
    changed: int
    """Keys whose rows differ."""
    removed: int
    """Keys that are gone."""


@dataclass(frozen=True, repr=False)
class ReplayedBatch(ShownByFields):
    batch: int
    """The number of the batch."""
    input: tuple[SourceRows, ...]
    """The rows that each source gave to the batch."""
    output_rows: int
    """The number of rows that the query wrote."""
    rows: tuple[Mapping[str, Any], ...]
    """The first of these rows, or those of the key."""
    state: StateCounts
    """The number of keys of the state that the batch touched, in all stores."""
    state_changes: tuple[StoreChanges, ...]
    """The keys that the batch touched, for each store."""
    late_rows: int
    """Rows that came after the watermark, and that an operator dropped."""
    watermark_ms: int | None
    """The watermark with which the batch began."""
    phases: Mapping[str, int]
    """Milliseconds of each phase, by Spark's names of the phases."""
    matches_checkpoint: bool | None
    """Whether the state after the batch is the checkpoint's; null where it cannot be compared."""
    differences: tuple[StateDifference, ...]
    """Differences of the state: `before` is the checkpoint's, `after` the replay's."""
    not_compared: str
    """The reason why `matches_checkpoint` is null."""
    exported: str | None = None
    """The file with all rows; null unless `--export` was given."""


@dataclass(frozen=True, repr=False)
class Replay(ShownByFields):
    """Past batches that were run again, and what they computed."""

    checkpoint: str
    """The location of the checkpoint."""
    application: str
    """The file whose code ran."""
    same_code: bool | None
    """Whether the file is the one that the last start noted; None where nothing was noted."""
    foreach_batch: str
    """`none`, `not-called` or `called`."""
    batches: tuple[ReplayedBatch, ...]
    """The batches that were run again."""

    @property
    def matches_checkpoint(self) -> bool | None:
        """Whether each batch left the checkpoint's own state; None: nothing to compare with."""
        found = [one.matches_checkpoint for one in self.batches]
        if False in found:
            return False
        return True if True in found else None


def replay_application(
    files: Files, checkpoint: Checkpoint, target: str | None, request: ReplayOptions
) -> Replay:
    """Replay batches of a checkpoint with the code of APP.py[:NAME], or with the noted code."""
    require_range(checkpoint, request.first, request.last)
    export = (
        None
        if request.export is None
        else empty_folder(request.export, "--export", checkpoint.path)
    )
    noted = noted_application(files, checkpoint)
    chosen = target if target is not None else noted.target()
    settings = {**({} if target is not None else noted.settings), **request.run.settings}
    with (
        scratch_place(request.run.scratch, "replay", checkpoint.path) as place,
        capped(0, SOURCE_OPTIONS),
        remembered_functions(),
        few_batches_jvm(),
        built(
            chosen,
            settings,
            checkpoints=(checkpoint.path,),
            conf=request.run.conf,
            log=request.run.log,
            stdout_to_stderr=request.run.stdout_to_stderr,
            script=request.run.script,
        ) as found,
    ):
        require_one_machine(found.spark)
        if target is None:
            noted.require_values({k: v for k, v in found.values.items() if k not in settings})
        function = remembered_function(found.writer)
        if request.call_foreach_batch and function is None:
            raise WrongUse(
                "--call-foreach-batch: the query has no foreachBatch function",
                do="Leave the option out.",
            )
        rows = RowKeeper(place / "rows", function if request.call_foreach_batch else None)
        batches = PlannedBatches(found.writer, files, checkpoint, place, rows)
        called = "called" if request.call_foreach_batch else "not-called"
        return Replay(
            public_url(checkpoint.path),
            str(found.path),
            noted.is_same(found.fingerprint),
            "none" if function is None else called,
            _Replaying(batches, rows, request, export).all(),
        )


@dataclass(frozen=True)
class _Replaying:
    batches: PlannedBatches
    rows: RowKeeper
    request: ReplayOptions
    export: Path | None

    def all(self) -> tuple[ReplayedBatch, ...]:
        first, last = self.request.first, self.request.last
        self.batches.require_sources(first)
        self.batches.require_input(first, last, self.request.run.storage)
        self.batches.begin(first)
        found = []
        for batch in counted(range(first, last + 1), "batches"):
            self.request.run.say(f"batch {batch}")
            found.append(self._one(batch))
        return tuple(found)

    def _one(self, batch: int) -> ReplayedBatch:
        request, planned = self.request, self.batches
        ran = planned.run(batch)
        now, rows = planned.after(), self.rows.of(batch)
        changes = store_changes(planned.fork, now, batch, request.key, request.limit)
        match = state_match(
            planned.fork, now, planned.files, planned.checkpoint, batch, request.limit
        )
        if request.key is not None:
            match = narrowed(match, request.key)
            if not changes and not set(request.key) & set(rows.names):
                raise WrongUse(
                    f"--key: neither output nor state has a field {next(iter(request.key), '')!r}",
                    f"The output has the columns {', '.join(rows.names) or '(none)'}.",
                    f"floodmark inspect {shlex.quote(planned.checkpoint.path)} "
                    "--schema shows the keys of the "
                    "state.",
                )
        shown = rows.plain() if request.key is None else rows.matching(request.key)
        return self._report(batch, ran, rows, tuple(islice(shown, request.limit)), changes, match)

    def _report(
        self,
        batch: int,
        ran: Rehearsal,
        rows: BatchRows,
        shown: tuple[Mapping[str, Any], ...],
        changes: tuple[StoreChanges, ...],
        match: StateMatch,
    ) -> ReplayedBatch:
        progress = ran.progress
        operators = progress.get("stateOperators") or ()
        entry = self.batches.checkpoint.offsets[batch].metadata
        exported = None
        if self.export is not None:
            place = self.export / f"batch={batch}" / "rows.parquet"
            rows.export(place)
            exported = str(place)
        return ReplayedBatch(
            batch,
            self._input(batch, progress),
            len(rows),
            shown,
            StateCounts(
                sum(one.keys.added for one in changes),
                sum(one.keys.changed for one in changes),
                sum(one.keys.removed for one in changes),
            ),
            changes,
            sum(int(one.get("numRowsDroppedByWatermark", 0)) for one in operators),
            entry.batch_watermark_ms if entry is not None else None,
            {str(name): int(ms) for name, ms in (progress.get("durationMs") or {}).items()},
            match.matches,
            match.differences,
            match.why,
            exported,
        )

    def _input(self, batch: int, progress: Mapping[str, Any]) -> tuple[SourceRows, ...]:
        """Return the rows of each source; a stream that is read twice counts as one source."""
        saved = self.batches.checkpoint.sources_of(batch)
        kinds = self.batches.query.sources
        folders = source_folders(self.batches.writer)
        places = [at for at, folder in enumerate(folders) if folder not in folders[:at]]
        told = list(progress.get("sources") or ())
        return tuple(
            SourceRows(
                saved[at].id,
                kinds[at].kind,
                int(told[number]["numInputRows"]) if len(told) == len(places) else None,
            )
            for number, at in enumerate(places)
        )
