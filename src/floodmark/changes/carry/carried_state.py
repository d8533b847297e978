"""Copies one whole version of the state into a new checkpoint, under its new numbers."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.changes.carry.needed_state import needed_state
from floodmark.changes.carry.origin import Origin
from floodmark.changes.carry.rehome import is_operator_metadata, moved_operator_metadata
from floodmark.changes.steps import Step, copy, write
from floodmark.checkpoint.conf_keys import STATE_CODEC
from floodmark.checkpoint.layout import StateFile, batch_id
from floodmark.checkpoint.state_chain import StoreChain
from floodmark.errors import WouldLose
from floodmark.statestore.manifests import StoredManifests

_NO_ROWS = b"\xff\xff\xff\xff"


def carry_state(origin: Origin, batch: int, shift: int) -> Iterator[Step]:
    """The state after `batch`, its versions moved by `shift`."""
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
            if f"{file.path}.crc" in origin.sizes:  # Spark's own checksum of the content
                yield copy(f"{goal}.crc", why, origin.size(f"{file.path}.crc"), f"{file.path}.crc")
        for table in store.tables:
            yield copy(table.path, why, table.size)


def carry_in_flight_state(origin: Origin, in_flight: int) -> Iterator[Step]:
    """What the in-flight batch has written of its state, be it whole or not.

    A sink that has the batch skips it, and then the batch is not computed: nobody would
    write its state in the new place.
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
        for each in (path, f"{path}.crc"):
            if each in origin.sizes:
                yield copy(each, why, origin.size(each))


def describing_files(origin: Origin, batch: int, location: str) -> Iterator[Step]:
    """Schemas and operator metadata; paths in them lead to the new place."""
    for path in sorted(origin.sizes):
        parts = path.split("/")
        if parts[0] != "state" or parts[-1].startswith("."):
            continue
        if is_operator_metadata(path):
            number = batch_id(parts[-1])
            if number is not None and number <= batch:
                data = moved_operator_metadata(origin.read(path), location)
                yield write(path, data, "the paths of its schemas lead to the new place")
        elif "_metadata" in parts or "_stateSchema" in parts:
            yield copy(path, "what the state's rows look like", origin.size(path))


def _base_for_shift(origin: Origin, store: StoreChain, shift: int) -> Iterator[Step]:
    """Moved versions need something to begin with: version 0 is empty only where it is 0."""
    files = store.files
    if any(file.unique_id for file in files) and len(files) > 1:
        raise _cannot_shift(
            store, "its changelogs name each other by version (checkpoint format 2)"
        )
    if store.snapshot is not None or not files:
        return
    why = "an empty state, which the moved versions begin with"
    if files[0].provider == "hdfs":
        from floodmark.state.files.framing import compress

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
    """A changelog of v2 or v4 says of each row which family it is of."""
    from floodmark.state.files.rocksdb import parse_changelog

    return parse_changelog(origin.read(store.files[-1].path)).version in (2, 4)


def _cannot_shift(store: StoreChain, why: str) -> WouldLose:
    return WouldLose(
        f"{store.folder}: this state cannot be carried under other numbers",
        f"RocksDB keeps it so that {why}. Numbers that a sink may have seen already are not used "
        "for other records.",
        "Keep the in-flight batch and go on after the last commit, `floodmark rewind` in place, "
        "or begin with an empty state: --without-state.",
    )


def _shifted(file: StateFile, shift: int) -> str:
    unique = f"_{file.unique_id}" if file.unique_id else ""
    return f"{file.version + shift}{unique}.{file.kind}"
