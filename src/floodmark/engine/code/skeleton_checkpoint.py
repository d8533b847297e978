"""Makes a checkpoint from an outline, for a rehearsal: logs, schemas and settings, no rows.

The checkpoint has one partition, whatever the real one pins: Spark compares schemas, operators
and settings, and one partition is enough for that. Where the log pins no number, the checkpoint
has as many partitions as the real one, because the session's number must then fit as well.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from floodmark.checkpoint.commits import CommitEntry, parse_commit, render_commit, with_state_ids
from floodmark.checkpoint.conf_keys import (
    ROW_CHECKSUMS,
    SHUFFLE_PARTITIONS,
    STATE_CODEC,
)
from floodmark.checkpoint.layout import (
    COMMITS,
    METADATA,
    OFFSETS,
    OPERATOR_METADATA,
    STATE,
    STATE_SCHEMA,
    schema_file,
    store_folder,
)
from floodmark.checkpoint.offsets import render_offsets, with_conf
from floodmark.checkpoint.outline import OperatorOutline
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.rules.restarts.held_checkpoint import HeldCheckpoint
from floodmark.state.files.rocksdb_write import numbered
from floodmark.state.shapes.schema import StateSchema, render_schema
from floodmark.statestore.write import StoreFormat, write_store
from floodmark.storage.files import WritableFiles, open_files

_FAMILIES = 3
"""The version of state schemas that has column families, in files in a folder of their own."""
_MOST_PARTITIONS = 1_000
"""A limit, because anybody can write an outline file."""
_VERSION = 2
"""The version of the state: two batches are committed."""


@contextlib.contextmanager
def skeleton_checkpoint(held: HeldCheckpoint) -> Iterator[WritableFiles]:
    """Yield a temporary folder with such a checkpoint."""
    with tempfile.TemporaryDirectory(
        prefix="floodmark-skeleton-", ignore_cleanup_errors=True
    ) as made:
        files = open_files(str(Path(made).resolve() / "checkpoint"))
        if held.checkpoint.latest_batch is None:
            files.write(METADATA, _id())
        else:
            _write(held, files)
        yield files


def _write(held: HeldCheckpoint, files: WritableFiles) -> None:
    checkpoint = held.checkpoint
    files.write(METADATA, _id())
    entry = checkpoint.latest_entry
    assert entry is not None
    if SHUFFLE_PARTITIONS in checkpoint.conf:
        entry = with_conf(entry, {SHUFFLE_PARTITIONS: "1"})
    ids: dict[int, tuple[tuple[str, ...], ...]] = {}
    for operator in held.held:
        unique = operator.operator in (_commit(held).state_unique_ids)
        ids |= _operator(
            held, operator, files, entry.metadata.conf if entry.metadata else {}, unique
        )
    commit = parse_commit(f'v{_commit(held).version}\n{{"nextBatchWatermarkMs":0}}'.encode())
    for batch in range(_VERSION):
        files.write(RelativePath(f"{OFFSETS}/{batch}"), render_offsets(entry))
        mine = with_state_ids(commit, ids) if ids else commit
        files.write(RelativePath(f"{COMMITS}/{batch}"), render_commit(mine))


def _commit(held: HeldCheckpoint) -> CommitEntry:
    found = next(iter(held.checkpoint.commits.values()), None)
    return found or CommitEntry(1, 0, {}, {}, "")


def _operator(
    held: HeldCheckpoint,
    operator: OperatorOutline,
    files: WritableFiles,
    conf: Mapping[str, str],
    unique: bool,
) -> dict[int, tuple[tuple[str, ...], ...]]:
    """Write an operator's schemas, metadata and empty state; return the ids for the commit."""
    number = operator.operator
    described = {one.operator: one for one in held.checkpoint.state_operators}
    provider = described[number].provider if number in described else "hdfs"
    schemas = held.schemas.get(number, {})
    stores, names = [], []
    partitions = 1
    if SHUFFLE_PARTITIONS not in conf and number in described:
        partitions = min(described[number].partitions, _MOST_PARTITIONS)
    for store, schema in schemas.items():
        path = _write_schema(files, number, store, schema)
        info: dict[str, Any] = {
            "storeName": store,
            "numColsPrefixKey": operator.prefix_columns,
            "numPartitions": partitions,
        }
        if path is not None:
            info["stateSchemaFilePaths"] = [path]
        stores.append(info)
        names.append([str(uuid.uuid4()) for _ in range(partitions)])
        families = [one.name for one in schema.families] if schema.version == _FAMILIES else []
        style = StoreFormat(
            provider,
            conf.get(STATE_CODEC, "lz4"),
            conf.get(ROW_CHECKSUMS, "false").lower() == "true",
            numbered(families) if provider == "rocksdb" else {},
            frozenset(name for name in families if name.startswith("$")),
        )
        for partition, name in enumerate(names[-1]):
            folder = store_folder(number, partition, store)
            for version in range(1, _VERSION + 1):
                write_store(files, folder, version, (), style, name if unique else None)
    if operator.name is not None:
        _write_metadata(files, operator, stores)
    return {number: tuple(zip(*names, strict=True))} if unique else {}


def _write_schema(
    files: WritableFiles, operator: int, store: str, schema: StateSchema
) -> str | None:
    """Write a schema; return the file's full path where the operator's metadata must name it."""
    if schema.version != _FAMILIES:
        path = schema_file(operator, store)
        files.write(RelativePath(path), render_schema(schema))
        return None
    path = f"{STATE}/{operator}/{STATE_SCHEMA}/{store}/0_{uuid.uuid4()}"
    files.write(RelativePath(path), render_schema(schema))
    return f"file:{files.root}/{path}"


def _write_metadata(
    files: WritableFiles, operator: OperatorOutline, stores: list[dict[str, Any]]
) -> None:
    dated = any("stateSchemaFilePaths" in one for one in stores)
    fields: dict[str, Any] = {
        "operatorInfo": {"operatorId": operator.operator, "operatorName": operator.name},
        "stateStoreInfo": stores,
    }
    if dated:
        fields["operatorPropertiesJson"] = operator.properties_json
    text = json.dumps(fields, separators=(",", ":"))
    name, version = ("v2/0", 2) if dated else ("metadata", 1)
    path = f"{STATE}/{operator.operator}/{OPERATOR_METADATA}/{name}"
    files.write(RelativePath(path), f"v{version}\n{text}".encode())


def _id() -> bytes:
    return json.dumps({"id": str(uuid.uuid4())}).encode()
