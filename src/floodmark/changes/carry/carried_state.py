"""Copies one whole version of the state into a new checkpoint, under its new numbers."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.changes.carry.needed_state import needed_state
from floodmark.changes.carry.origin import Origin
from floodmark.changes.carry.rehome import is_operator_metadata, moved_operator_metadata
from floodmark.changes.plan.steps import Step, copy, write
from floodmark.checkpoint.conf_keys import STATE_CODEC
from floodmark.checkpoint.layout import (
    OPERATOR_METADATA,
    STATE_SCHEMA,
    StateFile,
    batch_id,
    checksum_file,
)
from floodmark.checkpoint.state_chain import StoreChain
from floodmark.errors import WouldLose
from floodmark.statestore.manifests import StoredManifests

_NO_ROWS = b"\xff\xff\xff\xff"


def carry_state(origin: Origin, batch: int, shift: int) -> Iterator[Step]:
    """Yield steps for the state after `batch`, with versions moved by `shift`."""
    stores = needed_state(origin.checkpoint, batch, origin.read)
    why = f"the state after batch {batch}"
    if shift:
        why += f", as version {batch + 1 + shift}"
    for store in stores:
        if shift:
            yield from _base_for_shift(origin, store, shift)
        for file in store.files:
            goal = f"{store.folder}/{_shifted(file, shift)}"
            yield copy(goal, why, file.size, file.path)
            own = checksum_file(file.path)
            if own in origin.sizes:
                yield copy(checksum_file(goal), why, origin.size(own), own)
        for table in store.tables:
            yield copy(table.path, why, table.size)


def carry_in_flight_state(origin: Origin, in_flight: int) -> Iterator[Step]:
    """Yield copies of the state that the in-flight batch has written, complete or not.

    A sink that already has the batch skips it, so the batch is not computed and its state would be
    missing in the new checkpoint.
    """
    why = f"what batch {in_flight} has written: a sink that has it does not compute it again"
    named: set[str] = set()
    for file in origin.checkpoint.state_files:
        if file.version != in_flight + 1:
            continue
        named.add(file.path)
        if file.kind == "zip":
            named |= {table.path for table in StoredManifests(origin.read).tables(file)}
    for path in sorted(named):
        for each in (path, checksum_file(path)):
            if each in origin.sizes:
                yield copy(each, why, origin.size(each))


def describing_files(origin: Origin, batch: int, location: str) -> Iterator[Step]:
    """Yield schemas and operator metadata; their paths lead to the new location."""
    for path in sorted(origin.sizes):
        parts = path.split("/")
        if parts[0] != "state" or parts[-1].startswith("."):
            continue
        if is_operator_metadata(path):
            number = batch_id(parts[-1])
            if number is not None and number <= batch:
                data = moved_operator_metadata(origin.read(path), location)
                yield write(path, data, "the paths of its schemas lead to the new place")
        elif OPERATOR_METADATA in parts or STATE_SCHEMA in parts:
            yield copy(path, "what the state's rows look like", origin.size(path))


def _base_for_shift(origin: Origin, store: StoreChain, shift: int) -> Iterator[Step]:
    """Yield an empty base snapshot, which renumbered deltas need; only version 0 is empty."""
    files = store.files
    if any(file.unique_id for file in files) and len(files) > 1:
        raise _cannot_shift(
            store, "its changelogs name each other by version (checkpoint format 2)"
        )
    if store.snapshot is not None or not files:
        return
    why = "an empty state, which the moved versions begin with"
    if files[0].provider == "hdfs":
        from floodmark.state.files.compression import compress

        codec = origin.checkpoint.conf.get(STATE_CODEC, "lz4")
        yield write(f"{store.folder}/{shift}.snapshot", compress(_NO_ROWS, codec), why)
        return
    if _has_families(origin, store):
        raise _cannot_shift(
            store, "its column families stand in a snapshot alone, and it has none yet"
        )
    from floodmark.state.files.rocksdb import RocksSnapshot
    from floodmark.state.files.rocksdb_write import render_snapshot

    empty = render_snapshot(RocksSnapshot((), (), 0, {}, {}))
    yield write(f"{store.folder}/{shift}.zip", empty, why)


def _has_families(origin: Origin, store: StoreChain) -> bool:
    """Whether the store's rows name their column family: changelogs of v2 and v4 do."""
    from floodmark.state.files.rocksdb import parse_changelog

    return parse_changelog(origin.read(store.files[-1].path)).version in (2, 4)


def _cannot_shift(store: StoreChain, why: str) -> WouldLose:
    return WouldLose(
        f"{store.folder}: this state cannot be carried under other numbers",
        f"RocksDB keeps it so that {why}. Numbers that a sink may have seen are not used "
        "for other records.",
        "Keep the in-flight batch and go on after the last commit, `floodmark rewind` in place, "
        "or begin with an empty state: --without-state.",
    )


def _shifted(file: StateFile, shift: int) -> str:
    unique = f"_{file.unique_id}" if file.unique_id else ""
    return f"{file.version + shift}{unique}.{file.kind}"
