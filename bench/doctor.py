"""`doctor` beside `inspect`, and `doctor --read-data` beside a plain read of the same files.

200 partitions and 100 kept batches, so 20,000 deltas; a state of few large files; and one in
RocksDB's tables. Each as Spark leaves it on a local disk, with Hadoop's checksums beside every
file; as Spark 4.1 and later leave it on an object store, with its own; and as it lies there
otherwise, with none.

The claim is of reading: from the disk, by the clock, less the time in which other programs had the
core (the kernel counts it): who waits for a disk does not mind them, who checks what was read does.
It is made out of the page cache too, where a plain read is a copy in memory, by processor time;
but not for large files without checksums beside them. lz4's are over what is unpacked, so there
the doctor cannot keep up with a copy of the packed bytes; it is held against a plain read that
unpacks. RocksDB's are over a few kilobytes each, and each partition's database has to be opened:
what that comes to is told, from either place.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import lz4.block
from measure import CONF, Claims, best, call_cpu_seconds, write_checkpoint

from floodmark import api
from floodmark.checkpoint.checksums.sidefiles import side_file_of
from floodmark.state.files.compression import compress
from floodmark.state.files.crc32c import crc_of
from floodmark.state.files.hdfs import write_snapshot
from floodmark.state.files.records import Records, render_records
from floodmark.state.rows.rowbytes import row_bytes
from floodmark.statestore.write import StoreFormat, write_store
from floodmark.storage.local import LocalFiles

PARTITIONS, BATCHES = 200, 100
LARGE_FILES, LARGE_ROWS = 16, 400_000
TABLES, TABLE_ROWS = 4, 1_000_000
LZ4_HEADER, LZ4_PACKED = struct.Struct("<8sBiii"), 0x20


def row(number: int) -> bytes:
    """An UnsafeRow of one long."""
    return bytes(8) + number.to_bytes(8, "little")


def many_files(folder: Path) -> Path:
    CONF["spark.sql.shuffle.partitions"] = str(PARTITIONS)
    write_checkpoint(folder, BATCHES)
    for partition in range(PARTITIONS):
        place = folder / "state" / "0" / str(partition)
        place.mkdir(parents=True)
        for version in range(1, BATCHES + 1):
            keys = [row(partition + n) for n in range(20)]
            data = compress(render_records(keys, [row(version + n) for n in range(20)]))
            (place / f"{version}.delta").write_bytes(data)
    return folder


def large_files(folder: Path) -> Path:
    CONF["spark.sql.shuffle.partitions"] = str(LARGE_FILES)
    write_checkpoint(folder, 1)
    chance = random.Random(8)
    keys = [row(chance.getrandbits(60)) for _ in range(LARGE_ROWS)]
    data = write_snapshot(keys, [row(chance.getrandbits(60)) for _ in keys])
    for partition in range(LARGE_FILES):
        place = folder / "state" / "0" / str(partition)
        place.mkdir(parents=True)
        (place / "1.snapshot").write_bytes(data)
    return folder


def tables(folder: Path) -> Path:
    """RocksDB: a large table in each partition."""
    import numpy as np

    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    CONF["spark.sql.streaming.stateStore.providerClass"] = provider
    CONF["spark.sql.shuffle.partitions"] = str(TABLES)
    write_checkpoint(folder, 1)
    chance = random.Random(8)
    keys = [row(chance.getrandbits(60)) for _ in range(TABLE_ROWS)]
    values = [row(chance.getrandbits(60)) for _ in keys]
    records = Records(row_bytes(keys), row_bytes(values), np.zeros(len(keys), bool))
    first = LocalFiles(str(folder), str(folder))
    write_store(first, "state/0/0", 1, [records], StoreFormat("rocksdb"))
    for partition in range(1, TABLES):
        shutil.copytree(folder / "state/0/0", folder / "state/0" / str(partition))
    return folder


def with_side_files(folder: Path, target: Path) -> Path:
    """The same, as Hadoop's local file system leaves it."""
    shutil.copytree(folder, target)
    for path in [path for path in target.rglob("*") if path.is_file()]:
        path.with_name(f".{path.name}.crc").write_bytes(side_file_of(path.read_bytes()))
    return target


def with_sparks_checksums(folder: Path, target: Path) -> Path:
    """The same, as Spark 4.1 leaves it where there is no Hadoop file system of checksums."""
    shutil.copytree(folder, target)
    for path in list(target.rglob("*.snapshot")):
        data = path.read_bytes()
        fields = {"algorithm": "CRC32C", "value": crc_of(data), "mainFileSize": len(data)}
        path.with_name(f"{path.name}.crc").write_text(json.dumps(fields))
    return target


def unpack(folder: Path) -> None:
    """A plain read that unpacks, and looks at nothing."""
    for path in folder.rglob("*.snapshot"):
        data, at = memoryview(path.read_bytes()), 0
        while True:
            _, token, packed, size, _ = LZ4_HEADER.unpack_from(data, at)
            at += LZ4_HEADER.size
            if not size:
                break
            if token & LZ4_PACKED:
                lz4.block.decompress(data[at : at + packed], uncompressed_size=size)
            at += packed


def read_bytes(folder: Path) -> int:
    return sum(len(path.read_bytes()) for path in folder.rglob("*") if path.is_file())


def from_disk(folder: Path, function: Callable[[], object]) -> float:
    """Seconds by the clock, with the files out of the page cache first."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)
    start, stood = time.perf_counter(), in_line()
    function()
    return time.perf_counter() - start - (in_line() - stood)


def in_line() -> float:
    """Seconds that this thread could have run and other programs had the cores."""
    told = Path("/proc/thread-self/schedstat")
    return int(told.read_text().split()[1]) / 1e9 if told.exists() else 0.0


def compare(claims: Claims, name: str, place: Path, claimed: str, rounds: int) -> None:
    """`claimed`: where it has to be half as fast, of `disk` and `memory`; elsewhere it is told."""
    plain, doctored = partial(read_bytes, place), partial(api.doctor, str(place), 1.0)
    copied, read, fetched, read_cold = best(
        rounds,
        partial(call_cpu_seconds, plain),
        partial(call_cpu_seconds, doctored),
        partial(from_disk, place, plain),
        partial(from_disk, place, doctored),
    )
    print(
        f"{name}: bytes {copied:.4f} s, doctor --read-data {read:.4f} s; "
        f"from the disk {fetched:.4f} s and {read_cold:.4f} s"
    )
    for where, measured in (("disk", fetched / read_cold), ("memory", copied / read)):
        claim = f"speed of --read-data, {name}, in plain reads from {where}"
        if where in claimed:
            claims.at_least(claim, measured, 0.5)
        else:
            print(f"       {claim}: {measured:.2f} (no claim)")


def compare_with_unpacking(claims: Claims, name: str, place: Path, rounds: int) -> None:
    unpacked, read = best(
        rounds,
        lambda: call_cpu_seconds(lambda: unpack(place)),
        lambda: call_cpu_seconds(lambda: api.doctor(str(place), 1.0)),
    )
    claim = f"speed of --read-data, {name}, in plain unpackings out of memory"
    claims.at_least(claim, unpacked / read, 0.4)


def main() -> None:
    claims = Claims()
    with tempfile.TemporaryDirectory() as folder:
        many, large = many_files(Path(folder) / "many"), large_files(Path(folder) / "large")
        assert {item.rule for item in api.doctor(str(many))} <= {"state-schema-missing"}
        inspected, doctored = best(
            3,
            lambda: call_cpu_seconds(lambda: api.inspect(str(many))),
            lambda: call_cpu_seconds(lambda: api.doctor(str(many))),
        )
        print(f"inspect {inspected:.3f} s, doctor {doctored:.3f} s")
        claims.at_most("doctor, in inspects", doctored / inspected, 3)
        stores = tables(Path(folder) / "tables")
        for name, place, rounds, alone in (
            ("20,000 small files", many, 3, "disk and memory"),
            (f"{LARGE_FILES} large files", large, 20, "disk"),
            (f"{TABLES} large RocksDB tables", stores, 20, "neither"),
        ):
            beside = with_side_files(place, place.with_name(f"{place.name}-beside"))
            with_sums = f"{name} with checksums beside them"
            compare(claims, with_sums, beside, "disk and memory", rounds)
            compare(claims, f"{name} alone", place, alone, rounds)
        compare_with_unpacking(claims, f"{LARGE_FILES} large files alone", large, 20)
        own = with_sparks_checksums(large, large.with_name("large-own"))
        compare(
            claims, f"{LARGE_FILES} large files with Spark's checksums", own, "disk and memory", 20
        )
    claims.finish()


if __name__ == "__main__":
    main()
