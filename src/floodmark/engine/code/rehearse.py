"""Rehearses a restart: runs one batch of the new code on a fork of the checkpoint.

The result is Spark's own verdict. The rehearsal only reads what belongs to the user: the fork
is elsewhere, its sink keeps nothing, and sources may not clean up their input.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from floodmark.changes.carry.checkpoint_files import belonging
from floodmark.changes.carry.needed_state import needed_state
from floodmark.changes.carry.rehome import (
    is_operator_metadata,
    moved_operator_metadata,
    moved_schema_log,
)
from floodmark.checkpoint import layout
from floodmark.checkpoint.conf_keys import CHECKPOINT_LOCATION
from floodmark.checkpoint.layout import checksum_file
from floodmark.checkpoint.metadata import parse_operator_metadata
from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.offsets import render_offsets
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.checkpoint.state_chain import StoreChain
from floodmark.connectors.delta.offset import is_schema_log
from floodmark.diagnosis.held import places_of
from floodmark.engine.code.empty_leaves import EmptyLeaves, frame_of, replace_leaves
from floodmark.engine.code.outline import clone_session
from floodmark.engine.code.query import Query, read_query
from floodmark.engine.proof.scratch import scratch_place
from floodmark.engine.run.failure import cause_of, condition_of
from floodmark.engine.spark.scala import jvm_field, scala_map
from floodmark.errors import FloodmarkError, WrongUse
from floodmark.rules.restarts.rehearsal import Rehearsal
from floodmark.rules.restarts.source_matching import plain_path
from floodmark.secret_text import redacted
from floodmark.storage.file_copy import copy_file
from floodmark.storage.files import Files, WritableFiles, open_files

_ENOUGH_SECONDS = 600.0
_POLL_SECONDS = 0.05
_TOLD_SECONDS = 20.0
"""A batch's progress comes right after its commit, unless the session keeps no progress."""
_ELSEWHERE = "elsewhere"
DEFAULT_CAP = 1000


def rehearse(
    writer: Any,
    files: Files,
    checkpoint: Checkpoint,
    empty: bool = False,
    scratch: str | None = None,
) -> Rehearsal:
    """Run one batch of the new code on a fork, with its own sources or with empty ones.

    A source without new input does not test the state, so empty sources then replace it.
    `scratch` is a folder for the fork; a cluster needs one that all its machines see.
    """
    if checkpoint.latest_batch is None:
        return Rehearsal(True, 0, False)
    query = read_query(writer)
    if not empty:
        found = _attempt(writer, query, files, checkpoint, scratch, empty=False)
        if found is not None:
            return found
    found = _attempt(writer, query, files, checkpoint, scratch, empty=True)
    if found is not None and not empty:
        # The real sources read their offsets before they found nothing new.
        found = replace(found, real_sources=True)
    if found is None:
        raise WrongUse(
            "the rehearsal ran no batch",
            "Spark found nothing to do, though its sources were given something.",
            "Tell the project which sources the query reads.",
        )
    return found


@contextlib.contextmanager
def capped(rows: int, also: Mapping[str, str] | None = None) -> Iterator[None]:
    """While a pipeline is built, limit what its sources give, and let them keep their input.

    `also` are options that every source gets as well.
    """
    from pyspark.sql.streaming.readwriter import DataStreamReader

    names = ("load", "json", "orc", "parquet", "text", "csv", "xml", "table", "changes")
    before = {name: one for name, one in vars(DataStreamReader).items() if name in names}

    def limited(original: Any) -> Any:
        def read(self: Any, *arguments: Any, **named: Any) -> Any:
            options = _limits(rows, {*_options_of(self), *map(str.lower, named)})
            options |= also or {}
            # A limit in load(…, maxFilesPerTrigger=…) would otherwise override these.
            ours = {key.lower() for key in options}
            own = {key: value for key, value in named.items() if key.lower() not in ours}
            return original(self.options(**options), *arguments, **own)

        return read

    for name, original in before.items():
        setattr(DataStreamReader, name, limited(original))
    try:
        yield
    finally:
        for name, original in before.items():
            setattr(DataStreamReader, name, original)


def _limits(rows: int, given: set[str]) -> dict[str, str]:
    """Return the options that replace the code's own; `given` are the names that the code set."""
    options = {"cleanSource": "off"}
    if "minoffsetspertrigger" in given:
        # The one batch would wait for more input, and Kafka refuses a minimum above the maximum.
        options["minOffsetsPerTrigger"] = "1"
    if not rows:
        return options
    options["maxOffsetsPerTrigger"] = str(rows)
    if "maxbytespertrigger" in given:
        # A file source accepts only one of the two limits; one byte means one file.
        options["maxBytesPerTrigger"] = "1"
    if "maxbytespertrigger" not in given or not _knows_bytes():
        options["maxFilesPerTrigger"] = "1"
    return options


def _knows_bytes() -> bool:
    """Whether this Spark's file source has a limit of bytes: Spark 4 added it."""
    import pyspark

    return not pyspark.__version__.startswith("3.")


def _options_of(reader: Any) -> set[str]:
    return set(scala_map(jvm_field(reader._jreader, "extraOptions")))


def _attempt(
    writer: Any,
    query: Query,
    files: Files,
    checkpoint: Checkpoint,
    scratch: str | None,
    empty: bool,
) -> Rehearsal | None:
    """Run the batch on a fork; return None where there was nothing to run."""
    if scratch is None:
        require_one_machine(writer._spark, "or name a folder that all machines see: --scratch DIR")
    with scratch_place(scratch, "rehearsal") as place:
        fork = open_files(str(place / "fork"))
        fork_checkpoint(files, checkpoint, fork, place / "fork")
        session = clone_session(writer._spark, {})
        plan = jvm_field(writer._jwrite, "ds").queryExecution().analyzed()
        if empty:
            leaves = EmptyLeaves(session, place, files=3)
            plan = replace_leaves(plan, leaves.instead_of)
            _point_to_nothing(fork, checkpoint, leaves.folders, query)
        latest, batch = checkpoint.latest_batch, checkpoint.in_flight_batch
        assert latest is not None
        batch = latest + 1 if batch is None else batch
        frame = frame_of(session, plan)
        return run_batch(to_nowhere(frame, query), query, place / "fork", batch, not empty)


def require_one_machine(spark: Any, otherwise: str = "the rules need no fork") -> None:
    master = str(spark.sparkContext.master)
    if not master.startswith("local"):
        raise WrongUse(
            f"a rehearsal runs on one machine, and the master is {master}",
            "The fork lies on this machine's disk, where executors elsewhere do not reach it.",
            f"Run it with --conf spark.master=local[2]; {otherwise}.",
        )


def fork_checkpoint(
    files: Files,
    checkpoint: Checkpoint,
    fork: WritableFiles,
    home: Path,
    needed: frozenset[str] | None = None,
) -> None:
    """Copy what a start needs: the newest logs, the sources' own, and the last commit's state.

    `home` is the folder where the fork will run, as the state's metadata contains its own path.
    `needed` are the files of that state, if the caller has already found them.
    """
    listed = belonging(checkpoint.files if checkpoint.complete else files.list().files)
    if needed is None:
        needed = _needed_state(files, checkpoint)
    for file in listed:
        path = file.path
        if path.startswith(layout.NOTES + "/") or not _is_needed(path, checkpoint, needed):
            continue
        if is_operator_metadata(path):
            # Metadata that names another location must not lead Spark there.
            data = files.read(RelativePath(path))
            is_other = _is_of_another_place(files.root, data)
            goal = home.parent / _ELSEWHERE if is_other else home
            data = moved_operator_metadata(data, str(goal))
            fork.write(RelativePath(path), data)
        elif is_schema_log(path):
            fork.write(
                RelativePath(path),
                moved_schema_log(files.read(RelativePath(path)), str(home)),
            )
        else:
            copy_file(files, path, fork, path)


def _is_of_another_place(root: str, data: bytes) -> bool:
    here = tuple(plain_path(one) + "/" for one in places_of(root))
    stores = parse_operator_metadata(data).stores
    paths = [plain_path(path) for store in stores for path in store.schema_paths]
    return any(not path.startswith(here) for path in paths)


def _is_needed(path: str, checkpoint: Checkpoint, needed: frozenset[str] | None) -> bool:
    folder, _, rest = path.partition("/")
    if folder in (layout.OFFSETS, layout.COMMITS):
        kept = checkpoint.offset_ids[-2:] + checkpoint.commit_ids[-2:]
        return int(rest) in kept
    if folder == layout.STATE and needed is not None:
        return path in needed or layout.OPERATOR_METADATA in path or layout.STATE_SCHEMA in path
    return (
        path == layout.METADATA or folder in (layout.SOURCES, layout.STATE) or is_schema_log(path)
    )


def _needed_state(files: Files, checkpoint: Checkpoint) -> frozenset[str] | None:
    """Return the files of the needed state; None where they are unknown: the fork takes all."""
    batch = checkpoint.committed_batch
    if batch is None or not checkpoint.complete:
        return None
    try:
        return state_paths(needed_state(checkpoint, batch, files.read))
    except FloodmarkError:
        return None


def state_paths(stores: Iterable[StoreChain]) -> frozenset[str]:
    """Return all files that rebuild these stores."""
    found = {file.path for store in stores for file in store.files}
    found |= {table.path for store in stores for table in store.tables}
    return frozenset(found | set(map(checksum_file, found)))


def _point_to_nothing(
    fork: WritableFiles, checkpoint: Checkpoint, folders: list[Path], query: Query
) -> None:
    """Rewrite the fork's offsets for file sources that have read two of their empty files.

    The newest entry is at the second file and the entry before it at the first. The third file
    is the input of the next batch.
    """
    latest = checkpoint.latest_batch
    assert latest is not None
    for batch in (latest - 1, latest):
        entry = checkpoint.offsets.get(batch)
        if entry is not None:
            at = json.dumps({"logOffset": 1 if batch == latest else 0}, separators=(",", ":"))
            entry = replace(entry, offsets=tuple((name, at) for name, _ in entry.offsets))
            fork.write(RelativePath(f"{layout.OFFSETS}/{batch}"), render_offsets(entry))
    fork.delete(
        RelativePath(file.path)
        for file in fork.list().files
        if file.path.startswith(layout.SOURCES + "/")
    )
    now = int(time.time() * 1000)
    for place, folder in enumerate(folders):
        source = query.sources[place].name if place < len(query.sources) else None
        for number in (0, 1):
            entry_json = {
                "path": f"file://{folder}/{number}.json",
                "timestamp": now,
                "batchId": number,
            }
            line = json.dumps(entry_json, separators=(",", ":"))
            fork.write(
                RelativePath(f"{layout.SOURCES}/{source or place}/{number}"), f"v1\n{line}".encode()
            )


def to_nowhere(frame: Any, query: Query) -> Any:
    """Return a writer to a sink that computes every row and keeps none."""
    return frame.writeStream.format("noop").outputMode(query.output_mode.lower())


def run_batch(
    writer: Any,
    query: Query,
    fork: Path,
    batch: int,
    real: bool,
    enough: float = _ENOUGH_SECONDS,
) -> Rehearsal | None:
    """Run one batch on the fork; None where there was nothing to run, or too little time."""
    from pyspark.errors import PySparkException

    for key, value in query.sink_options.items():
        if key.startswith("asyncprogress"):  # it decides which entries the logs need
            writer = writer.option(key, value)
    writer = writer.option(CHECKPOINT_LOCATION, f"file://{fork}")
    try:
        # Not once=True, which ignores limits: this is the first batch of a trigger with no second.
        started = writer.trigger(processingTime="10000 days").start()
    except PySparkException as error:
        return Rehearsal(False, batch, real, None, redacted(str(error)).splitlines()[0])
    try:
        ended = _wait(started, fork / layout.COMMITS / str(batch), enough)
        exception = started._jsq.exception()
        if exception.isDefined():
            cause = exception.get().getCause() or exception.get()
            return Rehearsal(False, batch, real, condition_of(cause), cause_of(cause))
        if not ended:
            return None
        told = _progress(started, batch)
        return Rehearsal(True, batch, real, rows=int(told.get("numInputRows", 0)), progress=told)
    finally:
        started.stop()


def _progress(query: Any, batch: int) -> Mapping[str, Any]:
    """Return Spark's progress of a batch, shortly after its commit; {} if there is none."""
    end = time.monotonic() + _TOLD_SECONDS
    while query.isActive and time.monotonic() < end:
        for one in query._jsq.recentProgress():
            progress: dict[str, Any] = json.loads(one.json())
            if progress["batchId"] == batch:
                return progress
        time.sleep(_POLL_SECONDS)
    return {}


def _wait(query: Any, commit: Path, enough: float) -> bool:
    """Wait for the batch: True if it was committed, False if the trigger had nothing to do."""
    end = time.monotonic() + enough
    idle = 0
    while query.isActive and time.monotonic() < end:
        if commit.exists():
            return True
        status = query.status
        waits = not status["isTriggerActive"] and "next trigger" in status["message"]
        # Look twice: the commit may have come between the two looks.
        idle = idle + 1 if waits else 0
        if idle > 1:
            return commit.exists()
        time.sleep(_POLL_SECONDS)
    return commit.exists()
