"""Spark goes on with state that floodmark has written anew, as it does with its own.

After the first half of the input the state is repartitioned or converted. What Spark then
makes of the second half must be, row by row, what it makes of it on its own checkpoint.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from floodmark import api
from floodmark.changes.apply import Carrying
from floodmark.errors import NoAnswer
from floodmark.statestore.open import open_state
from floodmark.storage.files import open_files
from floodmark.storage.load import load

from restated import (  # isort: skip
    FIRST_FILES,
    kept,
    run,
    run_first_half,
    second_input,
    write_input,
)
from spark_states import FORMAT, STATES, session_conf  # isort: skip

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXECUTE = Carrying(execute=True)
SPARKS = Path(__file__).resolve().parents[2] / ".cache" / "sparks"
NEWER = ("unique-ids", "format3", "transform", "checksum")
"""What Spark 3.5 does not have."""

# How a state is written anew: (verb, its arguments, what the session needs then).
CHANGES: dict[str, tuple[str, dict[str, Any], dict[str, str]]] = {
    "to 5 partitions": ("repartition", {"partitions": 5}, {}),
    "to 1 partition": ("repartition", {"partitions": 1}, {}),
    "to rocksdb": ("convert", {"provider": "rocksdb"}, {}),
    "to hdfs": ("convert", {"provider": "hdfs"}, {FORMAT: "1"}),
    "to unique ids": ("convert", {"provider": "rocksdb", "state_format": 2}, {FORMAT: "2"}),
    "from unique ids": ("convert", {"provider": "rocksdb", "state_format": 1}, {FORMAT: "1"}),
}
TWICE = ("aggregate-unique-ids", "dedup-within-rocksdb", "transform-pandas")
GOOD_REASONS = ("already", "its state has one partition", "which only RocksDB has")
SHORT = [
    ("aggregate-hdfs", ["to 5 partitions", "to rocksdb"]),
    ("aggregate-unique-ids", ["to 1 partition", "from unique ids"]),
    ("dedup-hdfs", ["to unique ids"]),
    ("dedup-within-rocksdb", ["to 5 partitions", "to hdfs"]),
    ("session-hdfs", ["to rocksdb"]),
    ("session-rocksdb", ["to 5 partitions", "to hdfs"]),
    ("join-hdfs", ["to 5 partitions", "to rocksdb"]),
    ("join-format3", ["to 5 partitions"]),
    ("groups-rocksdb", ["to 5 partitions", "to hdfs"]),
    ("transform-pandas", ["to 5 partitions", "to unique ids"]),
]
# These say nothing about writing: their state is one of the others', compressed otherwise.
LONG = [name for name in STATES if name not in ("aggregate-snappy", "aggregate-lzf")]


def change(root: Path, name: str, how: str) -> tuple[Path, dict[str, str]] | None:
    """The checkpoint that the change makes; None where it is refused with good reason."""
    verb, arguments, conf = CHANGES[how]
    new = root / f"{name} {how}".replace(" ", "-")
    try:
        done = getattr(api, verb)(str(root / name), str(new), carrying=EXECUTE, **arguments)
    except NoAnswer as error:
        if not any(words in error.what for words in GOOD_REASONS):
            raise
        return None
    assert done.executed
    return new, conf


@pytest.mark.spark
@pytest.mark.parametrize(("name", "changes"), SHORT, ids=[name for name, _ in SHORT])
def test_a_stream_goes_on(
    spark: SparkSession, tmp_path: Path, name: str, changes: list[str]
) -> None:
    run_first_half(spark, tmp_path, name)
    jobs: dict[str, tuple[Path, dict[str, str]]] = {}
    before = _content(tmp_path / name)
    for how in changes:
        made = change(tmp_path, name, how)
        assert made is not None
        jobs[how] = made
    assert _content(tmp_path / name) == before  # the old one is not touched
    read = _by_spark(spark, name, tmp_path / name, {})
    assert any(read)
    for how, (checkpoint, conf) in jobs.items():
        assert _by_spark(spark, name, checkpoint, conf) == read, how
    source = second_input(tmp_path, name)
    run(spark, name, source, tmp_path / name, tmp_path / "out" / "own")
    own = kept(tmp_path / "out" / "own")
    assert any(own.values())
    for how, (checkpoint, conf) in jobs.items():
        out = tmp_path / "out" / how
        run(spark, name, source, checkpoint, out, conf)
        assert kept(out) == own, how
    if name in TWICE:
        # What Spark has written itself now builds on what was written for it.
        write_input(source, FIRST_FILES + 1)
        run(spark, name, source, tmp_path / name, tmp_path / "out" / "own")
        for how, (checkpoint, conf) in jobs.items():
            run(spark, name, source, checkpoint, tmp_path / "out" / how, conf)
            assert kept(tmp_path / "out" / how) == kept(tmp_path / "out" / "own"), how


def _by_spark(
    spark: SparkSession, name: str, checkpoint: Path, conf: dict[str, str]
) -> list[list[str]]:
    """The state by Spark's own reader, without the partition that each row is in."""
    _ = spark.streams.active
    with session_conf(spark, {**STATES[name][2], **conf}):
        found = []
        for options in STATES[name][3]:
            frame = spark.read.format("statestore").options(**options).load(str(checkpoint))
            rows = frame.drop("partition_id").collect()
            found.append(sorted(str(row.asDict(recursive=True)) for row in rows))
    return found


@pytest.mark.spark
@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("aggregate-hdfs", "to 5 partitions"),
        ("join-format3", "to 5 partitions"),
        ("session-rocksdb", "to hdfs"),
    ],
)
def test_executors_write_what_one_process_does(
    spark: SparkSession, tmp_path: Path, name: str, how: str
) -> None:
    run_first_half(spark, tmp_path, name)
    verb, arguments, _ = CHANGES[how]
    old = str(tmp_path / name)
    for place, on_spark in (("here", False), ("there", True)):
        new = str(tmp_path / place)
        done = getattr(api, verb)(old, new, carrying=EXECUTE, on_spark=on_spark, **arguments)
        assert done.executed
    tables = [_rows(str(tmp_path / place)) for place in ("here", "there")]
    assert tables[0] == tables[1]
    assert tables[0]


def _rows(location: str) -> list[str]:
    files = open_files(location)
    checkpoint = load(files)
    first = open_state(files, checkpoint)
    return sorted(
        f"{store} {row}"
        for store in first.stores
        for row in open_state(files, checkpoint, 0, store).rows()
    )


def _content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("version", ["3.5.9", "4.0.5", "4.1.4", "4.2", "4.3.0"])
def test_every_state_goes_on_in_every_spark(version: str, tmp_path: Path) -> None:
    import json

    python = sys.executable if version == "4.2" else str(SPARKS / version / "bin" / "python")
    if not Path(python).exists():
        pytest.skip(f"Spark {version} is not installed in .cache/sparks")
    names = [
        name
        for name in LONG
        if not (version.startswith("3") and any(word in name for word in NEWER))
    ]
    for mine in _apart(version, names, lambda name: "unique-ids" in name):
        _spark(python, "first", str(tmp_path), *mine)
    names = [name for name in names if _was_made(tmp_path, name)]
    jobs = []
    for name in names:
        shutil.copytree(tmp_path / name, tmp_path / f"{name}-own", symlinks=True)
        jobs.append(_job(tmp_path, name, "own", tmp_path / name, {}))
        for how in CHANGES:
            # The plan says so: Spark 4.0 reads no such state but its own.
            if version.startswith(("3", "4.0")) and how == "to unique ids":
                continue
            made = change(tmp_path, name, how)
            if made is not None:
                jobs.append(_job(tmp_path, name, how, *made))
    wrong = []
    for mine in _apart(version, jobs, lambda job: "unique-ids" in job["name"] and not job["conf"]):
        (tmp_path / "jobs.json").write_text(json.dumps(mine))
        # Its sink may have had the rows before a query fails.
        wrong += _spark(python, "second", str(tmp_path), str(tmp_path / "jobs.json"))
    for job in jobs:
        own = kept(tmp_path / "out" / job["name"] / "own")
        found = kept(Path(job["out"]))
        if not own or found != own:
            wrong.append(f"{job['name']} {job['how']}")
    print(f"\nSpark {version}: {len(jobs) - len(names)} states written anew, {len(wrong)} wrong")
    assert not wrong


def _apart(version: str, every: list[Any], has_ids: Callable[[Any], bool]) -> list[list[Any]]:
    """Spark 4.0 reads the zips of one format alone: that of the first one its JVM has used."""
    if not version.startswith("4.0"):
        return [every]
    parted = [[one for one in every if has_ids(one) is wanted] for wanted in (False, True)]
    return [one for one in parted if one]


def _job(root: Path, name: str, how: str, checkpoint: Path, conf: dict[str, str]) -> dict[str, Any]:
    return {
        "name": name,
        "how": how,
        "checkpoint": str(checkpoint),
        "out": str(root / "out" / name / how),
        "conf": conf,
    }


def _was_made(root: Path, name: str) -> bool:
    """Some states need a newer Spark, or packages that this one's Python lacks."""
    return len(kept(root / "out" / name / "first")) == 2


def _spark(python: str, *arguments: str) -> list[str]:
    """What failed, in a line each."""
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYSPARK", "SPARK", "PYTHONPATH"))
    }
    done = subprocess.run(
        [python, str(Path(__file__).with_name("restated.py")), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    print(*failed, sep="\n")
    assert done.returncode >= 0, done.stderr[-3000:]
    return failed
