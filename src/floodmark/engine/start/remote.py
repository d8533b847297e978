"""Implements `floodmark.start` for a session of Spark Connect, which has no JVM in this process.

This process reads the checkpoint and holds its lease with fsspec; it never asks the server's JVM
for files. The query's plan stays on the server: a changed plan is refused, not judged.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any

from floodmark.addresses import public_url
from floodmark.checkpoint.conf_keys import (
    CHECKPOINT_LOCATION,
    CHECKPOINT_OPTION,
    FILE_MANAGER_CLASS,
    MASTER,
)
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.checkpoint.start_note import last_start
from floodmark.engine.run.failure import sentence_of
from floodmark.engine.start.before_start import IN_USE, allowed_rules, refuse
from floodmark.engine.start.launch import (
    fingerprint_of,
    next_batch,
    say_to_caller,
)
from floodmark.engine.start.lease import Lease, NoLease, in_use, live_holder, take
from floodmark.engine.start.notes import StartNote, source_notes, write_note
from floodmark.engine.start.progress_lines import keep_progress
from floodmark.engine.start.remote_query import RemoteQuery
from floodmark.engine.start.saved import Saved, read_saved
from floodmark.errors import CannotRead, FloodmarkError, WrongUse
from floodmark.redaction import Redaction
from floodmark.rules.finding import Severity
from floodmark.rules.registry import start_checks
from floodmark.rules.start_inputs.situation import Situation, StartingSource
from floodmark.secret_text import redacted
from floodmark.storage.files import WritableFiles, open_files
from floodmark.storage.last_start import acting_note
from floodmark.storage.machine.process import host_name, this_process

_HERE = {"localhost", "127.0.0.1", "::1", ""}


def start_remote(writer: Any, checkpoint: str, name: str | None, allow: frozenset[str]) -> Any:
    """Judge, take the lease, start and note a query; return Spark Connect's StreamingQuery."""
    allowed = allowed_rules(allow)
    spark = writer._session
    query = RemoteQuery(writer)
    location = _location(spark, checkpoint)
    files = open_files(location)
    saved = read_saved(files)
    pipeline = name or "application"
    for words in _judge(_situation(spark, pipeline, location, files, saved, query), allowed):
        say_to_caller(words)
    lease = _lease(files, pipeline, IN_USE in allowed)
    try:
        started = _started(writer, location, name if query.name is None else None)
    except BaseException:
        lease.release()
        _remove_half_made(files, saved)
        raise
    lease.hold(lambda: _runs(started), lambda: _stop_superseded(started, pipeline))
    try:
        write_note(files, _note(spark, query, saved, started, pipeline))
    except FloodmarkError as error:
        say_to_caller(f"no note of this start was written: {error.what}")
    keep_progress(pipeline, started, location, say_to_caller)
    return started


def _location(spark: Any, checkpoint: str) -> str:
    """Return the location with its scheme, so that client and server mean the same place."""
    if "://" in checkpoint:
        return checkpoint
    if checkpoint.startswith("file:"):
        checkpoint = checkpoint.removeprefix("file:")
    host = str(getattr(spark.client, "host", ""))
    if host not in _HERE:
        raise WrongUse(
            f"{checkpoint} is on the disk of {host}, which this process does not see",
            "The check before a start, the lease and the notes need the checkpoint's files.",
            "Name a location that both see, such as s3a://BUCKET/FOLDER.",
        )
    return f"file://{Path(checkpoint).expanduser().absolute()}"


def _situation(
    spark: Any,
    pipeline: str,
    location: str,
    files: WritableFiles,
    saved: Saved,
    query: RemoteQuery,
) -> Situation:
    options = query.sink_options
    named = options.get(CHECKPOINT_OPTION)
    pinned = saved.checkpoint.conf if saved.checkpoint is not None else {}
    chosen = _chosen(spark)
    holder = live_holder(files) if saved.exists else None
    return Situation(
        pipeline,
        location,
        _setting(spark, MASTER) or "local",
        saved.checkpoint,
        saved.stateful,
        tuple(
            StartingSource(str(number), one.kind, one.options)
            for number, one in enumerate(query.sources)
        ),
        options,
        None if named is None else _location(spark, named),
        {key: chosen[key] for key in pinned if key in chosen},
        in_use=in_use(location, holder) if holder is not None else None,
        file_manager=_setting(spark, FILE_MANAGER_CLASS),
        sink=query.sink,
        output_mode=query.output_mode,
        remote_changes=_changes(files, saved, query),
    )


def _changes(files: WritableFiles, saved: Saved, query: RemoteQuery) -> tuple[str, ...]:
    """Return the differences from the start that made the state; empty where there is no note."""
    checkpoint = saved.checkpoint
    if checkpoint is None or not saved.resumes:
        return ()
    noted = acting_note(files, checkpoint.committed_batch)
    last = last_start(noted)
    if noted is None or last is None or noted.get("remote_plan") == query.digest:
        return ()
    if noted.get("remote_plan") is None:
        return ("the last start did not use Spark Connect",)
    found = []
    before, now = [one.kind for one in last.sources], [one.kind for one in query.sources]
    if before != now:
        found.append(f"it reads {', '.join(now)}; the last start read {', '.join(before)}")
    if last.output_mode.lower() != query.output_mode.lower():
        found.append(f"its output mode is {query.output_mode}; before it was {last.output_mode}")
    if not found and not saved.stateful:
        return ()  # Spark accepts any plan over the same sources
    return tuple(found) or ("another plan",)


def _judge(situation: Situation, allowed: frozenset[str]) -> tuple[str, ...]:
    """Refuse the start, or return its warnings."""
    findings = [found for check in start_checks() for found in check(situation)]
    if IN_USE in allowed:
        findings = [one for one in findings if one.rule != IN_USE]
    refuse(findings, allowed)
    words = [f"allowed: {one.what}" for one in findings if one.rule in allowed]
    words += [
        f"{one.rule}: {one.what}"
        for one in findings
        if one.severity is Severity.ADVICE and one.rule not in allowed
    ]
    return tuple(words)


def _setting(spark: Any, key: str) -> str | None:
    value = spark.conf.get(key, None)
    return None if value is None else str(value)


def _chosen(spark: Any) -> dict[str, str]:
    """Return the session's settings without defaults; empty in Spark 3.5, which has no list."""
    return dict(getattr(spark.conf, "getAll", {}))


def _lease(files: WritableFiles, pipeline: str, force: bool) -> Lease | NoLease:
    """Take a lease that names only this process: the server's process is unknown here."""
    try:
        return take(files, pipeline, None, force)
    except CannotRead as error:
        words = "no lease is held, so a second run on this checkpoint would not be refused"
        say_to_caller(f"{words}: {error.what}")
        return NoLease()


def _started(writer: Any, location: str, name: str | None) -> Any:
    from pyspark.errors import AnalysisException, PySparkException

    writer = writer.option(CHECKPOINT_LOCATION, location)
    if name is not None:
        writer = writer.queryName(name)
    try:
        return writer.start()
    except AnalysisException as error:
        raise WrongUse("Spark refuses the query", sentence_of(error)) from error
    except PySparkException as error:
        raise WrongUse("Spark cannot start the query", sentence_of(error)) from error


def _remove_half_made(files: WritableFiles, saved: Saved) -> None:
    """Remove what a first start left behind before it planned any batch, if storage allows it."""
    with contextlib.suppress(FloodmarkError):
        if not saved.exists and not files.level("offsets").files:
            files.delete(RelativePath(file.path) for file in files.list().files)


def _runs(query: Any) -> bool:
    try:
        return bool(query.isActive) or bool(query.status["isTriggerActive"])
    except Exception:  # the server has ended, or has forgotten the query
        return False


def _stop_superseded(query: Any, pipeline: str) -> None:
    say_to_caller(f"{pipeline}: another run has taken over its checkpoint; this one is stopped")
    with contextlib.suppress(Exception):
        query.stop()


def _note(spark: Any, query: RemoteQuery, saved: Saved, started: Any, pipeline: str) -> StartNote:
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    redaction = Redaction.fresh()
    return StartNote(
        pipeline,
        main,
        fingerprint_of(main),
        {},
        str(started.id),
        str(started.runId),
        started.name,
        str(spark.version),
        "",
        {},
        redacted(public_url(f"sc://{getattr(spark.client, 'host', '')}")),
        source_notes(query.sources, redaction),
        query.sink,
        redaction.options(query.sink_options),
        query.output_mode,
        query.trigger,
        "",
        redaction.conf(
            {key: v for key, v in _chosen(spark).items() if key.startswith("spark.sql")}
        ),
        host_name(),
        this_process().pid,
        {},
        next_batch(saved.checkpoint),
        redaction.salt,
        query.digest,
    )
