"""Gathers evidence from the state's files: the stores, their snapshots and checksums."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from floodmark.checkpoint.conf_keys import STATE_CODEC
from floodmark.checkpoint.layout import CHECKSUM, OPERATOR_METADATA, STATE_SCHEMA, checksum_file
from floodmark.checkpoint.metadata import parse_operator_metadata
from floodmark.diagnosis.facts import Gathering
from floodmark.errors import (
    FloodmarkError,
    MalformedFile,
)


def gather_operators(found: Gathering) -> None:
    from floodmark.state.shapes.schema import parse_schema

    described, schemas = [], []
    for path in found.sizes:
        parts = path.split("/")
        name = parts[-1]
        if parts[0] != "state" or len(parts) < 4 or name.startswith("."):
            continue
        if path.endswith(f"/{OPERATOR_METADATA}/schema") or parts[2] == STATE_SCHEMA:
            schemas.append(path)
        elif parts[2] == OPERATOR_METADATA:
            described.append(path)
    for path, data in found.read(described).items():
        found.parse(path, data, parse_operator_metadata)
    for path, data in found.read(schemas).items():
        schema = found.parse(path, data, parse_schema)
        if schema is None:
            continue
        found.schemas.add(path)
        # An unknown type is not a fault of the file.
        with suppress(MalformedFile, ValueError):
            if schema.has_keys:
                found.keyed.add(int(path.split("/")[1]))


def gather_lineages(found: Gathering) -> None:
    """Read the versions that no commit names any more, if there are unique ids."""
    from floodmark.state.files.rocksdb import parse_changelog

    newest = [chain.files[-1].path for chain in found.needs if chain.begins_before_the_commits]
    for path, data in found.read(newest).items():
        changelog = found.parse(path, data, parse_changelog)
        if changelog is not None:
            found.lineages[path] = changelog.lineage
    if found.lineages:
        found.needs = found.chains()


def gather_snapshots(found: Gathering) -> None:
    """Read the file lists of the zips that the next start unpacks."""
    bases = [need.files[0] for need in found.needs if need.files]
    zips = [file.path for file in bases if file.kind == "zip" and file.size != 0]
    for path, data in found.read(zips).items():
        gather_snapshot(found, path, data)


def gather_snapshot(found: Gathering, path: str, data: bytes) -> Any:
    from floodmark.state.files.rocksdb import read_snapshot
    from floodmark.statestore.manifests import tables_of

    snapshot = found.parse(path, data, read_snapshot)
    if snapshot is not None:
        found.tables[path] = tables_of(path, snapshot)
    return snapshot


def gather_checksums(found: Gathering) -> None:
    """Read `<file>.crc` of the files at the chains' ends; Spark 4.1 and later write it."""
    ends = {file.path for need in found.needs for file in (*need.files[:1], *need.files[-1:])}
    for path, data in found.read(
        checksum_file(end) for end in ends if checksum_file(end) in found.sizes
    ).items():
        gather_checksum(found, path, data)


def gather_checksum(found: Gathering, path: str, data: bytes) -> int | None:
    """Return the CRC-32C that Spark wrote, if its size matches the file."""
    checksum = found.parse(path, data, _parse_checksum)
    if checksum is None:
        return None
    value, size = checksum
    main = path.removesuffix(CHECKSUM)
    bytes_there = found.sizes.get(main, size)
    if bytes_there != size:
        found.checksums[main] = f"the file has {bytes_there:,} bytes, but Spark wrote {size:,}"
        return None
    return int(value)


def gather_codecs(found: Gathering) -> None:
    """Find the codec that the files use, if log entries disagree about it."""
    entries = found.checkpoint.offsets.values()
    if len({entry.metadata.conf.get(STATE_CODEC) for entry in entries if entry.metadata}) < 2:
        return
    from floodmark.state.files.compression import codec_of

    codecs = set()
    for path in {file.path for need in found.needs for file in need.files if file.kind != "zip"}:
        try:
            codecs.add(codec_of(found.files.read(path)))
        except FloodmarkError:
            return  # the file is damaged, which another rule reports, and proves nothing
    found.codecs = frozenset(codecs)


def _parse_checksum(data: bytes) -> tuple[int, int]:
    from floodmark.checkpoint.text import decode, long_of, parse_json_object

    fields = parse_json_object(decode(data), "the checksum file")
    return (
        long_of(fields, "value", "the checksum file"),
        long_of(fields, "mainFileSize", "the checksum file"),
    )
