"""Provides `inspect`: what a checkpoint is, and its stream's position."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from floodmark.checkpoint.layout import FLOW_CHECKPOINTS, NOTES
from floodmark.checkpoint.model import Checkpoint, Kind
from floodmark.errors import NotACheckpoint, WrongUse
from floodmark.storage.files import Files, open_files
from floodmark.storage.load import load

if TYPE_CHECKING:  # each verb imports what only it needs: start-up is part of every answer
    from floodmark.api.arguments import Storage
    from floodmark.checkpoint.places.flow import Flow
    from floodmark.checkpoint.views.inspection import Inspection

# The limit for `inspect` on an object store, whatever the number of operators and files.
_MOST_REQUESTS = 8


def inspect(
    path: str,
    storage: Storage | None = None,
    source_kinds: Mapping[str, str] | None = None,
    trust: bool = False,
    conf: Mapping[str, Any] | str | Iterable[str] = (),
    master: str | None = None,
) -> Inspection:
    """Return what a checkpoint is and its stream's position; this reads only the newest entries.

    `source_kinds` names sources whose offsets look like another kind's: `{"0": "eventhubs"}`.
    `trust` asks Spark, started with `conf`, which file of a DStreams folder it can take; that
    runs code of whoever wrote the folder.
    """
    from floodmark.checkpoint.views.inspection import inspection

    found = look(path, storage, source_kinds, trust, conf, master)
    return inspection(found, missing_state(found, storage), flow(path, storage))


def missing_state(found: Checkpoint, storage: Storage | None = None) -> tuple[str, ...]:
    """Return state that the next start needs but that is missing, by names and notes."""
    from floodmark.checkpoint import state_chain

    noted = any(file.path.startswith(f"{NOTES}/") for file in found.files)
    if found.state_operators or not noted:
        return state_chain.missing_state(found)
    from floodmark.diagnosis.gather import noted_starts
    from floodmark.rules.checkpoint.state_gone import check

    # The last entry counts; the one before it, if the last cannot be read.
    evidence = noted_starts(open_files(found.path, storage), found, newest=2)
    return tuple(finding.what for finding in check(evidence))


def look(
    path: str,
    storage: Storage | None = None,
    source_kinds: Mapping[str, str] | None = None,
    trust: bool = False,
    conf: Mapping[str, Any] | str | Iterable[str] = (),
    master: str | None = None,
) -> Checkpoint:
    """Load a checkpoint with its newest entries: enough for most questions, at a fixed cost.

    On an object store this makes at most 8 requests; `not_read` names what was left out for that.
    `source_kinds` names sources whose offsets look like another kind's: `{"0": "eventhubs"}`.
    `trust`, `conf` and `master` are as for `inspect`.
    """
    files = open_files(str(path), storage)
    found = loaded(files, _MOST_REQUESTS)
    settings = settings_to_ask(trust, conf, master)
    if trust and found.dstreams is not None:
        from floodmark.engine.dstreams.asking import ask_spark

        found = ask_spark(files, found, settings)
    return with_kinds(found, source_kinds)


def loaded(files: Files, most_requests: int | None = None) -> Checkpoint:
    """Load a checkpoint with its newest entries; a flow's checkpoint may be empty."""
    try:
        return load(files, most_requests=most_requests)
    except NotACheckpoint:
        if not _is_empty_flow(files):
            raise
        return Checkpoint(files.root, Kind.STRUCTURED_STREAMING, ())


def settings_to_ask(
    trust: bool, conf: Mapping[str, Any] | str | Iterable[str], master: str | None
) -> dict[str, str]:
    """Return Spark's settings; refuse them without `trust`, as they would have no effect."""
    if not conf and master is None:
        return {}
    from floodmark.api.arguments import spark_settings

    settings = spark_settings(conf, master)
    if settings and not trust:
        raise WrongUse(
            "--conf and --master are for the Spark that --trust asks",
            "Without --trust nothing starts Spark.",
            "Leave them out, or give --trust if you trust whoever wrote the folder.",
        )
    return settings


def _is_empty_flow(files: Files) -> bool:
    """Whether this is the empty checkpoint of a refreshed pipeline's flow, which begins here."""
    return not files.list().files and flow(files.root) is not None


def flow(path: str, storage: Storage | None = None) -> Flow | None:
    """Return the pipeline's flow with this checkpoint; None for other checkpoints."""
    if FLOW_CHECKPOINTS not in os.path.abspath(path):  # noqa: PTH100
        return None
    from floodmark.api.pipelines import flow_of

    return flow_of(str(path), storage)


def with_kinds(checkpoint: Checkpoint, said: Mapping[str, str] | None) -> Checkpoint:
    if not said:
        return checkpoint
    from floodmark.checkpoint.source_kinds import with_said_kinds

    return with_said_kinds(checkpoint, said)
