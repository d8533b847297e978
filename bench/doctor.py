"""`doctor` beside `inspect`, and `doctor --read-data` beside a plain read of the same files.

200 partitions and 100 kept batches, so 20,000 deltas; and a state of few large files. Each as
Spark leaves it on a local disk, with Hadoop's checksums beside every file, and as it lies on an
object store, without. A plain read takes the bytes of every file: once out of the page cache, where
it is a copy in memory, and once from the disk.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from measure import CONF, Claims, best, call_cpu_seconds, write_checkpoint

from floodmark import api
from floodmark.checkpoint.sidefiles import side_file_of
from floodmark.state.hdfs import write_delta, write_snapshot

PARTITIONS, BATCHES = 200, 100
LARGE_ROWS = 400_000


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
            data = write_delta(keys, [row(version + n) for n in range(20)])
            (place / f"{version}.delta").write_bytes(data)
    return folder


def large_files(folder: Path) -> Path:
    CONF["spark.sql.shuffle.partitions"] = "4"
    write_checkpoint(folder, 1)
    chance = random.Random(8)
    for partition in range(4):
        place = folder / "state" / "0" / str(partition)
        place.mkdir(parents=True)
        keys = [row(chance.getrandbits(60)) for _ in range(LARGE_ROWS)]
        data = write_snapshot(keys, [row(chance.getrandbits(60)) for _ in keys])
        (place / "1.snapshot").write_bytes(data)
    return folder


def with_side_files(folder: Path, target: Path) -> Path:
    """The same, as Hadoop's local file system leaves it."""
    shutil.copytree(folder, target)
    for path in [path for path in target.rglob("*") if path.is_file()]:
        path.with_name(f".{path.name}.crc").write_bytes(side_file_of(path.read_bytes()))
    return target


def read_bytes(folder: Path) -> int:
    return sum(len(path.read_bytes()) for path in folder.rglob("*") if path.is_file())


def from_disk(folder: Path, function: Callable[[], object]) -> float:
    """Seconds, with the files out of the page cache first."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def compare(claims: Claims, name: str, place: Path) -> None:
    plain, doctored = partial(read_bytes, place), partial(api.doctor, str(place), 1.0)
    copied, read, fetched, read_cold = best(
        3,
        partial(call_cpu_seconds, plain),
        partial(call_cpu_seconds, doctored),
        partial(from_disk, place, plain),
        partial(from_disk, place, doctored),
    )
    print(
        f"{name}: bytes {copied:.3f} s, doctor --read-data {read:.3f} s; "
        f"from the disk {fetched:.3f} s and {read_cold:.3f} s"
    )
    claims.at_least(
        f"speed of --read-data, {name}, in plain reads from the disk", fetched / read_cold, 0.5
    )
    claims.at_least(
        f"speed of --read-data, {name}, in plain reads out of memory", copied / read, 0.5
    )


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
        for name, place in (("20,000 small files", many), ("4 large files", large)):
            beside = with_side_files(place, place.with_name(f"{place.name}-beside"))
            compare(claims, f"{name} with checksums beside them", beside)
            compare(claims, f"{name} alone", place)
    claims.finish()


if __name__ == "__main__":
    main()
