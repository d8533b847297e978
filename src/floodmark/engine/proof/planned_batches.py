"""Runs planned batches of a checkpoint again, on a fork, one after another.

The fork begins with the state before the first batch. Each batch reads exactly the offsets with
which it was planned. A later batch starts from the state that the batch before it left on the
fork. The checkpoint, its sink and its sources are only read.
"""

from __future__ import annotations

import json
import shlex
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from floodmark.changes.carry.before_batch import before_batch, replayable_batches
from floodmark.changes.carry.needed_state import needed_state
from floodmark.changes.sources.gone_input import gone_input
from floodmark.checkpoint.layout import METADATA, OFFSETS
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.offsets import OffsetEntry, render_offsets, with_conf, with_watermark
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.connectors.registry import about, family, kind_named, look_alikes
from floodmark.connectors.source import UNKNOWN
from floodmark.engine.code.empty_leaves import frame_of
from floodmark.engine.code.outline import clone_session
from floodmark.engine.code.query import Query, Source, read_query
from floodmark.engine.code.rehearse import fork_checkpoint, run_batch, state_paths
from floodmark.engine.proof.kept_rows import PARQUET, Function
from floodmark.engine.sinks.exactly_once import on_a_fork
from floodmark.engine.spark.scala import jvm_field
from floodmark.errors import (
    BatchPurged,
    MalformedFile,
    NoAnswer,
    StateFileMissing,
    StatePurged,
    WouldLose,
    WrongUse,
)
from floodmark.rules.restarts.rehearsal import Rehearsal
from floodmark.storage.files import Files, WritableFiles, open_files
from floodmark.storage.load import Entries, load
from floodmark.storage.untrusted_places import opener

BATCH_SECONDS = 6 * 3600.0
SOURCE_OPTIONS = {"failOnDataLoss": "true"}
"""A source that has lost records must fail: without them it would be another batch."""


def require_range(checkpoint: Checkpoint, first: int, last: int) -> None:
    """Refuse batches that were never planned, or whose offsets the log no longer has."""
    if first > last:
        raise WrongUse(f"batch {first} is after batch {last}", do="Give the earlier batch first.")
    if first < 0:
        raise WrongUse(f"there is no batch {first}", "Batches are numbered from 0.")
    latest = checkpoint.latest_batch
    if latest is None:
        raise NoAnswer(f"{checkpoint.path} has no batch yet", "No batch was planned.")
    if last > latest:
        raise WrongUse(
            f"there is no batch {last} yet",
            f"The newest planned batch is {latest}.",
            f"floodmark batches {shlex.quote(checkpoint.path)} lists them.",
        )
    gone = [one for one in range(first, last + 1) if one not in checkpoint.offset_ids]
    if gone:
        raise BatchPurged(
            f"offsets/{gone[0]} is no longer in the checkpoint",
            "Spark removed it (spark.sql.streaming.minBatchesToRetain), or a change of the "
            "checkpoint did.",
            oldest_words(checkpoint),
        )
    if first > 0 and first - 1 not in checkpoint.offset_ids:
        raise BatchPurged(
            f"offsets/{first - 1} is not in the checkpoint, so it is not known where batch {first} "
            "begins",
            "A batch reads the range between two entries of the log.",
            oldest_words(checkpoint),
        )
    for batch in range(max(first, 1), last + 1):
        _refuse_rewound(checkpoint, batch)


def _refuse_rewound(checkpoint: Checkpoint, batch: int) -> None:
    """Refuse a batch that ends before it begins: the log was rewound there, and nothing ran."""
    before = {source.id: source for source in checkpoint.sources_of(batch - 1)}
    for source in checkpoint.sources_of(batch):
        last = before.get(source.id)
        if last is None or last.kind != source.kind or None in (last.offset, source.offset):
            continue
        for part, was, now in about(source).went_back(last.offset, source.offset):
            raise WrongUse(
                f"batch {batch} ends before it begins: source {source.id}{part} stands at {now}, "
                f"after {was}",
                "The stream was rewound there, or its source was recreated: no batch has read "
                "that range.",
                f"Choose batches up to {batch - 1}, or from {batch + 1} on.",
            )


def oldest_words(checkpoint: Checkpoint) -> str:
    able = replayable_batches(checkpoint)
    if not able:
        return "No batch of this checkpoint can be replayed."
    return f"The oldest batch that can be replayed is {able[0]}, the newest {able[-1]}."


@dataclass(frozen=True)
class PlannedBatches:
    """Runs the code of `writer` over planned batches of a checkpoint, on a fork below `place`."""

    writer: Any
    files: Files
    checkpoint: Checkpoint
    place: Path
    sink: Function
    own_watermarks: bool = False
    """True for other code than the checkpoint's: its watermark follows from its own input."""

    @property
    def fork(self) -> WritableFiles:
        return open_files(str(self.place / "fork"))

    @cached_property
    def query(self) -> Query:
        """Asking Spark takes a while, and the answer stays the same."""
        return read_query(self.writer)

    def require_sources(self, batch: int) -> None:
        """Refuse code that reads other sources than the batch was planned for."""
        own, planned = self.query.sources, self.checkpoint.sources_of(batch)
        if len(own) != len(planned):
            raise WrongUse(
                f"the code reads {_count(own)}; batch {batch} was planned for {_count(planned)}",
                "The offsets of the batch belong to the sources of the code that planned it.",
                f"floodmark check {shlex.quote(self.checkpoint.path)} "
                "APP.py says what has changed; give the "
                "code that made the batch.",
            )
        for code, saved in zip(own, planned, strict=True):
            if not _may_be(code, saved.kind):
                raise WrongUse(
                    f"source {saved.id} of batch {batch} is {saved.kind}, and the code reads "
                    f"{code.kind}",
                    "The offsets of the batch belong to the sources of the code that planned it.",
                    f"floodmark check {shlex.quote(self.checkpoint.path)} "
                    "APP.py says what has changed; give "
                    "the code that made the batch.",
                )

    def begin(self, batch: int) -> None:
        """Make the fork as it was when this batch had been planned."""
        past = before_batch(self.checkpoint, batch)
        needed: frozenset[str] = frozenset()
        if batch > 0:
            try:
                needed = state_paths(needed_state(past, batch - 1, self.files.read))
            except (StateFileMissing, StatePurged, MalformedFile) as error:
                raise StatePurged(
                    f"the state before batch {batch} cannot be rebuilt: {error.what}",
                    error.why,
                    oldest_words(self.checkpoint),
                ) from None
        fork_checkpoint(self.files, past, self.fork, self.place / "fork", needed)
        self.fork.write(METADATA, new_identity())

    def require_input(self, first: int, last: int, storage: Any = None) -> None:
        """Refuse if input files of these batches are gone: Spark would ignore the missing files."""
        gone = self._gone(self.checkpoint, first, last, storage)
        if gone:
            raise WouldLose(
                f"input of batch {first} is gone" if first == last else "input files are gone",
                "\n".join(gone),
                "Without these files it would be another batch. Bring the files back"
                f"{self._oldest_with_input(first, storage)}.",
            )

    def _gone(self, checkpoint: Checkpoint, first: int, last: int, storage: Any) -> list[str]:
        found = gone_input(
            self.files,
            checkpoint,
            checkpoint.offsets.get(first - 1),
            opener([self.files.root], storage),
            ends=checkpoint.offsets.get(last),
        )
        return [words for words in found.lost if "keeps files of its own" not in words]

    def _oldest_with_input(self, after: int, storage: Any) -> str:
        whole = load(self.files, Entries.ALL)
        for batch in replayable_batches(whole):
            if batch > after and not self._gone(whole, batch, batch, storage):
                return f", or choose batch {batch}, the next batch whose input is there"
        return "; no later batch has its input"

    def run(self, batch: int) -> Rehearsal:
        """Run one batch on the fork; raise an error where Spark fails."""
        if not self._is_planned(batch):
            self._plan(batch)
        session = clone_session(self.writer._spark, PARQUET)
        plan = jvm_field(self.writer._jwrite, "ds").queryExecution().analyzed()
        query = self.query
        writer = frame_of(session, plan).writeStream.outputMode(query.output_mode.lower())
        with on_a_fork(session):
            found = run_batch(
                writer.foreachBatch(self.sink),
                query,
                self.place / "fork",
                batch,
                True,
                BATCH_SECONDS,
            )
        if found is None:
            raise NoAnswer(f"batch {batch} did not finish on the fork")
        if not found.ran:
            raise NoAnswer(
                f"batch {batch} fails on the fork",
                found.words,
                "Your data did not change. If the code is not the one that made the batch: "
                f"floodmark check {shlex.quote(self.checkpoint.path)} "
                "APP.py; if its input is gone: floodmark "
                f"doctor {shlex.quote(self.checkpoint.path)} --sources",
            )
        return found

    def after(self) -> Checkpoint:
        """Return the fork as it is now."""
        return load(self.fork)

    def _is_planned(self, batch: int) -> bool:
        return (self.place / "fork" / OFFSETS / str(batch)).exists()

    def _plan(self, batch: int) -> None:
        self.fork.write(
            RelativePath(f"{OFFSETS}/{batch}"),
            render_offsets(self._entry(batch, self.checkpoint.offsets[batch])),
        )

    def _entry(self, batch: int, entry: OffsetEntry) -> OffsetEntry:
        if not self.own_watermarks or entry.metadata is None:
            return entry
        now = self.after()
        # A migration may have pinned other settings, such as another provider.
        entry = with_conf(entry, now.conf)
        commit = now.latest_commit
        if commit is None:
            return entry
        return with_watermark(entry, commit.next_batch_watermark_ms)


def new_identity() -> bytes:
    """Return a new query id: no sink or ledger may take a fork's batch for the batch itself."""
    return json.dumps({"id": str(uuid.uuid4())}).encode()


def _count(sources: Sequence[Any]) -> str:
    return "1 source" if len(sources) == 1 else f"{len(sources)} sources"


def _may_be(code: Source, saved: str) -> bool:
    """Whether offsets of this kind can belong to the code; Spark judges the unclear cases."""
    now, then = family(code.kind), family(saved)
    told = (now, then, code.kind, saved)
    if UNKNOWN in told or any(kind_named(one).any_form for one in (now, then)):
        return True
    return now == then or then in look_alikes(now) or now in look_alikes(then)
