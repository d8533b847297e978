"""State that is not there: every verb says so, in the same words, and in little time and memory."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import samples
from broken.checkpoint import state_gone
from carried import GO
from floodmark import api
from floodmark.checkpoint.restart import Action
from floodmark.cli.main import run
from floodmark.errors import StateFileMissing
from rules.examples import golden

Capture = pytest.CaptureFixture[str]


def pinned(tmp_path: Path, count: int, name: str = "4.2/sales-hdfs") -> Path:
    """A checkpoint of two partitions whose entries pin another number of them."""
    pin = re.compile(rb'"spark.sql.shuffle.partitions":"\d+"')
    return samples.write(
        tmp_path / "cp",
        {
            path: pin.sub(b'"spark.sql.shuffle.partitions":"%d"' % count, data)
            if path.startswith("offsets/")
            else data
            for path, data in golden(name).items()
            if not path.startswith("offsets/.")
        },
    )


VERBS = {
    "inspect": (0, []),
    "doctor": (1, []),
    "doctor --read-data": (1, []),
    "state": (3, []),
    "state --stats": (3, []),
    "compact": (3, []),
    "repair": (1, []),
    "rewind --to-batch 1": (3, []),
    "upgrade": (3, ["new"]),
    "backup": (3, ["repo"]),
    "convert --provider rocksdb": (3, ["new"]),
    "repartition --partitions 3": (3, ["new"]),
}


@pytest.mark.parametrize("count", [10_000_000, 10**15])
@pytest.mark.parametrize("verb", VERBS)
def test_a_number_of_partitions_that_no_machine_has(
    verb: str, count: int, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = pinned(tmp_path, count)
    status, more = VERBS[verb]
    name, *options = verb.split()
    assert run([name, str(place), *more, *options]) == status
    printed = capsys.readouterr()
    said = " ".join((printed.out + printed.err).split())
    batch = 1 if name == "rewind" else 2
    pin = f"offsets/{batch} pins spark.sql.shuffle.partitions to {count:,}"
    assert f"{pin}, but state/0 has 2 partitions" in said


@pytest.mark.parametrize("name", ["4.2/sales-hdfs", "4.2/sales-rocksdb", "3.5/sales-hdfs"])
def test_a_lost_partition_is_seen_by_all(name: str, tmp_path: Path, capsys: Capture) -> None:
    """Partition 1 of 2: what is left looks like a query without keys, but for its schema."""
    place = samples.write(tmp_path / "cp", golden(name))
    shutil.rmtree(place / "state/0/1")
    found = api.inspect(str(place))
    assert found.state_missing == ("state/0/1.",)
    assert found.restart is not None
    assert found.restart.action is Action.FAIL
    assert run(["inspect", str(place)]) == 0
    assert "batch 3 fails" in capsys.readouterr().out
    with pytest.raises(StateFileMissing, match="state/0/1"):
        api.compact(str(place), keep=1, carrying=GO)
    assert "state-version-missing" in {item.rule for item in api.doctor(str(place))}


def test_one_partition_of_a_query_without_keys_is_whole(tmp_path: Path) -> None:
    place = samples.write(tmp_path / "cp", golden("4.2/limit"))
    assert api.inspect(str(place)).state_missing == ()
    api.compact(str(place), keep=1)


def without_state(tmp_path: Path, noted: bool) -> Path:
    """A checkpoint whose state/ is gone; a note of its last start may tell of it."""
    tree = dict(golden(state_gone.FROM))
    state_gone.damage(tree)
    if not noted:
        del tree["_floodmark/starts/0.json"]
    return samples.write(tmp_path / "cp", tree)


def test_inspect_tells_that_all_of_the_state_is_gone(tmp_path: Path, capsys: Capture) -> None:
    place = without_state(tmp_path, noted=True)
    assert run(["inspect", str(place)]) == 0
    said = capsys.readouterr().out
    assert "batch 3 fails, because the state that it starts from is missing" in said
    assert "goes on with batch 3" not in said
    assert run(["inspect", str(place), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["restart"]["action"] == "fail"
    assert len(found["state_missing"]) == 1


def test_without_a_note_nothing_is_said_of_state(tmp_path: Path) -> None:
    """It may be a query without any: only `doctor` says what that would mean."""
    assert api.inspect(str(without_state(tmp_path, noted=False))).state_missing == ()


def test_a_backup_of_dstreams_says_what_it_is(tmp_path: Path, capsys: Capture) -> None:
    place = samples.write(tmp_path / "cp", golden("4.2/dstreams"))
    assert run(["backup", str(place), str(tmp_path / "repo"), "--execute"]) == 3
    said = capsys.readouterr().err
    assert "is a DStreams checkpoint: it cannot be backed up" in said
    assert "empty" not in said


def test_forget_counts_all_that_goes(tmp_path: Path, capsys: Capture) -> None:
    place = samples.write(tmp_path / "cp", golden("4.2/sales-hdfs"))
    api.rewind(str(place), to_batch=1, accept=["out-of-reach"], carrying=GO)
    kept = [path for path in (place / "_floodmark/kept").rglob("*") if path.is_file()]
    journals = list((place / "_floodmark/journal").iterdir())
    size = sum(path.stat().st_size for path in (*kept, *journals))
    assert run(["forget", str(place)]) == 0
    said = capsys.readouterr().out
    assert f"Forget 1 change: {len(kept) + 1} files ({size:,} bytes)" in said
    assert f"delete   {len(kept)} files in _floodmark/kept" in said
    assert run(["forget", str(place), "--execute"]) == 0
    assert f"Removed {len(kept) + 1} files." in capsys.readouterr().out
