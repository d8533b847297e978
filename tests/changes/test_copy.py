"""Copies: what belongs, and the absolute paths inside."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

import samples
from carried import GO
from floodmark import api
from floodmark.checkpoint.metadata import parse_operator_metadata
from floodmark.errors import WrongUse
from floodmark.storage.files import open_files


def operator_v2(root: str) -> bytes:
    schema = f"file:{root}/state/0/_stateSchema/default/0_uuid"
    store = {
        "storeName": "default",
        "numColsPrefixKey": 0,
        "numPartitions": 4,
        "stateSchemaFilePaths": [schema],
    }
    info = {"operatorId": 0, "operatorName": "transformWithStateExec"}
    body = {"operatorInfo": info, "stateStoreInfo": [store], "operatorPropertiesJson": "{}"}
    return b"v2\n" + json.dumps(body).encode()


def test_only_what_belongs_is_copied(tmp_path: Path) -> None:
    tree = samples.sales(batches=3)
    litter = {
        "offsets/.3.0f.tmp": b"",
        "offsets/.2.crc": b"crc\0",
        "commits/readme": b"",
        "state/0/0/.4.delta.abc.TID812.tmp": b"",
        "state/0/0/temp-123": b"",
        "_floodmark/lease.json": b"{}",
        "_floodmark/progress.jsonl": b"{}",
    }
    note = {"_floodmark/starts/1.json": b"{}"}
    samples.write(tmp_path / "cp", tree | litter | note)
    api.copy(str(tmp_path / "cp"), str(tmp_path / "new"), carrying=GO)
    found = {
        str(p.relative_to(tmp_path / "new")): p.read_bytes()
        for p in (tmp_path / "new").rglob("*")
        if p.is_file() and "journal" not in p.parts
    }
    assert found == tree | note


def test_schema_paths_lead_to_the_copy(tmp_path: Path) -> None:
    tree = samples.sales(batches=2)
    tree["state/0/_metadata/v2/0"] = operator_v2(str(tmp_path / "cp"))
    tree["state/0/_stateSchema/default/0_uuid"] = b"schema"
    samples.write(tmp_path / "cp", tree)
    api.copy(str(tmp_path / "cp"), str(tmp_path / "new"), carrying=GO)
    moved = parse_operator_metadata((tmp_path / "new/state/0/_metadata/v2/0").read_bytes())
    (path,) = moved.stores[0].schema_paths
    assert path == f"file:{tmp_path}/new/state/0/_stateSchema/default/0_uuid"
    assert Path(path.removeprefix("file:")).read_bytes() == b"schema"


def test_a_delta_sources_schema_log_leads_to_the_copy(tmp_path: Path) -> None:
    tree = samples.logs(range(2), range(2))
    line = json.dumps({"tableId": "t", "sourceMetadataPath": f"file:{tmp_path}/cp/sources/0"})
    tree["_schemas/_schema_log_t/0"] = f"v1\n{line}".encode()
    samples.write(tmp_path / "cp", tree)
    api.copy(str(tmp_path / "cp"), str(tmp_path / "new"), carrying=GO)
    text = (tmp_path / "new/_schemas/_schema_log_t/0").read_text()
    assert json.loads(text.split("\n")[1])["sourceMetadataPath"] == f"file:{tmp_path}/new/sources/0"


@pytest.mark.parametrize("old", ["/in", "file:///in"])
def test_input_files_that_moved(tmp_path: Path, old: str) -> None:
    samples.write(tmp_path / "cp", samples.file_stream())
    api.copy(
        str(tmp_path / "cp"), str(tmp_path / "new"), rehome=[f"{old}=s3://lake/in"], carrying=GO
    )
    assert api.files(str(tmp_path / "new"))[0].path == "s3://lake/in/day 0.json"
    text = (tmp_path / "new/sources/0/1").read_text()
    assert '"path":"s3://lake/in/day%201.json"' in text


def test_input_files_that_are_not_there(tmp_path: Path) -> None:
    samples.write(tmp_path / "cp", samples.file_stream())
    with pytest.raises(WrongUse, match="no file that this checkpoint knows lies there"):
        api.copy(str(tmp_path / "cp"), str(tmp_path / "new"), rehome=["/other=/x"])


def test_a_copy_keeps_its_id_and_a_fork_does_not(tmp_path: Path) -> None:
    samples.write(tmp_path / "cp", samples.sales(batches=2))
    api.copy(str(tmp_path / "cp"), str(tmp_path / "moved"), carrying=GO)
    api.copy(str(tmp_path / "cp"), str(tmp_path / "fork"), new_identity=True, carrying=GO)
    assert api.inspect(str(tmp_path / "moved")).query_id == samples.QUERY_ID
    assert api.inspect(str(tmp_path / "fork")).query_id != samples.QUERY_ID


def test_files_of_one_disk_are_linked_and_a_new_one_does_not_reach_the_old(tmp_path: Path) -> None:
    samples.write(tmp_path / "cp", samples.sales(batches=2))
    api.copy(str(tmp_path / "cp"), str(tmp_path / "new"), carrying=GO)
    old, new = tmp_path / "cp/state/0/0/1.delta", tmp_path / "new/state/0/0/1.delta"
    assert old.stat().st_ino == new.stat().st_ino
    open_files(str(tmp_path / "new")).write("state/0/0/1.delta", b"other")
    assert old.read_bytes() == samples.sales(batches=2)["state/0/0/1.delta"]


def test_where_a_delta_source_begins_goes_along(tmp_path: Path) -> None:
    """Without it the moved stream would read the whole table a second time."""
    golden = Path(__file__).parents[1] / "golden/4.2/delta/checkpoint"
    new, start = tmp_path / "new", "_floodmark/start.json"
    api.upgrade(str(golden), str(new), without_state=True, carrying=GO)
    api.copy(str(new), str(tmp_path / "copy"), carrying=GO)
    api.backup(str(new), str(tmp_path / "repo"), carrying=GO)
    api.restore(str(tmp_path / "repo"), str(tmp_path / "restored"), carrying=GO)
    wanted = (new / start).read_bytes()
    assert b'"delta"' in wanted
    assert (tmp_path / "copy" / start).read_bytes() == wanted
    assert (tmp_path / "restored" / start).read_bytes() == wanted


def test_to_other_storage(tmp_path: Path) -> None:
    tree = samples.sales(batches=2)
    samples.write(tmp_path / "cp", tree)
    there = f"memory://copies-{uuid.uuid4()}/new"
    api.copy(str(tmp_path / "cp"), there, carrying=GO)
    files = open_files(there)
    assert {f.path for f in files.list().files if "_floodmark" not in f.path} == set(tree)
    assert files.read("offsets/1") == tree["offsets/1"]


def sink_log(folder: str, *batches: int) -> bytes:
    entries = [
        {
            "path": f"file://{folder}/part-{batch:05d}.parquet",
            "size": 10,
            "isDir": False,
            "modificationTime": 1,
            "blockReplication": 1,
            "blockSize": 1,
            "action": "add",
        }
        for batch in batches
    ]
    return "\n".join(["v1", *(json.dumps(entry) for entry in entries)]).encode()


def test_the_log_of_a_moved_output_is_led_along(tmp_path: Path) -> None:
    old, new = f"{tmp_path}/old/out", f"{tmp_path}/new/out"
    before = {
        "_spark_metadata/0": sink_log(old, 0),
        "_spark_metadata/.0.crc": b"crc\0",
        "_spark_metadata/9.compact": sink_log(old, *range(10)),
    }
    samples.write(Path(new), before)
    samples.write(tmp_path / "cp", samples.logs(range(10), range(10)))
    change = api.copy(
        str(tmp_path / "cp"),
        str(tmp_path / "copy"),
        rehome=[f"{old}={new}"],
        sink=new,
        carrying=GO,
    )
    assert any("file sink's log" in note for note in change.plan.notes)
    led = (Path(new) / "_spark_metadata/9.compact").read_text()
    assert f"file://{new}/part-00009.parquet" in led
    assert old not in led
    assert not (Path(new) / "_spark_metadata/.0.crc").exists()
    api.undo(str(tmp_path / "copy"), sink=new, carrying=GO)
    found = {
        str(path.relative_to(new)): path.read_bytes()
        for path in Path(new).rglob("*")
        if path.is_file()
    }
    assert found == before
    assert not (tmp_path / "copy").exists()
