"""`doctor` beside `inspect`, and `doctor --read-data` beside a plain read of the same files.

200 partitions and 100 kept batches, so 20,000 deltas; and a state of few large files. A plain
read takes every file's rows and looks at none. How long the bytes alone take is printed, too:
from the page cache that is a copy in memory, which nothing that looks at them can keep up with.
"""

from __future__ import annotations

import random
import tempfile
from functools import partial
from pathlib import Path

from measure import CONF, Claims, best, call_cpu_seconds, write_checkpoint

from floodmark import api
from floodmark.state.hdfs import file_records, write_delta, write_snapshot

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


def read_bytes(folder: Path) -> int:
    return sum(len(path.read_bytes()) for path in folder.rglob("*") if path.is_file())


def read_rows(folder: Path) -> int:
    return sum(
        len(records)
        for path in folder.glob("state/*/*/*")
        for records in file_records("", path.read_bytes(), path.suffix == ".delta")
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
            copied, plain, read = best(
                3,
                partial(call_cpu_seconds, partial(read_bytes, place)),
                partial(call_cpu_seconds, partial(read_rows, place)),
                partial(call_cpu_seconds, partial(api.doctor, str(place), 1.0)),
            )
            print(
                f"{name}: bytes {copied:.3f} s, rows {plain:.3f} s, doctor --read-data {read:.3f} s"
            )
            claims.at_least(
                f"speed of --read-data, {name}, in plain reads of its rows", plain / read, 0.5
            )
    claims.finish()


if __name__ == "__main__":
    main()
