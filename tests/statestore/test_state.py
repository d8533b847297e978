"""The state of a checkpoint: rows, one key, sizes, changes, and every kind of damage.

The checkpoints are made here, by the project's own writers and by RocksDB itself.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from floodmark.errors import (
    CannotRead,
    FloodmarkError,
    MalformedFile,
    NoAnswer,
    StateFileMissing,
    StatePurged,
    UnknownProvider,
    WrongUse,
)
from floodmark.state.files.hdfs import write_snapshot
from floodmark.state.keys.partitioning import partition_of
from floodmark.state.rows.rowbytes import RowBytes
from floodmark.state.rows.types import Struct, arrow_type, parse_struct
from floodmark.state.rows.unsaferow_write import encode_rows
from floodmark.state.shapes.schema import ColumnFamily, StateSchema, render_schema
from floodmark.statestore.diff import state_changes
from floodmark.statestore.key_lookup import KeyNotThere
from floodmark.statestore.open import open_state
from floodmark.statestore.view import StateView
from floodmark.storage.files import Files, open_files
from floodmark.storage.load import load
from samples import write_delta

HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
KEY = '{"type":"struct","fields":[{"name":"name","type":"string","nullable":true,"metadata":{}}]}'
VALUE = '{"type":"struct","fields":[{"name":"total","type":"long","nullable":true,"metadata":{}}]}'
KEYS, VALUES = parse_struct(KEY), parse_struct(VALUE)
PARTITIONS = 3


def _encoded(rows: list[dict[str, Any]], schema: Struct) -> RowBytes:
    return encode_rows(pa.array(rows, arrow_type(schema)), schema)


def _home(name: str | None) -> int:
    return partition_of(pa.array([{"name": name}], arrow_type(KEYS))[0], KEYS, PARTITIONS)


def _log(place: Files, batches: int, provider: str = HDFS, partitions: int = PARTITIONS) -> None:
    conf = {
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.streaming.stateStore.providerClass": provider,
    }
    place.write("metadata", b'{"id":"0f6e1111-2222-3333-4444-555566667777"}')
    for batch in range(batches):
        head = {"batchWatermarkMs": 0, "batchTimestampMs": 1, "conf": conf}
        place.write(f"offsets/{batch}", f'v1\n{json.dumps(head)}\n{{"logOffset":{batch}}}'.encode())
        place.write(f"commits/{batch}", b'v1\n{"nextBatchWatermarkMs":0}')


def _schema(place: Files) -> None:
    schema = StateSchema(2, (ColumnFamily("default", KEY, VALUE),))
    place.write("state/0/0/_metadata/schema", render_schema(schema))


def _delta(place: Files, version: int, changes: dict[str | None, int | None]) -> None:
    for partition in range(PARTITIONS):
        mine = {name: total for name, total in changes.items() if _home(name) == partition}
        keys = _encoded([{"name": name} for name in mine], KEYS).to_list()
        values = [
            None if total is None else _encoded([{"total": total}], VALUES)[0]
            for total in mine.values()
        ]
        place.write(f"state/0/{partition}/{version}.delta", write_delta(keys, values))


BATCHES: list[dict[str | None, int | None]] = [
    {"ann": 1, "bob": 2, None: 3},
    {"ann": 10, "carl": 4, "dora": 5},
    {"bob": None, "ann": 100},
]


@pytest.fixture
def place(tmp_path: Path) -> Files:
    (tmp_path / "ck").mkdir()
    files = open_files(str(tmp_path / "ck"))
    _log(files, len(BATCHES))
    _schema(files)
    for number, changes in enumerate(BATCHES):
        _delta(files, number + 1, changes)
    return files


def _view(place: Files, **asked: Any) -> StateView:
    return open_state(place, load(place), **asked)


def _totals(view: StateView) -> dict[str | None, int]:
    return {row["key"]["name"]: row["value"]["total"] for row in view.rows()}


def test_the_state_after_the_last_batch(place: Files) -> None:
    view = _view(place)
    assert view.batch == 2
    assert (view.key_schema, view.value_schema) == ("name STRING", "total BIGINT")
    assert _totals(view) == {"ann": 100, None: 3, "carl": 4, "dora": 5}
    assert all(row["partition"] == _home(row["key"]["name"]) for row in view.rows())
    assert view.to_arrow().schema == view.arrow_schema
    assert len(view.rows(limit=2)) == 2


def test_any_batch_whose_state_is_there(place: Files) -> None:
    assert _totals(_view(place, batch=0)) == {"ann": 1, "bob": 2, None: 3}
    assert _totals(_view(place, batch=1)) == {"ann": 10, "bob": 2, None: 3, "carl": 4, "dora": 5}


def test_one_key(place: Files) -> None:
    view = _view(place)
    assert view.lookup({"name": "ann"}) == [
        {"partition": _home("ann"), "key": {"name": "ann"}, "value": {"total": 100}}
    ]
    assert view.lookup({"name": None})[0]["value"] == {"total": 3}
    with pytest.raises(KeyNotThere, match="no such key after batch 2"):
        view.lookup({"name": "bob"})
    with pytest.raises(WrongUse, match="fields do not fit"):
        view.lookup({"nom": "ann"})
    with pytest.raises(WrongUse, match="not a STRING"):
        view.lookup({"name": 7})


def test_a_key_that_lives_where_its_hash_does_not_say(place: Files) -> None:
    stray = (_home("zoe") + 1) % PARTITIONS
    key, value = _encoded([{"name": "zoe"}], KEYS)[0], _encoded([{"total": 9}], VALUES)[0]
    place.write(f"state/0/{stray}/3.delta", write_delta([key], [value]))
    assert _view(place).lookup({"name": "zoe"})[0]["partition"] == stray


def test_sizes_and_skew(place: Files) -> None:
    stats = _view(place).stats()
    assert stats.keys == 4
    assert sum(part.keys for part in stats.partitions) == 4
    assert [part.partition for part in stats.partitions] == [0, 1, 2]
    assert stats.bytes == sum(part.bytes for part in stats.partitions) > 4 * 16
    assert stats.skew == pytest.approx(max(p.keys for p in stats.partitions) * 3 / 4, abs=0.001)


def test_export(place: Files, tmp_path: Path) -> None:
    target = tmp_path / "state.parquet"
    assert _view(place).export(str(target)) == 4
    table = pq.read_table(target)
    assert table.column_names == ["partition", "key", "value"]
    assert table.num_rows == 4
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["state.parquet"]


def test_an_export_that_fails_leaves_nothing(place: Files, tmp_path: Path) -> None:
    place.write("state/0/2/3.delta", b"LZ4Block")
    with pytest.raises(FloodmarkError):
        _view(place).export(str(tmp_path / "state.parquet"))
    assert [path for path in tmp_path.iterdir() if path.is_file()] == []


def test_what_changed(place: Files) -> None:
    found = state_changes(place, load(place), first=0, last=2)
    assert (found.added, found.removed, found.changed, found.same) == (2, 1, 1, 1)
    assert found.differ == 4
    by_name = {one.key["name"]: one for one in found.first}
    assert by_name["ann"].change == "changed"
    assert by_name["ann"].before == ({"total": 1},)
    assert by_name["ann"].after == ({"total": 100},)
    assert by_name["bob"].change == "removed"
    assert by_name["carl"].change == "added"
    assert state_changes(place, load(place), first=2, last=2).differ == 0


def test_changes_come_in_the_order_of_the_state(place: Files) -> None:
    found = state_changes(place, load(place), first=0, last=2)
    added = [one.key for one in found.first if one.change == "added"]
    assert added == [row["key"] for row in _view(place).rows() if row["key"] in added]


def test_a_snapshot_stands_for_the_deltas_before_it(place: Files) -> None:
    every = _view(place, batch=1).rows()
    for partition in range(PARTITIONS):
        rows = [row for row in every if row["partition"] == partition]
        keys = _encoded([row["key"] for row in rows], KEYS)
        values = _encoded([row["value"] for row in rows], VALUES)
        snapshot = write_snapshot(keys.to_list(), values.to_list())
        place.write(f"state/0/{partition}/2.snapshot", snapshot)
        place.delete([f"state/0/{partition}/1.delta", f"state/0/{partition}/2.delta"])
    assert _totals(_view(place)) == {"ann": 100, None: 3, "carl": 4, "dora": 5}
    with pytest.raises(FloodmarkError, match=r"batch 0|1\.delta"):
        _view(place, batch=0).rows()
    place.write("state/0/1/2.snapshot", place.read("state/0/1/2.snapshot")[:-25])
    with pytest.raises(MalformedFile, match=r"state/0/1/2\.snapshot.*cut short"):
        _view(place).rows()


def test_a_missing_delta(place: Files) -> None:
    place.delete(["state/0/1/2.delta"])
    with pytest.raises(StateFileMissing, match=r"state/0/1/2\.delta is missing"):
        _view(place).rows()


def test_a_state_whose_beginning_is_gone(place: Files) -> None:
    place.delete([f"state/0/{partition}/1.delta" for partition in range(PARTITIONS)])
    with pytest.raises(StateFileMissing, match=r"state/0/0/1\.delta is missing"):
        _view(place).rows()  # retention leaves what the newest batch needs
    with pytest.raises(StatePurged, match="batch 1 can no longer be rebuilt"):
        _view(place, batch=1).rows()


def test_a_batch_that_is_not_there_yet(place: Files) -> None:
    with pytest.raises(NoAnswer, match="batch 9 has left no state yet"):
        _view(place, batch=9)
    with pytest.raises(WrongUse, match="no batch -1"):
        _view(place, batch=-1)


def test_no_such_operator_or_store(place: Files) -> None:
    with pytest.raises(WrongUse, match="no operator 4"):
        _view(place, operator=4)
    with pytest.raises(WrongUse, match="no store 'left'"):
        _view(place, store="left")


def test_no_state_at_all(tmp_path: Path) -> None:
    files = open_files(str(tmp_path))
    _log(files, 2)
    with pytest.raises(NoAnswer, match="has no state"):
        _view(files)


def test_an_operator_whose_first_batch_has_not_ended(tmp_path: Path) -> None:
    files = open_files(str(tmp_path))
    _log(files, 1)
    _schema(files)
    with pytest.raises(NoAnswer, match="operator 0 has no state yet"):
        _view(files)


def test_without_a_schema_rows_are_bytes(place: Files) -> None:
    place.delete(["state/0/0/_metadata/schema"])
    view = _view(place)
    assert view.key_schema == "bytes BINARY"
    assert "schema=" in view.hint
    assert len(view.rows()) == 4
    given = _view(place, schema=("name STRING", "total BIGINT"))
    assert given.hint == ""
    assert _totals(given) == {"ann": 100, None: 3, "carl": 4, "dora": 5}
    with pytest.raises(WrongUse, match="not a schema"):
        _view(place, schema=("name STRING,", "total BIGINT"))
    with pytest.raises(MalformedFile, match="its schema needs at least"):
        _view(place, schema=("a STRING, b STRING, c STRING, d STRING", "total BIGINT")).rows()


def test_a_provider_of_ones_own(place: Files) -> None:
    _log(place, len(BATCHES), "com.acme.EncryptedStateStoreProvider")
    with pytest.raises(UnknownProvider, match=r"com\.acme\.Encrypted"):
        _view(place)


def test_a_checksum_of_spark_is_checked(place: Files) -> None:
    data = place.read("state/0/0/1.delta")
    note = {"algorithm": "CRC32C", "value": 1, "mainFileSize": len(data), "timestampMs": 1}
    place.write("state/0/0/1.delta.crc", json.dumps(note).encode())
    with pytest.raises(MalformedFile, match=r"1\.delta does not match its checksum"):
        _view(place).rows()


def test_folders_of_an_older_partition_count_are_left_alone(place: Files) -> None:
    place.write("state/0/3/1.delta", write_delta([b"k" * 16], [b"v" * 16]))
    assert _view(place).partitions == (0, 1, 2)


def test_a_total_over_everything_has_one_partition(tmp_path: Path) -> None:
    files = open_files(str(tmp_path))
    _log(files, 1, partitions=5)
    schema = StateSchema(2, (ColumnFamily("default", '{"type":"struct","fields":[]}', VALUE),))
    files.write("state/0/0/_metadata/schema", render_schema(schema))
    value = _encoded([{"total": 42}], VALUES)[0]
    files.write("state/0/0/1.delta", write_delta([b""], [value]))
    view = _view(files)
    row = {"partition": 0, "key": {}, "value": {"total": 42}}
    assert view.rows() == [row]
    assert view.lookup({}) == [row]


def test_a_partition_that_is_lost_is_no_empty_one(place: Files) -> None:
    place.delete([f.path for f in load(place).files if f.path.startswith("state/0/2/")])
    with pytest.raises(StateFileMissing, match="state/0/2 has no state file"):
        _view(place, batch=0).rows()


def _rocksdb(place: Files, tmp_path: Path, rows: dict[str, int], version: int = 1) -> None:
    """A snapshot as Spark uploads it: a zip of the manifest, the tables beside."""
    import rocksdict

    folder = tmp_path / f"db-{version}"
    options = rocksdict.Options(raw_mode=True)
    database = rocksdict.Rdict(str(folder), options)
    for name, total in rows.items():
        key = b"\0" + _encoded([{"name": name}], KEYS)[0]
        database[key] = b"\0" + _encoded([{"total": total}], VALUES)[0]
    database.flush()
    database.close()
    tables, out = [], io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path in sorted(folder.iterdir()):
            if path.suffix == ".sst":
                stored = f"{path.stem}-{version}.sst"
                place.write(f"state/0/0/SSTs/{stored}", path.read_bytes())
                size = path.stat().st_size
                tables.append(
                    {"localFileName": path.name, "dfsSstFileName": stored, "sizeBytes": size}
                )
            elif path.name.startswith(("MANIFEST", "CURRENT", "OPTIONS")):
                archive.write(path, path.name)
        archive.writestr("metadata", f"v1\n{json.dumps({'sstFiles': tables, 'numKeys': 1})}")
    place.write(f"state/0/0/{version}.zip", out.getvalue())


@pytest.fixture
def rocks(tmp_path: Path) -> Files:
    (tmp_path / "rocks").mkdir()
    files = open_files(str(tmp_path / "rocks"))
    _log(files, 2, HDFS.replace("HDFSBacked", "RocksDB"), partitions=1)
    _schema(files)
    _rocksdb(files, tmp_path, {"ann": 1, "bob": 2})
    key = b"\0" + _encoded([{"name": "ann"}], KEYS)[0]
    other = b"\0" + _encoded([{"name": "bob"}], KEYS)[0]
    value = b"\0" + _encoded([{"total": 7}], VALUES)[0]
    files.write("state/0/0/2.changelog", write_delta([key, other], [value, None]))
    return files


def test_rocksdb_with_a_changelog(rocks: Files) -> None:
    assert _totals(_view(rocks, batch=0)) == {"ann": 1, "bob": 2}
    view = _view(rocks)
    assert _totals(view) == {"ann": 7}
    assert view.lookup({"name": "ann"})[0]["value"] == {"total": 7}
    with pytest.raises(KeyNotThere):
        view.lookup({"name": "bob"})
    assert _view(rocks, batch=0).lookup({"name": "bob"})[0]["value"] == {"total": 2}
    assert view.stats().keys == 1


def test_a_table_that_the_zip_names_and_the_folder_lacks(rocks: Files) -> None:
    (table,) = [f.path for f in load(rocks).files if f.path.endswith(".sst")]
    whole = rocks.read(table)
    rocks.write(table, whole[:-1])
    with pytest.raises(MalformedFile, match="the snapshot says"):
        _view(rocks).rows()
    rocks.write(table, bytes(len(whole)))
    with pytest.raises(MalformedFile, match="RocksDB cannot"):
        _view(rocks).rows()
    rocks.delete([table])
    with pytest.raises(StateFileMissing, match=r"SSTs/.*\.sst is missing"):
        _view(rocks).rows()


def test_rocksdb_on_other_storage(rocks: Files) -> None:
    elsewhere = open_files("memory://state-rocks/ck")
    for file in load(rocks).files:
        elsewhere.write(file.path, rocks.read(file.path))
    assert _totals(_view(elsewhere)) == {"ann": 7}
    (table,) = [f.path for f in load(elsewhere).files if f.path.endswith(".sst")]
    elsewhere.delete([table])
    with pytest.raises(CannotRead, match="is missing"):
        _view(elsewhere).rows()


def test_a_missing_changelog(rocks: Files) -> None:
    rocks.delete(["state/0/0/2.changelog"])
    with pytest.raises(StateFileMissing, match=r"2\.changelog is missing|2\.zip is missing"):
        _view(rocks).rows()


def test_a_total_without_a_key_is_exported(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from floodmark.statestore.export import export_parquet

    schema = pa.schema([("partition", pa.int32()), ("key", pa.struct([])), ("value", pa.int64())])
    rows = pa.RecordBatch.from_pylist([{"partition": 0, "key": {}, "value": 7}], schema)
    target = tmp_path / "total.parquet"
    assert export_parquet([rows], schema, str(target)) == 1
    assert pq.read_table(target).to_pylist() == [{"partition": 0, "key": None, "value": 7}]


def test_a_version_beyond_all_counting_is_missing_at_once() -> None:
    """A commit named 999999999999999999 must not become as many missing deltas."""
    from floodmark.checkpoint.layout import parse_state_file
    from floodmark.checkpoint.state_chain import StoreChain, chain_of

    file = parse_state_file("state/0/0/1.delta")
    assert file is not None
    found = chain_of(StoreChain(0, 0, "default", 10**18), [file], {})
    assert len(found.missing) == 100
    with pytest.raises(StateFileMissing, match=f"to {10**18}.delta are missing"):
        found.require()
