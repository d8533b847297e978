"""Writes RocksDB state: snapshot zips and changelogs, as `rocksdb.py` reads them."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from floodmark.errors import WrongUse
from floodmark.state.files.compression import compress
from floodmark.state.files.javadata import encode_utf
from floodmark.state.files.records import Records, render_records
from floodmark.state.files.rocksdb import DELETE, END, ChangelogRecord, RocksSnapshot

# A zip has the times of its entries; a fixed time gives the same bytes for the same state.
_ALWAYS = (1980, 1, 1, 0, 0, 0)


def render_snapshot(snapshot: RocksSnapshot, internal_keys: int = 0) -> bytes:
    """Return `V.zip`. `internal_keys` of its rows are in Spark's internal column families."""
    metadata = f"v{snapshot.version}\n{_render_metadata(snapshot, internal_keys)}"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**snapshot.files, "metadata": metadata.encode()}.items():
            archive.writestr(zipfile.ZipInfo(name, _ALWAYS), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _render_metadata(snapshot: RocksSnapshot, internal_keys: int) -> str:
    families = snapshot.families
    fields: dict[str, Any] = {
        "sstFiles": [
            {"localFileName": file.local, "dfsSstFileName": file.stored, "sizeBytes": file.size}
            for file in snapshot.tables
        ],
        "numKeys": snapshot.num_keys,  # without the internal ones
        "numInternalKeys": internal_keys,
        "columnFamilyMapping": families,
        "columnFamilyTypeMap": {name: name in snapshot.internal for name in families},
        "maxColumnFamilyId": max(families.values(), default=0),
    }
    return json.dumps(fields, separators=(",", ":"))


def render_changelog(
    version: int,
    content: Records | Sequence[ChangelogRecord],
    codec: str = "lz4",
    lineage: Sequence[tuple[int, str]] = (),
) -> bytes:
    """Return a changelog: v1 and v3 have plain records, v2 and v4 typed ones with families."""
    if version not in (1, 2, 3, 4):
        raise WrongUse(f"there is no changelog v{version}; Spark has v1 to v4")
    head = b"" if version == 1 else encode_utf(f"v{version}")
    if version >= 3:
        steps = [{"version": at, "checkpointUniqueId": unique} for at, unique in lineage]
        head += encode_utf(json.dumps(steps, separators=(",", ":")))
    if isinstance(content, Records):
        if version in (2, 4):
            raise WrongUse(f"changelog v{version} holds typed records")
        return compress(head + _plain(content), codec)
    if version in (1, 3):
        raise WrongUse(f"changelog v{version} holds plain records")
    return compress(b"".join([head, *_typed(content), bytes([END])]), codec)


def _plain(records: Records) -> bytes:
    values: list[bytes | None] = [
        None if removed else value
        for value, removed in zip(records.values.to_list(), records.removed.tolist(), strict=True)
    ]
    return render_records(records.keys.to_list(), values)


def _typed(changes: Iterable[ChangelogRecord]) -> Iterator[bytes]:
    for change in changes:
        yield struct.pack(">Bi", change.kind, len(change.key)) + change.key
        if change.kind == DELETE:
            yield struct.pack(">i", -1)
        else:
            yield struct.pack(">i", len(change.other)) + change.other


def numbered(families: Iterable[str]) -> Mapping[str, int]:
    """Return column families with the numbers that Spark gives them in turn, from 1 on."""
    return {name: number for number, name in enumerate(families, 1)}
