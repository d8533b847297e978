"""How reading grows from 10 to 10,000 batches, checkpoints and partitions, in processor time.

How it grows with keys, `bench/state_read.py` measures: their state is made by Spark.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from measure import Claims, best, call_cpu_seconds, write_checkpoint

from floodmark import api

MOST = 10_000


def tens(most: int) -> list[int]:
    return [10**power for power in range(1, 9) if 10**power <= most]


def milliseconds(work: object, times: int = 3) -> float:
    assert callable(work)
    return best(times, lambda: call_cpu_seconds(work))[0] * 1000


def by_batches(claims: Claims, folder: Path) -> None:
    inspected, listed = [], []
    for number in tens(MOST):
        place = str(write_checkpoint(folder / f"batches-{number}", number))
        inspected.append((number, milliseconds(lambda at=place: api.inspect(at))))
        listed.append((number, milliseconds(lambda at=place: api.batches(at))))
    claims.grows("inspect", "batches", "ms", inspected)
    claims.grows("batches", "batches", "ms", listed)
    # The newest entries alone are read; what grows is the listing.
    claims.at_most(
        "time a batch from 1,000 to 10,000", inspected[-1][1] / inspected[-2][1] / 10, 1.3
    )


def by_checkpoints(claims: Claims, folder: Path) -> None:
    points = []
    list(api.scan([str(folder)]))  # loads what a scan needs
    for number in tens(MOST):
        root = folder / f"checkpoints-{number}"
        for one in range(number):
            write_checkpoint(root / f"team-{one % 100}" / f"stream-{one}", batches=2)
        points.append((number, milliseconds(lambda at=str(root): list(api.scan([at])), 1)))
    claims.grows("scan", "checkpoints", "ms", points)
    claims.at_most(
        "time a checkpoint from 1,000 to 10,000", points[-1][1] / points[-2][1] / 10, 1.3
    )


def by_partitions(claims: Claims, folder: Path) -> None:
    points = []
    for number in tens(MOST):
        place = write_checkpoint(folder / f"partitions-{number}", batches=2)
        _stateful(place, number)
        points.append((number, milliseconds(lambda at=str(place): api.inspect(at))))
    claims.grows("inspect", "partitions of state", "ms", points)
    claims.at_most("time a partition from 1,000 to 10,000", points[-1][1] / points[-2][1] / 10, 1.3)


def _stateful(place: Path, partitions: int) -> None:
    operator = place / "state" / "0"
    (operator / "_metadata").mkdir(parents=True)
    store = {"storeName": "default", "numColsPrefixKey": 0, "numPartitions": partitions}
    told = {
        "operatorInfo": {"operatorId": 0, "operatorName": "stateStoreSave"},
        "stateStoreInfo": [store],
    }
    (operator / "_metadata" / "metadata").write_text("v1\n" + json.dumps(told))
    for partition in range(partitions):
        folder = operator / str(partition)
        folder.mkdir()
        for version in (1, 2):
            (folder / f"{version}.delta").write_bytes(b"x" * 40)


def main() -> None:
    claims = Claims()
    with tempfile.TemporaryDirectory() as folder:
        for measure in (by_batches, by_checkpoints, by_partitions):
            measure(claims, Path(folder))
    claims.finish()


if __name__ == "__main__":
    main()
