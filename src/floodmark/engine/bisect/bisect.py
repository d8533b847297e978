"""Finds the records that make a batch fail: runs parts of the batch on forks.

The batch in flight runs again with fewer and fewer of its records, from the state of the
batch before it. Each trial uses a fork of its own and a sink that keeps nothing, so neither
the checkpoint nor the sink changes. Floodmark skips no record: its owner decides what to do
with it. A trial counts only if it fails in the same way as the whole batch.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from floodmark.addresses import public_url
from floodmark.checkpoint.layout import METADATA, OFFSETS, SOURCES
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.offsets import render_offsets
from floodmark.connectors.files.offset import FILE_SOURCES
from floodmark.engine.app.options import ScriptOptions
from floodmark.engine.bisect.records import (
    TRIAL_SECONDS,
    BatchRecords,
    Given,
    Lines,
    NamedRecord,
    RecordPlace,
    Some,
    WholeFiles,
    capture,
    put,
)
from floodmark.engine.bisect.search import Ranges, ranges_of, smallest
from floodmark.engine.code.empty_leaves import frame_of, replace_leaves
from floodmark.engine.code.outline import clone_session
from floodmark.engine.code.query import Query, read_query, source_folders, source_leaves
from floodmark.engine.code.rehearse import (
    capped,
    fork_checkpoint,
    require_one_machine,
    run_batch,
    to_nowhere,
)
from floodmark.engine.pipelines.application import Application
from floodmark.engine.pipelines.building import built
from floodmark.engine.run.failure import in_flight
from floodmark.engine.sinks.exactly_once import on_a_fork
from floodmark.engine.spark.hadoop import checkpoint_files, qualified
from floodmark.engine.spark.scala import jvm_field
from floodmark.errors import WrongUse
from floodmark.rules.restarts.rehearsal import Rehearsal
from floodmark.screen import ShownByFields
from floodmark.storage.files import Files, open_files
from floodmark.storage.load import load

_MOST_FOUND = 5


@dataclass(frozen=True)
class Culprit:
    """Records that make the batch fail: one record, or several that fail only together."""

    records: tuple[NamedRecord, ...]
    """The record, or all records that are needed together."""


@dataclass(frozen=True, repr=False)
class BisectReport(ShownByFields):
    """The record at which a batch fails, as far as it was found."""

    checkpoint: str
    """The location of the checkpoint."""
    batch: int
    """The batch in flight, which the trials ran."""
    offsets: tuple[str, ...]
    """The ranges that the batch reads, one sentence for each source."""
    cause: str | None
    """The error of the whole batch on the fork; None: the batch does not fail there."""
    needs_records: bool = True
    """False where the batch also fails without any record."""
    culprits: tuple[Culprit, ...] = ()
    """The records that make the batch fail."""
    whole: bool = True
    """True where the batch without these records does not fail in this way."""
    unreadable: bool = False
    """True where a source's records cannot be read one by one: a file is then the smallest part."""
    trials: int = 0
    """The number of trials."""
    other_failures: tuple[str, ...] = ()
    """Errors of trials that failed in another way; they count as not failing."""
    sink: str = "noop"
    """The sink of the trials: noop, or foreachBatch."""


def bisect_application(
    application: Application | str,
    settings: Mapping[str, str],
    conf: Mapping[str, str],
    log: Path | None,
    sink: bool,
    say: Callable[[str], Any],
    script: ScriptOptions | None = None,
) -> BisectReport:
    """Bisect the batch in flight of the application's one pipeline, or of a script's query."""
    # Uncapped, but with sources that leave their input where it is.
    made = built(application, settings, conf=conf, log=log, stdout_to_stderr=True, script=script)
    with capped(0), made as found:
        if found.checkpoint is None:
            raise WrongUse(
                f"query {found.name} of {found.path} has no checkpointLocation",
                "Without a checkpoint there is no batch in flight to look into.",
                "Choose another of its queries: --query NAME|N",
            )
        location = qualified(found.spark, found.checkpoint)
        return bisect_writer(found.writer, checkpoint_files(found.spark, location), sink, say)


def bisect_writer(
    writer: Any, files: Files, sink: bool, say: Callable[[str], Any] = lambda words: None
) -> BisectReport:
    """Bisect the batch in flight of this writer's checkpoint; `sink` calls its foreachBatch too."""
    require_one_machine(writer._spark)
    checkpoint, query = load(files), read_query(writer)
    batch, offsets = in_flight(files)
    if batch is None:
        raise WrongUse(
            f"{files.root}: no batch is in flight",
            "The newest batch was committed, so there is no failed batch to examine.",
            "Run the pipeline. When a batch fails again, repeat this command.",
        )
    if sink and query.sink != "foreachBatch":
        raise WrongUse(
            f"--bisect-sink is for foreachBatch, and the sink is {query.sink}",
            "Spark's own sinks are never written to from a fork.",
            "Leave the option out.",
        )
    with tempfile.TemporaryDirectory(
        prefix="floodmark-bisect-", ignore_cleanup_errors=True
    ) as made:
        bisection = _Bisection(writer, query, files, checkpoint, batch, Path(made), sink, say)
        report = bisection.report()
    return replace(report, offsets=offsets, sink="foreachBatch" if sink else "noop")


@dataclass
class _Bisection:
    writer: Any
    query: Query
    files: Files
    checkpoint: Checkpoint
    batch: int
    folder: Path
    sink: bool
    say: Callable[[str], Any]
    trials: int = 0
    kind: tuple[str | None, str] | None = None
    others: dict[str, None] = field(default_factory=dict)

    def report(self) -> BisectReport:
        self.session = clone_session(self.writer._spark, {})
        self.plan = jvm_field(self.writer._jwrite, "ds").queryExecution().analyzed()
        pristine = open_files(str(self.folder / "pristine"))
        fork_checkpoint(self.files, self.checkpoint, pristine, self.folder / "fork")
        # The fork gets a query id of its own: no sink may take a trial for the batch itself.
        pristine.write(METADATA, json.dumps({"id": str(uuid.uuid4())}).encode())
        records = self._records(pristine)
        self.say(f"batch {self.batch} has {sum(one.count for one in records)} records or files")
        empty = BisectReport(public_url(self.files.root), self.batch, (), None)
        whole = self._trial([one.give(ranges_of(one.count), self._new()) for one in records])
        if whole.ran:
            return replace(empty, trials=self.trials)
        self.kind = _kind(whole)
        found = replace(empty, cause=whole.words)
        if self._fails(records, ()):
            return replace(found, needs_records=False, trials=self.trials)
        culprits, complete = self._search(records)
        named = []
        for one in culprits:
            finer, left = self._within_files(records, one)
            named += finer
            complete = complete and left
        return replace(
            found,
            culprits=tuple(named),
            whole=complete,
            unreadable=any(isinstance(one, WholeFiles) and not one.have_lines for one in records),
            trials=self.trials,
            other_failures=tuple(self.others),
        )

    def _records(self, pristine: Files) -> list[BatchRecords]:
        self.places = self._places()
        found: list[BatchRecords] = []
        for number, place in enumerate(self.places):
            is_file = place.source.kind in FILE_SOURCES
            if is_file:
                whole = WholeFiles(place, self.files, self.checkpoint, self.batch)
                if whole.have_lines:
                    found.append(whole)
                    continue
            folder = self.folder / f"source-{number}"
            rows = capture(place, self.query, pristine, self.checkpoint, self.batch, folder)
            if not isinstance(rows, Rehearsal):
                found.append(rows)
            elif is_file:
                found.append(whole)
            else:
                raise WrongUse(
                    f"{place.words}: its records of batch {self.batch} cannot be read",
                    rows.words,
                    "Bisecting needs these records. Correct this error first.",
                )
        return found

    def _places(self) -> list[RecordPlace]:
        leaves = source_leaves(self.plan)
        saved = self.checkpoint.sources_of(self.batch)
        if len(leaves) != len(saved):
            raise WrongUse(
                f"the code reads {len(leaves)} sources, batch {self.batch} has {len(saved)}",
                "So this is not the code that the batch failed with.",
                f"floodmark check {shlex.quote(self.files.root)} APP.py says what has changed.",
            )
        folders = source_folders(self.writer)
        found: dict[str, RecordPlace] = {}
        for at, (leaf, source) in enumerate(zip(leaves, self.query.sources, strict=True)):
            place = RecordPlace(self.session, leaf, source, saved[at].id, at, folders[at])
            found.setdefault(folders[at], place)
        return list(found.values())

    def _new(self) -> Path:
        return self.folder / f"cut-{uuid.uuid4().hex}"

    def _fails(self, records: Sequence[BatchRecords], ranges: Ranges) -> bool:
        """Whether these records fail as the whole batch does; numbers count through all sources."""
        given, begin = [], 0
        for one in records:
            own = tuple(
                (max(first, begin) - begin, min(end, begin + one.count) - begin)
                for first, end in ranges
                if first < begin + one.count and end > begin
            )
            given.append(one.give(own, self._new()))
            begin += one.count
        found = self._trial(given)
        if not found.ran and _kind(found) != self.kind:
            self.others[found.words] = None
        return not found.ran and _kind(found) == self.kind

    def _search(self, records: Sequence[BatchRecords]) -> tuple[list[frozenset[int]], bool]:
        """Return the sets of records that fail, and whether the rest runs."""
        count = sum(one.count for one in records)
        found: list[frozenset[int]] = []
        without: frozenset[int] = frozenset()
        while len(found) < _MOST_FOUND:
            if found and not self._fails(records, ranges_of(count, without)):
                return found, True
            one = smallest(count, without, lambda ranges: self._fails(records, ranges))
            if one is None:
                return found, False
            found.append(one)
            without |= one
            self.say(f"{self.trials} trials: {len(found)} found")
        return found, not self._fails(records, ranges_of(count, without))

    def _within_files(
        self, records: Sequence[BatchRecords], kept: frozenset[int]
    ) -> tuple[list[Culprit], bool]:
        """Return the records' names; for text files the lines, where these alone fail too."""
        parts: list[Some] = []
        begin = 0
        for one in records:
            own = sorted(number - begin for number in kept if begin <= number < begin + one.count)
            parts.append(Some(one, tuple(own)))
            begin += one.count
        lines: list[BatchRecords] = [_cut(one) for one in parts]
        count = sum(one.count for one in lines)
        is_cut = any(isinstance(one, Lines) for one in lines)
        if is_cut and self._fails(lines, ranges_of(count)):
            found, complete = self._search(lines)
            if found:
                return [Culprit(_names(lines, one)) for one in found], complete
        return [Culprit(_names(parts, frozenset(range(len(kept)))))], True

    def _trial(self, given: Sequence[Given]) -> Rehearsal:
        """Run the batch with these records and files as input."""
        self.trials += 1
        fork = self.folder / "fork"
        shutil.rmtree(fork, ignore_errors=True)
        # Spark replaces files and never changes them in place, so links are enough for the state.
        left_out = shutil.ignore_patterns(OFFSETS, SOURCES)
        shutil.copytree(self.folder / "pristine", fork, ignore=left_out, copy_function=os.link)
        first = self.batch == 0
        for number in (self.batch - 1, self.batch):
            entry = self.checkpoint.offsets.get(number)
            if entry is not None:
                at = json.dumps(
                    {"logOffset": 0 if first or number < self.batch else 1}, separators=(",", ":")
                )
                entry = replace(entry, offsets=tuple((name, at) for name, _ in entry.offsets))
                put(fork / OFFSETS / str(number), render_offsets(entry))
        for place, one in zip(self.places, given, strict=True):
            log = fork / SOURCES / place.folder
            put(log / "0", b"v1")
            put(log / ("0" if first else "1"), _log(one.files, 0 if first else 1))

        def instead_of(leaf: Any) -> Any:
            for place, one in zip(self.places, given, strict=True):
                if place.leaf.equals(leaf):
                    return one.leaf
            return None

        frame = frame_of(self.session, replace_leaves(self.plan, instead_of))
        writer = to_nowhere(frame, self.query)
        if self.sink:
            writer = frame.writeStream.outputMode(self.query.output_mode.lower())
            writer._jwrite.foreachBatch(jvm_field(self.writer._jwrite, "foreachBatchWriter"))
        with on_a_fork(self.session):
            found = run_batch(writer, self.query, fork, self.batch, False, TRIAL_SECONDS)
        if found is None:
            hours = TRIAL_SECONDS // 3600
            raise WrongUse(f"batch {self.batch} did not finish on the fork in {hours:g} h")
        return found


def _cut(part: Some) -> BatchRecords:
    whole = part.records
    if isinstance(whole, WholeFiles) and whole.have_lines and part.numbers:
        return Lines(whole, part.numbers)
    return part


def _names(records: Sequence[BatchRecords], numbers: frozenset[int]) -> tuple[NamedRecord, ...]:
    found, begin = [], 0
    for one in records:
        own = sorted(number - begin for number in numbers if begin <= number < begin + one.count)
        found += [one.name(number) for number in own]
        begin += one.count
    return tuple(found)


def _kind(failed: Rehearsal) -> tuple[str | None, str]:
    """Return Spark's condition and the exception's class: the message holds the record's values."""
    return failed.condition, failed.words.partition(":")[0]


def _log(files: Sequence[str], number: int) -> bytes:
    now = int(time.time() * 1000)
    entries = [{"path": path, "timestamp": now, "batchId": number} for path in files]
    lines = [json.dumps(one, separators=(",", ":")) for one in entries]
    return "\n".join(["v1", *lines]).encode()
