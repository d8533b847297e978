"""A Delta source whose table no longer holds what the next batch reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from floodmark.checkpoint.sources import (
    BASE_INDEXES,
    DeltaOffset,
    parse_delta_offset,
    parse_offset_text,
)
from floodmark.engine.hadoop import checkpoint_files
from floodmark.engine.look import Objection, Situation
from floodmark.errors import MalformedFile
from floodmark.storage.files import Files

MISSING = "delta-table-missing"
REPLACED = "delta-table-replaced"
VERSION = "delta-version-gone"
VACUUMED = "delta-file-gone"
NAMES = (MISSING, REPLACED, VERSION, VACUUMED)
_LOG = "_delta_log"
# The next batch begins in these; what lies further ahead may be vacuumed in time to be seen.
_COMMITS_LOOKED_AT = 20
_FILES_LOOKED_AT = 1000


def judge(situation: Situation) -> Iterator[Objection]:
    for known_as, source in situation.sources:
        if source.kind != "delta" or source.path is None:
            continue
        offset = _next_offset(situation, known_as)
        if offset is None:
            continue
        files = checkpoint_files(situation.spark, source.path)
        versions = _versions(files)
        if not versions:
            yield Objection(
                MISSING,
                f"{source.path} is not a Delta table any more: it has no {_LOG}",
                "The checkpoint goes on in it.",
                "Put the table back, or begin with a new checkpoint.",
            )
            continue
        found = table_id(situation.spark, files, versions)
        if found is not None and found != offset.reservoir_id:
            yield Objection(
                REPLACED,
                f"the table at {source.path} is another one than the checkpoint read",
                f"Its id is {found}, the checkpoint's is {offset.reservoir_id}: it was dropped "
                "and made again. Spark fails with DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE.",
                "Begin with a new checkpoint, or read the table that the checkpoint knows.",
            )
            continue
        yield from _judge_log(source.path, offset, versions)
        if not offset.is_starting_version:
            yield from _judge_files(source.path, files, offset, versions)


def _next_offset(situation: Situation, source: str) -> DeltaOffset | None:
    """Where the next batch begins; of a first batch in flight, where it ends."""
    checkpoint = situation.saved.checkpoint
    if checkpoint is None or checkpoint.latest_batch is None:
        return None
    batch = checkpoint.latest_batch
    if checkpoint.in_flight_batch is not None and batch > 0:
        batch -= 1
    entry = checkpoint.offsets.get(batch)
    text = entry.of(source) if entry else None
    if text is None:
        return None
    try:
        return parse_delta_offset(parse_offset_text(text))
    except MalformedFile:
        return None


def _versions(files: Files) -> list[int]:
    """The commits that the log still holds."""
    names = files.level(_LOG).files
    return sorted(
        int(name[:-5]) for name in names if name.endswith(".json") and name[:-5].isdecimal()
    )


def _judge_log(path: str, offset: DeltaOffset, versions: list[int]) -> Iterator[Objection]:
    needed = offset.reservoir_version
    # A snapshot being read needs its version rebuilt, which a later checkpoint file cannot do.
    if needed < versions[0]:
        yield Objection(
            VERSION,
            f"{path} no longer has version {needed} in its log: the earliest is {versions[0]}",
            "The log's retention (delta.logRetentionDuration) removed versions that the stream "
            "had not read. Spark fails, or skips them where failOnDataLoss is false.",
            "Begin with a new checkpoint that reads the table anew, or, to go on with what is "
            'left, set .option("failOnDataLoss", "false") as well.',
        )
    elif needed > versions[-1] + 1:
        yield Objection(
            REPLACED,
            f"the checkpoint is at version {needed} of {path}, and the table is at {versions[-1]}",
            "The table was restored from an earlier copy, or this is another one.",
            "Begin with a new checkpoint, or read the table that the checkpoint knows.",
        )


def _judge_files(
    path: str, files: Files, offset: DeltaOffset, versions: list[int]
) -> Iterator[Objection]:
    ahead = [version for version in versions if version >= offset.reservoir_version]
    checked = 0
    for version in ahead[:_COMMITS_LOOKED_AT]:
        added = _added(files, version)
        if version == offset.reservoir_version and offset.index not in BASE_INDEXES:
            added = added[max(0, offset.index + 1) :]
        gone = _gone(files, added[: _FILES_LOOKED_AT - checked])
        if gone:
            yield Objection(
                VACUUMED,
                f"{path}: version {version} adds {gone[0]}, and the file is gone",
                "VACUUM removed files that the stream had not read. Spark fails on them.",
                "Bring the files back, or begin with a new checkpoint that reads the table anew.",
            )
            return
        checked += len(added)
        if checked >= _FILES_LOOKED_AT:
            return


def _added(files: Files, version: int) -> list[str]:
    return [
        unquote(action["path"])
        for action in _actions(files, version, "add")
        if action.get("dataChange", True)
    ]


def _gone(files: Files, names: list[str]) -> list[str]:
    levels: dict[str, frozenset[str]] = {}
    missing = []
    for name in names:
        if "://" in name or name.startswith(("/", "file:")):  # a shallow clone's: elsewhere
            continue
        folder, _, base = name.rpartition("/")
        if folder not in levels:
            levels[folder] = frozenset(files.level(folder).files)
        if base not in levels[folder]:
            missing.append(name)
    return missing


def _actions(files: Files, version: int, kind: str) -> list[dict[str, Any]]:
    found = []
    for line in files.read(f"{_LOG}/{version:020d}.json").decode("utf-8").splitlines():
        if line.startswith(f'{{"{kind}"'):
            found.append(json.loads(line)[kind])
    return found


def table_id(spark: Any, files: Files, versions: list[int]) -> str | None:
    """The table's id: in its newest metadata, which a commit or a checkpoint of the log holds."""
    for version in reversed(versions[-_COMMITS_LOOKED_AT:]):
        metadata = _actions(files, version, "metaData")
        if metadata:
            return str(metadata[-1]["id"])
    checkpoints = [name for name in files.level(_LOG).files if name.endswith(".parquet")]
    if not checkpoints:
        metadata = _actions(files, versions[0], "metaData")
        return str(metadata[-1]["id"]) if metadata else None
    newest = max(name.partition(".")[0] for name in checkpoints)
    paths = [f"{files.root}/{_LOG}/{name}" for name in checkpoints if name.startswith(newest)]
    rows = spark.read.parquet(*paths).where("metaData IS NOT NULL").select("metaData.id").take(1)
    return str(rows[0][0]) if rows else None
