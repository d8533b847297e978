"""Two states of the same bytes are known to be equal without their rows; nothing else is."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from floodmark.errors import FloodmarkError, StatePurged
from floodmark.statestore import same_bytes
from floodmark.statestore.open import open_state
from floodmark.statestore.same_bytes import have_same_bytes
from floodmark.statestore.view import StateView
from floodmark.storage.files import open_files
from floodmark.storage.load import load

GOLDEN = Path(__file__).parents[1] / "golden" / "4.2"
STATES = ("sales-hdfs", "sales-rocksdb", "sales-changelog", "sales-hdfs-snapshot")


def _copied(name: str, place: Path) -> Path:
    shutil.copytree(GOLDEN / name / "checkpoint", place)
    return place


def _state(place: Path, store: str | None = None, batch: int | None = None) -> StateView:
    files = open_files(str(place))
    return open_state(files, load(files), 0, store, batch)


def _newest(place: Path) -> Path:
    """The file of the newest version of partition 0."""
    found = [path for path in (place / "state" / "0" / "0").iterdir() if path.stem.isdecimal()]
    return max(found, key=lambda path: int(path.stem))


@pytest.mark.parametrize("name", STATES)
def test_a_copy_has_the_same_bytes(name: str, tmp_path: Path) -> None:
    one, other = (_copied(name, tmp_path / side) for side in ("one", "other"))
    assert have_same_bytes(_state(one), _state(other))


def test_a_linked_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = _copied("sales-hdfs", tmp_path / "one")
    linked = tmp_path / "linked"
    shutil.copytree(one, linked, copy_function=os.link)
    views = _state(one), _state(linked)
    read: list[str] = []
    monkeypatch.setattr(same_bytes.StoreAt, "read", lambda _, path: read.append(path) or b"")
    assert have_same_bytes(*views)
    assert not read


@pytest.mark.parametrize("name", STATES)
def test_one_other_byte_is_seen(name: str, tmp_path: Path) -> None:
    one, other = (_copied(name, tmp_path / side) for side in ("one", "other"))
    changed = _newest(other)
    data = bytearray(changed.read_bytes())
    data[-1] ^= 1
    changed.write_bytes(data)
    changed.with_name(f".{changed.name}.crc").unlink(missing_ok=True)
    changed.with_name(f"{changed.name}.crc").unlink(missing_ok=True)
    assert not have_same_bytes(_state(one), _state(other))


def test_another_batch_has_other_files(tmp_path: Path) -> None:
    one = _copied("sales-hdfs", tmp_path / "one")
    newest = _state(one)
    assert not have_same_bytes(newest, _state(one, batch=newest.batch - 1))


def test_a_snapshot_of_the_same_rows_is_left_to_the_rows(tmp_path: Path) -> None:
    one = _copied("sales-hdfs", tmp_path / "one")
    two = _copied("sales-hdfs", tmp_path / "two")
    delta = _newest(two)
    delta.with_suffix(".snapshot").write_bytes(b"some base")
    assert not have_same_bytes(_state(one), _state(two))


def test_bytes_that_are_read_in_another_way_are_not_the_same(tmp_path: Path) -> None:
    one = _state(_copied("sales-hdfs", tmp_path / "one"))
    value = one.reading.schema
    assert value is not None
    wider = replace(value, value_json=value.value_json.replace("double", "string"))
    assert wider != value
    assert not have_same_bytes(one, replace(one, reading=replace(one.reading, schema=wider)))


def test_a_joins_rows_depend_on_a_second_store(tmp_path: Path) -> None:
    place = _copied("join", tmp_path / "one")
    view = _state(place)
    joined = [_state(place, name) for name in view.stores]
    counted = [one for one in joined if one.counts_at is not None]
    assert counted
    assert not any(have_same_bytes(one, one) for one in counted)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    one, other = (_copied("sales-hdfs", tmp_path / side) for side in ("one", "other"))
    _newest(other).unlink()
    view = _state(one)
    with pytest.raises(FloodmarkError) as caught:
        have_same_bytes(view, _state(other, batch=view.batch))
    assert isinstance(caught.value, StatePurged) or "state/0/0" in caught.value.what
