"""How far a stream is behind an Iceberg table, by the metadata that a real writer made.

iceberg_table/metadata was written by pyiceberg: appends of 3 and 7 rows, a delete that rewrites a
file, an append of 5 rows.
"""

from __future__ import annotations

import gzip
import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

import floodmark
import samples
from floodmark.connectors.behind import SourceLag

TABLE = Path(__file__).parent / "iceberg_table"
[METADATA] = (TABLE / "metadata").iterdir()
SNAPSHOTS = [one["snapshot-id"] for one in json.loads(METADATA.read_text())["snapshots"]]


def asked(folder: Path, snapshot: int, position: int, place: Any = TABLE, **more: Any) -> SourceLag:
    offset = {
        "version": 1,
        "snapshot_id": snapshot,
        "position": position,
        "scan_all_files": more.pop("whole", False),
    }
    tree = samples.logs(range(1), range(1), offset=lambda batch: json.dumps(offset))
    cp = samples.write(folder / "cp", tree)
    [source] = floodmark.lag(str(cp), table=None if place is None else str(place)).sources
    assert source.kind == "iceberg"
    return source


@pytest.mark.parametrize(
    ("at", "position", "rows", "size", "snapshots", "files"),
    [
        (None, 0, 15, 2718, 3, 3),  # before the first: the delete is not appended
        (0, 0, 15, 2718, 3, 3),
        (0, 1, 12, 1816, 2, 2),
        (1, 1, 5, 906, 1, 1),
        (3, 1, 0, 0, 0, 0),
    ],
)
def test_snapshots_are_counted_by_their_summaries(
    tmp_path: Path,
    at: int | None,
    position: int,
    rows: int,
    size: int,
    snapshots: int,
    files: int,
) -> None:
    source = asked(tmp_path, -1 if at is None else SNAPSHOTS[at], position)
    assert source.error is None
    behind = source.behind
    assert (behind.records, behind.bytes) == (rows, size)
    assert (behind.versions, behind.files) == (snapshots, files)
    [part] = source.parts
    assert (part.end, part.earliest) == (SNAPSHOTS[3], SNAPSHOTS[0])
    assert (behind.ms == 0) == (snapshots == 0)
    skips = any("without appended files" in note for note in source.notes)
    assert skips == (at is None or at < 2)


def changed(folder: Path, **fields: Any) -> Path:
    value = json.loads(METADATA.read_text()) | fields
    place = folder / "table"
    samples.write(place, {f"metadata/{METADATA.name}": json.dumps(value).encode()})
    return place


def test_the_snapshot_that_the_stream_stands_in_may_expire(tmp_path: Path) -> None:
    now = int(time.time() * 1000)
    snapshots = json.loads(METADATA.read_text())["snapshots"]
    for one in snapshots:
        one["timestamp-ms"] = now - 3_600_000
    place = changed(
        tmp_path,
        snapshots=snapshots,
        properties={"history.expire.max-snapshot-age-ms": "7200000"},
    )
    left = asked(tmp_path, SNAPSHOTS[1], 1, place).retention_left_ms
    assert left is not None
    assert 3_500_000 < left <= 3_600_000
    assert asked(tmp_path, SNAPSHOTS[3], 1, place).retention_left_ms is None


def test_a_snapshot_read_in_part(tmp_path: Path) -> None:
    snapshots = json.loads(METADATA.read_text())["snapshots"]
    snapshots[3]["summary"]["added-data-files"] = "4"
    source = asked(tmp_path, SNAPSHOTS[3], 1, changed(tmp_path, snapshots=snapshots))
    assert (source.behind.files, source.behind.records) == (3, None)
    assert "has read a part" in " ".join(source.notes)


def test_the_whole_table_at_a_snapshot(tmp_path: Path) -> None:
    source = asked(tmp_path, SNAPSHOTS[3], 0, whole=True)
    assert (source.behind.files, source.behind.records) == (3, 14)


def test_places_and_files_that_do_not_fit(tmp_path: Path) -> None:
    assert "--table PATH" in (asked(tmp_path, SNAPSHOTS[0], 1, None).error or "")
    assert "not an Iceberg table" in (asked(tmp_path, SNAPSHOTS[0], 1, tmp_path).error or "")
    assert "another table" in (asked(tmp_path, 12345, 1).error or "")
    bad = samples.write(tmp_path / "bad", {"metadata/v3.metadata.json": b"[" * 100_000})
    assert "not an Iceberg table's metadata" in (asked(tmp_path, 1, 1, bad).error or "")
    circle = json.loads(METADATA.read_text())["snapshots"]
    circle[0]["parent-snapshot-id"] = SNAPSHOTS[3]
    round_ = changed(tmp_path, snapshots=circle)
    assert "expired" in (asked(tmp_path, 12345, 1, round_).error or "")


def test_compressed_metadata_and_a_commit_that_failed(tmp_path: Path) -> None:
    packed = gzip.compress(METADATA.read_bytes())
    place = samples.write(tmp_path / "packed", {"metadata/v7.gz.metadata.json": packed})
    assert asked(tmp_path, SNAPSHOTS[1], 1, place).behind.records == 5
    both = shutil.copytree(TABLE, tmp_path / "both")
    older = json.loads(METADATA.read_text()) | {"last-updated-ms": 1, "snapshots": []}
    samples.write(both, {"metadata/00004-other.metadata.json": json.dumps(older).encode()})
    source = asked(tmp_path, SNAPSHOTS[1], 1, both)
    assert source.behind.records == 5
    assert "only the catalog knows" in " ".join(source.notes)
