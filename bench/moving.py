"""Moving a stream: a fork costs by files and not by bytes, and planning costs as little as looking.

The checkpoint is made up, not run by Spark: logs, operator metadata and RocksDB snapshots
of the right shape, whose SSTs are random bytes. Nothing in a fork reads them.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from measure import (
    CONF,
    FLOODMARK,
    Claims,
    best,
    call_cpu_seconds,
    command_cpu_seconds,
    s3_server,
    write_checkpoint,
)

from floodmark import api
from floodmark.changes.apply import Carrying
from floodmark.checkpoint.relative_path import RelativePath
from floodmark.storage.files import open_files

PARTITIONS, TABLES = 4, 16
LARGE, SMALL = 32 << 20, 320 << 10
"""Bytes of an SST: 64 of them are 2 GB, or 20 MB."""
BATCHES = 100
LONG_AGO = 1_700_000_000


def write_rocksdb_checkpoint(folder: Path, table_bytes: int) -> Path:
    write_checkpoint(folder, BATCHES)
    operator = folder / "state" / "0"
    (operator / "_metadata").mkdir(parents=True)
    (operator / "_metadata" / "metadata").write_text("v1\n" + json.dumps(_operator()))
    for path in (folder / "offsets").iterdir():
        name = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        path.write_text(path.read_text().replace(_provider(), name))
    block = os.urandom(table_bytes)
    for partition in range(PARTITIONS):
        place = operator / str(partition)
        (place / "SSTs").mkdir(parents=True)
        for number in range(TABLES):
            # A number in front: no two files are one to a file system that looks for that.
            head = f"{partition}/{number}".encode()
            (place / "SSTs" / _stored(number)).write_bytes(head + block[len(head) :])
        (place / f"{BATCHES}.zip").write_bytes(_snapshot(table_bytes))
    for path in folder.rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))  # stopped long ago: nobody watches whether it moves
    return folder


def _provider() -> str:
    return CONF["spark.sql.streaming.stateStore.providerClass"]


def _stored(number: int) -> str:
    return f"{number:06d}-5a0c362f-824f-43a3-940d-3be0f4a399fd.sst"


def _operator() -> dict[str, Any]:
    store = {"storeName": "default", "numColsPrefixKey": 0, "numPartitions": PARTITIONS}
    return {
        "operatorInfo": {"operatorId": 0, "operatorName": "stateStoreSave"},
        "stateStoreInfo": [store],
    }


def _snapshot(table_bytes: int) -> bytes:
    tables = [
        {
            "localFileName": f"{number:06d}.sst",
            "dfsSstFileName": _stored(number),
            "sizeBytes": table_bytes,
        }
        for number in range(TABLES)
    ]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("metadata", "v1\n" + json.dumps({"sstFiles": tables, "numKeys": 1}))
        archive.writestr("CURRENT", "MANIFEST-000001\n")
    return packed.getvalue()


def fork(origin: str, target: str, storage: Mapping[str, Any] | None = None) -> None:
    api.copy(origin, target, new_identity=True, carrying=Carrying(True, storage=storage))


def seconds_of(work: Callable[[Path], object], folder: Path) -> float:
    place = folder / f"fork-{time.monotonic_ns()}"
    start = time.perf_counter()
    work(place)
    spent = time.perf_counter() - start
    shutil.rmtree(place)
    return spent


def on_a_disk(claims: Claims, folder: Path) -> None:
    large = write_rocksdb_checkpoint(folder / "large", LARGE)
    small = write_rocksdb_checkpoint(folder / "small", SMALL)
    size = api.inspect(str(large)).bytes
    many, few, copied = best(
        3,
        lambda: seconds_of(lambda place: fork(str(large), str(place)), folder),
        lambda: seconds_of(lambda place: fork(str(small), str(place)), folder),
        lambda: seconds_of(lambda place: shutil.copytree(large, place), folder),
    )
    print(
        f"a fork of {size / 1e9:.1f} GB {many:.3f} s, of as many small files {few:.3f} s; "
        f"a recursive copy {copied:.3f} s"
    )
    claims.at_most("times the fork of 1 percent of the bytes in as many files", many / few, 1.5)
    claims.at_most("times a recursive copy", many / copied, 0.5)
    planning(claims, large, folder)


def planning(claims: Claims, checkpoint: Path, folder: Path) -> None:
    new = str(folder / "never")
    plan, look = best(
        5,
        lambda: command_cpu_seconds([FLOODMARK, "upgrade", str(checkpoint), new]),
        lambda: command_cpu_seconds([FLOODMARK, "inspect", str(checkpoint)]),
    )
    print(f"planning an upgrade {plan:.3f} s of processor time, an inspect {look:.3f} s")
    claims.at_most("times an inspect, to plan an upgrade", plan / look, 2.0)


def on_s3(claims: Claims, folder: Path) -> None:
    """The store copies: what passes through this process does not grow with the state."""
    with s3_server() as server:
        options = server.storage_options
        places = {}
        for name, table_bytes in (("large", 1 << 20), ("small", 10 << 10)):
            local = write_rocksdb_checkpoint(folder / f"s3-{name}", table_bytes)
            places[name] = server.place(name)
            remote = open_files(places[name], options)
            for file in open_files(str(local)).list().files:
                remote.write(RelativePath(file.path), (local / file.path).read_bytes())

        def cpu(name: str) -> float:
            target = server.place("fork")
            return call_cpu_seconds(lambda: fork(places[name], target, options))

        large, small = best(3, lambda: cpu("large"), lambda: cpu("small"))
        with server.requests() as sent:
            fork(places["large"], server.place("fork"), options)
    print(f"S3: 67 MB {large:.3f} s of processor time, 0.7 MB {small:.3f} s; requests {dict(sent)}")
    claims.at_most("times the fork of 1 percent of the bytes, on S3", large / small, 1.5)
    claims.at_most("reads a file that is copied, on S3", sent["GET"] / sent["PUT"], 0.5)


def main() -> None:
    claims = Claims()
    with tempfile.TemporaryDirectory() as folder:
        on_a_disk(claims, Path(folder))
        on_s3(claims, Path(folder))
    claims.finish()


if __name__ == "__main__":
    main()
