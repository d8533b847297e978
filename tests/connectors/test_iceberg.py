"""Iceberg tables are asked: by golden metadata that Spark 4.1 with Iceberg 1.12 wrote.

golden/4.1/iceberg has the checkpoint of a stream from one Iceberg table into another, and both
tables' metadata at several times. What a catalog has is asked of real catalogs of pyiceberg.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

import floodmark
import samples
from floodmark.cli.main import run
from floodmark.connectors.iceberg.live import snapshot_line
from floodmark.connectors.iceberg.reach import shortfall
from floodmark.connectors.iceberg.sink import epochs
from floodmark.connectors.iceberg.table_metadata import parse_table_metadata
from floodmark.errors import MalformedFile, NoAnswer, WrongUse
from ports import nobody_listens

HERE = Path(__file__).parent
GOLDEN = HERE.parents[1] / "tests" / "golden" / "4.1" / "iceberg"
CP, TABLES = GOLDEN / "checkpoint", GOLDEN / "tables"
START = "sources/0/offsets/0"
STANDS = json.loads((CP / "offsets" / "2").read_text().splitlines()[-1])


def rules(cp: Path = CP, **asked: Any) -> dict[str, str]:
    return {found.rule: found.what for found in floodmark.doctor(str(cp), **asked)}


def in_table(name: str) -> str:
    return str(TABLES / name)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    cp = tmp_path / "cp"
    shutil.copytree(CP, cp)
    for path in cp.rglob("*"):
        os.utime(path, (1, 1))
    return cp


@pytest.mark.parametrize(
    ("name", "rule", "words"),
    [
        ("orders", None, ""),
        ("orders-read-on", None, ""),
        ("orders-expired", "iceberg-snapshot-expired", "no longer has it: it has expired"),
        ("orders-replaced", "iceberg-table-replaced", "another table"),
        ("orders-made-anew", "iceberg-table-replaced", "dropped and created again"),
    ],
)
def test_what_became_of_the_table(name: str, rule: str | None, words: str) -> None:
    found = rules(table=in_table(name))
    assert list(found) == ([rule] if rule else [])
    if rule:
        assert words in found[rule]
        assert str(STANDS["snapshot_id"]) in found[rule]
    [source] = floodmark.lag(str(CP), table=in_table(name)).sources
    assert (source.error is None) == (rule is None)
    assert rule is None or words in str(source.error)


def test_rows_and_snapshots_behind() -> None:
    [source] = floodmark.lag(str(CP), table=in_table("orders-read-on")).sources
    assert (source.behind.records, source.behind.versions, source.behind.files) == (9, 1, 3)


def test_ids_of_snapshots_are_not_written_like_amounts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(["lag", str(CP), "--table", in_table("orders")])
    assert str(STANDS["snapshot_id"]) in capsys.readouterr().out


def test_nothing_read_yet_and_older_snapshots_expired(copied: Path) -> None:
    """Iceberg begins with the oldest snapshot that is left, and says nothing of the others."""
    for entry in (copied / "offsets").iterdir():
        head, _, _ = entry.read_text().rpartition("\n")
        start = '{"version":1,"snapshot_id":-1,"position":-1,"scan_all_files":false}'
        entry.write_text(f"{head}\n{start}")
    found = rules(copied, table=in_table("orders-expired"))
    assert "never reads what they added" in found["iceberg-snapshot-expired"]
    assert rules(copied, table=in_table("orders")) == {}
    [source] = floodmark.lag(str(copied), table=in_table("orders-expired")).sources
    assert source.error is None
    assert "never reads what they added" in " ".join(source.notes)


def test_a_snapshot_that_leads_nowhere(tmp_path: Path) -> None:
    """Replaced, while the old snapshots are still kept."""
    [metadata] = (TABLES / "orders-read-on" / "metadata").iterdir()
    value = json.loads(metadata.read_text())
    value["snapshots"][-1].pop("parent-snapshot-id")
    table = samples.write(tmp_path / "t", {"metadata/v9.metadata.json": json.dumps(value).encode()})
    assert "replaced or rolled back" in rules(table=str(table))["iceberg-table-replaced"]


def test_where_the_stream_began_is_expired(copied: Path) -> None:
    began = json.loads((copied / START).read_text())
    (copied / START).write_text(json.dumps({**began, "snapshot_id": 7}))
    asked = in_table("orders")
    [finding] = floodmark.doctor(str(copied), table=asked)
    assert (finding.rule, finding.path) == ("iceberg-start-expired", START)
    assert f"floodmark repair {copied} --table {asked}" in finding.do

    assert floodmark.repair(str(copied)).plan.steps == ()
    change = floodmark.repair(str(copied), table=asked, execute=True, accept="maybe-running")
    assert [step.path for step in change.plan.steps] == [START]
    assert json.loads((copied / START).read_text()) == {**STANDS, "position": -1}
    assert rules(copied, table=asked) == {}


def test_a_table_that_repair_cannot_ask(copied: Path, tmp_path: Path) -> None:
    with pytest.raises(NoAnswer, match="not an Iceberg table"):
        floodmark.repair(str(copied), table=str(tmp_path))
    kafka = samples.write(tmp_path / "k", samples.logs(range(2), range(2)))
    with pytest.raises(WrongUse, match="no source of this checkpoint is a table"):
        floodmark.repair(str(kafka), table=in_table("orders"))


def test_a_new_checkpoint_begins_where_it_goes_on(copied: Path, tmp_path: Path) -> None:
    new, empty = tmp_path / "new", tmp_path / "empty"
    floodmark.upgrade(str(copied), str(new), execute=True)
    assert json.loads((new / START).read_text()) == {**STANDS, "position": -1}
    floodmark.upgrade(str(copied), str(empty), without_state=True, execute=True)
    assert json.loads((empty / START).read_text()) == STANDS


def snapshots_of(name: str) -> list[dict[str, Any]]:
    [metadata] = (TABLES / name / "metadata").iterdir()
    found: list[dict[str, Any]] = json.loads(metadata.read_text())["snapshots"]
    return found


def back_to(cp: Path, time_ms: int, name: str) -> tuple[Any, str]:
    """The offset that a time before the log leads to, and what the plan says."""
    moment = datetime.fromtimestamp(time_ms / 1000, timezone.utc).isoformat()
    trial = shutil.copytree(cp, cp.parent / f"{name}-{time_ms}")
    # Ids of snapshots have no order: that the offset is an earlier one has to be accepted.
    accept = ("maybe-running", "skips")
    change = floodmark.rewind(
        str(trial), to_time=moment, table=in_table(name), execute=True, accept=accept
    )
    newest = max((trial / "offsets").iterdir(), key=lambda path: int(path.name))
    return json.loads(newest.read_text().splitlines()[-1]), " ".join(change.plan.notes)


def test_a_time_before_the_log_is_found_in_the_table(copied: Path) -> None:
    first, second = snapshots_of("orders")
    between = (first["timestamp-ms"] + second["timestamp-ms"]) // 2
    for batch in (0, 1):  # as Spark purges them
        for log in ("offsets", "commits"):
            (copied / log / str(batch)).unlink()
    offset, said = back_to(copied, between, "orders")
    assert (offset["snapshot_id"], offset["position"]) == (first["snapshot-id"], 2)
    assert " from the end of snapshot" in said
    offset, said = back_to(copied, first["timestamp-ms"] - 1000, "orders")
    assert (offset["snapshot_id"], offset["position"]) == (-1, -1)
    with pytest.raises(NoAnswer, match="it has expired"):
        back_to(copied, between, "orders-expired")


def test_the_sink_knows_its_batches_by_snapshots(
    copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rules(sink=in_table("copy")) == {}
    assert run(["doctor", str(CP), "--sink", in_table("copy"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sink"]["newest"] == 2
    forgot = rules(sink=in_table("copy-expired"))
    assert list(forgot) == ["iceberg-sink-forgot"]
    for log in ("offsets/2", "commits/2"):
        (copied / log).unlink()
    assert list(rules(copied, sink=in_table("copy"))) == ["sink-ahead-of-commits"]


def test_batches_of_once_iceberg_are_in_lower_case(tmp_path: Path) -> None:
    """Options of Spark have no case: so are the properties that they set."""
    [metadata] = (TABLES / "copy" / "metadata").iterdir()
    text = metadata.read_text().replace("queryId", "queryid").replace("epochId", "epochid")
    table = samples.write(tmp_path / "t", {"metadata/v4.metadata.json": text.encode()})
    assert rules(sink=str(table)) == {}


def test_a_sink_that_only_a_note_names_is_not_said_to_have_forgotten(
    copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    note = {"sink": "iceberg", "sink_options": {"path": "lake.db.copy"}, "output_mode": "append"}
    samples.write(copied, {"_floodmark/starts/0.json": json.dumps(note).encode()})
    assert rules(copied, table=in_table("orders")) == {}
    assert run(["doctor", str(copied), "--table", in_table("orders")]) == 0
    assert "The newest that the sink" not in capsys.readouterr().out


def test_what_expiry_forgets_is_in_the_plan(copied: Path) -> None:
    (copied / "commits" / "2").unlink()
    note = {"sink": "iceberg", "sink_options": {"path": "lake.db.copy"}, "output_mode": "append"}
    samples.write(copied, {"_floodmark/starts/0.json": json.dumps(note).encode()})
    new = copied.parent / "new"
    told, unasked = floodmark.upgrade(str(copied), str(new)).plan.consequences
    assert "skips batch 2 if it already stored it" in told.words
    assert "forgotten a batch whose snapshot is expired" in told.words
    assert "NOT ASKED" in unasked.words


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inside = value.items() if isinstance(value, dict) else ()
    for key, one in enumerate(value) if isinstance(value, list) else inside:
        yield from _leaves(one, (*path, key))


@pytest.mark.parametrize(
    "junk",
    [None, -1, float("inf"), "x", "9" * 5000, [], {}, True, 2**70, "\x1b[31m", "٣"],
    ids=repr,
)
def test_metadata_with_anything_in_it(junk: object, tmp_path: Path) -> None:
    """A table's metadata is a stranger's file: it is understood, or it is not one."""
    [metadata] = (TABLES / "copy" / "metadata").iterdir()
    for path in [*_leaves(json.loads(metadata.read_text()))][1:]:
        value = json.loads(metadata.read_text())
        at = value
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = junk
        try:
            _, table = parse_table_metadata("v1.metadata.json", json.dumps(value).encode())
        except MalformedFile:
            continue
        line = snapshot_line("t", table)
        for snapshot in (-1, 5, *table.snapshots):
            found = shortfall(snapshot, line)
            assert found is None or found.words
        assert all(isinstance(epoch, int) for epoch in epochs(table).values())


# Catalogs

Configure = Callable[..., None]


@pytest.fixture
def catalogs(monkeypatch: pytest.MonkeyPatch) -> Configure:
    """Sets catalogs up for pyiceberg, which reads the environment when it is imported."""
    import pyiceberg.catalog

    def configure(**settings: str) -> None:
        for name, value in settings.items():
            monkeypatch.setenv(f"PYICEBERG_CATALOG__{name.upper()}", value)
        monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", pyiceberg.catalog.Config())

    configure()
    return configure


@pytest.fixture
def lake(tmp_path: Path, catalogs: Configure) -> SqlCatalog:
    """A catalog in SQLite that knows the golden tables."""
    uri = f"sqlite:///{tmp_path}/catalog.db"
    tables = {"orders": "orders-read-on", "copy": "copy", "old": "orders-expired"}
    for catalog in (SqlCatalog("default", uri=uri), SqlCatalog("lake", uri=uri)):
        catalog.create_namespace("db")
        for name, kept in tables.items():
            [metadata] = (TABLES / kept / "metadata").iterdir()
            catalog.register_table(f"db.{name}", f"file://{metadata}")
    catalogs(lake__type="sql", lake__uri=uri, default__type="sql", default__uri=uri)
    return catalog


def answer(table: str) -> str:
    [source] = floodmark.lag(str(CP), table=table, timeout=2).sources
    [not_asked] = rules(table=table).values()
    said = str(source.error)
    assert not_asked.removeprefix("Source 0 was not asked: ") in said
    assert said.count("..") == not_asked.count("..") == 0
    return said


@pytest.mark.parametrize("name", ["lake.db.orders", "db.orders"])
def test_a_table_by_its_name(name: str, lake: SqlCatalog) -> None:
    [source] = floodmark.lag(str(CP), table=name).sources
    assert (source.error, source.behind.records, source.place) == (None, 9, name)
    assert rules(table=name) == {}


def test_a_sink_by_its_name(lake: SqlCatalog, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", str(CP), "--sink", "lake.db.copy"]) == 0
    assert "lake.db.copy has: batch 2." in capsys.readouterr().out
    assert list(rules(sink="lake.db.orders")) == ["iceberg-sink-forgot"]
    with pytest.raises(NoAnswer, match=r"has no table db\.gone"):
        rules(sink="lake.db.gone")


def test_an_expired_snapshot_by_its_name(lake: SqlCatalog) -> None:
    assert list(rules(table="lake.db.old")) == ["iceberg-snapshot-expired"]


def test_a_table_that_is_no_longer_in_its_folder(copied: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()}
    gone = str(tmp_path / "gone")
    assert "The table was dropped, or is elsewhere" in rules(copied, table=gone).popitem()[1]
    [source] = floodmark.lag(str(copied), table=gone).sources
    assert "The table was dropped" in str(source.error)
    with pytest.raises(NoAnswer, match="The table was dropped"):
        floodmark.repair(str(copied), table=gone, execute=True)
    assert {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()} == before


def test_a_dropped_table(lake: SqlCatalog) -> None:
    lake.drop_table("db.orders")
    assert "has no table db.orders: it was dropped or renamed" in answer("lake.db.orders")
    assert "has no table nowhere.orders" in answer("lake.nowhere.orders")


def test_a_catalog_that_is_not_set_up(catalogs: Configure) -> None:
    said = answer("unheard.db.orders")
    assert "catalog unheard cannot be asked" in said
    assert "pyiceberg is not set up for it" in said
    assert "PYICEBERG_CATALOG__UNHEARD__URI" in said


def test_a_catalog_that_cannot_be_reached(catalogs: Configure) -> None:
    with nobody_listens() as port:
        catalogs(shut__uri=f"http://me:pass-word-1@127.0.0.1:{port}", shut__type="rest")
        said = answer("shut.db.orders")
    assert "catalog shut cannot be asked" in said
    assert "pass-word-1" not in said


def test_a_catalog_that_never_answers(catalogs: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("floodmark.connectors.iceberg.table.TIMEOUT", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        catalogs(mute__uri=f"http://127.0.0.1:{mute.getsockname()[1]}", mute__type="rest")
        [source] = floodmark.lag(str(CP), table="mute.db.orders", timeout=1).sources
    assert "The catalog mute did not answer within 1 s" in str(source.error)


def test_without_pyiceberg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg.catalog", None)
    said = answer("lake.db.orders")
    assert "pyiceberg is not installed" in said
    assert 'pip install "floodmark[iceberg]"' in said
