"""`doctor --sources`, where folders answer; brokers answer in tests/integration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import samples
from floodmark import api
from floodmark.errors import CannotRead

TABLE_ID = "a1b2"


def table(folder: Path, versions: range, files: int = 1, table_id: str = TABLE_ID) -> Path:
    tree = {}
    for version in versions:
        adds = [{"add": {"path": f"part-{version}-{n}.parquet"}} for n in range(files)]
        lines = [{"metaData": {"id": table_id}}, *adds]
        text = "\n".join(json.dumps(line) for line in lines)
        tree[f"_delta_log/{version:020d}.json"] = text.encode()
        tree |= {f"part-{version}-{n}.parquet": b"" for n in range(files)}
    return samples.write(folder / "table", tree)


def delta_stream(folder: Path) -> Path:
    """It goes on at the beginning of version 7."""
    tree = samples.logs(range(3), range(3), offset=lambda batch: samples.DELTA_OFFSET)
    return samples.write(folder / "cp", tree)


def found(place: Path, **asked: object) -> list[tuple[str, str]]:
    return [(item.rule, item.what) for item in api.doctor(str(place), **asked)]  # type: ignore[arg-type]


def test_a_table_that_has_what_comes_next_is_sound(tmp_path: Path) -> None:
    place = delta_stream(tmp_path)
    assert found(place, table=str(table(tmp_path, range(5, 10)))) == []


@pytest.mark.parametrize(
    ("versions", "table_id", "words"),
    [
        (range(8, 12), TABLE_ID, "begins at 8"),
        (range(5), TABLE_ID, "ends at 4"),
        (range(5, 10), "other", "another table (other)"),
        (range(0), TABLE_ID, "it has no _delta_log"),
    ],
)
def test_a_table_that_has_not(versions: range, table_id: str, words: str, tmp_path: Path) -> None:
    place = delta_stream(tmp_path)
    (tmp_path / "table").mkdir()
    [(rule, what)] = found(place, table=str(table(tmp_path, versions, table_id=table_id)))
    assert rule == "delta-version-gone"
    assert words in what


def test_vacuumed_files_are_missed(tmp_path: Path) -> None:
    place = delta_stream(tmp_path)
    lake = table(tmp_path, range(5, 10), files=3)
    (lake / "part-6-0.parquet").unlink()
    assert found(place, table=str(lake)) == []  # version 6 was read
    (lake / "part-8-2.parquet").unlink()
    [(rule, what)] = found(place, table=str(lake))
    assert rule == "delta-version-gone"
    assert "part-8-2.parquet" in what


def file_stream(folder: Path) -> Path:
    """Four files are listed, two batches took three of them: one waits."""
    tree = samples.file_stream()
    place = folder / "in dir"
    address = str(place).replace(" ", "%20").encode()
    moved = {path: data.replace(b"/in/", address + b"/") for path, data in tree.items()}
    samples.write(place, {f"day {n}.json": b"" for n in range(4)})
    return samples.write(folder / "cp", moved)


def test_an_input_file_that_waits_has_to_be_there(tmp_path: Path) -> None:
    place = file_stream(tmp_path)
    (tmp_path / "in dir" / "day 0.json").unlink()  # read long ago
    assert found(place, sources=True) == []
    (tmp_path / "in dir" / "day 3.json").unlink()
    [(rule, what)] = found(place, sources=True)
    assert rule == "input-file-gone"
    assert "day 3.json" in what


@pytest.mark.parametrize(
    ("newest", "rules"),
    [(1, ["sink-behind-commits"]), (2, []), (3, ["sink-ahead-of-commits"])],
)
@pytest.mark.parametrize("kind", ["delta", "files"])
def test_the_sink_is_compared(kind: str, newest: int, rules: list[str], tmp_path: Path) -> None:
    place = samples.write(tmp_path / "cp", samples.logs(range(3), range(3)))
    if kind == "delta":
        txn = json.dumps({"txn": {"appId": samples.QUERY_ID, "version": newest}}).encode()
        out = samples.write(tmp_path / "out", {f"_delta_log/{0:020d}.json": txn})
    else:
        log = {f"_spark_metadata/{n}": b"v1" for n in range(newest + 1)}
        out = samples.write(tmp_path / "out", log)
    assert [rule for rule, _ in found(place, sink=str(out))] == rules


@pytest.mark.parametrize("there", [True, False])
def test_a_sink_that_is_none_is_said(there: bool, tmp_path: Path) -> None:
    place = samples.write(tmp_path / "cp", samples.logs(range(3), range(3)))
    note = {"sink": {"kind": "delta", "options": {"path": "elsewhere"}}}
    samples.write(place, {"_floodmark/starts/1.json": json.dumps(note).encode()})
    if there:
        samples.write(tmp_path / "out", {"data.csv": b"a,b"})
    with pytest.raises(CannotRead, match="no Delta table, no Iceberg table"):
        found(place, sink=str(tmp_path / "out"))


def test_the_notes_of_the_last_start_name_the_places(tmp_path: Path) -> None:
    place = delta_stream(tmp_path)
    lake = table(tmp_path, range(8, 10))
    note = {"sources": [{"kind": "delta", "options": {"path": str(lake)}}]}
    samples.write(place, {"_floodmark/starts/1.json": json.dumps(note).encode()})
    assert [rule for rule, _ in found(place, sources=True)] == ["delta-version-gone"]


def test_what_cannot_be_asked_is_said(tmp_path: Path) -> None:
    place = samples.write(tmp_path / "cp", samples.logs(range(3), range(3)))
    [(rule, what)] = found(place, sources=True)
    assert rule == "source-not-asked"
    assert "--bootstrap-servers" in what
